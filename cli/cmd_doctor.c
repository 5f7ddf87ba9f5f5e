/* SPDX-License-Identifier: Apache-2.0 */
/* laggard doctor: what `record` would capture on this machine, and why not. Loads the libraries that a
 * traced program would load, and asks them; changes nothing. */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/where.h"
#include "schema/base/fmt.h"
#include "schema/base/json_write.h"
#include "schema/env.h"

enum verdict {
	GOOD,
	NOTE,    /* works, but should be known */
	MISSING, /* something is not captured */
};

#define FINDINGS_MAX 48

struct doctor {
	struct {
		enum verdict verdict;
		const char *what;
		char text[PATH_MAX + 128];
	} findings[FINDINGS_MAX];

	size_t n;
	int cuda_major;      /* of the driver; 0 = no driver */
	char seen[PATH_MAX]; /* the libcupti looked at last: links lead to it again */
};

__attribute__((format(printf, 4, 5))) static void say(struct doctor *doc, enum verdict verdict,
						      const char *what, const char *fmt, ...)
{
	va_list ap;

	if (doc->n == FINDINGS_MAX)
		return;
	doc->findings[doc->n].verdict = verdict;
	doc->findings[doc->n].what = what;
	va_start(ap, fmt);
	(void)vsnprintf(doc->findings[doc->n].text, sizeof(doc->findings[0].text), fmt, ap);
	va_end(ap);
	doc->n++;
}

static bool find_function(void *lib, const char *name, void *fn)
{
	void *p = lib ? dlsym(lib, name) : NULL;

	memcpy(fn, &p, sizeof(p));
	return p != NULL;
}

static void check_tracer(struct doctor *doc)
{
	struct lag_err err = { 0 };
	char path[PATH_MAX];
	void *page;

	if (lag_failed(lag_where(LAG_TRACER_NAME, path, sizeof(path), &err))) {
		say(doc, MISSING, "tracer", "%s", err.text);
	} else {
		say(doc, GOOD, "tracer", "%s", path);
	}
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK)) {
		say(doc, MISSING, "kernel",
		    "no MADV_WIPEONFORK (Linux 4.14): nothing can be recorded safely");
	}
	if (page != MAP_FAILED)
		munmap(page, 4096);
}

static void check_restrictions(struct doctor *doc)
{
	FILE *f = fopen("/proc/driver/nvidia/params", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "RmProfilingAdminOnly: 1", 23)) {
			say(doc, NOTE, "restrictions",
			    "performance counters are for administrators only "
			    "(NVreg_RestrictProfilingToAdminUsers=1); activity tracing works");
		}
	}
	if (f)
		(void)fclose(f);
}

static void check_driver(struct doctor *doc)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*get_version)(int *), (*init)(unsigned), (*get_count)(int *);
	int version = 0, n = 0, rc;

	if (!lib) {
		say(doc, MISSING, "driver",
		    "libcuda.so.1 is not here: no GPU activity (NCCL calls and annotations are "
		    "still recorded)");
		return;
	}
	if (find_function(lib, "cuDriverGetVersion", &get_version) && !get_version(&version))
		doc->cuda_major = version / 1000;
	if (!find_function(lib, "cuInit", &init) ||
	    !find_function(lib, "cuDeviceGetCount", &get_count)) {
		say(doc, MISSING, "driver", "libcuda.so.1 lacks cuInit");
		return;
	}
	rc = init(0);
	if (rc) {
		say(doc, MISSING, "driver", "CUDA %d.%d, but cuInit fails with error %d",
		    version / 1000, version % 1000 / 10, rc);
	} else if (get_count(&n) || !n) {
		say(doc, MISSING, "driver", "CUDA %d.%d, but no device is visible", version / 1000,
		    version % 1000 / 10);
	} else {
		say(doc, GOOD, "driver", "CUDA %d.%d, %d device%s", version / 1000,
		    version % 1000 / 10, n, LAG_PLURAL(n, "", "s"));
	}
	check_restrictions(doc);
}

/* One candidate; true when a program would get it. */
static bool try_cupti(struct doctor *doc, const char *path, int major, bool found)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*get_version)(uint32_t *);
	uint32_t version = 0;
	Dl_info info;
	const char *where = path;
	char real[PATH_MAX];

	if (!lib)
		return false;
	if (!find_function(lib, "cuptiGetVersion", &get_version) || get_version(&version))
		return false;
	if (dladdr(dlsym(lib, "cuptiGetVersion"), &info) && info.dli_fname)
		where = info.dli_fname;
	if (!realpath(where, real) || !strcmp(real, doc->seen))
		return false;
	memcpy(doc->seen, real, sizeof(real));
	if (doc->cuda_major && major > doc->cuda_major) {
		say(doc, NOTE, "cupti", "%s (version %u) is newer than the driver: not used", where,
		    version);
		return false;
	}
	say(doc, found ? NOTE : GOOD, "cupti", "%s (version %u)%s", where, version,
	    found ? ": not used, the one above comes first"
		  : ", unless the program brings its own");
	return true;
}

static void check_cupti(struct doctor *doc)
{
	static const struct {
		const char *soname;
		int major;
	} names[] = {

#define LAG_CUPTI_NAME(soname, major) { soname, major },
#include "schema/libs.def"
	};
	static const char *const folders[] = {
#define LAG_CUDA_FOLDER(folder) folder,
#include "schema/libs.def"
	};
	const char *const bases[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda" };
	char path[PATH_MAX];
	bool found = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		found |= try_cupti(doc, names[i].soname, names[i].major, found);
		for (size_t k = 0; k < 9; k++) {
			if (!bases[k / 3])
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s/%s", bases[k / 3], folders[k % 3],
				       names[i].soname);
			found |= try_cupti(doc, path, names[i].major, found);
		}
	}
	if (!found) {
		say(doc, MISSING, "cupti",
		    "no libcupti that fits the driver: no GPU activity, unless the program's own "
		    "libraries bring one");
	}
}

static void check_nccl(struct doctor *doc)
{
	void *lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	int (*get_version)(int *), version = 0;
	const char *off = getenv("NCCL_NVTX_DISABLE");
	Dl_info info;

	if (!lib) {
		say(doc, NOTE, "nccl",
		    "no libnccl.so.2 for the dynamic loader; one that the program brings along is "
		    "recorded all the same");
	} else if (find_function(lib, "ncclGetVersion", &get_version) && !get_version(&version)) {
		say(doc, GOOD, "nccl", "%d.%d.%d (%s)", version / 10000, version % 10000 / 100,
		    version % 100,
		    dladdr(dlsym(lib, "ncclGetVersion"), &info) ? info.dli_fname : "?");
	}
	if (off && strcmp(off, "0") != 0) {
		say(doc, NOTE, "nccl",
		    "NCCL_NVTX_DISABLE is set: NCCL used through dlsym or ctypes is not seen");
	}
}

static void check_environment(struct doctor *doc)
{
	static const char *const doors[] = { "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH" };
	static const char *const lost[] = { "GPU activity", "annotations" };
	const char *preload = getenv("LD_PRELOAD");

	for (size_t i = 0; i < 2; i++) {
		const char *value = getenv(doors[i]);

		if (value && *value && !strstr(value, LAG_TRACER_NAME)) {
			say(doc, MISSING, "environment",
			    "%s is taken by %s: no %s (end the other tool, or unset it)", doors[i],
			    value, lost[i]);
		}
	}
	if (preload && *preload) {
		say(doc, NOTE, "environment", "LD_PRELOAD=%s stays first; laggard is appended",
		    preload);
	}
}

static const char *file_system(const char *dir, bool *direct)
{
	static const struct {
		unsigned long type;
		const char *name;
		bool direct;
	} known[] = {
		{ 0xef53, "ext4", true },        { 0x58465342, "XFS", true },
		{ 0x01021994, "tmpfs", true },   { 0x794c7630, "overlayfs", true },
		{ 0xf2f52010, "F2FS", true },    { 0x9123683e, "Btrfs", false },
		{ 0x2fc12fc1, "ZFS", false },    { 0x6969, "NFS", false },
		{ 0x0bd00bd0, "Lustre", false }, { 0x47504653, "GPFS", false },
		{ 0x65735546, "FUSE", false },   { 0x19830326, "BeeGFS", false },
	};
	struct statfs fs;

	*direct = false;
	if (statfs(dir, &fs))
		return "unknown";
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if ((unsigned long)fs.f_type == known[i].type) {
			*direct = known[i].direct;
			return known[i].name;
		}
	}
	return "another file system";
}

/* By making a file: permission bits do not tell it all (read-only mounts, quotas, root on NFS). */
static bool can_write(const char *dir)
{
	char path[PATH_MAX];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/.laggard-doctor.%ld", dir, (long)getpid()) >=
	    sizeof(path))
		return false;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return !unlink(path);
}

static void check_output(struct doctor *doc, const char *dir)
{
	struct lag_buf room = { 0 };
	struct statvfs fs;
	bool direct;
	const char *name = file_system(dir, &direct);

	if (!can_write(dir)) {
		say(doc, MISSING, "output", "%s cannot be written to", dir);
		return;
	}
	if (!statvfs(dir, &fs))
		lag_fmt_bytes(&room, (int64_t)fs.f_bavail * (int64_t)fs.f_frsize);
	say(doc, direct ? GOOD : NOTE, "output", "%s: %s, %s free%s", dir, name,
	    lag_buf_text(&room),
	    direct ? "" : "; traces are written to a local folder first and copied");
	lag_buf_release(&room);
}

static void print_text(const struct doctor *doc)
{
	static const char *const marks[] = { "ok", "note", "MISSING" };

	for (size_t i = 0; i < doc->n; i++) {
		printf("%-8s %-12s %s\n", marks[doc->findings[i].verdict], doc->findings[i].what,
		       doc->findings[i].text);
	}
	puts("note     experience   recording on real GPUs is experimental in this version: it is "
	     "tested on simulated ones");
}

static void print_json(const struct doctor *doc, bool all)
{
	static const char *const marks[] = { "ok", "note", "missing" };
	struct lag_buf out = { 0 };
	struct lag_json json = { .out = &out };

	lag_json_begin(&json, '{');
	lag_json_key(&json, "schema_version");
	lag_json_int(&json, 1);
	lag_json_key(&json, "complete");
	lag_json_bool(&json, all);
	lag_json_key(&json, "findings");
	lag_json_begin(&json, '[');
	for (size_t i = 0; i < doc->n; i++) {
		lag_json_begin(&json, '{');
		lag_json_key(&json, "verdict");
		lag_json_text(&json, marks[doc->findings[i].verdict]);
		lag_json_key(&json, "what");
		lag_json_text(&json, doc->findings[i].what);
		lag_json_key(&json, "text");
		lag_json_text(&json, doc->findings[i].text);
		lag_json_end(&json, '}');
	}
	lag_json_end(&json, ']');
	lag_json_end(&json, '}');
	puts(lag_buf_text(&out));
	lag_buf_release(&out);
}

/* A run directory that is yet to be made lies where the one above it does. */
static const char *existing(char *path)
{
	while (access(path, F_OK)) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return ".";
		if (slash == path)
			return "/";
		*slash = '\0';
	}
	return path;
}

static int run(const struct lag_args *args)
{
	static struct doctor doc;
	const char *dir = lag_args_get(args, "output"), *format = lag_args_get(args, "format");
	char path[PATH_MAX];
	bool all = true;

	check_tracer(&doc);
	check_driver(&doc);
	check_cupti(&doc);
	check_nccl(&doc);
	check_environment(&doc);
	(void)snprintf(path, sizeof(path), "%s", dir ? dir : ".");
	check_output(&doc, existing(path));
	for (size_t i = 0; i < doc.n; i++)
		all &= doc.findings[i].verdict != MISSING;
	if (format && !strcmp(format, "json")) {
		print_json(&doc, all);
	} else {
		print_text(&doc);
	}
	return all ? LAG_EXIT_OK : LAG_EXIT_FINDING;
}

static const struct lag_opt options[] = {
	{ 'o', "output", "DIR", "where traces would go (default: the working directory)", "@dir" },
	{ 'F', "format", "FORMAT", "how to print (default: text)", "text json" },
};

const struct lag_cmd lag_cmd_doctor = {
	.name = "doctor",
	.summary = "Say what would be recorded on this machine, and why not",
	.operands = "",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.max_operands = 0,
	.run = run,
};

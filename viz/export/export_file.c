/* SPDX-License-Identifier: Apache-2.0 */
/* Where an export goes: a temporary file beside the target that is renamed when whole, or standard
 * output or a device; through gzip when the name asks for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "viz/export/export.h"

struct lag_export_file {
	char *path, *partial; /* partial NULL: written in place */
	const char *name;     /* for messages */
	int fd;
	gzFile gz; /* NULL: plain */
};

static enum lag_status write_plain(struct lag_export_file *f, const char *bytes, size_t n,
				   struct lag_err *err)
{
	while (n) {
		ssize_t done = write(f->fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
		bytes += done;
		n -= (size_t)done;
	}
	return LAG_OK;
}

static enum lag_status write_gz(struct lag_export_file *f, const char *bytes, size_t n,
				struct lag_err *err)
{
	while (n) {
		unsigned room = n > 1u << 30 ? 1u << 30 : (unsigned)n;
		int done = gzwrite(f->gz, bytes, room);

		if (done <= 0)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
		bytes += done;
		n -= (size_t)done;
	}
	return LAG_OK;
}

static enum lag_status write_out(struct lag_export_out *out, const char *bytes, size_t n,
				 struct lag_err *err)
{
	struct lag_export_file *f = out->state;

	return f->gz ? write_gz(f, bytes, n, err) : write_plain(f, bytes, n, err);
}

static void free_file(struct lag_export_file *f)
{
	free(f->path);
	free(f->partial);
	free(f);
}

static enum lag_status open_partial(struct lag_export_file *f, bool force, struct lag_err *err)
{
	static const char ending[] = ".XXXXXX.part";
	size_t n = strlen(f->path);
	struct stat there;
	mode_t mask;

	/* A link stands for what it points to: replacing it could replace a name such as /dev/stdout. */
	if (lstat(f->path, &there) == 0 && S_ISLNK(there.st_mode)) {
		char *full = realpath(f->path, NULL);

		if (!full)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot open %s", f->name);
		free(f->path);
		f->path = full;
		f->name = full;
		n = strlen(full);
	}
	/* Devices and pipes are written to, never replaced. */
	if (stat(f->path, &there) == 0 && !S_ISREG(there.st_mode)) {
		f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
		return f->fd < 0 ? lag_err_errno(err, LAG_ERR_SYSTEM, "cannot open %s", f->name)
				 : LAG_OK;
	}
	if (!force && access(f->path, F_OK) == 0)
		return lag_err_set(err, LAG_ERR_USAGE, "'%s' exists (-f overwrites it)", f->path);
	if (n == 0)
		return lag_err_set(err, LAG_ERR_USAGE, "the output has no name");
	f->partial = malloc(n + sizeof(ending));
	if (!f->partial)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	memcpy(f->partial, f->path, n);
	memcpy(f->partial + n, ending, sizeof(ending));
	/* A name of its own: neither another export nor a file of the user's has it. */
	f->fd = mkostemps(f->partial, sizeof(".part") - 1, O_CLOEXEC);
	if (f->fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s'", f->path);
	mask = umask(0);
	(void)umask(mask);
	(void)fchmod(f->fd, 0666 & ~mask);
	return LAG_OK;
}

enum lag_status lag_export_file_open(const char *path, bool force, struct lag_export_file **file,
				     struct lag_export_out *out, struct lag_err *err)
{
	struct lag_export_file *f = calloc(1, sizeof(*f));
	size_t n = strlen(path);
	enum lag_status st = LAG_OK;

	*file = NULL;
	if (!f || !(f->path = strdup(path))) {
		free(f);
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	}
	f->fd = STDOUT_FILENO;
	f->name = strcmp(path, "-") == 0 ? "standard output" : f->path;
	if (strcmp(path, "-") != 0)
		st = open_partial(f, force, err);
	if (!lag_failed(st) && n > 3 && strcmp(path + n - 3, ".gz") == 0) {
		/* Level 3: three times as fast as the default for a tenth more bytes. */
		f->gz = gzdopen(f->fd, "wb3");
		if (!f->gz) {
			st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
		} else {
			(void)gzbuffer(f->gz, 1u << 18);
		}
	}
	if (lag_failed(st)) {
		if (f->fd > STDERR_FILENO)
			(void)close(f->fd);
		if (f->partial && f->fd >= 0)
			(void)unlink(f->partial);
		free_file(f);
		return st;
	}
	*out = (struct lag_export_out){ .write = write_out, .state = f };
	*file = f;
	return LAG_OK;
}

enum lag_status lag_export_file_close(struct lag_export_file *f, bool keep, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (f->gz) {
		if (gzclose(f->gz) != Z_OK)
			st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
	} else if (f->fd > STDERR_FILENO && close(f->fd) < 0) {
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
	}
	if (f->partial) {
		if (!keep || lag_failed(st)) {
			(void)unlink(f->partial);
		} else if (rename(f->partial, f->path) < 0) {
			st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s'", f->path);
			(void)unlink(f->partial);
		}
	}
	free_file(f);
	return st;
}

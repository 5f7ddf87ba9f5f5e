/* SPDX-License-Identifier: Apache-2.0 */
/* truth.<rank>.json: the clocks as they are, the faults as they were asked for, and the true start
 * and end of each communication operation. The file is valid JSON after every write: each batch
 * overwrites the closing brackets of the one before and writes them again. */
#include "tests/simgpu/cuda/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char tail[] = "\n]}\n";

static struct {
	pthread_mutex_t lock;
	int fd;
	off_t end; /* where the closing brackets begin */
	pid_t pid;
	char buf[32768];
	size_t used;
	bool any;
} truth = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void flush_locked(void)
{
	if (truth.fd < 0 || truth.used == 0) {
		return;
	}
	memcpy(truth.buf + truth.used, tail, sizeof tail - 1);
	if (pwrite(truth.fd, truth.buf, truth.used + sizeof tail - 1, truth.end) < 0) {
		return;
	}
	truth.end += (off_t)truth.used;
	truth.used = 0;
}

static void put(const char *format, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof line) {
		return;
	}
	if (truth.used + (size_t)n + sizeof tail > sizeof truth.buf) {
		flush_locked();
	}
	memcpy(truth.buf + truth.used, line, (size_t)n);
	truth.used += (size_t)n;
}

/* Environment values go into JSON strings: anything that would need escaping becomes a space. */
static void put_env(const char *name)
{
	const char *v = sim_env_text(name);
	char clean[256];
	size_t n = 0;

	if (!v) {
		return;
	}
	for (; *v && n + 1 < sizeof clean; v++) {
		bool plain = *v >= ' ' && *v != '"' && *v != '\\';
		clean[n++] = (char)(plain ? *v : ' ');
	}
	clean[n] = '\0';
	put(",\n  \"%s\": \"%s\"", name, clean);
}

static void header(void)
{
	static const char *const names[] = {
		"SIMGPU_SLOW",  "SIMGPU_SLOW_LINK",     "SIMGPU_STALL",     "SIMGPU_HANG",
		"SIMGPU_DROP",  "SIMGPU_KERNEL_SIGMA",  "SIMGPU_GPU_SIGMA", "SIMGPU_CONTENTION",
		"SIMGPU_CUPTI", "SIMGPU_CUPTI_VERSION", "SIMGPU_NCCL_ALGO",
	};
	const struct sim_clock_map *m = sim_clock_map();
	int64_t before, after, at;

	sim_clock_device_steps(&before, &after, &at);
	put("{\"rank\": %d, \"world\": %d, \"host\": %d, \"pid\": %d, \"seed\": %" PRId64 ",\n",
	    sim_env_rank(), sim_env_world(), m->host, (int)truth.pid,
	    sim_env_i64("SIMGPU_SEED", 1));
	put(" \"clock\": {\"mono0_ns\": %" PRId64 ", \"real0_ns\": %" PRId64
	    ", \"real_offset_ns\": %" PRId64 ", \"mono_offset_ns\": %" PRId64
	    ", \"drift_ppm\": %.9g},\n",
	    m->mono0_ns, m->real0_ns, m->real_offset_ns, m->mono_offset_ns, m->drift_ppm);
	put(" \"device_error\": {\"before_ns\": %" PRId64 ", \"after_ns\": %" PRId64
	    ", \"step_at_true_ns\": ",
	    before, after);
	if (at == SIM_NEVER) {
		put("null},\n");
	} else {
		put("%" PRId64 "},\n", at);
	}
	put(" \"injected\": {\"simgpu\": \"1\"");
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		put_env(names[i]);
	}
	put("},\n \"comm_columns\": [\"comm\", \"seq\", \"func\", \"bytes\", \"comm_rank\", "
	    "\"nranks\", \"peer\", \"start_true_ns\", \"end_true_ns\"],\n \"comms\": [");
}

static void at_exit(void)
{
	if (truth.pid == getpid()) {
		sim_truth_flush();
	}
}

void sim_truth_open(void)
{
	const char *dir = sim_env_text("SIMGPU_TRUTH_DIR");
	char path[4096];

	if (!dir) {
		return;
	}
	truth.pid = getpid();
	snprintf(path, sizeof path, "%s/truth.%d.json", dir, sim_env_rank());
	truth.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (truth.fd < 0 && errno == EEXIST) {
		snprintf(path, sizeof path, "%s/truth.%d.%d.json", dir, sim_env_rank(),
			 (int)truth.pid);
		truth.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	}
	if (truth.fd < 0) {
		fprintf(stderr, "simgpu: %s: %s\n", path, strerror(errno));
		return;
	}
	header();
	flush_locked();
	atexit(at_exit);
}

void sim_truth_flush(void)
{
	pthread_mutex_lock(&truth.lock);
	flush_locked();
	pthread_mutex_unlock(&truth.lock);
}

void sim_truth_comm(const struct sim_truth_comm *t)
{
	if (truth.fd < 0) {
		return;
	}
	pthread_mutex_lock(&truth.lock);
	put("%s\n  [\"%016" PRIx64 "\", %" PRIu64 ", \"%s\", %" PRIu64 ", %d, %d, %d, %" PRId64
	    ", %" PRId64 "]",
	    truth.any ? "," : "", t->comm, t->seq, t->func, t->bytes, t->rank, t->nranks, t->peer,
	    t->start_ns, t->end_ns);
	truth.any = true;
	pthread_mutex_unlock(&truth.lock);
}

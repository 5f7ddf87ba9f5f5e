/* SPDX-License-Identifier: Apache-2.0 */
/* The job that every JSON reader is measured on: eleven fields of each event of a Kineto trace into a
 * struct, and a checksum over all of them. What is absent counts as 0. */
#ifndef TESTS_BENCH_KINETO_JOB_H
#define TESTS_BENCH_KINETO_JOB_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct kineto_fields {
	const char *cat, *name;
	size_t n_cat, n_name;
	int64_t phase, pid, tid, ts_ns, dur_ns, external, correlation, stream, device;
};

struct kineto_sum {
	uint64_t n_events, value;
};

static inline uint64_t kineto_text_sum(const char *text, size_t n)
{
	return n ? n * 257 + (unsigned char)text[0] + (uint64_t)3 * (unsigned char)text[n - 1] : 0;
}

static inline void kineto_add(struct kineto_sum *sum, const struct kineto_fields *f)
{
	uint64_t v = (uint64_t)f->ts_ns * 3 + (uint64_t)f->dur_ns * 5 + (uint64_t)f->pid * 7;

	v += (uint64_t)f->tid * 11 + (uint64_t)f->external * 13 + (uint64_t)f->correlation * 17;
	v += (uint64_t)f->stream * 19 + (uint64_t)f->device * 23 + (uint64_t)f->phase * 29;
	v += kineto_text_sum(f->cat, f->n_cat) * 31 + kineto_text_sum(f->name, f->n_name) * 37;
	sum->value += v;
	sum->n_events++;
}

/* CPU time where one thread does the work: others on the machine disturb it less than wall time. */
static inline double kineto_now(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The file in memory with 64 spare bytes behind it. */
static inline char *kineto_load(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *bytes = NULL;
	size_t at = 0;

	if (fd < 0 || fstat(fd, &st) != 0) {
		perror(path);
		exit(2);
	}
	*n = (size_t)st.st_size;
	bytes = (char *)calloc(1, *n + 64);
	while (bytes && at < *n) {
		ssize_t got = read(fd, bytes + at, *n - at);

		if (got <= 0)
			break;
		at += (size_t)got;
	}
	if (!bytes || at != *n) {
		perror(path);
		exit(2);
	}
	(void)close(fd);
	return bytes;
}

/* Private memory of this process in KiB, as the kernel counts it. */
static inline long kineto_private_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtol(line + 8, NULL, 10);
	}
	if (f)
		(void)fclose(f);
	return kib;
}

/* One line: events, checksum, seconds of the best round, bytes, KiB of private memory. */
static inline void kineto_print(const struct kineto_sum *sum, double seconds, size_t n, long kib)
{
	(void)printf("%llu %llx %.6f %zu %ld\n", (unsigned long long)sum->n_events,
		     (unsigned long long)sum->value, seconds, n, kib);
}

#endif

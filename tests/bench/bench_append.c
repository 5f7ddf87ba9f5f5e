/* SPDX-License-Identifier: Apache-2.0 */
/* What recording costs: appending a kernel record to a chunk file against a pre-faulted ring of fixed
 * structs, and the two clock readings around it. Prints "name ours reference unit target" lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "schema/trace/trace_writer.h"

#define N_EVENTS   3000000
#define RING_BYTES (8u << 20)
#define FIXED      64 /* bytes of the fixed struct of the reference */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void kernel(struct lag_record *rec, int64_t i)
{
	rec->kernel.start_ns = INT64_C(1700000000000000000) + i * 21000;
	rec->kernel.end_ns = rec->kernel.start_ns + 12000 + (i * 7919) % 8000;
	rec->kernel.device = 3;
	rec->kernel.context = 1;
	rec->kernel.stream = 7 + i % 3;
	rec->kernel.correlation = 1000 + i;
	rec->kernel.name = 1 + i % 60;
	rec->kernel.config = i % 63;
}

static double append_ns(const char *dir, double *bytes)
{
	static struct lag_trace_producer prod;
	struct lag_trace_file file;
	struct lag_trace_header head = { .pid = 1 };
	struct lag_record rec;
	struct lag_err err;
	char path[512];
	int64_t t0;
	double ns;

	(void)snprintf(path, sizeof(path), "%s/bench-append.lag", dir);
	(void)unlink(path);
	if (lag_failed(lag_trace_file_create(&file, path, 0600, &head, &err))) {
		(void)fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	lag_trace_producer_init(&prod, &file, 1);
	lag_record_init(&rec, LAG_REC_kernel);
	t0 = now_ns();
	for (int64_t i = 0; i < N_EVENTS; i++) {
		kernel(&rec, i);
		if (!lag_trace_append(&prod, &rec))
			exit(1);
	}
	ns = (double)(now_ns() - t0) / N_EVENTS;
	lag_trace_producer_close(&prod);
	*bytes = (double)lseek(file.fd, 0, SEEK_END) / N_EVENTS;
	lag_trace_file_close(&file);
	(void)unlink(path);
	return ns;
}

/* A ring whose pages are there already, plus what the page faults of the same bytes cost. */
static double ring_ns(void)
{
	uint8_t *ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct lag_record rec;
	size_t at = 0;
	int64_t t0;

	if (ring == MAP_FAILED)
		exit(1);
	lag_record_init(&rec, LAG_REC_kernel);
	t0 = now_ns();
	for (int64_t i = 0; i < N_EVENTS; i++) {
		kernel(&rec, i);
		memcpy(ring + at, &rec.field, FIXED);
		__atomic_store_n((uint64_t *)(void *)(ring + at), (uint64_t)i, __ATOMIC_RELEASE);
		at = (at + FIXED) % RING_BYTES;
	}
	return (double)(now_ns() - t0) / N_EVENTS;
}

static double fault_ns(const char *dir)
{
	char path[512];
	size_t n = 64u << 20;
	uint8_t *map;
	int64_t t0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/bench-fault", dir);
	f = fopen(path, "w+");
	if (!f || ftruncate(fileno(f), (off_t)n) < 0)
		exit(1);
	map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	if (map == MAP_FAILED)
		exit(1);
	t0 = now_ns();
	for (size_t i = 0; i < n; i += 4096)
		map[i] = 1;
	t0 = now_ns() - t0;
	(void)munmap(map, n);
	(void)fclose(f);
	(void)unlink(path);
	return (double)t0 / (double)(n / 4096);
}

static double clock_ns(void)
{
	int64_t t0 = now_ns(), sum = 0;

	for (int i = 0; i < 1000000; i++)
		sum += now_ns();
	return (double)(now_ns() - t0) / 1e6 + (sum == 42);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "/tmp";
	double bytes, ours = append_ns(dir, &bytes);
	double ring = ring_ns(), fault = fault_ns(dir);
	double reference = ring + fault * bytes / 4096;

	printf("append\t%.1f\t%.1f\tns/event\t2.0\tchunk file v. pre-faulted ring + page faults of "
	       "the same bytes\n",
	       ours, reference);
	printf("append_bytes\t%.2f\t%.0f\tB/event\t0.125\trecord in the file v. fixed struct\n",
	       bytes, (double)FIXED);
	printf("append_hook\t%.1f\t%.1f\tns\t2.0\ttwo clock readings + append v. two clock "
	       "readings + 40 ns\n",
	       2 * clock_ns() + ours, 2 * clock_ns() + 40);
	return 0;
}

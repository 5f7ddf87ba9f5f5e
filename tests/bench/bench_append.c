/* SPDX-License-Identifier: Apache-2.0 */
/* What recording an event costs. bench_append DIR: a stream of kernels, their calls and what ties them,
 * into a chunk file in DIR, and beside it into a ring whose pages are there. bench_append DIR paced: the
 * same at 200 k events/s, with the tracer's helper. Prints "name ours reference unit target what" lines. Batches
 * of both take turns, and the median counts, of this thread's own time: others use the machine too. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "schema/trace/trace_reader.h"
#include "schema/trace/trace_writer.h"

#define N_BATCH     8000
#define N_BATCHES   400
#define FIXED       128 /* bytes of the reference's struct */
#define RING_BYTES  (8u << 20)
#define PACE_NS     INT64_C(5000)
#define N_PACED     600000
#define TICK_US     100000 /* the helper's */
#define FAULT_PAGES 16u

static struct lag_record batch[N_BATCH];
static uint8_t *ring;
static size_t ring_at;

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void fail(const char *text)
{
	(void)fprintf(stderr, "%s\n", text);
	exit(1);
}

static unsigned draw(unsigned below)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % below);
}

/* Launches a few us apart, kernels of 2 to 32 us back to back, one in ten on another stream and tied to
 * an operation. */
static void make_batch(void)
{
	static int64_t host = INT64_C(1700000000000000000), device = INT64_C(1700000000000020000);
	static int64_t correlation = 1000, op;
	size_t n = 0;

	while (n + 3 <= N_BATCH) {
		struct lag_record *api = &batch[n++], *kernel, *external;
		int64_t what = draw(60);
		bool comm = draw(10) == 0;

		correlation += 2 + draw(3);
		lag_record_init(api, LAG_REC_api);
		api->api.start_ns = host += 1500 + draw(4000);
		api->api.end_ns = host += 3000 + draw(3000);
		api->api.tid = 4711;
		api->api.domain = comm ? LAG_API_DRIVER : LAG_API_RUNTIME;
		api->api.cbid = comm ? 652 : 211;
		api->api.correlation = correlation;
		api->api.name = comm ? 4 : 3;
		api->api.result = 0;
		if (comm) {
			external = &batch[n++];
			lag_record_init(external, LAG_REC_external);
			external->external.kind = 5;
			external->external.id = ++op;
			external->external.correlation = correlation;
		}
		kernel = &batch[n++];
		lag_record_init(kernel, LAG_REC_kernel);
		kernel->kernel.start_ns = device += 800 + draw(3000);
		kernel->kernel.end_ns = device += 2000 + draw(30000);
		kernel->kernel.device = 3;
		kernel->kernel.context = 1;
		kernel->kernel.stream = comm ? 13 : 7;
		kernel->kernel.correlation = correlation;
		kernel->kernel.name = 5 + what;
		kernel->kernel.config = 1 + what * 7 % 63;
	}
	while (n < N_BATCH)
		batch[n++] = batch[0];
}

static void open_file(struct lag_trace_file *file, const char *dir, char *path, size_t room)
{
	struct lag_trace_header head = { .pid = 1 };
	struct lag_err err;

	(void)snprintf(path, room, "%s/bench-append.lag", dir);
	(void)unlink(path);
	if (lag_failed(lag_trace_file_create(file, path, 0600, &head, &err)))
		fail(err.text);
}

static void append(struct lag_trace_producer *prod, const struct lag_record *rec)
{
	if (!lag_trace_append(prod, rec))
		fail("an event was lost");
}

static void append_to_ring(const struct lag_record *rec)
{
	memcpy(ring + ring_at, &rec->field, FIXED - sizeof(uint64_t));
	__atomic_store_n((uint64_t *)(void *)(ring + ring_at + FIXED - sizeof(uint64_t)),
			 (uint64_t)rec->kind, __ATOMIC_RELEASE);
	ring_at = (ring_at + FIXED) % RING_BYTES;
}

/* The first touch of a page of a file whose space is there already. */
static double fault_ns(int fd, off_t at)
{
	const size_t n = (size_t)FAULT_PAGES * 4096;
	uint8_t *map;
	int64_t t0;

	if (fallocate(fd, 0, at, (off_t)n))
		fail("fallocate");
	map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	if (map == MAP_FAILED)
		fail("mmap");
	t0 = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < n; i += 4096)
		map[i] = 1;
	t0 = now_ns(CLOCK_THREAD_CPUTIME_ID) - t0;
	(void)munmap(map, n);
	return (double)t0 / FAULT_PAGES;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

static double decode_ns(const char *path)
{
	struct lag_trace_reader *rd;
	struct lag_record rec;
	struct lag_err err;
	uint32_t producer;
	uint64_t tid, n = 0;
	int64_t t0 = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int fd = open(path, O_RDONLY);

	if (lag_trace_reader_open_file(fd, &rd, &err) != LAG_OK)
		fail(err.text);
	while (lag_trace_reader_next(rd, &rec, &producer, &tid) == LAG_OK)
		n++;
	lag_trace_reader_close(rd);
	(void)close(fd);
	return (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - t0) / (double)n;
}

static void flat_out(const char *dir)
{
	static struct lag_trace_producer prod;
	static double ours[N_BATCHES], rings[N_BATCHES], faults[N_BATCHES];
	struct lag_trace_file file;
	uint64_t n_bytes;
	double bytes, fault, reference;
	char path[512], other[520];
	int fd;

	open_file(&file, dir, path, sizeof(path));
	lag_trace_producer_init(&prod, &file, 1);
	(void)snprintf(other, sizeof(other), "%s.fault", path);
	fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int b = 0; b < N_BATCHES; b++) {
		int64_t t0, t1;

		make_batch();
		t0 = now_ns(CLOCK_THREAD_CPUTIME_ID);
		for (size_t i = 0; i < N_BATCH; i++)
			append(&prod, &batch[i]);
		t1 = now_ns(CLOCK_THREAD_CPUTIME_ID);
		ours[b] = (double)(t1 - t0) / N_BATCH;
		for (size_t i = 0; i < N_BATCH; i++)
			append_to_ring(&batch[i]);
		rings[b] = (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - t1) / N_BATCH;
		faults[b] = fault_ns(fd, (off_t)b * FAULT_PAGES * 4096);
	}
	n_bytes = (uint64_t)prod.seq * LAG_CHUNK_BYTES - LAG_CHUNK_ROOM + prod.used;
	bytes = (double)n_bytes / ((double)N_BATCHES * N_BATCH);
	lag_trace_producer_close(&prod);
	lag_trace_file_close(&file);
	fault = median(faults, N_BATCHES);
	reference = median(rings, N_BATCHES) + fault * bytes / 4096;
	printf("append, no helper\t%.1f\t%.1f\tns/event\t2\tpre-faulted ring + page faults of its "
	       "bytes\n",
	       median(ours, N_BATCHES), reference);
	printf("append, bytes\t%.2f\t%d\tB/event\t1\tthe aim\n", bytes, 8);
	printf("read back\t%.1f\t%d\tns/record\t1\tthe aim\n", decode_ns(path), 15);
	(void)close(fd);
	(void)unlink(other);
	(void)unlink(path);
}

static _Atomic bool over;

static void *help(void *file)
{
	while (!atomic_load(&over)) {
		lag_trace_file_prepare(file);
		(void)usleep(TICK_US);
	}
	lag_trace_file_settle(file);
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Appends on time, and keeps how long each took; prod NULL: to the ring. */
static void pace(struct lag_trace_producer *prod, uint32_t *took)
{
	int64_t next = now_ns(CLOCK_MONOTONIC), t0;

	for (size_t i = 0; i < N_PACED; i++) {
		if (i % N_BATCH == 0)
			make_batch();
		while ((t0 = now_ns(CLOCK_MONOTONIC)) < next)
			;
		next = t0 - next > 100 * PACE_NS ? t0 : next + PACE_NS;
		if (prod) {
			append(prod, &batch[i % N_BATCH]);
		} else {
			append_to_ring(&batch[i % N_BATCH]);
		}
		took[i] = (uint32_t)(now_ns(CLOCK_MONOTONIC) - t0);
	}
	qsort(took, N_PACED, sizeof(*took), by_time);
}

static void paced(const char *dir)
{
	static struct lag_trace_producer prod;
	static uint32_t ours[N_PACED], rings[N_PACED];
	struct lag_trace_file file;
	pthread_t helper;
	char path[512];

	open_file(&file, dir, path, sizeof(path));
	lag_trace_producer_init(&prod, &file, 1);
	if (pthread_create(&helper, NULL, help, &file))
		fail("no thread");
	pace(&prod, ours);
	atomic_store(&over, true);
	pthread_join(helper, NULL);
	pace(NULL, rings);
	lag_trace_producer_close(&prod);
	lag_trace_file_close(&file);
	(void)unlink(path);
	printf("append at 200 k/s, p99.9\t%u\t%u\tns\t\tpre-faulted ring at the same pace\n",
	       ours[N_PACED - N_PACED / 1000], rings[N_PACED - N_PACED / 1000]);
	printf("append at 200 k/s, max\t%.1f\t%.1f\tus\t\tpre-faulted ring at the same pace\n",
	       ours[N_PACED - 1] / 1e3, rings[N_PACED - 1] / 1e3);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "/tmp";

	ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (ring == MAP_FAILED)
		fail("no memory");
	if (argc > 2) {
		paced(dir);
	} else {
		flat_out(dir);
	}
	return 0;
}

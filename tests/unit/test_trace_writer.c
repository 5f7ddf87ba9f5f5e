/* SPDX-License-Identifier: Apache-2.0 */
/* The chunk writer: everything that was appended is in the file, whatever happens to the writer. Files
 * are read back here with the record codec alone, not with the reader. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema/trace/trace_tally.h"
#include "schema/trace/trace_writer.h"
#include "tests/unit/refuse.h"

#define N_PRODUCERS_MAX 64

static char folder[PATH_MAX];
static char path[PATH_MAX + 16];

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/lag-writer-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/t.lag", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(folder);
}

static int make_folder_without_allocation(void **state)
{
	refuse_allocation(EOPNOTSUPP);
	return make_folder(state);
}

/* For tests that write in a child, whose refusals are counted there. */
static int remove_folder_without_allocation(void **state)
{
	refuse_allocation(0);
	return remove_folder(state);
}

static int remove_folder_and_see_refusals(void **state)
{
	bool refused = n_refused_allocations() > 0;

	return remove_folder_without_allocation(state) || !refused;
}

static void create(struct lag_trace_file *file, const char *where)
{
	struct lag_trace_header head = { .pid = 42, .start_ns = 7, .host = "host" };
	struct lag_err err = { 0 };

	if (lag_failed(lag_trace_file_create(file, where, 0600, &head, &err)))
		fail_msg("%s", err.text);
}

static struct lag_trace_producer *producer(struct lag_trace_file *file, uint64_t tid)
{
	struct lag_trace_producer *prod = calloc(1, sizeof(*prod));

	assert_non_null(prod);
	lag_trace_producer_init(prod, file, tid);
	return prod;
}

static void release(struct lag_trace_producer *prod)
{
	lag_trace_producer_close(prod);
	free(prod);
}

static bool append_op(struct lag_trace_producer *prod, int64_t n)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = 1000000 + n * 100;
	rec.op.tid = (int64_t)prod->tid;
	rec.op.op_id = n;
	rec.op.comm_id = 1;
	rec.op.func = LAG_FUNC_SEND;
	rec.op.sources = LAG_OP_FROM_CALL;
	rec.op.count = (int64_t)((uint64_t)n *
				 UINT64_C(0x1e3779b97f4a7c15)); /* nothing that takes few bytes */
	return lag_trace_append(prod, &rec);
}

struct contents {
	uint8_t *bytes;
	size_t n;
	uint64_t n_ops, n_chunks, n_sealed;
	int64_t next_op[N_PRODUCERS_MAX]; /* ops of a producer must be 0, 1, 2, ... */
};

#define N_CHUNKS_MAX 4096

static int by_producer(const void *a, const void *b)
{
	const struct lag_chunk_header *x = a, *y = b;

	if (x->producer != y->producer)
		return x->producer < y->producer ? -1 : 1;
	return x->producer_seq < y->producer_seq ? -1 : 1;
}

static void load_chunk(struct contents *c, const struct lag_chunk_header *h)
{
	const uint8_t *first =
		c->bytes + LAG_CHUNKS_AT + (size_t)h->index * LAG_CHUNK_BYTES + sizeof(*h);
	const uint8_t *p = first, *end = first + h->committed;
	struct lag_record rec;
	uint32_t n_records = 0;
	struct lag_codec codec;
	size_t used;

	lag_codec_start(&codec, h->base_ns);
	for (; p < end; p += used, n_records++) {
		assert_int_equal(lag_record_decode(p, (size_t)(end - p), &used, &codec, &rec),
				 LAG_OK);
		if (rec.kind != LAG_REC_op)
			continue;
		c->n_ops++;
		assert_int_equal(rec.op.enter_ns, 1000000 + rec.op.op_id * 100);
		assert_int_equal(rec.op.op_id, c->next_op[h->producer]++);
	}
	if (h->state == LAG_CHUNK_SEALED) {
		c->n_sealed++;
		assert_int_equal(h->n_records, n_records);
		assert_int_equal(h->crc, lag_chunk_crc(h, first, h->committed));
	}
}

/* Reads a file as the format says and checks all that can be checked without the reader. */
static void load(struct contents *c, const char *where)
{
	static struct lag_chunk_header chunks[N_CHUNKS_MAX];
	uint32_t seq = 0;
	struct stat st = { 0 };
	int fd = open(where, O_RDONLY);

	memset(c, 0, sizeof(*c));
	assert_true(fd >= 0 && !fstat(fd, &st));
	c->n = (size_t)st.st_size;
	c->bytes = malloc(c->n + 1);
	assert_non_null(c->bytes);
	assert_int_equal(pread(fd, c->bytes, c->n, 0), st.st_size);
	close(fd);
	for (size_t at = LAG_CHUNKS_AT; at + LAG_CHUNK_BYTES <= c->n; at += LAG_CHUNK_BYTES) {
		struct lag_chunk_header *h = &chunks[c->n_chunks];

		assert_true(c->n_chunks < N_CHUNKS_MAX);
		memcpy(h, c->bytes + at, sizeof(*h));
		if (h->state == LAG_CHUNK_FREE)
			continue;
		assert_int_equal(h->magic, LAG_CHUNK_MAGIC);
		assert_int_equal(h->index, (at - LAG_CHUNKS_AT) / LAG_CHUNK_BYTES);
		assert_true(h->producer < N_PRODUCERS_MAX && h->committed <= LAG_CHUNK_ROOM);
		c->n_chunks++;
	}
	/* A chunk that was prepared early may be claimed late: the file's order is not the producer's. */
	qsort(chunks, c->n_chunks, sizeof(chunks[0]), by_producer);
	for (size_t i = 0; i < c->n_chunks; i++) {
		seq = i && chunks[i].producer == chunks[i - 1].producer ? seq + 1 : 0;
		assert_int_equal(chunks[i].producer_seq, seq);
		load_chunk(c, &chunks[i]);
	}
}

static void the_checksum_is_castagnolis(void **state)
{
	uint8_t zeroes[32] = { 0 }, ones[32], bytes[1000];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	/* RFC 3720, B.4. */
	assert_int_equal(lag_crc32c(0, zeroes, 32), 0x8a9136aau);
	assert_int_equal(lag_crc32c(0, ones, 32), 0x62a8ab43u);
	assert_int_equal(lag_crc32c(0, "123456789", 9), 0xe3069283u);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t cut = 0; cut < 40; cut++) {
		assert_int_equal(lag_crc32c(lag_crc32c(0, bytes, cut), bytes + cut, 1000 - cut),
				 lag_crc32c(0, bytes, 1000));
	}
}

static void records_come_back_across_chunks(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	struct lag_trace_tally tally;
	struct contents c;

	(void)state;
	create(&file, path);
	prod = producer(&file, 5);
	for (int64_t i = 0; i < 50000; i++)
		assert_true(append_op(prod, i));
	release(prod);
	lag_trace_file_close(&file);
	load(&c, path);
	assert_int_equal(c.n_ops, 50000);
	assert_true(c.n_chunks > 5);
	assert_int_equal(c.n_sealed, c.n_chunks);
	assert_true(lag_trace_tally_read(&tally, c.bytes, c.n));
	assert_int_equal(tally.records[LAG_REC_op], 50000);
	assert_int_equal(tally.n_lost, 0);
	free(c.bytes);
}

static void an_open_chunk_counts_too(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	struct lag_trace_tally tally;
	struct contents c;

	(void)state;
	create(&file, path);
	prod = producer(&file, 5);
	for (int64_t i = 0; i < 9000; i++)
		assert_true(append_op(prod, i));
	load(&c, path); /* as after a SIGKILL at this moment */
	assert_int_equal(c.n_ops, 9000);
	assert_true(c.n_sealed == c.n_chunks - 1);
	assert_true(lag_trace_tally_read(&tally, c.bytes, c.n));
	assert_int_equal(tally.records[LAG_REC_op], 9000);
	assert_false(tally.clean);
	free(c.bytes);
	release(prod);
	lag_trace_file_close(&file);
}

static void strings_are_written_once(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	struct contents c;
	int64_t a, b;

	(void)state;
	create(&file, path);
	prod = producer(&file, 5);
	a = lag_trace_string(prod, "all_reduce", 10);
	b = lag_trace_string(prod, "all_reduces", 11);
	assert_true(a > 0 && b > 0 && a != b);
	assert_int_equal(lag_trace_string(prod, "all_reduce", 10), a);
	assert_int_equal(lag_trace_string(prod, "", 0), 0);
	assert_int_equal(prod->n_strings, 2);
	/* More than the cache holds: ids stay unique, the latest one is given. */
	for (int i = 0; i < 20000; i++) {
		char text[32];
		size_t n = (size_t)snprintf(text, sizeof(text), "name %d", i);
		int64_t id = lag_trace_string(prod, text, n);

		assert_int_equal(id, i + 3);
		assert_int_equal(lag_trace_string(prod, text, n), id);
	}
	release(prod);
	lag_trace_file_close(&file);
	load(&c, path);
	free(c.bytes);
}

static void configurations_are_written_once(void **state)
{
	struct lag_rec_launch_config cfg = { .grid_x = 1, .block_x = 128 };
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	int64_t first;

	(void)state;
	create(&file, path);
	prod = producer(&file, 5);
	first = lag_trace_config(prod, &cfg);
	for (int i = 0; i < 3000; i++) {
		int64_t id;

		cfg.grid_x = 2 + i;
		id = lag_trace_config(prod, &cfg);
		assert_true(id != LAG_NONE && id != first);
		cfg.id = 99; /* ignored */
		assert_int_equal(lag_trace_config(prod, &cfg), id);
		cfg.id = 0;
	}
	release(prod);
	lag_trace_file_close(&file);
}

static void a_string_that_is_too_long_is_cut(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	char *text = malloc(100000);
	struct lag_record rec;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 100000);
	create(&file, path);
	prod = producer(&file, 5);
	for (int i = 0; i < 5; i++) {
		text[0] = (char)('a' + i);
		assert_int_equal(lag_trace_string(prod, text, 100000), i + 1);
	}
	lag_record_init(&rec, LAG_REC_string);
	rec.string.id = 9;
	rec.bytes = text;
	rec.n_bytes = 100000;
	assert_false(lag_trace_append(prod, &rec));
	assert_int_equal(file.counters->lost_reason[LAG_LOSS_TOO_LONG], 1);
	release(prod);
	lag_trace_file_close(&file);
	free(text);
}

static void the_cap_stops_and_counts(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	struct contents c;
	int64_t kept = 0;

	(void)state;
	create(&file, path);
	file.max_bytes = LAG_CHUNKS_AT + 3 * (uint64_t)LAG_CHUNK_BYTES;
	prod = producer(&file, 5);
	for (int64_t i = 0; i < 60000; i++)
		kept += append_op(prod, i);
	assert_true(kept < 60000);
	assert_int_equal(file.counters->lost[LAG_REC_op], 60000 - kept);
	assert_int_equal(file.counters->lost_reason[LAG_LOSS_SIZE_CAP], 60000 - kept);
	release(prod);
	lag_trace_file_close(&file);
	load(&c, path);
	assert_true(c.n <= LAG_CHUNKS_AT + 3 * (size_t)LAG_CHUNK_BYTES);
	assert_int_equal(c.n_ops, kept);
	free(c.bytes);
}

/* A process that outgrows its own limit on the size of files dies of SIGXFSZ. */
static void the_limit_of_the_process_is_kept(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	struct rlimit before, limit;
	struct contents c;
	int64_t kept = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = LAG_CHUNKS_AT + 2 * LAG_CHUNK_BYTES + 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	create(&file, path);
	prod = producer(&file, 5);
	for (int64_t i = 0; i < 60000; i++)
		kept += append_op(prod, i);
	assert_true(kept > 0 && kept < 60000);
	assert_int_equal(file.counters->lost_reason[LAG_LOSS_DISK_FULL], 60000 - kept);
	release(prod);
	lag_trace_file_close(&file);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	load(&c, path);
	assert_int_equal(c.n_ops, kept);
	free(c.bytes);
}

static void errno_is_left_alone(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;

	(void)state;
	create(&file, path);
	file.max_bytes = LAG_CHUNKS_AT + LAG_CHUNK_BYTES;
	prod = producer(&file, 5);
	for (int64_t i = 0; i < 20000; i++) {
		errno = 12345;
		(void)append_op(prod, i);
		assert_int_equal(errno, 12345);
	}
	release(prod);
	lag_trace_file_close(&file);
}

static void a_file_is_never_overwritten(void **state)
{
	struct lag_trace_header head = { 0 };
	struct lag_trace_file file;
	struct lag_err err = { 0 };

	(void)state;
	create(&file, path);
	lag_trace_file_close(&file);
	assert_int_equal(lag_trace_file_create(&file, path, 0600, &head, &err), LAG_ERR_SYSTEM);
	assert_non_null(strstr(err.text, "File exists"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/tmp/elsewhere.lag", path), 0);
	assert_int_equal(lag_trace_file_create(&file, path, 0600, &head, &err), LAG_ERR_SYSTEM);
	assert_int_not_equal(access("/tmp/elsewhere.lag", F_OK), 0);
}

/* A program may close descriptors it does not know and open its own files under their numbers. */
static void a_stolen_descriptor_is_not_written_to(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	char other[PATH_MAX + 16];
	struct stat st;
	int fd;

	(void)state;
	(void)snprintf(other, sizeof(other), "%s/other", folder);
	create(&file, path);
	prod = producer(&file, 5);
	assert_true(append_op(prod, 0));
	close(file.fd);
	fd = open(other, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, file.fd), file.fd);
	for (int64_t i = 1; i < 20000; i++)
		(void)append_op(prod, i);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_true(file.counters->lost_reason[LAG_LOSS_IO] > 0);
	close(fd);
	release(prod);
	lag_trace_file_close(&file);
	assert_int_equal(unlink(other), 0);
}

#define N_THREADS    16
#define N_PER_THREAD 20000

static void *write_many(void *arg)
{
	struct lag_trace_producer *prod = arg;

	for (int64_t i = 0; i < N_PER_THREAD; i++) {
		if (!append_op(prod, i))
			return arg;
	}
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	struct lag_trace_producer *prods[N_THREADS];
	struct lag_trace_file file;
	pthread_t threads[N_THREADS];
	struct contents c;

	(void)state;
	create(&file, path);
	for (size_t i = 0; i < N_THREADS; i++) {
		prods[i] = producer(&file, i);
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, prods[i]), 0);
	}
	for (int i = 0; i < 200; i++)
		lag_trace_file_prepare(&file);
	for (size_t i = 0; i < N_THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
		release(prods[i]);
	}
	lag_trace_file_settle(&file);
	assert_int_equal(file.counters->written[LAG_REC_op], N_THREADS * N_PER_THREAD);
	lag_trace_file_close(&file);
	load(&c, path);
	assert_int_equal(c.n_ops, N_THREADS * N_PER_THREAD);
	free(c.bytes);
}

/* The child tells through a pipe what it has committed, and is killed at an instant of its own. */
static void nothing_committed_is_lost_by_a_kill(void **state)
{
	(void)state;
	for (int round = 0; round < 60; round++) {
		const struct timespec pause = { 0, 20000L + (round * 7919L) % 1500000 };
		void *page =
			mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		_Atomic int64_t *committed = page;
		struct contents c;
		pid_t pid;

		assert_ptr_not_equal(page, MAP_FAILED);
		(void)unlink(path);
		pid = fork();
		if (pid == 0) {
			struct lag_trace_file file;
			struct lag_trace_producer *prod;

			create(&file, path);
			prod = producer(&file, 1);
			for (int64_t i = 0;; i++) {
				if (!append_op(prod, i))
					_exit(1);
				atomic_store(committed, i + 1);
			}
		}
		while (!atomic_load(committed))
			(void)sched_yield();
		(void)nanosleep(&pause, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		load(&c, path);
		assert_true((int64_t)c.n_ops >= *committed);
		assert_true((int64_t)c.n_ops <= *committed + 1);
		free(c.bytes);
		munmap(page, 4096);
	}
}

/* On a full disk a store into a mapped hole would be a SIGBUS in the traced program. */
static void a_full_disk_is_a_counted_loss(void **state)
{
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	char mounted[PATH_MAX + 16], where[PATH_MAX + 32];
	struct contents c;
	int64_t kept = 0;
	pid_t pid;
	int status;

	(void)state;
	(void)snprintf(mounted, sizeof(mounted), "%s/full", folder);
	(void)snprintf(where, sizeof(where), "%s/t.lag", mounted);
	assert_int_equal(mkdir(mounted, 0700), 0);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", mounted, "tmpfs", 0, "size=300k"))
			_exit(77);
		create(&file, where);
		prod = producer(&file, 1);
		for (int64_t i = 0; i < 40000; i++)
			kept += append_op(prod, i);
		if (file.counters->lost_reason[LAG_LOSS_DISK_FULL] != (uint64_t)(40000 - kept))
			_exit(2);
		lag_trace_producer_close(prod);
		load(&c, where);
		_exit(kept > 1000 && kept < 40000 && c.n_ops == (uint64_t)kept ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(rmdir(mounted), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("no right to mount: a full disk is not tested\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
#define WITHOUT_ALLOCATION(test)                                              \
	cmocka_unit_test_setup_teardown(test, make_folder_without_allocation, \
					remove_folder_and_see_refusals)
#define IN_CHILD_WITHOUT_ALLOCATION(test)                                     \
	cmocka_unit_test_setup_teardown(test, make_folder_without_allocation, \
					remove_folder_without_allocation)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_is_castagnolis),
		IN_FOLDER(records_come_back_across_chunks),
		IN_FOLDER(an_open_chunk_counts_too),
		IN_FOLDER(strings_are_written_once),
		IN_FOLDER(configurations_are_written_once),
		IN_FOLDER(a_string_that_is_too_long_is_cut),
		IN_FOLDER(the_cap_stops_and_counts),
		IN_FOLDER(the_limit_of_the_process_is_kept),
		IN_FOLDER(errno_is_left_alone),
		IN_FOLDER(a_file_is_never_overwritten),
		IN_FOLDER(a_stolen_descriptor_is_not_written_to),
		IN_FOLDER(threads_do_not_disturb_each_other),
		IN_FOLDER(nothing_committed_is_lost_by_a_kill),
		IN_FOLDER(a_full_disk_is_a_counted_loss),
		/* The same where zeroes take the place of allocation. */
		WITHOUT_ALLOCATION(records_come_back_across_chunks),
		WITHOUT_ALLOCATION(the_cap_stops_and_counts),
		WITHOUT_ALLOCATION(the_limit_of_the_process_is_kept),
		WITHOUT_ALLOCATION(errno_is_left_alone),
		WITHOUT_ALLOCATION(threads_do_not_disturb_each_other),
		IN_CHILD_WITHOUT_ALLOCATION(nothing_committed_is_lost_by_a_kill),
		IN_CHILD_WITHOUT_ALLOCATION(a_full_disk_is_a_counted_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

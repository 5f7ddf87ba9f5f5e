/* SPDX-License-Identifier: Apache-2.0 */
/* The reader on whole, cut, damaged and hostile files: it never reads outside, never gives more than
 * was written, and counts what it left out. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/trace/trace_reader.h"
#include "tests/unit/lag_builder.h"
#include "tests/unit/unit.h"

#define N_KERNELS 40
#define CHUNKS_AT ((size_t)LAG_CHUNKS_AT)
#define START_NS  INT64_C(1700000000000000000)

struct file {
	char dir[64];
	uint8_t *bytes;
	size_t n;
	size_t used; /* end of the first chunk's records */
	size_t n_records;
};

static struct lag_chunk_header *chunk_at(uint8_t *bytes, size_t index)
{
	return (struct lag_chunk_header *)(void *)(bytes + CHUNKS_AT +
						   index * (size_t)LAG_CHUNK_BYTES);
}

static void seal_again(struct lag_chunk_header *chunk)
{
	chunk->crc = lag_chunk_crc(chunk, chunk + 1, chunk->committed);
}

/* Reads all of an exact-size copy, so that a sanitizer sees any step outside; keeps the first max. */
static size_t read_records(const uint8_t *bytes, size_t n, struct lag_record *records, size_t max,
			   struct lag_trace_damage *damage)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct lag_trace_reader *rd = NULL;
	struct lag_record rec;
	struct lag_err err = { 0 };
	uint32_t producer;
	uint64_t tid;
	size_t count = 0;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	if (lag_trace_reader_open(copy, n, &rd, &err) != LAG_OK) {
		assert_null(rd);
		assert_true(err.text[0] != '\0');
		damage->bad_chunks++; /* refused, which is noticed as well */
		free(copy);
		return 0;
	}
	memset(&rec, 0, sizeof(rec));
	for (; lag_trace_reader_next(rd, &rec, &producer, &tid) == LAG_OK; count++) {
		if (count < max)
			records[count] = rec;
		memset(&rec, 0, sizeof(rec));
	}
	*damage = *lag_trace_reader_damage(rd);
	lag_trace_reader_close(rd);
	free(copy);
	return count;
}

/* -1: refused. */
static long count_records(const uint8_t *bytes, size_t n, struct lag_trace_damage *damage)
{
	struct lag_trace_reader *rd = NULL;
	struct lag_trace_damage found = { 0 };
	struct lag_err err = { 0 };
	long count = (long)read_records(bytes, n, NULL, 0, &found);

	if (lag_trace_reader_open(bytes, n, &rd, &err) != LAG_OK)
		return -1;
	lag_trace_reader_close(rd);
	if (damage)
		*damage = found;
	return count;
}

static int make_file(void **state)
{
	struct file *f = calloc(1, sizeof(*f));
	struct lag_builder lb;

	lb_make_dir(f->dir, sizeof(f->dir));
	lb_open(&lb, f->dir, "a", LB_WHO(3, 8, "node"), START_NS);
	for (int i = 0; i < N_KERNELS; i++) {
		(void)lb_kernel(&lb, START_NS + i * INT64_C(1000),
				START_NS + i * INT64_C(1000) + 10,
				START_NS + i * INT64_C(1000) + 600, 7, i % 2 ? "odd" : "even");
	}
	lb_close(&lb);
	f->bytes = lb_read(lb.path, &f->n);
	f->used = CHUNKS_AT + sizeof(struct lag_chunk_header) + chunk_at(f->bytes, 0)->committed;
	f->n_records = chunk_at(f->bytes, 0)->n_records;
	*state = f;
	return 0;
}

static int drop_file(void **state)
{
	struct file *f = *state;

	lb_remove_dir(f->dir);
	free(f->bytes);
	free(f);
	return 0;
}

static void whole_file_gives_every_record(void **state)
{
	const struct file *f = *state;
	struct lag_trace_reader *rd;
	struct lag_trace_damage damage = { 0 };
	struct lag_err err;

	/* process, host's text, three names, and a call and a kernel each */
	assert_int_equal(f->n_records, 2 + 3 + 2 * N_KERNELS);
	assert_int_equal(count_records(f->bytes, f->n, &damage), f->n_records);
	assert_int_equal(damage.bad_chunks + damage.missing_chunks + damage.bad_records, 0);
	assert_int_equal(lag_trace_reader_open(f->bytes, f->n, &rd, &err), LAG_OK);
	assert_string_equal(lag_trace_reader_header(rd)->host, "node");
	assert_int_equal(lag_trace_reader_header(rd)->start_ns, START_NS);
	assert_int_equal(lag_trace_reader_counters(rd)->written[LAG_REC_kernel], N_KERNELS);
	lag_trace_reader_close(rd);
}

static void cut_anywhere_keeps_what_is_before_the_cut(void **state)
{
	const struct file *f = *state;
	long before = 0;

	for (size_t n = 0; n <= f->n; n += n < CHUNKS_AT - 64 || n > f->used + 64 ? 61 : 1) {
		struct lag_trace_damage damage = { 0 };
		long count = count_records(f->bytes, n, &damage);

		if (count < 0) {
			assert_true(n < sizeof(struct lag_trace_header));
			continue;
		}
		assert_true(count >= before);
		before = count;
		if (n >= f->used) {
			assert_int_equal(count, f->n_records);
		} else if (n >= CHUNKS_AT + sizeof(struct lag_chunk_header)) {
			assert_true(damage.bad_records > 0);
		}
	}
	assert_int_equal(before, f->n_records);
}

/* Of a sealed file, wherever a byte is wrong: what is read is a beginning of what was written, and what
 * is missing has been counted. */
static void any_wrong_byte_is_noticed(void **state)
{
	static struct lag_record whole[1000], read[1000];
	struct file *f = *state;
	size_t n_whole, n_read;
	struct lag_trace_damage damage;

	assert_true(f->n_records < 1000);
	n_whole = read_records(f->bytes, f->n, whole, 1000, &damage);
	for (size_t at = 0; at < f->used; at++) {
		if (at == sizeof(struct lag_trace_header))
			at = CHUNKS_AT; /* counters are no records */
		if (at - CHUNKS_AT == offsetof(struct lag_chunk_header, reserved))
			at += sizeof(uint64_t);
		for (unsigned how = 1; how < 256; how = how < 128 ? 2 * how : how + 127) {
			f->bytes[at] ^= (uint8_t)how;
			memset(&damage, 0, sizeof(damage));
			n_read = read_records(f->bytes, f->n, read, 1000, &damage);
			assert_true(n_read <= n_whole);
			for (size_t i = 0; i < n_read; i++) {
				assert_memory_equal(read[i].field, whole[i].field,
						    sizeof(whole[i].field));
			}
			if (!damage.bad_chunks && !damage.missing_chunks)
				fail_msg("byte %zu ^ %u was not noticed", at, how);
			if (at >= CHUNKS_AT + sizeof(struct lag_chunk_header)) {
				assert_int_equal(n_read, 0);
				assert_int_equal(damage.bad_chunks, 1);
				assert_int_equal(damage.first_offset, CHUNKS_AT);
			}
			f->bytes[at] ^= (uint8_t)how;
		}
	}
}

/* From memory, from a file, and chunk by chunk in any order: the same. */
static void all_ways_of_reading_agree(void **state)
{
	struct file *f = *state;
	struct lag_builder lb;
	struct lag_trace_reader *rd, *file_rd;
	struct lag_trace_cursor cur;
	struct lag_record rec, a, b;
	struct lag_err err;
	uint32_t producer;
	uint64_t tid;
	size_t n = 0;
	int fd;

	lb_open(&lb, f->dir, "b", LB_WHO(3, 8, "node"), START_NS);
	for (int64_t i = 0; i < 20000; i++) {
		(void)lb_kernel(&lb, START_NS + i * 1000, START_NS + i * 1000 + 10,
				START_NS + i * i, 7, "k");
	}
	lb_close(&lb);
	free(f->bytes);
	f->bytes = lb_read(lb.path, &f->n);
	fd = open(lb.path, O_RDONLY);
	assert_int_equal(lag_trace_reader_open_file(fd, &file_rd, &err), LAG_OK);
	assert_int_equal(lag_trace_reader_open(f->bytes, f->n, &rd, &err), LAG_OK);
	assert_true(lag_trace_reader_n_chunks(rd) >= 3);
	lag_trace_cursor_init(&cur);
	for (size_t i = 0; i < lag_trace_reader_n_chunks(rd); i++) {
		size_t in_chunk = 0;

		for (size_t back = lag_trace_reader_n_chunks(rd) - 1; back > i; back--)
			assert_int_equal(lag_trace_cursor_enter(&cur, rd, back), LAG_OK);
		assert_int_equal(lag_trace_cursor_enter(&cur, rd, i), LAG_OK);
		for (; lag_trace_cursor_next(&cur, &rec) == LAG_OK; in_chunk++) {
			size_t n_bytes = lag_record_info_get(rec.kind)->n_fields * sizeof(int64_t);

			assert_int_equal(lag_trace_reader_next(rd, &a, &producer, &tid), LAG_OK);
			assert_int_equal(lag_trace_reader_next(file_rd, &b, &producer, &tid),
					 LAG_OK);
			assert_int_equal(a.kind, rec.kind);
			assert_int_equal(b.kind, rec.kind);
			assert_memory_equal(a.field, rec.field, n_bytes);
			assert_memory_equal(b.field, rec.field, n_bytes);
		}
		assert_int_equal(in_chunk, cur.chunk.n_records);
		n += in_chunk;
	}
	assert_true(n > 40000);
	assert_int_equal(lag_trace_reader_next(rd, &rec, &producer, &tid), LAG_END);
	assert_int_equal(lag_trace_reader_next(file_rd, &rec, &producer, &tid), LAG_END);
	assert_int_equal(cur.damage.bad_chunks + cur.damage.bad_records, 0);
	lag_trace_cursor_release(&cur);
	lag_trace_reader_close(rd);
	lag_trace_reader_close(file_rd);
	close(fd);
}

/* A map of a file that somebody cuts kills its reader; this one reads what is still there. */
static void a_file_that_shrinks_is_a_cut_one(void **state)
{
	struct file *f = *state;
	struct lag_trace_reader *rd;
	struct lag_record rec;
	struct lag_err err;
	char path[128];
	uint32_t producer;
	uint64_t tid;
	size_t n = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/a.lag", f->dir);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(lag_trace_reader_open_file(fd, &rd, &err), LAG_OK);
	assert_int_equal(ftruncate(fd, (off_t)f->used - 100), 0);
	while (lag_trace_reader_next(rd, &rec, &producer, &tid) == LAG_OK)
		n++;
	assert_true(n > 0 && n < f->n_records);
	assert_true(lag_trace_reader_damage(rd)->bad_records > 0);
	lag_trace_reader_close(rd);
	close(fd);
}

/* Open chunks have no checksum: every record is checked by itself. */
static void damaged_records_of_an_open_chunk_end_it(void **state)
{
	struct file *f = *state;
	struct lag_chunk_header *chunk = chunk_at(f->bytes, 0);
	uint8_t *records = (uint8_t *)(chunk + 1);

	atomic_store(&chunk->state, LAG_CHUNK_CLAIMED);
	assert_int_equal(count_records(f->bytes, f->n, NULL), f->n_records);
	for (size_t at = 0; at < chunk->committed; at++) {
		uint8_t saved = records[at];
		uint32_t committed = chunk->committed;
		long before, n;

		chunk->committed = (uint32_t)at; /* the file up to the damage */
		before = count_records(f->bytes, f->n, NULL);
		chunk->committed = committed;
		records[at] = 0xff;
		/* What the bytes behind it then mean is anything, but no more than they are. */
		n = count_records(f->bytes, f->n, NULL);
		assert_true(n >= before && n <= (long)committed);
		records[at] = saved;
	}
	records[0] = 0xc0; /* no record kind is 0 */
	assert_int_equal(count_records(f->bytes, f->n, NULL), 0);
}

static void impossible_lengths_are_refused(void **state)
{
	struct file *f = *state;
	struct lag_chunk_header *chunk = chunk_at(f->bytes, 0);
	struct lag_trace_damage damage = { 0 };

	atomic_store(&chunk->committed, UINT32_MAX);
	assert_int_equal(count_records(f->bytes, f->n, &damage), 0);
	assert_int_equal(damage.bad_chunks, 1);
	atomic_store(&chunk->committed, LAG_CHUNK_ROOM + 1);
	assert_int_equal(count_records(f->bytes, f->n, NULL), 0);
	/* A record that says it is longer than its chunk. */
	atomic_store(&chunk->state, LAG_CHUNK_CLAIMED);
	atomic_store(&chunk->committed, 12);
	memcpy(chunk + 1, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00", 12);
	assert_int_equal(count_records(f->bytes, f->n, &damage), 0);
	assert_int_equal(damage.bad_records, 1);
}

static void unknown_kinds_are_counted_and_skipped(void **state)
{
	static const uint8_t unknown[] = { 3 << 6 | (LAG_REC_LIMIT - 1), 0x03, 0x01, 0x02 };
	struct file *f = *state;
	struct lag_chunk_header *chunk = chunk_at(f->bytes, 0);
	struct lag_trace_damage damage = { 0 };

	atomic_store(&chunk->state, LAG_CHUNK_CLAIMED);
	memcpy(f->bytes + f->used, unknown, sizeof(unknown));
	atomic_fetch_add(&chunk->committed, sizeof(unknown));
	assert_int_equal(count_records(f->bytes, f->n, &damage), f->n_records);
	assert_int_equal(damage.unknown_records, 1);
	assert_int_equal(damage.bad_records, 0);
}

static void holes_and_repeats_of_chunk_numbers_are_damage(void **state)
{
	struct file *f = *state;
	size_t n = f->n + LAG_CHUNK_BYTES;
	uint8_t *bytes = calloc(1, n);
	struct lag_trace_damage damage = { 0 };

	assert_non_null(bytes);
	memcpy(bytes, f->bytes, CHUNKS_AT + LAG_CHUNK_BYTES);
	memcpy(chunk_at(bytes, 1), chunk_at(bytes, 0), LAG_CHUNK_BYTES);
	chunk_at(bytes, 1)->index = 1;
	seal_again(chunk_at(bytes, 1));
	assert_int_equal(count_records(bytes, CHUNKS_AT + 2 * (size_t)LAG_CHUNK_BYTES, &damage),
			 f->n_records);
	assert_int_equal(damage.bad_chunks, 1);
	chunk_at(bytes, 1)->producer_seq = 5;
	seal_again(chunk_at(bytes, 1));
	assert_int_equal(count_records(bytes, CHUNKS_AT + 2 * (size_t)LAG_CHUNK_BYTES, &damage),
			 2 * f->n_records);
	assert_int_equal(damage.missing_chunks, 4);
	free(bytes);
}

static void foreign_files_are_refused_with_a_reason(void **state)
{
	struct file *f = *state;
	struct lag_trace_header *head = (struct lag_trace_header *)(void *)f->bytes;
	struct lag_trace_reader *rd;
	struct lag_err err;

	assert_int_equal(lag_trace_reader_open(f->bytes, 0, &rd, &err), LAG_ERR_INPUT);
	assert_string_equal(err.text, "empty file");
	head->magic = __builtin_bswap64(head->magic);
	assert_int_equal(lag_trace_reader_open(f->bytes, f->n, &rd, &err), LAG_ERR_INPUT);
	assert_string_equal(err.text, "written on a machine of the other byte order");
	head->magic = 1;
	assert_int_equal(lag_trace_reader_open(f->bytes, f->n, &rd, &err), LAG_ERR_INPUT);
	assert_string_equal(err.text, "not a laggard trace");
	head->magic = LAG_TRACE_MAGIC;
	head->version = 1;
	assert_int_equal(lag_trace_reader_open(f->bytes, f->n, &rd, &err), LAG_ERR_INPUT);
	assert_non_null(strstr(err.text, "version 1"));
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_file, drop_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(whole_file_gives_every_record),
		FILE_TEST(cut_anywhere_keeps_what_is_before_the_cut),
		FILE_TEST(any_wrong_byte_is_noticed),
		FILE_TEST(all_ways_of_reading_agree),
		FILE_TEST(a_file_that_shrinks_is_a_cut_one),
		FILE_TEST(damaged_records_of_an_open_chunk_end_it),
		FILE_TEST(impossible_lengths_are_refused),
		FILE_TEST(unknown_kinds_are_counted_and_skipped),
		FILE_TEST(holes_and_repeats_of_chunk_numbers_are_damage),
		FILE_TEST(foreign_files_are_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

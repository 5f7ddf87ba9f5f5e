/* SPDX-License-Identifier: Apache-2.0 */
/* The reader on whole, cut, damaged and hostile files: it never reads outside, never gives more than
 * was written, and counts what it left out. */
#include <stdlib.h>
#include <string.h>

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

/* Reads all of an exact-size copy, so that a sanitizer sees any step outside. -1: refused. */
static long count_records(const uint8_t *bytes, size_t n, struct lag_trace_damage *damage)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct lag_trace_reader *rd = NULL;
	struct lag_record rec;
	struct lag_err err = { 0 };
	uint32_t producer;
	uint64_t tid;
	long count = 0;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	if (lag_trace_reader_open(copy, n, &rd, &err) != LAG_OK) {
		assert_null(rd);
		assert_true(err.text[0] != '\0');
		free(copy);
		return -1;
	}
	while (lag_trace_reader_next(rd, &rec, &producer, &tid) == LAG_OK)
		count++;
	if (damage)
		*damage = *lag_trace_reader_damage(rd);
	lag_trace_reader_close(rd);
	free(copy);
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
	struct lag_trace_damage damage;
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

static void flipped_bit_in_a_sealed_chunk_drops_that_chunk(void **state)
{
	struct file *f = *state;

	for (size_t at = CHUNKS_AT + sizeof(struct lag_chunk_header); at < f->used; at += 7) {
		struct lag_trace_damage damage = { 0 };

		f->bytes[at] ^= (uint8_t)(1u << at % 8);
		assert_int_equal(count_records(f->bytes, f->n, &damage), 0);
		assert_int_equal(damage.bad_chunks, 1);
		assert_int_equal(damage.first_offset, CHUNKS_AT);
		f->bytes[at] ^= (uint8_t)(1u << at % 8);
	}
}

static void flipped_bits_in_headers_never_add_records(void **state)
{
	struct file *f = *state;

	for (size_t at = 0; at < CHUNKS_AT + sizeof(struct lag_chunk_header); at++) {
		if (at == 2 * sizeof(struct lag_trace_header))
			at = CHUNKS_AT;
		for (int bit = 0; bit < 8; bit++) {
			f->bytes[at] ^= (uint8_t)(1u << bit);
			assert_true(count_records(f->bytes, f->n, NULL) <= (long)f->n_records);
			f->bytes[at] ^= (uint8_t)(1u << bit);
		}
	}
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
		struct lag_trace_damage damage = { 0 };

		records[at] = 0xff;
		assert_true(count_records(f->bytes, f->n, &damage) <= (long)f->n_records);
		records[at] = saved;
	}
	records[0] = 0; /* no record kind is 0 */
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
	struct file *f = *state;
	struct lag_chunk_header *chunk = chunk_at(f->bytes, 0);
	uint8_t *records = (uint8_t *)(chunk + 1);
	struct lag_trace_damage damage = { 0 };

	atomic_store(&chunk->state, LAG_CHUNK_CLAIMED);
	records[0] = LAG_REC_LIMIT - 1;
	assert_int_equal(count_records(f->bytes, f->n, &damage), f->n_records - 1);
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
	assert_int_equal(count_records(bytes, CHUNKS_AT + 2 * (size_t)LAG_CHUNK_BYTES, &damage),
			 f->n_records);
	assert_int_equal(damage.bad_chunks, 1);
	chunk_at(bytes, 1)->producer_seq = 5;
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
	head->version = 2;
	assert_int_equal(lag_trace_reader_open(f->bytes, f->n, &rd, &err), LAG_ERR_INPUT);
	assert_non_null(strstr(err.text, "version 2"));
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_file, drop_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(whole_file_gives_every_record),
		FILE_TEST(cut_anywhere_keeps_what_is_before_the_cut),
		FILE_TEST(flipped_bit_in_a_sealed_chunk_drops_that_chunk),
		FILE_TEST(flipped_bits_in_headers_never_add_records),
		FILE_TEST(damaged_records_of_an_open_chunk_end_it),
		FILE_TEST(impossible_lengths_are_refused),
		FILE_TEST(unknown_kinds_are_counted_and_skipped),
		FILE_TEST(holes_and_repeats_of_chunk_numbers_are_damage),
		FILE_TEST(foreign_files_are_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Packed rank files: what goes in comes out, record by record and, restored, byte by byte; cut and
 * damaged ones give the blocks that are whole and say so. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge/lagz.h"
#include "tests/unit/lag_builder.h"

#define START_NS INT64_C(1700000000000000000)

struct world {
	char dir[64];
	uint8_t *bytes, *packed; /* a .lag file and what it packs to */
	size_t n, n_packed;
	uint64_t n_records;
	uint64_t random;
};

static uint64_t next_random(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

/* Mostly what traces hold, now and then the worst there is. */
static int64_t some_value(struct world *w, enum lag_field_type type, int64_t now)
{
	static const int64_t worst[] = { 0, 1, -1, INT64_MAX, LAG_NONE, LAG_NONE + 1, START_NS };
	uint64_t r = next_random(w);

	if (r % 61 == 0 && type != LAG_F_UINT && type != LAG_F_STR) {
		return type == LAG_F_OPT && worst[r % 7] != LAG_NONE ? worst[r % 7] & INT64_MAX
								     : worst[r % 7];
	}
	if (type == LAG_F_TIME || type == LAG_F_AFTER)
		return now + (int64_t)(r % 5000);
	return type == LAG_F_HASH ? (int64_t)r : (int64_t)(r % 100);
}

static void append_some(struct world *w, struct lag_trace_producer *prod, int64_t now)
{
	struct lag_record rec;
	char text[64];

	for (unsigned kind = 0; kind < LAG_REC_LIMIT; kind++) {
		const struct lag_record_info *info = lag_record_info_get(kind);

		if (!info || next_random(w) % 3)
			continue;
		lag_record_init(&rec, info->kind);
		for (size_t i = 0; i < info->n_fields; i++)
			rec.field[i] = some_value(w, info->fields[i].type, now);
		if (info->kind == LAG_REC_string) {
			rec.bytes = text;
			rec.n_bytes = (size_t)snprintf(text, sizeof(text), "name %llu",
						       (unsigned long long)next_random(w));
		}
		assert_true(lag_trace_append(prod, &rec));
	}
}

static uint8_t *pack(struct world *w, const uint8_t *bytes, size_t n, size_t *n_packed,
		     enum lag_status expected)
{
	struct lag_packed_tally tally;
	struct lag_err err = { 0 };
	char path[128];
	uint8_t *packed;
	FILE *in, *f;

	(void)snprintf(path, sizeof(path), "%s/plain", w->dir);
	in = fopen(path, "w+");
	assert_non_null(in);
	assert_int_equal(fwrite(bytes, 1, n, in), n);
	assert_int_equal(fflush(in), 0);
	(void)snprintf(path, sizeof(path), "%s/packed", w->dir);
	f = fopen(path, "w+");
	assert_non_null(f);
	assert_int_equal(lag_packed_write(fileno(in), fileno(f), &tally, &err), expected);
	assert_int_equal(expected == LAG_OK, err.text[0] == '\0');
	(void)fclose(in);
	(void)fclose(f);
	packed = lb_read(path, n_packed);
	if (expected == LAG_OK) {
		assert_int_equal(tally.bytes_out, *n_packed);
		assert_int_equal(tally.bytes_in, n);
		w->n_records = tally.n_records;
	}
	return packed;
}

/* Four producers that take turns, one of which was killed; and a chunk that nobody took. */
static int make_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct lag_trace_producer *prods[4];
	struct lag_builder lb;

	w->random = 88172645463325252u;
	lb_make_dir(w->dir, sizeof(w->dir));
	lb_open(&lb, w->dir, "a", LB_WHO(3, 8, "node"), START_NS);
	for (size_t i = 0; i < 4; i++) {
		prods[i] = calloc(1, sizeof(*prods[i]));
		lag_trace_producer_init(prods[i], &lb.file, 100 + i);
	}
	for (int i = 0; i < 3000; i++) {
		struct lag_trace_producer *prod = prods[next_random(w) % 4];

		append_some(w, prod, START_NS + i * INT64_C(10000));
		if (i % 1000 == 500)
			lag_trace_producer_close(prod);
	}
	for (size_t i = 0; i < 4; i++) {
		if (i == 2) {
			lag_trace_producer_abandon(prods[i]);
		} else {
			lag_trace_producer_close(prods[i]);
		}
		free(prods[i]);
	}
	lb.file.counters->lost[LAG_REC_kernel] = 7;
	lag_trace_file_prepare(&lb.file);
	lb_close(&lb);
	w->bytes = lb_read(lb.path, &w->n);
	w->packed = pack(w, w->bytes, w->n, &w->n_packed, LAG_OK);
	*state = w;
	return 0;
}

static int drop_world(void **state)
{
	struct world *w = *state;

	lb_remove_dir(w->dir);
	free(w->bytes);
	free(w->packed);
	free(w);
	return 0;
}

struct memory {
	struct lag_input in;
	const uint8_t *bytes;
	size_t n;
};

static long read_memory(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	struct memory *m = in->state;
	size_t n = m->n - in->offset < room ? m->n - in->offset : room;

	(void)err;
	/* In pieces, as archives do. */
	n = n > 1000 ? 1000 : n;
	memcpy(buf, m->bytes + in->offset, n);
	in->offset += n;
	return (long)n;
}

static struct lag_input *input_of(struct memory *m, const uint8_t *bytes, size_t n)
{
	*m = (struct memory){ .bytes = bytes, .n = n };
	m->in = (struct lag_input){ .path = "memory", .read = read_memory, .state = m };
	return &m->in;
}

static void expect_same(const struct lag_record *a, const struct lag_record *b)
{
	const struct lag_record_info *info = lag_record_info_get(a->kind);

	assert_int_equal(a->kind, b->kind);
	assert_memory_equal(a->field, b->field, info->n_fields * sizeof(a->field[0]));
	assert_int_equal(a->n_bytes, b->n_bytes);
	if (a->n_bytes)
		assert_memory_equal(a->bytes, b->bytes, a->n_bytes);
}

static void records_come_back_in_their_order(void **state)
{
	struct world *w = *state;
	struct lag_packed_reader *packed;
	struct lag_trace_reader *plain;
	const struct lag_chunk_header *chunk;
	struct lag_record a, b;
	struct lag_err err;
	struct memory m;
	uint32_t producer;
	uint64_t tid, n = 0;

	assert_int_equal(lag_trace_reader_open(w->bytes, w->n, &plain, &err), LAG_OK);
	assert_int_equal(lag_packed_open(input_of(&m, w->packed, w->n_packed), &packed, &err),
			 LAG_OK);
	while (lag_trace_reader_next(plain, &a, &producer, &tid) == LAG_OK) {
		assert_int_equal(lag_packed_next(packed, &b, &chunk, &err), LAG_OK);
		expect_same(&a, &b);
		assert_int_equal(chunk->producer, producer);
		assert_int_equal(chunk->tid, tid);
		n++;
	}
	assert_int_equal(lag_packed_next(packed, &b, &chunk, &err), LAG_END);
	assert_int_equal(n, w->n_records);
	assert_true(n > 5 * (uint64_t)LAG_PACKED_BLOCK_RECORDS);
	assert_int_equal(lag_packed_damage(packed)->bad_chunks, 0);
	assert_int_equal(lag_packed_damage(packed)->bad_records, 0);
	assert_int_equal(lag_packed_counters(packed)->lost[LAG_REC_kernel], 7);
	assert_string_equal(lag_packed_trace_header(packed)->host, "node");
	lag_trace_reader_close(plain);
	lag_packed_close(packed);
}

static enum lag_status pay_nothing(struct lag_packed_budget *budget, uint64_t n,
				   struct lag_err *err)
{
	(void)n;
	if (budget->state)
		return lag_err_set(err, LAG_ERR_LIMIT, "too much");
	return LAG_OK;
}

/* Chunks that nobody has claimed may have their number or not. */
static void clear_free_chunks(uint8_t *bytes, size_t n)
{
	for (size_t at = LAG_CHUNKS_AT; at + LAG_CHUNK_BYTES <= n; at += LAG_CHUNK_BYTES) {
		struct lag_chunk_header *h = (struct lag_chunk_header *)(void *)(bytes + at);

		if (h->state == LAG_CHUNK_FREE)
			memset((void *)h, 0, sizeof(*h));
	}
}

static void a_restored_file_has_the_same_bytes(void **state)
{
	struct world *w = *state;
	struct lag_packed_budget budget = { pay_nothing, NULL };
	struct lag_err err = { 0 };
	struct memory m;
	char path[128];
	uint8_t *back;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/back.lag", w->dir);
	assert_int_equal(
		lag_packed_restore(input_of(&m, w->packed, w->n_packed), path, 0600, &budget, &err),
		LAG_OK);
	back = lb_read(path, &n);
	assert_int_equal(n, w->n);
	clear_free_chunks(back, n);
	clear_free_chunks(w->bytes, n);
	assert_memory_equal(back, w->bytes, n);
	free(back);
	/* Nothing is overwritten, and a budget that is spent leaves nothing. */
	assert_int_equal(
		lag_packed_restore(input_of(&m, w->packed, w->n_packed), path, 0600, &budget, &err),
		LAG_ERR_SYSTEM);
	(void)unlink(path);
	budget.state = &budget;
	assert_int_equal(
		lag_packed_restore(input_of(&m, w->packed, w->n_packed), path, 0600, &budget, &err),
		LAG_ERR_LIMIT);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* -1: refused. *damaged: the reader says that something is missing. */
static long count(const uint8_t *bytes, size_t n, bool *damaged)
{
	struct lag_packed_reader *rd;
	const struct lag_chunk_header *chunk;
	struct lag_record rec;
	struct lag_err err = { 0 };
	struct memory m;
	long records = 0;

	if (lag_packed_open(input_of(&m, bytes, n), &rd, &err) != LAG_OK) {
		assert_true(err.text[0] != '\0');
		return -1;
	}
	while (lag_packed_next(rd, &rec, &chunk, &err) == LAG_OK)
		records++;
	*damaged = lag_packed_damage(rd)->bad_chunks || lag_packed_damage(rd)->bad_records;
	lag_packed_close(rd);
	return records;
}

static void a_cut_file_gives_what_is_before_the_cut(void **state)
{
	struct world *w = *state;
	long before = 0;

	for (size_t n = 0; n < w->n_packed; n += 1 + w->n_packed / 97) {
		bool damaged = false;
		long records = count(w->packed, n, &damaged);

		if (n < sizeof(struct lag_packed_header)) {
			assert_int_equal(records, -1);
			continue;
		}
		assert_true(damaged);
		assert_true(records >= before);
		assert_int_equal(records % LAG_PACKED_BLOCK_RECORDS, 0);
		before = records;
	}
	assert_true(before > 0);
}

static void a_damaged_block_takes_no_other_along(void **state)
{
	struct world *w = *state;
	uint8_t *copy = malloc(w->n_packed);

	for (size_t at = sizeof(struct lag_packed_header) + sizeof(struct lag_packed_block);
	     at < w->n_packed - sizeof(struct lag_packed_block) - 1; at += w->n_packed / 61) {
		bool damaged = false;
		long records;

		memcpy(copy, w->packed, w->n_packed);
		copy[at] ^= 0x40;
		records = count(copy, w->n_packed, &damaged);
		assert_true(damaged);
		assert_true(records >= 0 && records < (long)w->n_records);
	}
	/* In the middle of the first block's bytes: all others are there. */
	memcpy(copy, w->packed, w->n_packed);
	copy[sizeof(struct lag_packed_header) + sizeof(struct lag_packed_block) + 100] ^= 1;
	{
		bool damaged = false;

		assert_int_equal(count(copy, w->n_packed, &damaged),
				 w->n_records - LAG_PACKED_BLOCK_RECORDS);
		assert_true(damaged);
	}
	free(copy);
}

static void a_damaged_rank_file_is_left_as_it_is(void **state)
{
	struct world *w = *state;
	uint8_t *copy = malloc(w->n);
	uint64_t n_records = w->n_records;
	size_t n;

	memcpy(copy, w->bytes, w->n);
	copy[LAG_CHUNKS_AT + LAG_CHUNK_BYTES + sizeof(struct lag_chunk_header) + 50] ^= 1;
	free(pack(w, copy, w->n, &n, LAG_WARN));
	memcpy(copy, w->bytes, w->n);
	copy[4] ^= 1;
	free(pack(w, copy, w->n, &n, LAG_WARN));
	free(pack(w, w->bytes, LAG_CHUNKS_AT + LAG_CHUNK_BYTES + 5000, &n, LAG_WARN));
	w->n_records = n_records;
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_back_in_their_order),
		cmocka_unit_test(a_restored_file_has_the_same_bytes),
		cmocka_unit_test(a_cut_file_gives_what_is_before_the_cut),
		cmocka_unit_test(a_damaged_block_takes_no_other_along),
		cmocka_unit_test(a_damaged_rank_file_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}

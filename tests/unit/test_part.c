/* SPDX-License-Identifier: Apache-2.0 */
/* What a part is given comes out of it unchanged, whatever the values: also where 32 bits cannot hold
 * them. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/part.h"

static const enum lag_record_kind kinds[] = { LAG_REC_kernel, LAG_REC_memcpy,  LAG_REC_memset,
					      LAG_REC_api,    LAG_REC_sync,    LAG_REC_range,
					      LAG_REC_op,     LAG_REC_external };

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 20;
}

/* Mostly small, now and then at an edge or anything. */
static int64_t value(uint64_t *seed)
{
	static const int64_t edges[] = { LAG_NONE,
					 0,
					 -1,
					 INT64_MAX,
					 INT64_MIN + 1,
					 UINT32_MAX,
					 (int64_t)UINT32_MAX - 1,
					 (int64_t)UINT32_MAX - 2,
					 (int64_t)UINT32_MAX + 1 };

	switch (next(seed) % 8) {
	case 0:
		return edges[next(seed) % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return (int64_t)(next(seed) << 30 ^ next(seed));
	default:
		return (int64_t)(next(seed) % 4);
	}
}

static struct lag_record record(enum lag_record_kind kind, uint64_t *seed)
{
	const struct lag_record_info *info = lag_record_info_get(kind);
	struct lag_record rec;

	lag_record_init(&rec, kind);
	for (size_t i = 0; i < info->n_fields; i++)
		rec.field[i] = value(seed);
	return rec;
}

static void assert_same(const struct lag_record *a, const struct lag_record *b)
{
	const struct lag_record_info *info = lag_record_info_get(a->kind);

	assert_int_equal(a->kind, b->kind);
	for (size_t i = 0; i < info->n_fields; i++)
		assert_int_equal(a->field[i], b->field[i]);
}

static void records_come_out_as_they_went_in(void **state)
{
	struct lag_part part;
	struct lag_pool pool;
	uint64_t seed = 1;

	(void)state;
	assert_int_equal(lag_pool_init(&pool), LAG_OK);
	assert_int_equal(lag_part_init(&part, &pool, "x", "test"), LAG_OK);
	for (size_t i = 0; i < 4000; i++) {
		struct lag_record rec = record(kinds[i % N_KINDS], &seed);

		assert_int_equal(lag_part_add(&part, &rec, NULL), LAG_OK);
	}
	seed = 1;
	for (size_t i = 0; i < 4000; i++) {
		struct lag_record rec = record(kinds[i % N_KINDS], &seed);
		struct lag_record got = lag_part_get(&part, rec.kind, i / N_KINDS);

		assert_same(&rec, &got);
		if (rec.kind != LAG_REC_external) {
			struct lag_times at = lag_part_times(&part, rec.kind, i / N_KINDS);

			assert_int_equal(at.start_ns, rec.field[0]);
			assert_int_equal(at.end_ns, rec.field[1]);
		}
	}
	assert_int_equal(part.n_records, 4000);
	lag_part_release(&part);
	lag_pool_release(&pool);
}

static void records_can_be_replaced(void **state)
{
	struct lag_part part;
	struct lag_pool pool;
	struct lag_record rec;
	uint64_t seed = 3;

	(void)state;
	assert_int_equal(lag_pool_init(&pool), LAG_OK);
	assert_int_equal(lag_part_init(&part, &pool, "x", "test"), LAG_OK);
	for (size_t i = 0; i < 100; i++) {
		rec = record(LAG_REC_kernel, &seed);
		assert_int_equal(lag_part_add(&part, &rec, NULL), LAG_OK);
	}
	for (size_t i = 0; i < 100; i += 3) {
		rec = lag_part_get(&part, LAG_REC_kernel, i);
		rec.kernel.op_id = INT64_C(1) << 40;
		rec.kernel.end_ns = LAG_NONE;
		assert_int_equal(lag_part_set(&part, i, &rec), LAG_OK);
	}
	seed = 3;
	for (size_t i = 0; i < 100; i++) {
		struct lag_record got = lag_part_get(&part, LAG_REC_kernel, i);

		rec = record(LAG_REC_kernel, &seed);
		if (i % 3 == 0) {
			rec.kernel.op_id = INT64_C(1) << 40;
			rec.kernel.end_ns = LAG_NONE;
		}
		assert_same(&rec, &got);
	}
	lag_part_release(&part);
	lag_pool_release(&pool);
}

/* Ordinary events share their shapes: that is what makes them small. */
static void alike_events_share_a_shape(void **state)
{
	struct lag_part part;
	struct lag_pool pool;
	struct lag_record rec;

	(void)state;
	assert_int_equal(lag_pool_init(&pool), LAG_OK);
	assert_int_equal(lag_part_init(&part, &pool, "x", "test"), LAG_OK);
	lag_record_init(&rec, LAG_REC_kernel);
	rec.kernel.device = rec.kernel.context = 1;
	for (int64_t i = 0; i < 1000; i++) {
		rec.kernel.start_ns = INT64_C(1700000000000000000) + i * 7000;
		rec.kernel.end_ns = rec.kernel.start_ns + i;
		rec.kernel.correlation = i;
		rec.kernel.name = i % 7;
		rec.kernel.config = i % 5;
		rec.kernel.stream = i % 3;
		assert_int_equal(lag_part_add(&part, &rec, NULL), LAG_OK);
	}
	assert_int_equal(part.shapes[LAG_REC_kernel].records.n, 3);
	assert_int_equal(part.records[LAG_REC_kernel].item_size, 32);
	lag_part_release(&part);
	lag_pool_release(&pool);
}

static void shift_moves_every_time(void **state)
{
	struct lag_part part;
	struct lag_pool pool;
	uint64_t seed = 5;

	(void)state;
	assert_int_equal(lag_pool_init(&pool), LAG_OK);
	assert_int_equal(lag_part_init(&part, &pool, "x", "test"), LAG_OK);
	for (size_t i = 0; i < 500; i++) {
		struct lag_record rec = record(LAG_REC_api, &seed);

		rec.api.start_ns = (int64_t)i * 10;
		if (rec.api.end_ns != LAG_NONE)
			rec.api.end_ns &= INT64_MAX >> 1;
		assert_int_equal(lag_part_add(&part, &rec, NULL), LAG_OK);
	}
	lag_part_shift(&part, 1000);
	seed = 5;
	for (size_t i = 0; i < 500; i++) {
		struct lag_record rec = record(LAG_REC_api, &seed);
		struct lag_times at = lag_part_times(&part, LAG_REC_api, i);

		assert_int_equal(at.start_ns, (int64_t)i * 10 + 1000);
		assert_int_equal(at.end_ns, rec.api.end_ns == LAG_NONE
						    ? LAG_NONE
						    : (rec.api.end_ns & INT64_MAX >> 1) + 1000);
	}
	lag_part_release(&part);
	lag_pool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_out_as_they_went_in),
		cmocka_unit_test(records_can_be_replaced),
		cmocka_unit_test(alike_events_share_a_shape),
		cmocka_unit_test(shift_moves_every_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

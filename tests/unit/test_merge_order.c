/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that carry no number are matched by order where that can be right, and only there. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "tests/unit/lag_builder.h"
#include "tests/unit/merged.h"

#define T0 INT64_C(1700000000000000000)
#define MS INT64_C(1000000)

/* What an importer makes of a kernel that only has a name. */
static void named_op(struct lag_builder *lb, int64_t id, enum lag_func func, int64_t start_ns)
{
	struct lag_record rec;
	int64_t correlation =
		lb_kernel(lb, start_ns - 1000, start_ns, start_ns + 300000, 20, "nccl");

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = start_ns - 1000;
	rec.op.tid = 7;
	rec.op.op_id = id;
	rec.op.comm_id = 1;
	rec.op.func = func;
	rec.op.sources = LAG_OP_FROM_NAME;
	lb_add(lb, &rec);
	lag_record_init(&rec, LAG_REC_external);
	rec.external.kind = 5;
	rec.external.id = id;
	rec.external.correlation = correlation;
	lb_add(lb, &rec);
}

/* Rank records operations [from, until) of the run but `without`; every third is an all-gather. */
static void record(int rank, int from, int until, int without)
{
	struct lag_builder lb;
	char name[16];

	(void)snprintf(name, sizeof(name), "r%d", rank);
	lb_open(&lb, lb_dir(), name, LB_WHO(rank, 2, "node"), T0);
	lb_comm(&lb, 1, 99, 2, rank);
	for (int i = from; i < until; i++) {
		if (i != without) {
			named_op(&lb, i + 1, i % 3 ? LAG_FUNC_ALL_REDUCE : LAG_FUNC_ALL_GATHER,
				 T0 + i * MS);
		}
	}
	lb_close(&lb);
}

static void equal_counts_match_and_are_marked(void **state)
{
	struct merged mg;

	(void)state;
	record(0, 0, 9, -1);
	record(1, 0, 9, -1);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_recorded = 2"), 9);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE flags & 2"), 9);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'matched_by_order'"), 18);
	merged_close(&mg);
}

static void another_start_is_narrowed_to_the_common_window(void **state)
{
	struct merged mg;

	(void)state;
	record(0, 0, 12, -1);
	record(1, 3, 9, -1);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_recorded = 2"), 6);
	/* The same moments, not merely the same places. */
	assert_int_equal(ask(&mg, "SELECT max(last_start_ns - first_start_ns) FROM instance "
				  "WHERE n_recorded = 2"),
			 0);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nccl_op WHERE instance_id IS NULL"), 6);
	merged_close(&mg);
}

static void a_loss_inside_the_window_forbids_matching(void **state)
{
	struct merged mg;

	(void)state;
	record(0, 0, 9, -1);
	record(1, 0, 9, 4);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance"), 0);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'unordered'"), 17);
	merged_close(&mg);
}

/* Equally many, but one before the common window here and one after it there. */
static void equal_counts_of_other_operations_are_narrowed_too(void **state)
{
	struct merged mg;

	(void)state;
	record(0, 0, 9, 8);
	record(1, 0, 9, 0);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_recorded = 2"), 7);
	assert_int_equal(ask(&mg, "SELECT max(last_start_ns - first_start_ns) FROM instance"), 0);
	merged_close(&mg);
}

static void another_function_at_one_place_forbids_matching(void **state)
{
	struct merged mg;

	(void)state;
	/* Number 1 is missing here and number 3 there: other functions face each other. */
	record(0, 0, 9, 1);
	record(1, 0, 9, 3);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance"), 0);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'unordered'"), 16);
	merged_close(&mg);
}

#define MERGE_TEST(name) cmocka_unit_test_setup_teardown(name, lb_setup, lb_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(equal_counts_match_and_are_marked),
		MERGE_TEST(another_start_is_narrowed_to_the_common_window),
		MERGE_TEST(a_loss_inside_the_window_forbids_matching),
		MERGE_TEST(equal_counts_of_other_operations_are_narrowed_too),
		MERGE_TEST(another_function_at_one_place_forbids_matching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From recordings to instances: operations tied to kernels, matched by number, checked, and waits that
 * are stated only where everyone is on record. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "tests/unit/lag_builder.h"
#include "tests/unit/merged.h"

#define T0 INT64_C(1700000000000000000)
#define US INT64_C(1000)

static void open_rank(struct lag_builder *lb, int rank, int world)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "r%d", rank);
	lb_open(lb, lb_dir(), name, LB_WHO(rank, world, "node"), T0);
	lb_comm(lb, 1, 4242, world, rank);
}

/* Two ranks of one host and n all-reduces; rank 1 starts late_us later, both end together. */
static void two_ranks(int n, int64_t late_us)
{
	for (int rank = 0; rank < 2; rank++) {
		struct lag_builder lb;

		open_rank(&lb, rank, 2);
		for (int i = 0; i < n; i++) {
			int64_t at = T0 + i * (10000 * US);

			lb_op(&lb, LB_CALL(i + 1, 1, LAG_FUNC_ALL_REDUCE, i, LAG_NONE),
			      at + rank * late_us * US, at + 3000 * US);
		}
		lb_close(&lb);
	}
}

static void collectives_match_by_number_and_name_the_last(void **state)
{
	struct merged mg;

	(void)state;
	two_ranks(20, 700);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_OK);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance"), 20);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_recorded = 2 AND "
				  "n_started = 2 AND n_finished = 2 AND flags = 0"),
			 20);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE last_rank = 1"), 20);
	assert_int_equal(ask(&mg, "SELECT sum(lead_ns) FROM instance"), 700 * US * 20);
	assert_int_equal(ask(&mg, "SELECT min(last_start_ns - first_start_ns) FROM instance"),
			 700 * US);
	assert_int_equal(ask(&mg, "SELECT DISTINCT bytes FROM instance"), 4096);
	assert_int_equal(ask(&mg,
			     "SELECT count(*) FROM nccl_op AS n JOIN nccl_launch AS l "
			     "ON l.id = n.launch_id JOIN gpu_event AS g ON g.launch_id = l.id "
			     "WHERE g.id = l.gpu_event_id AND g.raw_start_ns = l.raw_start_ns"),
			 40);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event WHERE api_id IS NULL"), 0);
	assert_int_equal(mg.receipt.n_ranks, 2);
	assert_int_equal(mg.receipt.n_findings, 0);
	merged_close(&mg);
}

static void lead_within_the_clock_error_names_nobody(void **state)
{
	struct merged mg;

	(void)state;
	two_ranks(20, 0);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE last_rank IS NOT NULL"), 0);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_started = 2"), 20);
	merged_close(&mg);
}

static void missing_member_withholds_the_last_rank(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	for (int rank = 0; rank < 3; rank += 2) {
		open_rank(&lb, rank, 3);
		for (int i = 0; i < 5; i++) {
			lb_op(&lb, LB_CALL(i + 1, 1, LAG_FUNC_ALL_GATHER, i, LAG_NONE),
			      T0 + i * (9000 * US) + rank * (1000 * US),
			      T0 + i * (9000 * US) + 5000 * US);
		}
		lb_close(&lb);
	}
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_members = 3 AND "
				  "n_recorded = 2 AND last_rank IS NULL"),
			 5);
	assert_int_equal(ask(&mg, "SELECT DISTINCT bytes FROM instance"), 3 * 4096);
	assert_int_equal(ask(&mg, "SELECT process_id FROM rank WHERE rank = 1"), LAG_NONE);
	expect_text(&mg, "SELECT text FROM finding WHERE kind = 'missing_rank'",
		    "no recording of 1 of 3 ranks: 1");
	merged_close(&mg);
}

static void different_calls_under_one_number_are_a_mismatch(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		open_rank(&lb, rank, 2);
		for (int i = 0; i < 3; i++) {
			lb_op(&lb,
			      LB_CALL(i + 1, 1,
				      rank == 1 && i == 1 ? LAG_FUNC_BROADCAST
							  : LAG_FUNC_ALL_REDUCE,
				      i, LAG_NONE),
			      T0 + i * (9000 * US), T0 + i * (9000 * US) + 500 * US);
		}
		lb_close(&lb);
	}
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE flags & 1"), 1);
	assert_int_equal(ask(&mg, "SELECT seq FROM instance WHERE flags & 1"), 1);
	assert_int_equal(ask(&mg, "SELECT seq FROM finding WHERE kind = 'mismatch'"), 1);
	expect_text(&mg, "SELECT text FROM finding WHERE kind = 'mismatch'",
		    "operation 1 differs in function: rank 0 called all_reduce of 1024 float32, "
		    "rank 1 called broadcast of 1024 float32");
	merged_close(&mg);
}

static void skipped_number_is_unmatched_and_the_end_is_not(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		open_rank(&lb, rank, 2);
		for (int i = 0; i < 6; i++) {
			/* rank 1 lost number 2 and recorded no 5 */
			if (rank == 0 || (i != 2 && i != 5)) {
				lb_op(&lb, LB_CALL(i + 1, 1, LAG_FUNC_ALL_REDUCE, i, LAG_NONE),
				      T0 + i * (9000 * US), T0 + i * (9000 * US) + 500 * US);
			}
		}
		lb_close(&lb);
	}
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'unmatched'"), 1);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'unmatched_edge'"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_recorded = 2"), 4);
	merged_close(&mg);
}

/* Stages 0 -> 1 -> 2; the second message's receive is missing. */
static void messages_match_by_sender_receiver_and_number(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	open_rank(&lb, 0, 3);
	lb_op(&lb, LB_CALL(1, 1, LAG_FUNC_SEND, 0, 1), T0, T0 + 50 * US);
	lb_op(&lb, LB_CALL(2, 1, LAG_FUNC_SEND, 1, 1), T0 + 100 * US, T0 + 150 * US);
	lb_close(&lb);
	open_rank(&lb, 1, 3);
	lb_op(&lb, LB_CALL(1, 1, LAG_FUNC_RECV, 0, 0), T0 + 5 * US, T0 + 60 * US);
	lb_op(&lb, LB_CALL(2, 1, LAG_FUNC_SEND, 0, 2), T0 + 70 * US, T0 + 90 * US);
	lb_close(&lb);
	open_rank(&lb, 2, 3);
	lb_op(&lb, LB_CALL(1, 1, LAG_FUNC_RECV, 0, 1), T0 + 10 * US, T0 + 95 * US);
	lb_close(&lb);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), "none")));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE func = 11"), 3);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_members = 2 AND "
				  "n_recorded = 2"),
			 2);
	assert_int_equal(ask(&mg, "SELECT seq FROM instance WHERE src = 0 AND dst = 1 AND "
				  "n_recorded = 1"),
			 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE src = 1 AND dst = 2 AND "
				  "bytes = 4096"),
			 1);
	merged_close(&mg);
}

static void grouped_operations_share_their_kernel(void **state)
{
	struct lag_record rec;
	struct lag_builder lb;
	struct merged mg;
	int64_t correlation;

	(void)state;
	open_rank(&lb, 0, 1);
	for (int i = 0; i < 3; i++) {
		lag_record_init(&rec, LAG_REC_op);
		rec.op.enter_ns = T0 + i;
		rec.op.tid = 7;
		rec.op.op_id = 10 + i;
		rec.op.comm_id = 1;
		rec.op.func = LAG_FUNC_ALL_REDUCE;
		rec.op.seq = i;
		rec.op.group_id = 99;
		rec.op.sources = LAG_OP_FROM_CALL;
		lb_add(&lb, &rec);
	}
	correlation = lb_kernel(&lb, T0 + 10, T0 + 20 * US, T0 + 40 * US, 20, "ncclDevKernel");
	lag_record_init(&rec, LAG_REC_external);
	rec.external.kind = 5;
	rec.external.id = 99;
	rec.external.correlation = correlation;
	lb_add(&lb, &rec);
	lb_close(&lb);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nccl_launch"), 1);
	assert_int_equal(ask(&mg, "SELECT n_ops FROM nccl_launch"), 3);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE flags & 4"), 3);
	assert_int_equal(ask(&mg, "SELECT DISTINCT first_start_ns - (SELECT min(start_ns) FROM "
				  "gpu_event) FROM instance"),
			 0);
	merged_close(&mg);
}

/* Without any external id the launch inside the call ties kernel and operation. */
static void operations_without_ids_are_tied_by_nesting(void **state)
{
	struct lag_record rec;
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	open_rank(&lb, 0, 1);
	for (int i = 0; i < 4; i++) {
		int64_t at = T0 + i * (1000 * US);

		lag_record_init(&rec, LAG_REC_op);
		rec.op.enter_ns = at;
		rec.op.leave_ns = at + 10 * US;
		rec.op.tid = i == 3 ? 8 : 7; /* the last is of another thread: its kernel is not */
		rec.op.op_id = i + 1;
		rec.op.comm_id = 1;
		rec.op.func = LAG_FUNC_ALL_REDUCE;
		rec.op.seq = i;
		rec.op.sources = LAG_OP_FROM_NVTX;
		lb_add(&lb, &rec);
		(void)lb_kernel(&lb, at + 2 * US, at + 20 * US, at + 30 * US, 20,
				"ncclDevKernel_X");
		(void)lb_kernel(&lb, at + 3 * US, at + 40 * US, at + 50 * US, 7, "gemm");
	}
	lb_close(&lb);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nccl_launch WHERE start_ns IS NOT NULL"),
			 3);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nccl_launch WHERE start_ns IS NULL"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event WHERE launch_id IS NOT NULL"), 3);
	merged_close(&mg);
}

#define MERGE_TEST(name) cmocka_unit_test_setup_teardown(name, lb_setup, lb_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(collectives_match_by_number_and_name_the_last),
		MERGE_TEST(lead_within_the_clock_error_names_nobody),
		MERGE_TEST(missing_member_withholds_the_last_rank),
		MERGE_TEST(different_calls_under_one_number_are_a_mismatch),
		MERGE_TEST(skipped_number_is_unmatched_and_the_end_is_not),
		MERGE_TEST(messages_match_by_sender_receiver_and_number),
		MERGE_TEST(grouped_operations_share_their_kernel),
		MERGE_TEST(operations_without_ids_are_tied_by_nesting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

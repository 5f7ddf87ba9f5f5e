/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording says against itself reaches the database: as rows, and as findings for people. */
#include "tests/unit/unit.h"

#include "tests/unit/lag_builder.h"
#include "tests/unit/merged.h"

#define T0 INT64_C(1700000000000000000)

static void add_loss(struct lag_builder *lb, enum lag_loss_reason reason, int64_t count)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_loss);
	rec.loss.from_ns = T0;
	rec.loss.until_ns = T0 + 1000;
	rec.loss.kind = LAG_REC_kernel;
	rec.loss.reason = reason;
	rec.loss.count = count;
	lb_add(lb, &rec);
}

static void losses_in_records_and_counters_are_counted_once(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	lb_open(&lb, lb_dir(), "a", LB_WHO(0, 1, "node"), T0);
	(void)lb_kernel(&lb, T0, T0 + 10, T0 + 20, 7, "k");
	add_loss(&lb, LAG_LOSS_NO_CHUNK, 5);
	/* The header's counters know of these five and of three more. */
	atomic_store(&lb.file.counters->lost[LAG_REC_kernel], 8);
	atomic_store(&lb.file.counters->lost_reason[LAG_LOSS_NO_CHUNK], 8);
	lb_close(&lb);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT sum(count) FROM loss"), 8);
	assert_int_equal(ask(&mg, "SELECT count FROM loss WHERE kind = 'kernel' AND reason = "
				  "'no_buffer' AND from_ns IS NULL"),
			 3);
	expect_text(&mg, "SELECT text FROM finding WHERE kind = 'loss'",
		    "rank 0 lost 8 records, most by: no_buffer");
	merged_close(&mg);
}

static void gaps_clock_steps_and_receipts_are_kept(void **state)
{
	struct lag_record rec;
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	lb_open(&lb, lb_dir(), "a", LB_WHO(0, 1, "node"), T0);
	(void)lb_kernel(&lb, T0, T0 + 10, T0 + 20, 7, "k");
	lag_record_init(&rec, LAG_REC_gap);
	rec.gap.from_ns = T0;
	rec.gap.until_ns = T0 + 1500000000;
	rec.gap.what = lb_text(&lb, "CUPTI");
	rec.gap.reason = lb_text(&lb, "taken by another profiler");
	lb_add(&lb, &rec);
	lag_record_init(&rec, LAG_REC_clock_step);
	rec.clock_step.at_ns = T0 + 500;
	rec.clock_step.step_ns = -2500000;
	lb_add(&lb, &rec);
	for (int i = 1; i <= 2; i++) {
		lag_record_init(&rec, LAG_REC_receipt);
		rec.receipt.at_ns = T0 + i;
		rec.receipt.hook_ns = INT64_C(1000) * i;
		rec.receipt.records = INT64_C(10) * i;
		rec.receipt.clean_exit = 0;
		lb_add(&lb, &rec);
	}
	lb_close(&lb);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT until_ns - from_ns FROM gap WHERE what = 'CUPTI'"),
			 1500000000);
	expect_text(&mg, "SELECT text FROM finding WHERE kind = 'gap'",
		    "rank 0 recorded no CUPTI for 1.500 s: taken by another profiler");
	expect_text(&mg, "SELECT text FROM finding WHERE kind = 'clock_step'",
		    "the clock of host node was set while recording, first by -0.002500 s");
	assert_int_equal(ask(&mg, "SELECT hook_ns FROM receipt"), 2000);
	merged_close(&mg);
}

static void failed_calls_and_aborted_communicators_are_errors(void **state)
{
	struct lag_record rec;
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	lb_open(&lb, lb_dir(), "a", LB_WHO(0, 1, "node"), T0);
	lb_comm(&lb, 1, 77, 1, 0);
	for (int i = 0; i < 3; i++) {
		lag_record_init(&rec, LAG_REC_op);
		rec.op.enter_ns = T0 + i;
		rec.op.op_id = i + 1;
		rec.op.comm_id = 1;
		rec.op.func = LAG_FUNC_ALL_REDUCE;
		rec.op.seq = i;
		rec.op.sources = LAG_OP_FROM_CALL;
		lb_add(&lb, &rec);
		lag_record_init(&rec, LAG_REC_op_end);
		rec.op_end.leave_ns = T0 + i + 100;
		rec.op_end.op_id = i + 1;
		rec.op_end.result = i == 0 ? 0 : i == 1 ? 7 : 5; /* done, in progress, wrong use */
		lb_add(&lb, &rec);
	}
	lag_record_init(&rec, LAG_REC_comm_event);
	rec.comm_event.at_ns = T0 + 500;
	rec.comm_event.comm_id = 1;
	rec.comm_event.state = LAG_COMM_ABORTED;
	lb_add(&lb, &rec);
	lb_close(&lb);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'failed_call' AND "
				  "severity = 2"),
			 1);
	assert_int_equal(ask(&mg, "SELECT comm_id FROM finding WHERE kind = 'communicator_failed'"),
			 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nccl_op WHERE leave_ns - enter_ns = 100"),
			 3);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nccl_launch WHERE start_ns IS NULL"), 3);
	merged_close(&mg);
}

#define MERGE_TEST(name) cmocka_unit_test_setup_teardown(name, lb_setup, lb_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(losses_in_records_and_counters_are_counted_once),
		MERGE_TEST(gaps_clock_steps_and_receipts_are_kept),
		MERGE_TEST(failed_calls_and_aborted_communicators_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

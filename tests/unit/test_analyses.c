/* SPDX-License-Identifier: Apache-2.0 */
/* The analyses on traces made in memory, whose right answers can be worked out by hand. */
#include <math.h>
#include <string.h>

#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/analysis/analysis.h"

static struct lag_context *context(struct trace_builder *tb, const struct lag_model_opts *opts)
{
	struct lag_context *ctx;
	struct lag_err err;

	assert_int_equal(lag_context_new(tb_finish(tb), opts, &ctx, &err), LAG_OK);
	return ctx;
}

static void run(const char *name, struct lag_context *ctx, struct lag_table *table)
{
	struct lag_err err = { 0 };

	if (lag_failed(lag_analysis_run(lag_analysis_find(name), ctx, table, &err)))
		fail_msg("%s: %s", name, err.text);
}

static const struct lag_cell *cell(const struct lag_table *table, size_t row, const char *name)
{
	int column = lag_table_find_column(table, name);

	assert_true(column >= 0);
	assert_true(row < table->n_rows);
	return lag_table_cell(table, row, (size_t)column);
}

static void breakdown_counts_overlaps_once(void **state)
{
	static const int pair[] = { 0, 1 };
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	tb_kernel(&tb, 0, 7, "gemm", 0, 100);
	tb_kernel(&tb, 0, 8, "gemm", 50, 150);
	tb_copy(&tb, 0, 9, 1024, 140, 170);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 120, 260);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 120, 260);
	tb_kernel(&tb, 0, 7, "gemm", 300, 310);
	ctx = context(&tb, NULL);
	run("breakdown", ctx, &t);
	assert_int_equal(t.n_rows, 2);
	assert_int_equal(cell(&t, 0, "span_ns")->i, 310);
	assert_int_equal(cell(&t, 0, "busy_ns")->i, 270);
	assert_int_equal(cell(&t, 0, "idle_ns")->i, 40);
	assert_int_equal(cell(&t, 0, "compute_ns")->i, 160);
	assert_int_equal(cell(&t, 0, "comm_ns")->i, 140);
	assert_int_equal(cell(&t, 0, "mem_ns")->i, 30);
	assert_int_equal(cell(&t, 0, "overlap_ns")->i, 30);
	assert_int_equal(cell(&t, 0, "exposed_comm_ns")->i, 90);
	assert_int_equal(cell(&t, 0, "exposed_mem_ns")->i, 0);
	assert_int_equal(cell(&t, 0, "n_gpu_events")->i, 5);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Four all-reduces of 1 MB on two ranks, the second of which comes `late` ns after the first. */
static struct lag_context *reduces(const int64_t *late, int n)
{
	static const int pair[] = { 0, 1 };
	struct trace_builder tb;
	uint32_t comm;

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int i = 0; i < n; i++) {
		int64_t at = i * INT64_C(1000000);

		tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, i, -1, 1000000, at, at + late[i] + 10000);
		tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, i, -1, 1000000, at + late[i],
		      at + late[i] + 10000);
	}
	return context(&tb, NULL);
}

static void bus_bandwidth_comes_from_instances_that_hardly_waited(void **state)
{
	static const int64_t late[] = { 0, 500, 501, 90000 };
	struct lag_context *ctx = reduces(late, 4);
	struct lag_table t;

	(void)state;
	run("collectives", ctx, &t);
	assert_int_equal(t.n_rows, 1);
	assert_string_equal(cell(&t, 0, "function")->text, "all_reduce");
	assert_int_equal(cell(&t, 0, "count")->i, 4);
	assert_int_equal(cell(&t, 0, "complete")->i, 4);
	assert_int_equal(cell(&t, 0, "wait_ns")->i, 500 + 501 + 90000);
	assert_int_equal(cell(&t, 0, "transfer_ns")->i, 10000);
	/* 500 of 10000 is 5 %: it counts; 501 does not. 2 (n - 1) / n is 1 for two ranks. */
	assert_int_equal(cell(&t, 0, "busbw_n")->i, 2);
	assert_true(fabs(cell(&t, 0, "busbw_gbps")->d - 100) < 1e-9);
	lag_table_release(&t);
	lag_context_free(ctx);
}

static void bus_bandwidth_needs_a_transfer_above_the_clock_error(void **state)
{
	static const int pair[] = { 0, 1 };
	/* Between hosts both count: the square root of 2 of these is 20 % of the transfer. */
	static const int64_t errors[] = { 1414, 1415 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct trace_builder tb;
		struct lag_context *ctx;
		struct lag_table t;
		uint32_t comm;

		tb_init(&tb, 2, 1);
		comm = tb_comm(&tb, "dp", pair, 2);
		tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1000000, 0, 10400);
		tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1000000, 400, 10400);
		tb_uncertainty(&tb, errors[i]);
		ctx = context(&tb, NULL);
		run("collectives", ctx, &t);
		assert_int_equal(cell(&t, 0, "busbw_n")->i, i == 0 ? 1 : 0);
		lag_table_release(&t);
		lag_context_free(ctx);
	}
}

static void a_receive_that_found_its_data_there_has_no_bandwidth(void **state)
{
	static const int pair[] = { 0, 1 };
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "pp", pair, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_SEND, 0, 1, 1000000, 0, 10000);
	tb_op(&tb, comm, 1, LAG_FUNC_RECV, 0, 0, 1000000, 10000, 11000);
	tb_op(&tb, comm, 0, LAG_FUNC_SEND, 1, 1, 1000000, 50000, 60000);
	tb_op(&tb, comm, 1, LAG_FUNC_RECV, 1, 0, 1000000, 50000, 60000);
	ctx = context(&tb, NULL);
	run("collectives", ctx, &t);
	assert_int_equal(cell(&t, 0, "busbw_n")->i, 1);
	assert_true(fabs(cell(&t, 0, "busbw_gbps")->d - 100) < 1e-9);
	lag_table_release(&t);
	lag_context_free(ctx);
}

static void a_missing_member_withholds_wait_transfer_and_bandwidth(void **state)
{
	static const int three[] = { 0, 1, 2 };
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 3, 3);
	tb_missing(&tb, 2);
	comm = tb_comm(&tb, "dp", three, 3);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 0, 100);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 30, 100);
	ctx = context(&tb, NULL);
	run("collectives", ctx, &t);
	assert_int_equal(cell(&t, 0, "complete")->i, 0);
	assert_true(cell(&t, 0, "wait_ns")->null);
	assert_true(cell(&t, 0, "transfer_ns")->null);
	assert_true(cell(&t, 0, "busbw_gbps")->null);
	assert_int_equal(cell(&t, 0, "busbw_n")->i, 0);
	assert_true(t.n_notes > 0);
	lag_table_release(&t);
	run("waits", ctx, &t);
	assert_int_equal(t.n_rows, 0);
	lag_table_release(&t);
	run("trust", ctx, &t);
	assert_string_equal(cell(&t, 0, "kind")->text, "missing_rank");
	assert_non_null(strstr(cell(&t, 0, "text")->text, "rank 2"));
	assert_int_equal(t.outcome, LAG_OUTCOME_FINDING);
	lag_table_release(&t);
	run("summary", ctx, &t);
	assert_int_equal(t.outcome, LAG_OUTCOME_UNSURE);
	lag_table_release(&t);
	lag_context_free(ctx);
}

static void waits_tell_own_time_from_exposed_time(void **state)
{
	static const int pair[] = { 0, 1 };
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	/* Rank 0 waits 100 for rank 1, 60 of it beside its own compute. */
	tb_kernel(&tb, 0, 7, "gemm", 0, 60);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 0, 150);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 100, 150);
	ctx = context(&tb, NULL);
	run("waits", ctx, &t);
	assert_int_equal(t.n_rows, 1);
	assert_int_equal(cell(&t, 0, "rank")->i, 0);
	assert_int_equal(cell(&t, 0, "for_rank")->i, 1);
	assert_int_equal(cell(&t, 0, "wait_ns")->i, 100);
	assert_int_equal(cell(&t, 0, "exposed_ns")->i, 40);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* One rank, three steps of 100 with 60, 70 and 80 of compute. */
static struct lag_context *three_steps(const struct lag_model_opts *opts)
{
	static const char *const names[] = { "step 4", "step 5", "step 6" };
	struct trace_builder tb;

	tb_init(&tb, 1, 1);
	for (int s = 0; s < 3; s++) {
		int64_t at = s * 100;

		tb_range(&tb, 0, 1, names[s], at, at + 95);
		tb_launched(&tb, tb_kernel(&tb, 0, 7, "gemm", at + 1, at + 61 + 10 * s), 1, at,
			    at + 1);
		tb_launched(&tb, tb_kernel(&tb, 0, 7, "adam", at + 99, at + 100), 1, at + 2,
			    at + 3);
	}
	return context(&tb, opts);
}

static void steps_and_ranks_are_chosen_by_number(void **state)
{
	const struct lag_model_opts chosen = { .steps = "5-6" }, bad = { .steps = "5-x" };
	struct lag_context *ctx = three_steps(NULL);
	struct trace_builder tb;
	struct lag_table t;
	struct lag_err err;

	(void)state;
	run("steps", ctx, &t);
	assert_int_equal(t.n_rows, 3);
	assert_int_equal(cell(&t, 0, "step")->i, 4);
	assert_int_equal(cell(&t, 1, "step_ns")->i, 100);
	lag_table_release(&t);
	run("ledger", ctx, &t);
	assert_int_equal(cell(&t, 0, "compute_ns")->i, 60 + 70 + 80 + 3);
	assert_true(cell(&t, 0, "bubble_ns")->null); /* no pipeline: n/a, never 0 */
	lag_table_release(&t);
	lag_context_free(ctx);

	ctx = three_steps(&chosen);
	run("steps", ctx, &t);
	assert_int_equal(t.n_rows, 2);
	lag_table_release(&t);
	run("ledger", ctx, &t);
	assert_int_equal(cell(&t, 0, "steps")->i, 2);
	assert_int_equal(cell(&t, 0, "compute_ns")->i, 70 + 80 + 2);
	assert_int_equal(cell(&t, 0, "time_ns")->i, 200);
	lag_table_release(&t);
	run("kernels", ctx, &t);
	assert_string_equal(cell(&t, 0, "name")->text, "gemm");
	assert_int_equal(cell(&t, 0, "count")->i, 2);
	assert_int_equal(cell(&t, 0, "total_ns")->i, 150);
	lag_table_release(&t);
	lag_context_free(ctx);

	tb_init(&tb, 1, 1);
	tb_kernel(&tb, 0, 7, "gemm", 0, 1);
	assert_int_equal(lag_context_new(tb_finish(&tb), &bad, &ctx, &err), LAG_ERR_USAGE);
}

/* Against the others, not against a mean that the rank itself is part of; and who waits is not slow. */
static void the_slowest_rank_is_compared_with_the_others(void **state)
{
	static const int all[] = { 0, 1, 2 };
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 3, 3);
	comm = tb_comm(&tb, "dp", all, 3);
	for (int r = 0; r < 3; r++) {
		tb_kernel(&tb, r, 7, "gemm", 0, r == 2 ? 1250 : 1000);
		tb_op(&tb, comm, r, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, r == 2 ? 1250 : 1000, 1500);
	}
	ctx = context(&tb, NULL);
	run("kernels", ctx, &t);
	assert_int_equal(t.n_rows, 2);
	for (size_t i = 0; i < 2; i++) {
		if (!strcmp(cell(&t, i, "class")->text, "compute")) {
			assert_int_equal(cell(&t, i, "slowest_rank")->i, 2);
			assert_true(fabs(cell(&t, i, "slowest_ratio")->d - 1.25) < 1e-9);
		} else {
			assert_true(cell(&t, i, "slowest_rank")->null);
			assert_true(cell(&t, i, "slowest_ratio")->null);
		}
	}
	lag_table_release(&t);
	lag_context_free(ctx);
}

static void every_analysis_survives_an_empty_trace_and_a_lone_rank(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;

	(void)state;
	for (int with_work = 0; with_work < 2; with_work++) {
		tb_init(&tb, 1, 1);
		if (with_work)
			tb_kernel(&tb, 0, 7, "gemm", 10, 20);
		ctx = context(&tb, NULL);
		for (size_t i = 0; lag_analyses[i]; i++) {
			run(lag_analyses[i]->name, ctx, &t);
			lag_table_release(&t);
		}
		lag_context_free(ctx);
	}
}

static void summary_time_adds_up_to_the_step(void **state)
{
	struct lag_context *ctx = three_steps(NULL);
	struct lag_table t;
	double share = 0;
	int64_t mean = 0;

	(void)state;
	run("summary", ctx, &t);
	for (size_t i = 0; i < t.n_rows; i++) {
		if (!strcmp(cell(&t, i, "section")->text, "time"))
			share += cell(&t, i, "share")->d;
		if (!strcmp(cell(&t, i, "item")->text, "mean"))
			mean = cell(&t, i, "value_ns")->i;
	}
	assert_true(fabs(share - 1) < 1e-9);
	assert_int_equal(mean, 100);
	assert_int_equal(t.outcome, LAG_OUTCOME_UNSURE); /* one rank cannot say who is late */
	lag_table_release(&t);
	lag_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(breakdown_counts_overlaps_once),
		cmocka_unit_test(bus_bandwidth_comes_from_instances_that_hardly_waited),
		cmocka_unit_test(bus_bandwidth_needs_a_transfer_above_the_clock_error),
		cmocka_unit_test(a_receive_that_found_its_data_there_has_no_bandwidth),
		cmocka_unit_test(a_missing_member_withholds_wait_transfer_and_bandwidth),
		cmocka_unit_test(waits_tell_own_time_from_exposed_time),
		cmocka_unit_test(steps_and_ranks_are_chosen_by_number),
		cmocka_unit_test(the_slowest_rank_is_compared_with_the_others),
		cmocka_unit_test(every_analysis_survives_an_empty_trace_and_a_lone_rank),
		cmocka_unit_test(summary_time_adds_up_to_the_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

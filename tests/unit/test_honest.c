/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that are cut, hung, lone or narrowed: what is stated of them is never more than they say. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/analysis/analysis.h"
#include "viz/render/render.h"

#define STEP 1000000

static const int pair[] = { 0, 1 };

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

static bool notes_say(const struct lag_table *table, const char *words)
{
	for (size_t i = 0; i < table->n_notes; i++) {
		if (strstr(lag_buf_text(&table->notes[i]), words))
			return true;
	}
	return false;
}

/* One rank's step: a range, compute, and an all-reduce to `end` (LAG_NONE: never ended). */
static void add_step(struct trace_builder *tb, uint32_t comm, int rank, int step, int64_t at,
		     int64_t end)
{
	char name[32];
	int32_t launch;
	size_t gpu;

	(void)snprintf(name, sizeof(name), "step %d", step);
	tb_range(tb, rank, 1, name, at, at + STEP / 2);
	tb_launched(tb, tb_kernel(tb, rank, 7, "gemm", at + 100, at + STEP / 2), 1, at, at + 10);
	launch = tb_op(tb, comm, rank, LAG_FUNC_ALL_REDUCE, step, -1, 4096, at + STEP / 2, end);
	gpu = (size_t)LAG_VEC_AT(&tb->launches, struct lag_launch, launch).gpu;
	tb_launched(tb, gpu, 1, at + 20, at + 30);
}

/* Two ranks, n steps of STEP each; in the last one the all-reduce hangs for 50 steps' time. */
static struct lag_context *hung_run(int n, const struct lag_model_opts *opts)
{
	struct trace_builder tb;
	uint32_t comm;

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int s = 0; s < n; s++) {
		int64_t at = (int64_t)s * STEP;

		for (int r = 0; r < 2; r++)
			add_step(&tb, comm, r, s, at, s + 1 < n ? at + STEP : LAG_NONE);
	}
	tb_api(&tb, 0, 1, "cudaStreamSynchronize", n * INT64_C(50) * STEP, n * INT64_C(51) * STEP);
	tb_api(&tb, 1, 1, "cudaStreamSynchronize", n * INT64_C(50) * STEP, n * INT64_C(51) * STEP);
	return context(&tb, opts);
}

static void check_shares(const struct lag_table *t, const char *of)
{
	int share = lag_table_find_column(t, of);

	assert_true(share >= 0);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct lag_cell *c = lag_table_cell(t, i, (size_t)share);

		assert_true(c->null || (c->d >= 0 && c->d <= 1.0));
	}
}

static void a_hung_step_is_in_no_statistic(void **state)
{
	struct lag_context *ctx = hung_run(4, NULL);
	struct lag_table t;
	double found = 0;

	(void)state;
	run("steps", ctx, &t);
	assert_int_equal(t.n_rows, 4);
	assert_string_equal(cell(&t, 2, "complete")->text, "yes");
	assert_string_equal(cell(&t, 3, "complete")->text, "no");
	lag_table_release(&t);
	run("ledger", ctx, &t);
	assert_int_equal(cell(&t, 0, "steps")->i, 3);
	assert_int_equal(cell(&t, 0, "time_ns")->i, 3 * STEP);
	lag_table_release(&t);
	run("summary", ctx, &t);
	check_shares(&t, "share");
	for (size_t i = 0; i < t.n_rows; i++) {
		if (!strcmp(cell(&t, i, "item")->text, "exposed_comm"))
			found = cell(&t, i, "share")->d;
		if (!strcmp(cell(&t, i, "item")->text, "mean"))
			assert_int_equal(cell(&t, i, "value_ns")->i, STEP);
	}
	assert_true(fabs(found - 0.5) < 1e-3);
	lag_table_release(&t);
	run("what-if", ctx, &t);
	assert_int_equal(cell(&t, 0, "step_ns")->i, STEP);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Nothing but the hung step: it is all there is, and still no part of it is more than the whole. */
static void a_run_of_one_hung_step_exceeds_nothing(void **state)
{
	struct lag_context *ctx = hung_run(1, NULL);
	struct lag_table t;

	(void)state;
	run("summary", ctx, &t);
	check_shares(&t, "share");
	lag_table_release(&t);
	run("ledger", ctx, &t);
	assert_true(cell(&t, 0, "unsplit_ns")->i <= cell(&t, 0, "exposed_transfer_ns")->i);
	lag_table_release(&t);
	run("waits", ctx, &t);
	assert_int_equal(t.n_rows, 0); /* it did not end: who was last is not known */
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* A hung kernel beside one that ended: what lies behind the step's last end is not of the step. */
static void what_never_ended_does_not_reach_beyond_its_step(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm, other;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	other = tb_comm(&tb, "tp", pair, 2);
	for (int r = 0; r < 2; r++) {
		int32_t launch;
		size_t gpu;

		add_step(&tb, comm, r, 0, 0, LAG_NONE);
		launch =
			tb_op(&tb, other, r, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, STEP / 2 + 10, STEP);
		gpu = (size_t)LAG_VEC_AT(&tb.launches, struct lag_launch, launch).gpu;
		tb_launched(&tb, gpu, 1, 40, 50);
		tb_api(&tb, r, 1, "cudaStreamSynchronize", 30 * STEP, 31 * STEP);
	}
	ctx = context(&tb, NULL);
	run("summary", ctx, &t);
	check_shares(&t, "share");
	lag_table_release(&t);
	run("ledger", ctx, &t);
	assert_int_equal(cell(&t, 0, "time_ns")->i, STEP);
	assert_true(cell(&t, 0, "unsplit_ns")->i <= cell(&t, 0, "exposed_transfer_ns")->i);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Rank-time that others waited is one thing, time of the step another: never one for the other. */
static void waiting_caused_is_no_cost(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int s = 0; s < 4; s++) {
		for (int r = 0; r < 2; r++) {
			int64_t at = (int64_t)s * STEP + r * 5000;

			add_step(&tb, comm, r, s, at, (s + 1) * STEP);
		}
	}
	ctx = context(&tb, NULL);
	run("stragglers", ctx, &t);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(cell(&t, i, "verdict")->text, "none");
		assert_true(cell(&t, i, "step_cost_ns")->null);
		assert_true(cell(&t, i, "step_cost_share")->null);
		assert_int_equal(cell(&t, i, "waiting_caused_ns")->i,
				 cell(&t, i, "rank")->i == 1 ? 4 * 5000 : 0);
		assert_int_equal(cell(&t, i, "steps_last")->i, cell(&t, i, "rank")->i == 1 ? 4 : 0);
	}
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* The last step of a killed rank may lack what was still in its buffers. */
static void the_last_step_of_a_killed_rank_is_not_whole(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int s = 0; s < 3; s++) {
		for (int r = 0; r < 2; r++)
			add_step(&tb, comm, r, s, s * STEP, (s + 1) * STEP);
	}
	tb.trace->ranks[1].clean_exit = 0;
	ctx = context(&tb, NULL);
	run("steps", ctx, &t);
	assert_string_equal(cell(&t, 1, "complete")->text, "yes");
	assert_string_equal(cell(&t, 2, "complete")->text, "no");
	lag_table_release(&t);
	run("stragglers", ctx, &t);
	for (size_t i = 0; i < t.n_rows; i++)
		assert_true(cell(&t, i, "steps_last")->i <= cell(&t, i, "steps_seen")->i);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Rank 1 began recording a step late and was killed a step early: only what both have counts. */
static void ranks_are_compared_where_both_recorded(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int s = 0; s < 5; s++) {
		add_step(&tb, comm, 0, s, s * STEP, (s + 1) * STEP);
		if (s > 0 && s < 4)
			add_step(&tb, comm, 1, s, s * STEP, (s + 1) * STEP);
	}
	ctx = context(&tb, NULL);
	run("ledger", ctx, &t);
	assert_int_equal(cell(&t, 0, "steps")->i, 3);
	assert_int_equal(cell(&t, 1, "steps")->i, 3);
	assert_true(notes_say(&t, "3 of 5 steps"));
	lag_table_release(&t);
	run("waits", ctx, &t);
	assert_int_equal(t.n_rows, 0);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* A profiler that records steps 0, 1 and then 50, 51: the time between belongs to none of them. */
static void a_pause_between_recorded_steps_is_part_of_none(void **state)
{
	static const int numbers[] = { 0, 1, 50, 51 };
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int i = 0; i < 4; i++) {
		int64_t at = (int64_t)numbers[i] * STEP;

		for (int r = 0; r < 2; r++)
			add_step(&tb, comm, r, numbers[i], at, at + STEP);
	}
	ctx = context(&tb, NULL);
	run("steps", ctx, &t);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(cell(&t, i, "step_ns")->i, STEP);
	lag_table_release(&t);
	run("what-if", ctx, &t);
	for (size_t i = 0; i < t.n_rows; i++) {
		assert_true(cell(&t, i, "step_ns")->i <= STEP);
		assert_true(cell(&t, i, "gain_ns")->i >= 0);
	}
	assert_int_equal(cell(&t, 0, "step_ns")->i, STEP);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Nothing on record of GPU work is null, which is not 0. */
static void what_was_not_recorded_is_null(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 3, 3);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int r = 0; r < 2; r++)
		add_step(&tb, comm, r, 0, 0, STEP);
	tb_api(&tb, 2, 1, "cudaMalloc", 10, 20);
	ctx = context(&tb, NULL);
	run("breakdown", ctx, &t);
	assert_int_equal(t.n_rows, 3);
	assert_true(cell(&t, 2, "busy_ns")->null);
	assert_true(cell(&t, 2, "compute_ns")->null);
	assert_true(cell(&t, 2, "comm_ns")->null);
	assert_true(cell(&t, 2, "busy_share")->null);
	assert_int_equal(cell(&t, 2, "n_gpu_events")->i, 0);
	assert_true(notes_say(&t, "rank 2: no GPU work on record"));
	lag_table_release(&t);
	run("ledger", ctx, &t);
	assert_true(cell(&t, 2, "time_ns")->null);
	assert_true(cell(&t, 2, "compute_ns")->null);
	assert_true(cell(&t, 2, "unsplit_ns")->null);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Silence of the source of GPU work inside a step: it is not on record as a whole. */
static void a_step_with_a_gap_is_not_whole(void **state)
{
	struct lag_gap_row gap = { .rank = 1,
				   .what = "CUPTI",
				   .reason = "no buffers came",
				   .from_ns = STEP + STEP / 2,
				   .until_ns = STEP + STEP / 2 + 10 };
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	struct lag_trace *trace;
	struct lag_err err;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int s = 0; s < 3; s++) {
		for (int r = 0; r < 2; r++)
			add_step(&tb, comm, r, s, s * STEP, (s + 1) * STEP);
	}
	trace = tb_finish(&tb);
	trace->gaps = &gap;
	trace->n_gaps = 1;
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	run("steps", ctx, &t);
	assert_string_equal(cell(&t, 0, "complete")->text, "yes");
	assert_string_equal(cell(&t, 1, "complete")->text, "no");
	assert_string_equal(cell(&t, 2, "complete")->text, "yes");
	lag_table_release(&t);
	trace->gaps = NULL;
	trace->n_gaps = 0;
	lag_context_free(ctx);
}

static void render_json(struct lag_context *ctx, const char *name, struct lag_buf *out)
{
	struct lag_render_opts opts = { 0 };
	struct lag_table t;

	run(name, ctx, &t);
	lag_buf_clear(out);
	lag_renderer_find("json")->render(&t, lag_context_trace(ctx), &opts, out);
	lag_table_release(&t);
}

/* One rank of one or of eight: there is no clock error between ranks, and nobody who came last. */
static void a_lone_rank_states_no_clock_error_and_names_nobody(void **state)
{
	struct lag_buf json = { 0 };

	(void)state;
	for (int n = 1; n <= 2; n++) {
		struct trace_builder tb;
		struct lag_context *ctx;
		uint32_t comm;

		tb_init(&tb, n, n);
		tb_uncertainty(&tb, 21000);
		if (n == 2)
			tb_missing(&tb, 1);
		comm = tb_comm(&tb, "dp", pair, n);
		add_step(&tb, comm, 0, 0, 0, STEP);
		ctx = context(&tb, NULL);
		render_json(ctx, "summary", &json);
		assert_null(strstr(lag_buf_text(&json), "clock error of"));
		assert_non_null(strstr(lag_buf_text(&json), "\"clock_uncertainty_ns\":null"));
		render_json(ctx, "ranks", &json);
		assert_non_null(strstr(lag_buf_text(&json), "n/a, one rank"));
		assert_null(strstr(lag_buf_text(&json), "21000"));
		assert_int_equal(lag_context_waits(ctx, NULL)->launch[0].last, -1);
		lag_context_free(ctx);
	}
	lag_buf_release(&json);
}

static void a_report_says_what_it_was_narrowed_to(void **state)
{
	const struct lag_model_opts opts = { .steps = "1-2", .ranks = "0" };
	struct lag_context *ctx = hung_run(5, &opts);
	struct lag_table t;

	(void)state;
	run("ledger", ctx, &t);
	assert_int_equal(t.n_rows, 1);
	assert_int_equal(cell(&t, 0, "steps")->i, 2);
	assert_true(notes_say(&t, "only steps 1-2: 2 of 5"));
	assert_true(notes_say(&t, "only rank 0"));
	lag_table_release(&t);
	run("what-if", ctx, &t);
	assert_true(notes_say(&t, "not narrowed to steps 1-2"));
	assert_true(notes_say(&t, "not narrowed to rank 0"));
	lag_table_release(&t);
	run("stragglers", ctx, &t);
	assert_true(notes_say(&t, "not narrowed to steps 1-2"));
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Text of the first row of `trust` of this kind, and the rank it is about. */
static void check_unfinished(struct trace_builder *tb, int64_t rank, const char *words)
{
	struct lag_context *ctx = context(tb, NULL);
	struct lag_table t;
	size_t i = 0;

	run("trust", ctx, &t);
	while (i < t.n_rows && strcmp(cell(&t, i, "kind")->text, "unfinished") != 0)
		i++;
	assert_true(i < t.n_rows);
	if (!strstr(cell(&t, i, "text")->text, words))
		fail_msg("\"%s\" lacks \"%s\"", cell(&t, i, "text")->text, words);
	if (rank == LAG_NONE)
		assert_true(cell(&t, i, "rank")->null);
	else
		assert_int_equal(cell(&t, i, "rank")->i, rank);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Called, started, ended: communication hangs only where all members have started. */
static void what_never_ended_is_told_by_how_far_each_came(void **state)
{
	struct trace_builder tb;
	uint32_t comm;
	int32_t launch;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int r = 0; r < 2; r++)
		tb_op(&tb, comm, r, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 100, LAG_NONE);
	check_unfinished(&tb, LAG_NONE, "every member had started and 0 ended");

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 100, LAG_NONE);
	tb_kernel(&tb, 1, 7, "endless", 50, LAG_NONE);
	launch = tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 120, 130);
	LAG_VEC_AT(&tb.launches, struct lag_launch, launch).start_ns = LAG_NONE;
	LAG_VEC_AT(&tb.launches, struct lag_launch, launch).end_ns = LAG_NONE;
	check_unfinished(&tb, 1, "not known to have started; on the GPU ran endless");

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 100, LAG_NONE);
	tb_kernel(&tb, 1, 7, "gemm", 50, 160);
	check_unfinished(&tb, 1, "this rank never called it");

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 100, LAG_NONE);
	tb_kernel(&tb, 1, 7, "gemm", 50, 60);
	check_unfinished(&tb, 1, "this rank's recording ends before");

	tb_init(&tb, 2, 2);
	tb_missing(&tb, 1);
	comm = tb_comm(&tb, "dp", pair, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 100, LAG_NONE);
	check_unfinished(&tb, LAG_NONE, "cannot tell why, 1 of 2 members");
}

/* Messages to a rank without a record may be a pipeline's or a ring's: unsure is an answer. */
static void messages_to_a_missing_rank_have_no_known_role(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	tb_missing(&tb, 1);
	comm = tb_comm(&tb, "pair", pair, 2);
	for (int i = 0; i < 4; i++)
		tb_op(&tb, comm, 0, LAG_FUNC_SEND, i, 1, 4096, i * 1000, i * 1000 + 100);
	ctx = context(&tb, NULL);
	run("communicators", ctx, &t);
	assert_string_equal(cell(&t, 0, "role")->text, "unsure");
	lag_table_release(&t);
	run("waits", ctx, &t);
	assert_int_equal(t.n_rows, 0);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* Two communicators with the same members, used at the same time, are never mixed up. */
static void twin_communicators_are_matched_apart(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t twin[2];

	(void)state;
	tb_init(&tb, 2, 2);
	twin[0] = tb_comm(&tb, "a", pair, 2);
	twin[1] = tb_comm(&tb, "b", pair, 2);
	for (int c = 0; c < 2; c++) {
		for (int r = 0; r < 2; r++) {
			int64_t at = c * 10000 + r * 1000 * (c + 1);

			tb_op(&tb, twin[c], r, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, at,
			      c * 10000 + 5000);
		}
	}
	ctx = context(&tb, NULL);
	run("waits", ctx, &t);
	assert_int_equal(t.n_rows, 1);
	assert_int_equal(cell(&t, 0, "for_rank")->i, 1);
	assert_int_equal(cell(&t, 0, "wait_ns")->i, 1000 + 2000);
	assert_int_equal(cell(&t, 0, "longest_ns")->i, 2000);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* A fused kernel's wait belongs to the kernel: it is neither split nor counted for each operation. */
static void a_fused_kernels_wait_is_not_multiplied(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int r = 0; r < 2; r++) {
		int32_t launch =
			tb_op(&tb, comm, r, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, r * 1000, 5000);

		tb_op_more(&tb, launch, LAG_FUNC_ALL_REDUCE, 1, -1, 4096);
		tb_op_more(&tb, launch, LAG_FUNC_ALL_REDUCE, 2, -1, 4096);
	}
	ctx = context(&tb, NULL);
	run("collectives", ctx, &t);
	assert_int_equal(cell(&t, 0, "count")->i, 3);
	assert_true(cell(&t, 0, "wait_ns")->null);
	assert_true(cell(&t, 0, "transfer_ns")->null);
	assert_true(notes_say(&t, "3 of 3 instances share a kernel"));
	lag_table_release(&t);
	run("waits", ctx, &t);
	assert_int_equal(t.n_rows, 1);
	assert_int_equal(cell(&t, 0, "wait_ns")->i, 1000);
	assert_int_equal(cell(&t, 0, "count")->i, 1);
	lag_table_release(&t);
	lag_context_free(ctx);
}

static void no_two_columns_are_called_the_same(void)
{
	for (size_t i = 0; lag_analyses[i]; i++) {
		const struct lag_analysis *a = lag_analyses[i];

		for (size_t c = 0; c < a->n_columns; c++) {
			for (size_t d = 0; d < c; d++) {
				if (a->columns[c].title[0] &&
				    !strcmp(a->columns[c].title, a->columns[d].title))
					fail_msg("%s has %s twice", a->name, a->columns[c].title);
			}
		}
	}
}

/* Columns that other programs are promised, in "name:unit" words. */
static void promised_columns_are_there(void **state)
{
	static const char *const promised[][2] = {
		{ "breakdown",
		  "rank:id span_ns:ns busy_ns:ns idle_ns:ns compute_ns:ns comm_ns:ns mem_ns:ns "
		  "overlap_ns:ns exposed_comm_ns:ns n_gpu_events:count" },
		{ "stragglers",
		  "rank:id verdict:text cause:text step_cost_ns:ns step_cost_share:share "
		  "waiting_caused_ns:ns steps_last:count steps_seen:count" },
		{ "clock", "host:text device:id offset_ns:ns drift_ppm:ppm uncertainty_ns:ns "
			   "bound_ns:ns" },
		{ "bubbles", "group:id stage:id rank:id step:id window_ns:ns measured_ns:ns "
			     "ideal_ns:ns imbalance_ns:ns slow_ranks_ns:ns variation_ns:ns "
			     "send_recv_ns:ns host_ns:ns residual_ns:ns" },
		{ "what-if", "scenario:text s:ratio step_ns:ns gain_ns:ns" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(promised) / sizeof(promised[0]); i++) {
		const struct lag_analysis *a = lag_analysis_find(promised[i][0]);
		char words[512], *rest = words;

		assert_non_null(a);
		(void)snprintf(words, sizeof(words), "%s", promised[i][1]);
		for (char *word = strtok_r(words, " ", &rest); word;
		     word = strtok_r(NULL, " ", &rest)) {
			char *unit = strchr(word, ':');
			bool found = false;

			*unit++ = 0;
			for (size_t c = 0; c < a->n_columns; c++) {
				found = found || (!strcmp(a->columns[c].name, word) &&
						  !strcmp(lag_unit_name(a->columns[c].unit), unit));
			}
			if (!found)
				fail_msg("%s lacks %s in %s", a->name, word, unit);
		}
	}
	no_two_columns_are_called_the_same();
	/* A share without its denominator says nothing. */
	for (size_t i = 0; lag_analyses[i]; i++) {
		for (size_t c = 0; c < lag_analyses[i]->n_columns; c++) {
			assert_true(lag_analyses[i]->columns[c].unit != LAG_UNIT_SHARE ||
				    lag_analyses[i]->columns[c].of != NULL);
		}
	}
}

/* Ranges of steps that overlap (a prefetching loop opens the next before it closes this one): each ns
 * and each kernel is in one step at most. */
static void overlapping_annotations_count_nothing_twice(void **state)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_table t;
	int64_t time_ns = 0;

	(void)state;
	tb_init(&tb, 1, 1);
	/* Launched before the first step: in none. */
	tb_launched(&tb, tb_kernel(&tb, 0, 7, "warm-up", 10, 50), 1, 5, 6);
	for (int s = 0; s < 4; s++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "step %d", s);
		tb_range(&tb, 0, 1, name, 100 + s * 1000, 100 + s * 1000 + 1200);
		tb_launched(&tb, tb_kernel(&tb, 0, 7, "gemm", 200 + s * 1000, 200 + s * 1000 + 700),
			    1, 150 + s * 1000, 160 + s * 1000);
	}
	ctx = context(&tb, NULL);
	run("steps", ctx, &t);
	for (size_t i = 0; i < t.n_rows; i++)
		time_ns += cell(&t, i, "step_ns")->i;
	assert_int_equal(t.n_rows, 4);
	assert_true(time_ns <= 4000);
	lag_table_release(&t);
	run("ledger", ctx, &t);
	assert_int_equal(cell(&t, 0, "compute_ns")->i, 4 * 700);
	assert_int_equal(cell(&t, 0, "time_ns")->i, time_ns);
	lag_table_release(&t);
	lag_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hung_step_is_in_no_statistic),
		cmocka_unit_test(a_run_of_one_hung_step_exceeds_nothing),
		cmocka_unit_test(what_never_ended_does_not_reach_beyond_its_step),
		cmocka_unit_test(waiting_caused_is_no_cost),
		cmocka_unit_test(the_last_step_of_a_killed_rank_is_not_whole),
		cmocka_unit_test(ranks_are_compared_where_both_recorded),
		cmocka_unit_test(a_pause_between_recorded_steps_is_part_of_none),
		cmocka_unit_test(what_was_not_recorded_is_null),
		cmocka_unit_test(a_step_with_a_gap_is_not_whole),
		cmocka_unit_test(a_lone_rank_states_no_clock_error_and_names_nobody),
		cmocka_unit_test(a_report_says_what_it_was_narrowed_to),
		cmocka_unit_test(what_never_ended_is_told_by_how_far_each_came),
		cmocka_unit_test(messages_to_a_missing_rank_have_no_known_role),
		cmocka_unit_test(twin_communicators_are_matched_apart),
		cmocka_unit_test(a_fused_kernels_wait_is_not_multiplied),
		cmocka_unit_test(promised_columns_are_there),
		cmocka_unit_test(overlapping_annotations_count_nothing_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

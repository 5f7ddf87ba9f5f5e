/* SPDX-License-Identifier: Apache-2.0 */
/* Why communication started late: the rank (launch, work before it, awaited event) or its device. */
#include <string.h>

#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/analysis/analysis.h"
#include "viz/model/context.h"

#define US      INT64_C(1000)
#define LATENCY (4 * US)
#define COMM    20          /* stream of tb_op's kernels */
#define AT      (2000 * US) /* when rank 1 would start, were all ready long before */

/* One run of two ranks: what rank 1's all-reduce waits for, and when it starts. */
struct late {
	int64_t launch_ns;  /* its launch call returns */
	int64_t before_ns;  /* end of the work before it in its stream */
	int64_t awaited_ns; /* end of the work behind the event it awaits */
	int64_t start_ns;
	int64_t uncertainty_ns;
	bool no_events;
	uint64_t lost;          /* records of rank 1 */
	struct lag_gap_row gap; /* in the record of rank 1, where it has a reason */
};

static void add_sync(struct trace_builder *tb, int rank, enum lag_sync_kind kind, int64_t stream,
		     int64_t at)
{
	struct lag_sync *sync = lag_vec_push(&tb->syncs);

	assert_non_null(sync);
	*sync = (struct lag_sync){ .start_ns = at,
				   .end_ns = at + 1,
				   .r = (uint32_t)rank,
				   .kind = (uint8_t)kind,
				   .context = 1,
				   .stream = stream,
				   .event_id = 5,
				   .sync_id = LAG_NONE,
				   .correlation = LAG_NONE,
				   .record_correlation = LAG_NONE };
}

static size_t gpu_of(const struct trace_builder *tb, int32_t launch)
{
	return (size_t)LAG_VEC_AT(&tb->launches, struct lag_launch, launch).gpu;
}

/* Rank 0 starts at AT / 2 and waits for rank 1. */
static struct lag_context *run(const struct late *late)
{
	const int both[] = { 0, 1 };
	int64_t end = late->start_ns + 100 * US;
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_err err;
	struct lag_trace *trace;
	uint32_t comm;

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", both, 2);
	for (int r = 0; r < 2; r++) {
		int64_t start = r ? late->start_ns : AT / 2;
		int64_t before = r ? late->before_ns : 250 * US;
		int64_t awaited = r ? late->awaited_ns : 260 * US;
		size_t work;
		int32_t op;

		/* Launches that waited for nothing else: what is usual here. */
		for (int64_t i = 0; i < 5; i++) {
			work = tb_kernel(&tb, r, 3, "usual", i * 20 * US + LATENCY,
					 i * 20 * US + 15 * US);
			tb_launched(&tb, work, 1, i * 20 * US - 5 * US, i * 20 * US);
		}
		work = tb_kernel(&tb, r, COMM, "before", before - 80 * US, before);
		tb_launched(&tb, work, 1, 140 * US, 146 * US);
		work = tb_kernel(&tb, r, 7, "awaited", awaited - 80 * US, awaited);
		tb_launched(&tb, work, 1, 150 * US, 156 * US);
		if (!late->no_events) {
			add_sync(&tb, r, LAG_SYNC_EVENT_RECORD, 7, 157 * US);
			add_sync(&tb, r, LAG_SYNC_STREAM_WAIT, COMM, 158 * US);
		}
		op = tb_op(&tb, comm, r, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, start, end);
		tb_launched(&tb, gpu_of(&tb, op), 1, (r ? late->launch_ns : 180 * US) - 10 * US,
			    r ? late->launch_ns : 180 * US);
	}
	tb_uncertainty(&tb, late->uncertainty_ns);
	trace = tb_finish(&tb);
	trace->ranks[1].lost = late->lost;
	if (late->gap.reason) {
		trace->gaps = lag_calloc(1, sizeof(*trace->gaps));
		assert_non_null(trace->gaps);
		trace->gaps[trace->n_gaps++] = late->gap;
	}
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	return ctx;
}

/* The usual case: all that it waits for was there 500 us and more before AT, and it starts at AT. */
static struct late early(void)
{
	return (struct late){ .launch_ns = AT - 900 * US,
			      .before_ns = AT - 700 * US,
			      .awaited_ns = AT - 500 * US,
			      .start_ns = AT };
}

static struct lag_ready_launch of_rank_1(struct lag_context *ctx)
{
	const struct lag_trace *trace = lag_context_trace(ctx);
	struct lag_err err;
	const struct lag_ready *ready = lag_context_ready(ctx, &err);

	assert_non_null(ready);
	for (size_t i = 0; i < trace->n_launches; i++) {
		if (trace->launches[i].r == 1)
			return ready->launch[i];
	}
	fail();
	return (struct lag_ready_launch){ 0 };
}

static void expect(const struct late *late, int64_t contention_ns)
{
	struct lag_context *ctx = run(late);

	assert_int_equal(of_rank_1(ctx).contention_ns, contention_ns);
	lag_context_free(ctx);
}

static void ready_work_that_does_not_start_is_contention(void **state)
{
	struct late late = early();
	struct lag_context *ctx = run(&late);
	struct lag_err err;

	(void)state;
	assert_int_equal(lag_context_ready(ctx, &err)->latency_ns, LATENCY);
	assert_int_equal(of_rank_1(ctx).contention_ns, 500 * US - LATENCY);
	/* Times of the trace begin with its first event. */
	assert_int_equal(of_rank_1(ctx).ready_ns,
			 late.awaited_ns - (AT / 2 - lag_context_trace(ctx)->launches[0].start_ns));
	lag_context_free(ctx);
}

static void a_late_launch_is_the_ranks_own(void **state)
{
	struct late late = early();

	(void)state;
	late.launch_ns = AT - LATENCY;
	expect(&late, 0);
	late.launch_ns = AT + 3 * US; /* the call returned after its kernel had begun */
	expect(&late, 0);
}

static void late_work_before_it_is_the_ranks_own(void **state)
{
	struct late late = early();

	(void)state;
	late.before_ns = AT - 2 * US;
	expect(&late, 0);
}

static void a_late_event_is_the_ranks_own(void **state)
{
	struct late late = early();

	(void)state;
	late.awaited_ns = AT - 2 * US;
	expect(&late, 0);
}

static void within_the_clock_error_nothing_is_said(void **state)
{
	struct late late = early();

	(void)state;
	late.launch_ns = AT - 60 * US;
	late.uncertainty_ns = 50 * US;
	expect(&late, 60 * US - LATENCY);
	late.uncertainty_ns = 57 * US;
	expect(&late, 0);
	/* Work of the same device is compared by one clock. */
	late = early();
	late.uncertainty_ns = 600 * US;
	expect(&late, 500 * US - LATENCY);
	late.uncertainty_ns = INT64_MAX;
	expect(&late, LAG_NONE);
}

static void without_events_on_record_nothing_is_known(void **state)
{
	struct late late = early();

	(void)state;
	late.no_events = true;
	expect(&late, LAG_NONE);
}

static void what_was_lost_may_have_been_waited_for(void **state)
{
	struct late late = early();

	(void)state;
	late.lost = 3;
	expect(&late, LAG_NONE);
	late = early();
	/* Times of the trace begin with the first launch call, 5 us before 0. */
	late.gap = (struct lag_gap_row){ 1, "gpu", "paused", AT - 300 * US, AT - 200 * US };
	expect(&late, LAG_NONE);
	late.gap.until_ns = LAG_NONE;
	expect(&late, LAG_NONE);
	late.gap.from_ns = AT + 50 * US;
	expect(&late, 500 * US - LATENCY);
	late.gap = (struct lag_gap_row){ 0, "gpu", "paused", AT - 300 * US, AT - 200 * US };
	expect(&late, 500 * US - LATENCY);
}

/* One call that launched two kernels: the second may have waited for the first. */
static void a_graphs_own_edges_are_not_on_record(void **state)
{
	struct late late = early();
	struct lag_context *ctx;
	struct lag_trace *trace;
	struct lag_err err;
	struct lag_gpu_event *comm = NULL, *other = NULL;

	(void)state;
	ctx = run(&late);
	/* Before anything is derived. */
	trace = (struct lag_trace *)(uintptr_t)lag_context_trace(ctx);
	for (size_t i = trace->ranks[1].gpu_begin; i < trace->ranks[1].gpu_end; i++) {
		if (trace->gpu[i].launch >= 0)
			comm = &trace->gpu[i];
		else
			other = &trace->gpu[i];
	}
	assert_true(comm && other);
	other->launch_start_ns = comm->launch_start_ns;
	other->launch_end_ns = comm->launch_end_ns;
	other->correlation = comm->correlation;
	assert_non_null(lag_context_ready(ctx, &err));
	assert_int_equal(of_rank_1(ctx).contention_ns, LAG_NONE);
	lag_context_free(ctx);
}

/* A start that coincides with the end of work of another stream, for which no event is on record. */
static void an_inferred_edge_is_no_evidence(void **state)
{
	struct late late = early();
	struct trace_builder tb;
	struct lag_context *ctx;
	const int both[] = { 0, 1 };
	struct lag_err err;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", both, 2);
	for (int r = 0; r < 2; r++) {
		size_t work = tb_kernel(&tb, r, 7, "work", LATENCY, r ? AT - 2 * US : 50 * US);
		int32_t op;

		tb_launched(&tb, work, 1, -5 * US, 0);
		add_sync(&tb, r, LAG_SYNC_EVENT_RECORD, 7, 5 * US);
		op = tb_op(&tb, comm, r, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, r ? AT : AT / 2,
			   AT + 90 * US);
		tb_launched(&tb, gpu_of(&tb, op), 1, 10 * US, 15 * US);
	}
	tb_uncertainty(&tb, late.uncertainty_ns);
	assert_int_equal(lag_context_new(tb_finish(&tb), NULL, &ctx, &err), LAG_OK);
	assert_int_equal(of_rank_1(ctx).ready_ns, LAG_NONE);
	lag_context_free(ctx);
}

static const struct lag_cell *cell(const struct lag_table *t, size_t row, const char *name)
{
	int column = lag_table_find_column(t, name);

	assert_true(column >= 0 && row < t->n_rows);
	return lag_table_cell(t, row, (size_t)column);
}

static void analyse(const char *name, struct lag_context *ctx, struct lag_table *t)
{
	struct lag_err err;

	assert_int_equal(lag_analysis_run(lag_analysis_find(name), ctx, t, &err), LAG_OK);
}

/* Of the 1000 us that rank 0 waited for rank 1, its device took 496; nobody is accused of them. */
static void reports_tell_contention_from_waiting(void **state)
{
	struct late late = early();
	struct lag_context *ctx = run(&late);
	struct lag_table t;

	(void)state;
	analyse("waits", ctx, &t);
	assert_int_equal(t.n_rows, 1);
	assert_int_equal(cell(&t, 0, "for_rank")->i, 1);
	assert_int_equal(cell(&t, 0, "wait_ns")->i, 1000 * US);
	assert_int_equal(cell(&t, 0, "contention_ns")->i, 500 * US - LATENCY);
	lag_table_release(&t);
	analyse("stragglers", ctx, &t);
	for (size_t i = 0; i < t.n_rows; i++) {
		bool late_one = cell(&t, i, "rank")->i == 1;

		assert_int_equal(cell(&t, i, "waiting_caused_ns")->i, late_one ? 1000 * US : 0);
		assert_int_equal(cell(&t, i, "contention_ns")->i,
				 late_one ? 500 * US - LATENCY : 0);
		assert_string_equal(cell(&t, i, "verdict")->text, "none");
	}
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* More contention than waiting: the waiting is all it explains. */
static void contention_is_never_more_than_the_waiting(void **state)
{
	struct late late = early();
	struct lag_context *ctx;
	struct lag_table t;

	(void)state;
	late.launch_ns = late.before_ns = late.awaited_ns = AT / 2 - 300 * US;
	ctx = run(&late);
	assert_int_equal(of_rank_1(ctx).contention_ns, 1300 * US - LATENCY);
	analyse("waits", ctx, &t);
	assert_int_equal(cell(&t, 0, "contention_ns")->i, 1000 * US);
	lag_table_release(&t);
	lag_context_free(ctx);
}

static void reports_say_what_is_not_on_record(void **state)
{
	struct late late = early();
	struct lag_context *ctx;
	struct lag_table t;
	bool said = false;

	(void)state;
	late.no_events = true;
	ctx = run(&late);
	analyse("waits", ctx, &t);
	assert_true(cell(&t, 0, "contention_ns")->null);
	for (size_t i = 0; i < t.n_notes; i++)
		said = said || strstr(lag_buf_text(&t.notes[i]), "in 1 of 1 waits");
	assert_true(said);
	lag_table_release(&t);
	lag_context_free(ctx);
}

/* 10.5 ms of contention in 11 ms of waiting. */
static void contention_of_a_late_rank_is_noted(void **state)
{
	struct late late = early();
	struct lag_context *ctx;
	struct lag_table t;
	bool said = false;

	(void)state;
	late.start_ns = AT + 10000 * US;
	ctx = run(&late);
	analyse("stragglers", ctx, &t);
	for (size_t i = 0; i < t.n_notes; i++)
		said = said ||
		       strstr(lag_buf_text(&t.notes[i]), "by 1 of 2 ranks, first rank 1 (95 %)");
	assert_true(said);
	for (size_t i = 0; i < t.n_rows; i++)
		assert_string_equal(cell(&t, i, "verdict")->text, "none");
	assert_int_not_equal(t.outcome, LAG_OUTCOME_FINDING);
	lag_table_release(&t);
	lag_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_work_that_does_not_start_is_contention),
		cmocka_unit_test(a_late_launch_is_the_ranks_own),
		cmocka_unit_test(late_work_before_it_is_the_ranks_own),
		cmocka_unit_test(a_late_event_is_the_ranks_own),
		cmocka_unit_test(within_the_clock_error_nothing_is_said),
		cmocka_unit_test(without_events_on_record_nothing_is_known),
		cmocka_unit_test(what_was_lost_may_have_been_waited_for),
		cmocka_unit_test(a_graphs_own_edges_are_not_on_record),
		cmocka_unit_test(contention_of_a_late_rank_is_noted),
		cmocka_unit_test(an_inferred_edge_is_no_evidence),
		cmocka_unit_test(reports_tell_contention_from_waiting),
		cmocka_unit_test(contention_is_never_more_than_the_waiting),
		cmocka_unit_test(reports_say_what_is_not_on_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

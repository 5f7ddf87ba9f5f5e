/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds up a job, on traces made in memory: the three states of an operation, and the walk from rank
 * to rank to where waiting ends. */
#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/trace_builder.h"
#include "viz/analysis/analysis.h"

static const int pair[] = { 0, 1 };

static const struct lag_cell *cell(const struct lag_table *t, size_t row, const char *column)
{
	int at = lag_table_find_column(t, column);

	assert_true(at >= 0);
	return lag_table_cell(t, row, (size_t)at);
}

/* An operation that was called at at_ns and never started. */
static void called(struct trace_builder *tb, uint32_t comm, int rank, int64_t seq, int64_t at_ns)
{
	int32_t l = tb_op(tb, comm, rank, LAG_FUNC_ALL_REDUCE, seq, -1, 4096, at_ns, at_ns + 1);

	LAG_VEC_AT(&tb->launches, struct lag_launch, l).start_ns = LAG_NONE;
	LAG_VEC_AT(&tb->launches, struct lag_launch, l).end_ns = LAG_NONE;
}

/* One that started and never ended. */
static void started(struct trace_builder *tb, uint32_t comm, int rank, int64_t seq, int64_t at_ns)
{
	tb_op(tb, comm, rank, LAG_FUNC_ALL_REDUCE, seq, -1, 4096, at_ns, LAG_NONE);
}

static void finished(struct trace_builder *tb, uint32_t comm, int rank, int64_t seq, int64_t at_ns)
{
	tb_op(tb, comm, rank, LAG_FUNC_ALL_REDUCE, seq, -1, 4096, at_ns, at_ns + 5);
}

struct expected {
	int64_t rank; /* LAG_NONE several */
	const char *verdict;
	int64_t waiting;
};

/* The suspects, in order, and what the report's exit says. */
static void expect(struct trace_builder *tb, enum lag_outcome outcome, const struct expected *want,
		   size_t n)
{
	struct lag_err err = { 0 };
	struct lag_context *ctx;
	struct lag_table t;
	size_t at = 0;

	assert_int_equal(lag_context_new(tb_finish(tb), NULL, &ctx, &err), LAG_OK);
	assert_int_equal(lag_analysis_run(lag_analysis_find("hang"), ctx, &t, &err), LAG_OK);
	while (at < t.n_rows && at < n && strcmp(cell(&t, at, "kind")->text, "suspect") == 0) {
		const struct lag_cell *rank = cell(&t, at, "rank");

		assert_int_equal(rank->null ? LAG_NONE : rank->i, want[at].rank);
		assert_string_equal(cell(&t, at, "verdict")->text, want[at].verdict);
		assert_int_equal(cell(&t, at, "waiting")->i, want[at].waiting);
		at++;
	}
	assert_true(at == t.n_rows || strcmp(cell(&t, at, "kind")->text, "suspect") != 0);
	assert_int_equal(at, n);
	assert_int_equal(t.outcome, outcome);
	lag_table_release(&t);
	lag_context_free(ctx);
}

#define EXPECT(tb, outcome, ...)                                      \
	expect(tb, outcome, (const struct expected[]){ __VA_ARGS__ }, \
	       sizeof((const struct expected[]){ __VA_ARGS__ }) / sizeof(struct expected))

static const struct expected nobody[1];

static void what_ended_does_not_hang(void **state)
{
	struct trace_builder tb;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int r = 0; r < 2; r++) {
		finished(&tb, comm, r, 0, 100);
		called(&tb, comm, r, 1, 200); /* its kernel was lost */
		finished(&tb, comm, r, 2, 300);
		called(&tb, comm, r, 3, 400); /* nobody is known to be in it */
	}
	expect(&tb, LAG_OUTCOME_FINE, nobody, 0);

	tb_init(&tb, 1, 1);
	tb_kernel(&tb, 0, 7, "gemm", 50, 60);
	expect(&tb, LAG_OUTCOME_UNSURE, nobody, 0); /* no communication on record */
}

static void three_states_are_told_apart(void **state)
{
	struct trace_builder tb;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	started(&tb, comm, 0, 0, 100);
	started(&tb, comm, 1, 0, 120);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { LAG_NONE, "communication", 0 });

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	started(&tb, comm, 0, 0, 100);
	tb_kernel(&tb, 1, 7, "endless", 50, LAG_NONE);
	called(&tb, comm, 1, 0, 120);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { 1, "blocked", 1 });

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	started(&tb, comm, 0, 0, 100);
	tb_kernel(&tb, 1, 7, "gemm", 50, 160);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { 1, "never called it", 1 });

	/* A recording that ends before tells nothing. */
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	started(&tb, comm, 0, 0, 100);
	tb_kernel(&tb, 1, 7, "gemm", 50, 60);
	EXPECT(&tb, LAG_OUTCOME_UNSURE, { 1, "no record", 1 });

	tb_init(&tb, 2, 2);
	tb_missing(&tb, 1);
	comm = tb_comm(&tb, "dp", pair, 2);
	started(&tb, comm, 0, 0, 100);
	EXPECT(&tb, LAG_OUTCOME_UNSURE, { 1, "no record", 1 });

	/* What a peer has finished every member has started. */
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	started(&tb, comm, 0, 0, 100);
	finished(&tb, comm, 1, 0, 100);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { 0, "its own", 0 });
}

static void waiting_is_walked_to_its_end(void **state)
{
	static const int left[] = { 0, 1 }, middle[] = { 1, 2 }, right[] = { 2, 3 };
	struct trace_builder tb;
	uint32_t a, b, c;

	(void)state;
	/* 0 waits for 1 in a, 1 for 2 in b, 2 for 3 in c; 3 does something else. */
	tb_init(&tb, 4, 4);
	a = tb_comm(&tb, "a", left, 2);
	b = tb_comm(&tb, "b", middle, 2);
	c = tb_comm(&tb, "c", right, 2);
	started(&tb, a, 0, 0, 130);
	started(&tb, b, 1, 0, 120);
	called(&tb, a, 1, 0, 125);
	started(&tb, c, 2, 0, 110);
	called(&tb, b, 2, 0, 115);
	tb_kernel(&tb, 3, 7, "gemm", 50, 500);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { 3, "never called it", 3 });

	/* Two communicators in two orders. */
	tb_init(&tb, 3, 3);
	a = tb_comm(&tb, "a", pair, 2);
	b = tb_comm(&tb, "b", pair, 2);
	c = tb_comm(&tb, "c", (const int[]){ 0, 2 }, 2);
	started(&tb, a, 0, 0, 100);
	called(&tb, b, 0, 0, 110);
	started(&tb, b, 1, 0, 100);
	called(&tb, a, 1, 0, 110);
	started(&tb, c, 2, 0, 100);
	called(&tb, c, 0, 0, 120);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { LAG_NONE, "deadlock", 1 });
}

static void messages_wait_for_their_other_side(void **state)
{
	struct trace_builder tb;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "pp", pair, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_RECV, 0, 1, 4096, 100, LAG_NONE);
	tb_kernel(&tb, 1, 7, "gemm", 50, 500);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { 1, "never called it", 1 });

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "pp", pair, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_RECV, 0, 1, 4096, 100, LAG_NONE);
	tb_op(&tb, comm, 1, LAG_FUNC_SEND, 0, 0, 4096, 100, LAG_NONE);
	EXPECT(&tb, LAG_OUTCOME_FINDING, { 0, "communication", 0 }, { 1, "communication", 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ended_does_not_hang),
		cmocka_unit_test(three_states_are_told_apart),
		cmocka_unit_test(waiting_is_walked_to_its_end),
		cmocka_unit_test(messages_wait_for_their_other_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

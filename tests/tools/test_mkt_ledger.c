/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger on synthetic training runs: it adds up to each step, agrees with the bubbles' table about
 * what is not compute, and in quiet runs holds the bubble that the schedule's closed form says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/mkt_memory.h"
#include "viz/analysis/analysis.h"

static struct lag_context *run(int argc, const char *const *argv)
{
	struct mkt_options opt;
	struct lag_context *ctx;
	struct lag_trace *trace;
	struct lag_err err;
	char *args[64] = { NULL };

	assert_true(argc < 64);
	for (int i = 0; i < argc; i++)
		args[i] = strdup(argv[i]);
	optind = 1;
	assert_int_equal(mkt_options_read(&opt, argc, args), -1);
	opt.out = "unused";
	assert_int_equal(mkt_memory_trace(&opt, true, &trace, NULL, &err), LAG_OK);
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	for (int i = 0; i < argc; i++)
		free(args[i]);
	return ctx;
}

#define RUN(...)                                                                     \
	run((int)(sizeof((const char *[]){ "mktrace", "--out", "x", __VA_ARGS__ }) / \
		  sizeof(char *)),                                                   \
	    (const char *[]){ "mktrace", "--out", "x", __VA_ARGS__ })

static int64_t length_in(const struct lag_ledger *ledger, size_t r, int class, int64_t from,
			 int64_t to)
{
	int64_t sum = 0;

	for (size_t i = ledger->first[r]; i < ledger->first[r + 1]; i++) {
		const struct lag_time_slice *s = &ledger->slices[i];
		int64_t a = s->start_ns > from ? s->start_ns : from;
		int64_t b = s->end_ns < to ? s->end_ns : to;

		if (s->class == class && b > a)
			sum += b - a;
	}
	return sum;
}

static void check_sums(struct lag_context *ctx)
{
	const struct lag_ledger *ledger = lag_context_ledger(ctx, NULL);
	const struct lag_steps *steps = lag_context_steps(ctx, NULL);

	assert_true(steps->n_steps > 2);
	for (size_t s = 0; s < steps->n_steps; s++) {
		for (size_t r = 0; r < ledger->n_ranks; r++) {
			const struct lag_step_span *span = lag_steps_span(steps, s, r);
			int64_t sum = 0;

			for (size_t c = 0; c < LAG_TIME_LIMIT; c++) {
				sum += ledger->by_step[(s * ledger->n_ranks + r) * LAG_TIME_LIMIT +
						       c];
			}
			assert_int_equal(sum, span->start_ns == LAG_NONE
						      ? 0
						      : span->end_ns - span->start_ns);
		}
	}
}

/* Compute of rank r in the window that belongs to none of its blocks. */
static int64_t outside_blocks(const struct lag_ledger *ledger, const struct lag_pipeline *p,
			      size_t r, const struct lag_pipe_window *w)
{
	int64_t sum = length_in(ledger, r, LAG_TIME_COMPUTE, w->start_ns, w->end_ns);

	for (size_t i = p->first_block[r]; i < p->first_block[r + 1]; i++) {
		if (p->blocks[i].start_ns >= w->start_ns && p->blocks[i].end_ns <= w->end_ns)
			sum -= p->blocks[i].busy_ns;
	}
	return sum;
}

/* What the bubbles' table measures is the window without forwards and backwards; the ledger must hold
 * the same time in its other classes, or as other compute. */
static void check_against_bubbles(struct lag_context *ctx)
{
	const struct lag_ledger *ledger = lag_context_ledger(ctx, NULL);
	const struct lag_pipeline *p = lag_context_pipeline(ctx, NULL);
	const struct lag_steps *steps = lag_context_steps(ctx, NULL);
	struct lag_table t;
	struct lag_err err;

	assert_int_equal(lag_analysis_run(lag_analysis_find("bubbles"), ctx, &t, &err), LAG_OK);
	assert_true(t.n_rows > 0);
	for (size_t i = 0; i < t.n_rows; i++) {
		int64_t group = lag_table_cell(&t, i, 0)->i, number = lag_table_cell(&t, i, 3)->i;
		int r = lag_trace_find_rank(lag_context_trace(ctx), lag_table_cell(&t, i, 2)->i);
		int measured = lag_table_find_column(&t, "measured_ns");
		const struct lag_pipe_window *w = NULL;
		int64_t others = 0;

		for (size_t s = 0; s < steps->n_steps; s++) {
			if (steps->steps[s].number == number)
				w = &p->windows[s * p->n_groups + (size_t)group];
		}
		assert_non_null(w);
		for (int c = LAG_TIME_COPY; c < LAG_TIME_LIMIT; c++)
			others += length_in(ledger, (size_t)r, c, w->start_ns, w->end_ns);
		assert_int_equal(others + outside_blocks(ledger, p, (size_t)r, w),
				 lag_table_cell(&t, i, (size_t)measured)->i);
	}
	lag_table_release(&t);
}

static void the_ledger_adds_up_and_agrees_with_the_bubbles(void **state)
{
	static const char *const schedules[] = { "gpipe", "1f1b" };
	char seed[16];

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct lag_context *ctx;

		(void)snprintf(seed, sizeof(seed), "%d", i + 1);
		ctx = RUN("--seed", seed, "--pp", i % 3 ? "2" : "4", "--dp", "2", "--microbatches",
			  "6", "--steps", "4", "--schedule", schedules[i % 2]);
		check_sums(ctx);
		check_against_bubbles(ctx);
		lag_context_free(ctx);
	}
}

/* p = 4, m = 8: the bubble is (p - 1) / (m + p - 1) of the window on every stage. */
static void a_quiet_run_holds_the_textbook_bubble(void **state)
{
	struct lag_context *ctx =
		RUN("--pp", "4", "--dp", "1", "--microbatches", "8", "--steps", "4", "--schedule",
		    "1f1b", "--fwd-us", "4000", "--kernel-sigma", "0", "--gpu-sigma", "0",
		    "--comm-sigma", "0", "--launch-jitter", "0", "--gap-us", "0", "--p2p-us", "0",
		    "--embed-us", "0", "--loss-us", "0", "--no-copies");
	const struct lag_ledger *ledger = lag_context_ledger(ctx, NULL);
	const struct lag_pipeline *p = lag_context_pipeline(ctx, NULL);

	(void)state;
	assert_int_equal(p->n_groups, 1);
	for (size_t s = 0; s < p->n_steps; s++) {
		const struct lag_pipe_window *w = &p->windows[s];

		if (w->start_ns == LAG_NONE)
			continue;
		for (size_t r = 0; r < ledger->n_ranks; r++) {
			double share = (double)length_in(ledger, r, LAG_TIME_BUBBLE, w->start_ns,
							 w->end_ns) /
				       (double)(w->end_ns - w->start_ns);

			assert_true(share > 3.0 / 11 - 0.01 && share < 3.0 / 11 + 0.01);
		}
	}
	lag_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ledger_adds_up_and_agrees_with_the_bubbles),
		cmocka_unit_test(a_quiet_run_holds_the_textbook_bubble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

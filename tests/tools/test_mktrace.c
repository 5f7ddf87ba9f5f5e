/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic engine against closed forms: schedules, slow ranks, eager senders, order of ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/tools/mkt_emit.h"
#include "tests/tools/mkt_truth.h"

static struct mkt_options options(int argc, const char *const *argv)
{
	struct mkt_options opt;
	char *args[64] = { NULL };
	assert_true(argc < 64);
	for (int i = 0; i < argc; i++)
		args[i] = strdup(argv[i]);
	assert_int_equal(mkt_options_read(&opt, argc, args), -1);
	for (int i = 0; i < argc; i++)
		free(args[i]);
	opt.out = "unused";
	return opt;
}

#define OPTIONS(...)                                                                     \
	options((int)(sizeof((const char *[]){ "mktrace", "--out", "x", __VA_ARGS__ }) / \
		      sizeof(char *)),                                                   \
		(const char *[]){ "mktrace", "--out", "x", __VA_ARGS__ })

#define QUIET                                                                                   \
	"--kernel-sigma", "0", "--gpu-sigma", "0", "--comm-sigma", "0", "--launch-jitter", "0", \
		"--gap-us", "0", "--p2p-us", "0", "--embed-us", "0", "--loss-us", "0",          \
		"--no-copies"

struct outcome {
	int64_t window_ns, busy_ns, last_step_ns;
};

/* Runs and gives the pipeline window of replica 0 in the last step, and the last step's length. */
static struct outcome run(const struct mkt_options *opt, bool faults)
{
	struct mkt_run r;
	struct mkt_truth t;
	struct lag_err err;
	mkt_truth_init(&t);
	assert_int_equal(mkt_run_init(&r, opt, faults, &err), LAG_OK);
	for (int s = 0; s < opt->steps; s++) {
		assert_int_equal(mkt_run_step(&r, &err), LAG_OK);
		assert_int_equal(mkt_truth_add(&t, &r), LAG_OK);
	}
	int64_t from = INT64_MAX, to = 0;
	struct outcome out = { 0, 0, 0 };
	for (int i = 0; i < r.n_ranks; i++) {
		const struct mkt_truth_row *row = &LAG_VEC_AT(
			&t.rows, struct mkt_truth_row, (size_t)((opt->steps - 1) * r.n_ranks + i));
		if (r.ranks[i].at.dp)
			continue;
		from = row->first_fwd_ns < from ? row->first_fwd_ns : from;
		to = row->last_bwd_ns > to ? row->last_bwd_ns : to;
		out.busy_ns = row->fwd_ns + row->bwd_ns;
	}
	out.window_ns = to - from;
	out.last_step_ns = LAG_VEC_AT(&t.ends, int64_t, t.ends.n - 1);
	if (t.ends.n > 1)
		out.last_step_ns -= LAG_VEC_AT(&t.ends, int64_t, t.ends.n - 2);
	mkt_truth_release(&t);
	mkt_run_release(&r);
	return out;
}

/* Parts per thousand of the window that a stage does not compute. */
static int bubble(struct outcome o)
{
	return (int)((o.window_ns - o.busy_ns) * 1000 / o.window_ns);
}

static void test_schedules_have_the_bubbles_of_the_papers(void **state)
{
	(void)state;
	struct mkt_options a =
		OPTIONS(QUIET, "--pp", "4", "--microbatches", "8", "--fwd-us", "2000");
	assert_in_range(bubble(run(&a, true)), 1000 * 3 / 11 - 4, 1000 * 3 / 11 + 4);
	struct mkt_options b = OPTIONS(QUIET, "--pp", "4", "--microbatches", "4", "--fwd-us",
				       "2000", "--schedule", "gpipe");
	assert_in_range(bubble(run(&b, true)), 1000 * 3 / 7 - 4, 1000 * 3 / 7 + 4);
	struct mkt_options c = OPTIONS(QUIET, "--pp", "2", "--microbatches", "4", "--fwd-us",
				       "2000", "--schedule", "interleaved", "--chunks", "2");
	assert_in_range(bubble(run(&c, true)), 1000 * 1 / 9 - 4, 1000 * 1 / 9 + 4);
}

static void test_a_slow_rank_costs_what_it_must(void **state)
{
	(void)state;
	struct mkt_options opt = OPTIONS(QUIET, "--pp", "1", "--dp", "4", "--microbatches", "2",
					 "--steps", "4", "--slow", "2:1.5", "--optimizer-us", "1");
	/* 2 microbatches x 4 layers x (1 + 2) ms, half as much again. */
	int64_t cost = run(&opt, true).last_step_ns - run(&opt, false).last_step_ns;
	assert_in_range(cost, 11900000, 12100000);
}

static void test_the_same_seed_gives_the_same_times(void **state)
{
	(void)state;
	struct mkt_options opt = OPTIONS("--steps", "3", "--tp", "2");
	struct outcome a = run(&opt, true);
	struct outcome b = run(&opt, true);
	assert_memory_equal(&a, &b, sizeof(a));
	opt.seed++;
	assert_int_not_equal(run(&opt, true).last_step_ns, a.last_step_ns);
}

static void test_a_small_message_is_sent_before_it_is_received(void **state)
{
	(void)state;
	struct lag_err err;
	for (int eager = 0; eager < 2; eager++) {
		struct mkt_options opt = OPTIONS("--pp", "2", "--dp", "1", "--microbatches", "1",
						 "--act-bytes", "1M", "--steps", "1");
		struct mkt_run r;
		opt.eager_bytes = eager ? 4 << 20 : 0;
		/* The receiver's host comes late. */
		opt.faults[opt.n_faults++] = (struct mkt_fault){
			.kind = MKT_STALL, .a = 1, .at = 0, .until = 1, .ns = 50000000
		};
		assert_int_equal(mkt_run_init(&r, &opt, true, &err), LAG_OK);
		assert_int_equal(mkt_run_step(&r, &err), LAG_OK);
		const struct mkt_item *send = NULL, *recv = NULL;
		for (size_t i = 0; i < r.ranks[0].items.n; i++) {
			const struct mkt_item *it = mkt_item_at(&r.ranks[0], (int32_t)i);
			if (it->kind == MKT_I_P2P && it->conn[0] >= 0)
				send = it;
		}
		for (size_t i = 0; i < r.ranks[1].items.n; i++) {
			const struct mkt_item *it = mkt_item_at(&r.ranks[1], (int32_t)i);
			if (it->kind == MKT_I_P2P && it->conn[1] >= 0)
				recv = it;
		}
		assert_non_null(send);
		assert_non_null(recv);
		if (!send || !recv) /* the analyzer does not know that asserts end the test */
			return;
		assert_true(recv->end_ns >= send->start_ns);
		assert_int_equal(send->end_ns < recv->start_ns, eager);
		mkt_run_release(&r);
	}
}

static void test_collectives_end_after_the_last_came_and_not_all_at_once(void **state)
{
	(void)state;
	struct lag_err err;
	struct mkt_run r;
	struct mkt_options opt = OPTIONS("--pp", "1", "--dp", "4", "--steps", "1");
	assert_int_equal(mkt_run_init(&r, &opt, true, &err), LAG_OK);
	assert_int_equal(mkt_run_step(&r, &err), LAG_OK);
	int64_t last_start = 0, first_end = INT64_MAX, last_end = 0;
	for (int k = 0; k < 4; k++) {
		const struct mkt_item *first = NULL;
		for (size_t i = 0; !first && i < r.ranks[k].items.n; i++) {
			const struct mkt_item *it = mkt_item_at(&r.ranks[k], (int32_t)i);
			first = it->kind == MKT_I_COLL ? it : NULL;
		}
		assert_non_null(first);
		if (!first)
			return;
		last_start = first->start_ns > last_start ? first->start_ns : last_start;
		first_end = first->end_ns < first_end ? first->end_ns : first_end;
		last_end = first->end_ns > last_end ? first->end_ns : last_end;
	}
	assert_true(first_end >= last_start);
	assert_true(last_end > first_end);
	assert_true(last_end - first_end <= 2 * opt.ring_ns);
	mkt_run_release(&r);
}

static void test_clocks_follow_offset_drift_and_the_device(void **state)
{
	(void)state;
	struct mkt_clock c = {
		.offset_ns = -5e6, .drift = 1e-4, .device_ns = { 7, -9 }, .device_step_ns = 1000
	};
	assert_int_equal(mkt_clock_read(&c, 0, false), MKT_EPOCH_NS - 5000000);
	assert_int_equal(mkt_clock_read(&c, 1000000000, false),
			 MKT_EPOCH_NS + 1000000000 - 5000000 + 100000);
	assert_int_equal(mkt_clock_read(&c, 0, true), MKT_EPOCH_NS - 5000000 + 7);
	assert_int_equal(mkt_clock_read(&c, 1000, true), MKT_EPOCH_NS + 1000 - 5000000 - 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedules_have_the_bubbles_of_the_papers),
		cmocka_unit_test(test_a_slow_rank_costs_what_it_must),
		cmocka_unit_test(test_the_same_seed_gives_the_same_times),
		cmocka_unit_test(test_a_small_message_is_sent_before_it_is_received),
		cmocka_unit_test(test_collectives_end_after_the_last_came_and_not_all_at_once),
		cmocka_unit_test(test_clocks_follow_offset_drift_and_the_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

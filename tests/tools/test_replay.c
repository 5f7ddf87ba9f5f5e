/* SPDX-License-Identifier: Apache-2.0 */
/* The replay, the comparison of peers and the bubble's ladder on synthetic runs whose answers are
 * known: the same engine, run with and without what a scenario removes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/mkt_memory.h"
#include "viz/analysis/bubble_ladder.h"
#include "viz/model/context.h"

static struct mkt_options options(const char *line)
{
	struct mkt_options opt;
	char text[512], self[] = "test", *argv[48] = { self };
	int argc = 1;

	(void)snprintf(text, sizeof(text), "--out none %s", line);
	for (char *word = strtok(text, " "); word && argc < 47; word = strtok(NULL, " "))
		argv[argc++] = word;
	assert_int_equal(mkt_options_read(&opt, argc, argv), -1);
	opt.out = "none";
	return opt;
}

static struct lag_context *run(const char *line, bool faults, int64_t *step_ns)
{
	struct mkt_options opt = options(line);
	struct lag_trace *trace;
	struct lag_context *ctx;
	struct lag_err err;

	assert_int_equal(mkt_memory_trace(&opt, faults, &trace, step_ns, &err), LAG_OK);
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	return ctx;
}

static int64_t replay(struct lag_context *ctx, const struct lag_replay_change *change)
{
	struct lag_err err;
	struct lag_replay_result result;
	const struct lag_replay *rp = lag_context_replay(ctx, &err);
	int64_t ns;

	assert_non_null(rp);
	assert_int_equal(lag_replay_run(rp, change, &result, &err), LAG_OK);
	ns = lag_replay_step_ns(&result);
	lag_replay_result_release(&result);
	return ns;
}

static const char *const shapes[] = {
	"--steps 3",
	"--steps 3 --schedule gpipe --tp 2 --pp 2",
	"--steps 3 --schedule interleaved --chunks 2 --pp 2",
	"--steps 3 --batch-p2p --no-nvtx",
	"--steps 3 --pair-comms --eager-bytes 64M --one-thread --no-nvtx",
	"--steps 3 --pp 1 --dp 6 --grad-allreduce",
	"--steps 3 --host-us 2000 --slow 1:1.4 --stall 2:1:30",
};

static void test_nothing_changed_replays_as_measured(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct lag_context *ctx = run(shapes[i], true, NULL);
		struct lag_err err;
		const struct lag_steps *steps = lag_context_steps(ctx, &err);
		const struct lag_replay *rp = lag_context_replay(ctx, &err);
		struct lag_replay_change change = { 0 };
		struct lag_replay_result result;

		assert_non_null(steps);
		assert_non_null(rp);
		assert_int_equal(lag_replay_run(rp, &change, &result, &err), LAG_OK);
		assert_int_equal(result.n_steps, steps->n_steps);
		for (size_t s = 0; s < steps->n_steps; s++)
			assert_int_equal(result.step_end_ns[s], steps->steps[s].end_ns);
		assert_int_equal(lag_replay_facts(rp)->n_forced, 0);
		lag_replay_result_release(&result);
		lag_context_free(ctx);
	}
}

/* Lateness of ranks, hosts and stages is no contention: in these runs every GPU starts what is ready. */
static void test_without_contention_none_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct lag_context *ctx = run(shapes[i], true, NULL);
		struct lag_err err;
		const struct lag_ready *ready = lag_context_ready(ctx, &err);

		assert_non_null(ready);
		assert_true(ready->n > 0 && ready->latency_ns >= 0);
		assert_true(20 * ready->n_unknown <= ready->n);
		for (size_t l = 0; l < ready->n; l++)
			assert_true(ready->launch[l].contention_ns <= 0);
		lag_context_free(ctx);
	}
}

/* Removes a fault by the replay and by not injecting it. */
static void compare(const char *line, int64_t *with_ns, int64_t *truth_ns, int64_t *replayed_ns,
		    bool by_peers, int rank)
{
	struct lag_context *ctx = run(line, false, truth_ns);
	struct lag_replay_change change = { 0 };
	struct lag_err err;

	lag_context_free(ctx);
	ctx = run(line, true, with_ns);
	if (by_peers) {
		const struct lag_trace *trace = lag_context_trace(ctx);
		const struct lag_peers *peers = lag_context_peers(ctx, &err);
		int64_t *durations = calloc(trace->n_gpu, sizeof(*durations));

		assert_non_null(peers);
		assert_non_null(durations);
		for (size_t i = 0; i < trace->n_gpu; i++) {
			durations[i] = trace->gpu[i].r == (uint32_t)rank
					       ? lag_peers_duration(peers, trace, i)
					       : trace->gpu[i].end_ns - trace->gpu[i].start_ns;
		}
		change.duration_ns = durations;
		*replayed_ns = replay(ctx, &change);
		free(durations);
	} else {
		uint8_t *stall_free = calloc(lag_context_trace(ctx)->n_ranks, 1);

		assert_non_null(stall_free);
		stall_free[rank] = 1;
		change.stall_free = stall_free;
		*replayed_ns = replay(ctx, &change);
		free(stall_free);
	}
	lag_context_free(ctx);
}

static void test_a_slow_rank_removed_gives_the_run_without_it(void **state)
{
	static const char *const lines[] = {
		"--steps 6 --gpu-sigma 0 --slow 5:1.3",
		"--steps 6 --gpu-sigma 0 --slow 2:1.15 --schedule gpipe --microbatches 4",
		("--steps 6 --gpu-sigma 0 --slow 1:1.3 --schedule interleaved --chunks 2 --pp 2 "
		 "--dp 4"),
		"--steps 6 --gpu-sigma 0 --slow 3:1.3 --pp 2 --dp 2 --tp 2 --no-nvtx",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		int64_t with_ns, truth_ns, replayed_ns;
		int rank = (int)strtol(strstr(lines[i], "--slow ") + 7, NULL, 10);

		compare(lines[i], &with_ns, &truth_ns, &replayed_ns, true, rank);
		assert_true(llabs(replayed_ns - truth_ns) < (with_ns - truth_ns) / 20);
	}
}

/* Ranks of one replica share their data: what all of them have in common is no GPU's fault. */
static void test_a_replica_with_more_data_is_no_row_of_slow_gpus(void **state)
{
	static const struct {
		const char *line;
		int accused; /* -1 nobody */
	} cases[] = {
		{ "--steps 6 --gpu-sigma 0 --slow 1:1.08 --slow 3:1.08 --slow 5:1.08 --slow 7:1.08",
		  -1 },
		{ "--steps 6 --gpu-sigma 0 --slow 1:1.08 --slow 3:1.08 --slow 5:1.4 --slow 7:1.08",
		  5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lag_context *ctx = run(cases[i].line, true, NULL);
		struct lag_err err;
		const struct lag_stragglers *s = lag_context_stragglers(ctx, &err);

		assert_non_null(s);
		for (int r = 0; r < 8; r++)
			assert_int_equal(s->ranks[r].verdict == LAG_VERDICT_CHRONIC,
					 r == cases[i].accused);
		lag_context_free(ctx);
	}
}

static void test_a_stall_removed_gives_the_run_without_it(void **state)
{
	int64_t with_ns, truth_ns, replayed_ns;

	(void)state;
	compare("--steps 6 --stall 3:2:60", &with_ns, &truth_ns, &replayed_ns, false, 3);
	assert_true(with_ns - truth_ns > 5000000);
	assert_true(llabs(replayed_ns - truth_ns) < (with_ns - truth_ns) / 20);
}

static void test_free_transfers_give_the_run_with_short_ones(void **state)
{
	struct lag_replay_change change = { .scale_transfer = true };
	struct lag_context *ctx;
	int64_t slow_ns, fast_ns;

	(void)state;
	for (int role = 0; role < LAG_ROLE_LIMIT; role++)
		change.transfer_scale[role] = role == LAG_ROLE_PIPELINE ? 0.25 : 1;
	ctx = run("--steps 4 --comm-sigma 0 --p2p-us 100", true, &fast_ns);
	lag_context_free(ctx);
	ctx = run("--steps 4 --comm-sigma 0 --p2p-us 400", true, &slow_ns);
	assert_true(slow_ns - fast_ns > 1000000);
	assert_true(llabs(replay(ctx, &change) - fast_ns) < (slow_ns - fast_ns) / 10);
	lag_context_free(ctx);
}

static void test_a_host_that_is_never_late_wins_what_it_cost(void **state)
{
	struct lag_replay_change change = { .host_free = true };
	struct lag_context *ctx;
	int64_t late_ns, fast_ns, replayed_ns;

	(void)state;
	ctx = run("--steps 4 --fwd-us 300", true, &fast_ns);
	lag_context_free(ctx);
	ctx = run("--steps 4 --fwd-us 300 --host-us 4000", true, &late_ns);
	replayed_ns = replay(ctx, &change);
	assert_true(late_ns > fast_ns + 10000000);
	assert_true(llabs(replayed_ns - fast_ns) < (late_ns - fast_ns) / 10);
	lag_context_free(ctx);
}

static void test_without_event_records_edges_are_inferred(void **state)
{
	struct mkt_options opt = options("--steps 6 --gpu-sigma 0 --slow 5:1.3");
	struct lag_trace *trace;
	struct lag_context *ctx;
	struct lag_err err;
	const struct lag_stragglers *s;
	int64_t with_ns, truth_ns;

	(void)state;
	assert_int_equal(mkt_memory_trace(&opt, false, &trace, &truth_ns, &err), LAG_OK);
	lag_trace_close(trace);
	assert_int_equal(mkt_memory_trace(&opt, true, &trace, &with_ns, &err), LAG_OK);
	for (size_t r = 0; r < trace->n_ranks; r++)
		trace->ranks[r].sync_begin = trace->ranks[r].sync_end = 0;
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	s = lag_context_stragglers(ctx, &err);
	assert_non_null(s);
	assert_true(lag_replay_facts(lag_context_replay(ctx, &err))->n_inferred > 100);
	assert_int_equal(s->ranks[5].verdict, LAG_VERDICT_CHRONIC);
	assert_true(llabs(s->ranks[5].step_cost_ns - (with_ns - truth_ns)) <
		    (with_ns - truth_ns) / 5);
	lag_context_free(ctx);
}

static void test_peers_tell_the_gpu_from_the_data(void **state)
{
	struct lag_err err;
	struct lag_context *ctx = run("--steps 6 --slow 5:1.2", true, NULL);
	const struct lag_peers *peers = lag_context_peers(ctx, &err);

	(void)state;
	assert_int_equal(peers->ranks[5].state, LAG_PEER_SLOW);
	assert_int_equal(peers->ranks[5].steps_slow, 6);
	assert_int_equal(peers->ranks[4].state, LAG_PEER_SAME);
	lag_context_free(ctx);
	ctx = run("--steps 6 --pp 2 --dp 4 --slow-data 2:1.6", true, NULL);
	peers = lag_context_peers(ctx, &err);
	assert_int_equal(peers->ranks[2].state, LAG_PEER_MORE);
	assert_int_equal(peers->ranks[6].state, LAG_PEER_MORE);
	assert_int_equal(peers->ranks[3].state, LAG_PEER_SAME);
	lag_context_free(ctx);
	ctx = run("--steps 6 --dp 1 --slow 2:1.3", true, NULL);
	peers = lag_context_peers(ctx, &err);
	assert_int_equal(peers->ranks[2].state, LAG_PEER_UNUSUAL);
	assert_int_equal(peers->ranks[1].state, LAG_PEER_ALONE);
	lag_context_free(ctx);
}

/* A stage alone may be heavy or its rank slow; who comes last in a pipeline is not who is slow. */
static void test_arriving_last_accuses_nobody(void **state)
{
	struct lag_err err;
	struct lag_context *ctx = run("--steps 6 --dp 1 --slow 2:1.3", true, NULL);
	const struct lag_stragglers *s = lag_context_stragglers(ctx, &err);
	int64_t sum = 0;

	(void)state;
	assert_non_null(s);
	assert_int_equal(s->ranks[2].verdict, LAG_VERDICT_CANNOT_TELL);
	assert_int_equal(s->n_accused, 0);
	lag_context_free(ctx);
	ctx = run("--steps 6 --slow 5:1.3", true, NULL);
	s = lag_context_stragglers(ctx, &err);
	assert_non_null(s);
	for (size_t r = 0; r < s->n_ranks; r++) {
		assert_int_equal(s->ranks[r].verdict,
				 r == 5 ? LAG_VERDICT_CHRONIC : LAG_VERDICT_NONE);
		assert_true(s->ranks[r].steps_last <= s->ranks[r].steps_seen);
		/* Innocent ranks were waited for, and longer than the guilty one costs. */
		sum += r == 5 ? 0 : s->ranks[r].waiting_caused_ns;
	}
	assert_true(s->ranks[5].step_cost_ns > 0);
	assert_true(s->ranks[5].step_cost_ns < s->step_ns);
	assert_true(sum > s->ranks[5].step_cost_ns);
	lag_context_free(ctx);
}

/* Mean share of the window that a rung adds, over stages, groups and steps. */
static double rung(const char *line, enum lag_rung rung)
{
	struct lag_err err;
	struct lag_context *ctx = run(line, true, NULL);
	const struct lag_pipeline *p = lag_context_pipeline(ctx, &err);
	struct lag_ladder *ladder;
	struct lag_ladder_stage stages[8];
	double sum = 0;
	int n = 0;

	assert_non_null(p);
	assert_true(p->n_groups > 0);
	assert_int_equal(lag_ladder_new(ctx, &ladder, &err), LAG_OK);
	for (size_t g = 0; g < p->n_groups; g++) {
		for (size_t s = 0; s < p->n_steps; s++) {
			assert_true(p->groups[g].n_stages <= 8);
			assert_int_equal(lag_ladder_climb(ladder, g, s, stages), LAG_OK);
			for (int32_t k = 0; k < p->groups[g].n_stages; k++, n++) {
				sum += (double)(stages[k].bubble_ns[rung] -
						(rung ? stages[k].bubble_ns[rung - 1] : 0)) /
				       (double)stages[k].window_ns;
			}
		}
	}
	lag_ladder_free(ladder);
	lag_context_free(ctx);
	return sum / n;
}

#define EQUAL "--steps 2 --gpu-sigma 0 --embed-us 0 --loss-us 0 --p2p-us 10 "

static void test_each_cause_has_its_own_rung(void **state)
{
	(void)state;
	assert_true(fabs(rung(EQUAL, LAG_RUNG_IDEAL) - 3.0 / 11) < 0.01);
	assert_true(fabs(rung(EQUAL "--schedule gpipe --pp 2", LAG_RUNG_IDEAL) - 1.0 / 9) < 0.01);
	assert_true(fabs(rung(EQUAL, LAG_RUNG_IMBALANCE)) < 0.005);
	assert_true(rung(EQUAL "--layers 4,4,6,4", LAG_RUNG_IMBALANCE) > 0.1);
	assert_true(fabs(rung(EQUAL "--layers 4,4,6,4", LAG_RUNG_SLOW)) < 0.005);
	assert_true(rung(EQUAL "--slow 5:1.3", LAG_RUNG_SLOW) > 0.03);
	assert_true(fabs(rung(EQUAL "--slow 5:1.3", LAG_RUNG_IMBALANCE)) < 0.01);
	assert_true(rung(EQUAL "--p2p-us 800", LAG_RUNG_SEND_RECV) > 0.03);
	assert_true(rung(EQUAL "--seq-sigma 0.3", LAG_RUNG_VARIATION) > 0.01);
	assert_true(rung(EQUAL "--fwd-us 300 --host-us 4000", LAG_RUNG_HOST) > 0.05);
}

/* GPipe on two stages, 8 microbatches of 12 ms, messages of 0.8 ms: one kernel for a send and the next
 * receive pays every message, each way; streams of their own pay the first alone. */
static void test_messages_wait_for_what_they_waited_for(void **state)
{
	const char *batched = EQUAL "--schedule gpipe --pp 2 --p2p-us 800 --batch-p2p";
	const char *apart = EQUAL "--schedule gpipe --pp 2 --p2p-us 800";

	(void)state;
	assert_true(fabs(rung(batched, LAG_RUNG_SEND_RECV) - 12.8 / (108 + 12.8)) < 0.005);
	assert_true(fabs(rung(apart, LAG_RUNG_SEND_RECV) - 1.6 / (108 + 1.6)) < 0.003);
}

/* Longer data are no stage of other size, and not the ideal's. */
static void test_longer_data_are_not_the_baseline(void **state)
{
	(void)state;
	assert_true(fabs(rung(EQUAL "--slow-data 1:1.6", LAG_RUNG_IMBALANCE)) < 0.005);
	assert_true(fabs(rung(EQUAL "--slow-data 1:1.6 --dp 3", LAG_RUNG_IMBALANCE)) < 0.005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_changed_replays_as_measured),
		cmocka_unit_test(test_without_contention_none_is_found),
		cmocka_unit_test(test_a_slow_rank_removed_gives_the_run_without_it),
		cmocka_unit_test(test_a_replica_with_more_data_is_no_row_of_slow_gpus),
		cmocka_unit_test(test_a_stall_removed_gives_the_run_without_it),
		cmocka_unit_test(test_free_transfers_give_the_run_with_short_ones),
		cmocka_unit_test(test_a_host_that_is_never_late_wins_what_it_cost),
		cmocka_unit_test(test_without_event_records_edges_are_inferred),
		cmocka_unit_test(test_peers_tell_the_gpu_from_the_data),
		cmocka_unit_test(test_arriving_last_accuses_nobody),
		cmocka_unit_test(test_each_cause_has_its_own_rung),
		cmocka_unit_test(test_messages_wait_for_what_they_waited_for),
		cmocka_unit_test(test_longer_data_are_not_the_baseline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

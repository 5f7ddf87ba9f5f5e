/* SPDX-License-Identifier: Apache-2.0 */
/* The orders of pipetrain, executed by a small machine in which an action starts with its input:
 * each schedule must finish, and messages between two ranks must be taken in the order sent. */
#include "tests/apps/pt_schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	MAX_STAGES = 8,
	MAX_ACTS = 512
};

static struct pt_options shape(enum pt_order order, int pp, int m, int chunks)
{
	return (struct pt_options){ .pp = pp,
				    .dp = 1,
				    .tp = 1,
				    .world = pp,
				    .order = order,
				    .chunks = chunks,
				    .microbatches = m };
}

struct machine {
	struct pt_options opt;
	struct pt_act acts[MAX_STAGES][MAX_ACTS];
	int next[MAX_STAGES];
	double free_at[MAX_STAGES];
	double ready[2][MAX_STAGES * 4]
		    [MAX_ACTS]; /* by direction, part, microbatch; below 0: not yet */
};

static void machine_init(struct machine *m, struct pt_options opt)
{
	memset(m, 0, sizeof(*m));
	m->opt = opt;
	for (int s = 0; s < opt.pp; s++)
		pt_schedule_fill(&opt, s, m->acts[s]);
	for (int dir = 0; dir < 2; dir++) {
		for (int part = 0; part < opt.pp * opt.chunks; part++) {
			for (int mb = 0; mb < opt.microbatches; mb++)
				m->ready[dir][part][mb] = -1;
		}
	}
}

/* When the input of an action is there: now at the model's ends, else with the neighbour's result. */
static double input_time(const struct machine *m, int stage, struct pt_act act)
{
	int part = act.chunk * m->opt.pp + stage;
	int last = m->opt.pp * m->opt.chunks - 1;
	if (!act.backward)
		return part == 0 ? 0 : m->ready[0][part - 1][act.mb];
	return part == last ? m->ready[0][last][act.mb] : m->ready[1][part + 1][act.mb];
}

/* Runs all stages; forward 1, backward 2 time units a chunk. Returns the makespan, -1 if stuck. */
static double machine_run(struct machine *m)
{
	int n = pt_schedule_size(&m->opt);
	double end = 0;
	for (bool moved = true; moved;) {
		moved = false;
		for (int s = 0; s < m->opt.pp; s++) {
			if (m->next[s] == n)
				continue;
			struct pt_act act = m->acts[s][m->next[s]];
			double in = input_time(m, s, act);
			if (in < 0)
				continue;
			double start = in > m->free_at[s] ? in : m->free_at[s];
			double stop = start + (act.backward ? 2.0 : 1.0);
			m->ready[act.backward][act.chunk * m->opt.pp + s][act.mb] = stop;
			m->free_at[s] = stop;
			m->next[s]++;
			end = stop > end ? stop : end;
			moved = true;
		}
	}
	for (int s = 0; s < m->opt.pp; s++) {
		if (m->next[s] != n)
			return -1;
	}
	return end;
}

/* Bubble over ideal compute as the papers give it: (p - 1) / (v m). */
static void assert_makespan(enum pt_order order, int p, int m, int v)
{
	static struct machine machine;
	machine_init(&machine, shape(order, p, m, v));
	double ideal = 3.0 * m * v;
	double end = machine_run(&machine);
	double expected = ideal * (1.0 + (double)(p - 1) / (v * m));
	assert_true(end > expected - 1e-9 && end < expected + 1e-9);
}

static void test_bubble_is_the_papers(void **state)
{
	(void)state;
	for (int p = 1; p <= 8; p *= 2) {
		for (int m = p; m <= 16; m *= 2) {
			assert_makespan(PT_GPIPE, p, m, 1);
			assert_makespan(PT_1F1B, p, m, 1);
			for (int v = 2; v <= 4 && p > 1; v++)
				assert_makespan(PT_INTERLEAVED, p, m, v);
		}
	}
}

static void test_each_action_once(void **state)
{
	(void)state;
	struct pt_options opt = shape(PT_INTERLEAVED, 4, 8, 3);
	struct pt_act acts[MAX_ACTS];
	for (int s = 0; s < opt.pp; s++) {
		int seen[2][64] = { { 0 } };
		pt_schedule_fill(&opt, s, acts);
		for (int i = 0; i < pt_schedule_size(&opt); i++)
			seen[acts[i].backward][pt_act_slot(&opt, acts[i])]++;
		for (int slot = 0; slot < 24; slot++) {
			assert_int_equal(seen[0][slot], 1);
			assert_int_equal(seen[1][slot], 1);
		}
	}
}

/* The k-th message from a to b must be the k-th that b takes from a, in each direction. */
static void assert_order_agrees(struct pt_options opt, int src, int dst, bool backward)
{
	struct pt_act from[MAX_ACTS];
	struct pt_act to[MAX_ACTS];
	int n = pt_schedule_size(&opt);
	int k = 0;
	pt_schedule_fill(&opt, src, from);
	pt_schedule_fill(&opt, dst, to);
	for (int i = 0; i < n; i++) {
		if (from[i].backward != backward || pt_act_target(&opt, src, from[i]) != dst)
			continue;
		while (k < n &&
		       (to[k].backward != backward || pt_act_source(&opt, dst, to[k]) != src))
			k++;
		assert_true(k < n);
		int sent = from[i].chunk * opt.pp + src + (backward ? -1 : 1);
		assert_int_equal(sent, to[k].chunk * opt.pp + dst);
		assert_int_equal(from[i].mb, to[k].mb);
		k++;
	}
}

static void test_messages_match_by_order(void **state)
{
	(void)state;
	const struct pt_options shapes[] = { shape(PT_GPIPE, 4, 6, 1), shape(PT_1F1B, 4, 6, 1),
					     shape(PT_INTERLEAVED, 2, 8, 2),
					     shape(PT_INTERLEAVED, 4, 8, 2),
					     shape(PT_INTERLEAVED, 4, 16, 3) };
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		for (int src = 0; src < shapes[i].pp; src++) {
			for (int dst = 0; dst < shapes[i].pp; dst++) {
				assert_order_agrees(shapes[i], src, dst, false);
				assert_order_agrees(shapes[i], src, dst, true);
			}
		}
	}
}

static void test_ranks_and_places_are_inverse(void **state)
{
	(void)state;
	struct pt_options opt = { .pp = 3, .dp = 2, .tp = 4 };
	for (int rank = 0; rank < 24; rank++)
		assert_int_equal(pt_rank_at(&opt, pt_place_of(&opt, rank)), rank);
	assert_int_equal(pt_place_of(&opt, 1).tp, 1);
	assert_int_equal(pt_place_of(&opt, 4).dp, 1);
	assert_int_equal(pt_place_of(&opt, 8).stage, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bubble_is_the_papers),
		cmocka_unit_test(test_each_action_once),
		cmocka_unit_test(test_messages_match_by_order),
		cmocka_unit_test(test_ranks_and_places_are_inverse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

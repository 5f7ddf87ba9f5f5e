/* SPDX-License-Identifier: Apache-2.0 */
/* Repaired order, clocks that only their time daemons tie, and the algebra below the fit. */
#include <math.h>
#include <string.h>

#include "merge/clock_dense.h"
#include "merge/clock_order.h"
#include "tests/unit/align_lab.h"
#include "tests/unit/unit.h"

#define T0 1700000000000000000LL
#define US 1000LL

enum {
	N = 40
};

/* Two hosts; the second one's clock is behind by `behind` and nothing corrects it. */
struct pair {
	struct lag_align_input in;
	struct lag_align_message messages[2 * N];
	uint32_t device_host[2];
};

static struct lag_align_member at(const int64_t *behind, uint32_t host, int64_t start, int64_t end)
{
	return (struct lag_align_member){ .host = host,
					  .device = host,
					  .start_ns = T0 + start - behind[host],
					  .end_ns = T0 + end - behind[host] };
}

/* Each millisecond one message there and, half a millisecond later, one back; 30 us each. */
static void make(struct pair *p, int64_t behind_ns)
{
	const int64_t behind[2] = { 0, behind_ns };

	*p = (struct pair){ .device_host = { 0, 1 } };
	for (int i = 0; i < N; i++) {
		int64_t t = i * 1000 * US;

		p->messages[2 * i] =
			(struct lag_align_message){ .send = at(behind, 0, t, t + 20 * US),
						    .recv = at(behind, 1, t - 100 * US,
							       t + 30 * US),
						    .bytes = 4 };
		t += 500 * US;
		p->messages[2 * i + 1] =
			(struct lag_align_message){ .send = at(behind, 1, t, t + 20 * US),
						    .recv = at(behind, 0, t - 100 * US,
							       t + 30 * US),
						    .bytes = 4 };
	}
	p->in = (struct lag_align_input){ .n_hosts = 2,
					  .n_devices = 2,
					  .device_host = p->device_host,
					  .messages = p->messages,
					  .n_messages = (size_t)2 * N };
}

static void contradictions_are_moved_and_counted(void **state)
{
	static struct pair p;
	struct lag_align_result res;
	struct lag_err err;
	int64_t before[2] = { INT64_MIN, INT64_MIN };

	(void)state;
	make(&p, 50 * US); /* receives end 20 us before their sends start */
	assert_int_equal(lag_aligner_none.align(&p.in, &res, &err), LAG_OK);
	assert_int_equal(res.n_violations, N);
	assert_int_equal(lag_clock_order(&p.in, &res, &err), LAG_OK);
	assert_int_equal(res.n_repaired, N);
	assert_int_equal(res.n_violations, 0);
	/* What is needed, and not much more. */
	assert_true(res.repair_max_ns >= 20e3 && res.repair_max_ns < 21e3);
	/* Every nanosecond of a device keeps its place among the others. */
	for (int64_t t = T0 - 10000 * US; t < T0 + (N + 10) * 1000 * US; t += 777) {
		for (uint32_t d = 0; d < 2; d++) {
			int64_t now = lag_align_apply(&res, d, d, t);

			assert_true(now > before[d]);
			assert_true(now >= t && now - t <= (int64_t)res.repair_max_ns + 1);
			before[d] = now;
		}
	}
	/* Far from all of them nothing moves. */
	assert_int_equal(lag_align_apply(&res, 1, 1, T0 - 100000 * US), T0 - 100000 * US);
	assert_int_equal(lag_align_apply(&res, 1, 1, T0 + 900000 * US), T0 + 900000 * US);
	lag_align_release(&res);
}

static void without_contradictions_nothing_moves(void **state)
{
	static struct pair p;
	struct lag_align_result res;
	struct lag_err err;

	(void)state;
	make(&p, 10 * US);
	assert_int_equal(lag_aligner_none.align(&p.in, &res, &err), LAG_OK);
	assert_int_equal(res.n_violations, 0);
	assert_int_equal(lag_clock_order(&p.in, &res, &err), LAG_OK);
	assert_int_equal(res.n_repairs, 0);
	assert_int_equal(res.n_repaired, 0);
	lag_align_release(&res);
}

/* Whatever is recorded, repairing ends, keeps each device's order and leaves no more than there was. */
static void repair_of_a_whole_run(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct lag_lab lab;
		struct lag_align_result res;
		struct lag_err err;
		struct lag_lab_opts o = lag_lab_defaults(seed);
		uint64_t violations;

		o.offset_ms = 0.05 * (double)(seed % 4);
		o.drift_ppm = 50;
		o.straggler = seed % 2;
		lag_lab_make(&lab, &o);
		assert_int_equal(lag_aligner_none.align(&lab.in, &res, &err), LAG_OK);
		violations = res.n_violations;
		assert_int_equal(lag_clock_order(&lab.in, &res, &err), LAG_OK);
		assert_int_equal(res.n_repaired, violations);
		assert_true(res.n_violations <= violations / 100);
		for (uint32_t d = 0; d < lab.in.n_devices; d++) {
			int64_t before = INT64_MIN;

			for (int64_t t = 0; t < lab.length_ns; t += 100003) {
				int64_t raw = lag_lab_device_ns(&lab, d, t);
				int64_t now = lag_align_apply(&res, lab.device_host[d], d, raw);

				assert_true(now >= before);
				before = now;
			}
		}
		lag_align_release(&res);
		lag_lab_release(&lab);
	}
}

/* Two hosts that exchange nothing: only what they say of their clocks ties them. */
static void time_daemons_tie_what_nothing_joins(void **state)
{
	static struct pair p;
	struct lag_align_result res;
	struct lag_err err;
	const struct lag_align_state states[] = { { 0, T0, 300 * US },
						  { 1, T0, 500 * US },
						  { 1, T0 + 1000, 700 * US } };

	(void)state;
	make(&p, 40 * US);
	p.in.n_messages = 0;
	assert_int_equal(lag_aligner_collective.align(&p.in, &res, &err), LAG_OK);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) == INT64_MAX);
	assert_int_equal(res.segments[1].basis, LAG_ALIGN_NOTHING);
	lag_align_release(&res);

	p.in.states = states;
	p.in.n_states = 1; /* one alone says nothing about two */
	assert_int_equal(lag_aligner_collective.align(&p.in, &res, &err), LAG_OK);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) == INT64_MAX);
	lag_align_release(&res);

	p.in.n_states = 3;
	assert_int_equal(lag_aligner_collective.align(&p.in, &res, &err), LAG_OK);
	assert_int_equal(res.segments[1].basis, LAG_ALIGN_WALL);
	assert_int_equal(lag_align_apply(&res, 1, 1, T0), T0);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) >= 1000 * US);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) < 1100 * US);
	assert_int_equal(res.n_contradicted, 0);
	lag_align_release(&res);

	make(&p, 4000 * US); /* messages show them farther apart than they admit */
	p.in.states = states;
	p.in.n_states = 3;
	assert_int_equal(lag_aligner_collective.align(&p.in, &res, &err), LAG_OK);
	assert_int_equal(res.segments[1].basis, LAG_ALIGN_MESSAGES);
	assert_int_equal(res.n_contradicted, 1);
	assert_true(res.contradicted_ns > 2.8e6 && res.contradicted_ns < 3.2e6);
	lag_align_release(&res);
}

static void a_jump_that_only_the_recording_names(void **state)
{
	static struct pair p;
	struct lag_align_result res;
	struct lag_err err;
	const struct lag_align_step step = { 1, T0 + 20500 * US, 20000 * US };

	(void)state;
	make(&p, 0);
	for (int i = 20; i < N; i++) {
		struct lag_align_member *m[] = { &p.messages[2 * i].recv,
						 &p.messages[2 * i + 1].send };

		for (int k = 0; k < 2; k++) {
			m[k]->start_ns += step.step_ns;
			m[k]->end_ns += step.step_ns;
		}
	}
	p.in.steps = &step;
	p.in.n_steps = 1;
	assert_int_equal(lag_aligner_wall.align(&p.in, &res, &err), LAG_OK);
	assert_int_equal(res.n_segments, 3);
	assert_int_equal(lag_align_apply(&res, 1, 1, T0 + 2000000 * US), T0 + 1980000 * US);
	lag_align_release(&res);
}

static void inverse_of_a_known_matrix(void **state)
{
	/* Entries 1 / (i + j + 1) and one more on the diagonal: well conditioned, nothing is zero. */
	enum {
		SIZE = 9
	};

	double a[SIZE * SIZE], kept[SIZE * SIZE], scratch[SIZE], b[SIZE], x[SIZE];

	(void)state;
	for (size_t i = 0; i < SIZE; i++) {
		for (size_t k = 0; k < SIZE; k++)
			a[i * SIZE + k] = 1.0 / (double)(i + k + 1) + (i == k);
		b[i] = x[i] = (double)i - 3;
	}
	memcpy(kept, a, sizeof(a));
	assert_true(lag_dense_factor(a, SIZE));
	lag_dense_solve(a, SIZE, x);
	lag_dense_inverse(a, SIZE, scratch);
	for (size_t i = 0; i < SIZE; i++) {
		double sum = 0;

		for (size_t k = 0; k < SIZE; k++)
			sum += kept[i * SIZE + k] * x[k];
		assert_true(fabs(sum - b[i]) < 1e-9);
		for (size_t k = 0; k < SIZE; k++) {
			double unit = 0;

			for (size_t j = 0; j < SIZE; j++)
				unit += kept[i * SIZE + j] * a[j * SIZE + k];
			assert_true(fabs(unit - (i == k)) < 1e-9);
		}
	}
	kept[0] = -1;
	assert_false(lag_dense_factor(kept, SIZE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contradictions_are_moved_and_counted),
		cmocka_unit_test(without_contradictions_nothing_moves),
		cmocka_unit_test(repair_of_a_whole_run),
		cmocka_unit_test(time_daemons_tie_what_nothing_joins),
		cmocka_unit_test(a_jump_that_only_the_recording_names),
		cmocka_unit_test(inverse_of_a_known_matrix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

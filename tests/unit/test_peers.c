/* SPDX-License-Identifier: Apache-2.0 */
/* Who is compared with whom: ranks of one stage, in one and the same step. */
#include <math.h>
#include <stdio.h>

#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/model/context.h"

enum {
	RANKS = 4,
	STEPS = 3,
	SLOW = 3
};

/* Steps of two kernels; the second step takes `longer` times as long on all ranks, rank SLOW takes `factor`
 * times as long in all steps. */
static struct lag_context *run_of(int longer, double factor)
{
	struct trace_builder tb;
	struct lag_context *ctx;
	struct lag_err err;

	tb_init(&tb, RANKS, RANKS);
	for (int r = 0; r < RANKS; r++) {
		for (int s = 0; s < STEPS; s++) {
			int64_t at = s * INT64_C(100000);
			int64_t ns =
				(int64_t)((s == 1 ? longer : 1) * (r == SLOW ? factor : 1) * 10000);
			char name[32];

			(void)snprintf(name, sizeof(name), "step %d", s);
			tb_range(&tb, r, 1, name, at, at + 99999);
			tb_launched(&tb, tb_kernel(&tb, r, 7, "gemm", at + 100, at + 100 + ns), 1,
				    at + 10, at + 20);
			tb_launched(&tb,
				    tb_kernel(&tb, r, 7, "gelu", at + 100 + ns, at + 100 + 2 * ns),
				    1, at + 30, at + 40);
		}
	}
	assert_int_equal(lag_context_new(tb_finish(&tb), NULL, &ctx, &err), LAG_OK);
	return ctx;
}

static void a_step_that_is_long_for_all_is_nobodys_slowness(void **state)
{
	struct lag_context *ctx = run_of(2, 1.25);
	struct lag_err err;
	const struct lag_peers *peers = lag_context_peers(ctx, &err);

	(void)state;
	assert_non_null(peers);
	assert_int_equal(peers->n_steps, STEPS);
	for (size_t s = 0; s < STEPS; s++) {
		for (size_t r = 0; r < RANKS; r++) {
			double ratio = peers->step_ratio[s * RANKS + r];

			assert_true(fabs(ratio - (r == SLOW ? 1.25 : 1)) < 1e-6);
		}
	}
	for (size_t r = 0; r < RANKS; r++)
		assert_int_equal(peers->ranks[r].steps_slow, r == SLOW ? STEPS : 0);
	lag_context_free(ctx);
}

static void a_long_step_alone_makes_no_straggler(void **state)
{
	struct lag_context *ctx = run_of(3, 1);
	struct lag_err err;
	const struct lag_peers *peers = lag_context_peers(ctx, &err);

	(void)state;
	assert_non_null(peers);
	for (size_t r = 0; r < RANKS; r++) {
		assert_int_equal(peers->ranks[r].state, LAG_PEER_SAME);
		assert_int_equal(peers->ranks[r].steps_slow, 0);
	}
	lag_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_is_long_for_all_is_nobodys_slowness),
		cmocka_unit_test(a_long_step_alone_makes_no_straggler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

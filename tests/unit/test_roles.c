/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and steps inferred from traffic, with and without annotations. */
#include <stdio.h>

#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/model/roles.h"
#include "viz/model/steps.h"

#define MS INT64_C(1000000)

/* PP 2 x DP 2 (rank = stage * 2 + dp), `steps` steps of 100 ms from t0; ranges are called prefix + number. */
static void add_job(struct trace_builder *tb, int steps, const char *prefix)
{
	const int world_ranks[] = { 0, 1, 2, 3 }, dp0[] = { 0, 1 }, dp1[] = { 2, 3 },
		  pp0[] = { 0, 2 }, pp1[] = { 1, 3 };
	uint32_t world, dp[2], pp[2];

	tb_init(tb, 4, 2);
	world = tb_comm(tb, "world", world_ranks, 4);
	dp[0] = tb_comm(tb, "dp", dp0, 2);
	dp[1] = tb_comm(tb, "dp", dp1, 2);
	pp[0] = tb_comm(tb, "pp", pp0, 2);
	pp[1] = tb_comm(tb, "pp", pp1, 2);
	for (int s = 0; s < steps; s++) {
		int64_t t = s * 100 * MS;

		for (int rank = 0; rank < 4; rank++) {
			int stage = rank / 2, d = rank % 2;
			size_t k = tb_kernel(tb, rank, 7, "gemm", t + (5 + 20 * stage) * MS,
					     t + (20 + 20 * stage) * MS);
			char name[64];

			tb_launched(tb, k, 1, t + 1 * MS, t + 2 * MS);
			if (prefix) {
				(void)snprintf(name, sizeof(name), "%s%d", prefix, s + 3);
				tb_range(tb, rank, 1, name, t, t + 98 * MS);
			}
			for (int i = 0; i < 3; i++)
				tb_op(tb, pp[d], rank, stage ? LAG_FUNC_RECV : LAG_FUNC_SEND,
				      3 * s + i, !stage, 1 << 20, t + (20 + i) * MS,
				      t + (21 + i) * MS);
			tb_op(tb, pp[d], rank, stage ? LAG_FUNC_SEND : LAG_FUNC_RECV, s, !stage,
			      1 << 20, t + 50 * MS, t + 51 * MS);
			tb_op(tb, dp[stage], rank, LAG_FUNC_REDUCE_SCATTER, s, -1, 1 << 24,
			      t + 60 * MS, t + 70 * MS);
			tb_op(tb, world, rank, LAG_FUNC_ALL_REDUCE, s, -1, 4, t + 80 * MS,
			      t + 81 * MS);
		}
	}
}

static void pipeline_data_and_world_are_told_apart(void **state)
{
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_roles roles;
	struct lag_err err;

	(void)state;
	add_job(&tb, 4, NULL);
	trace = tb_finish(&tb);
	assert_int_equal(lag_roles_infer(trace, NULL, &roles, &err), LAG_OK);
	assert_string_equal(roles.shape, "PP 2 \xc3\x97 DP 2");
	assert_int_equal(roles.n_pipelines, 2);
	assert_true(roles.confidence > 0.9);
	for (size_t r = 0; r < 4; r++) {
		assert_int_equal(roles.ranks[r].stage, r / 2);
		assert_int_equal(roles.ranks[r].dp, r % 2);
	}
	assert_int_equal(roles.comm_role[0], LAG_ROLE_WORLD);
	assert_int_equal(roles.comm_role[1], LAG_ROLE_DATA);
	assert_int_equal(roles.comm_role[3], LAG_ROLE_PIPELINE);
	lag_roles_release(&roles);
	lag_trace_close(trace);
}

static void a_job_without_pipeline_is_one_data_group(void **state)
{
	const int all[] = { 0, 1, 2, 3 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_roles roles;
	struct lag_err err;
	uint32_t world, data;

	(void)state;
	tb_init(&tb, 4, 2);
	world = tb_comm(&tb, "default", all, 4);
	data = tb_comm(&tb, "gradients", all, 4);
	for (int rank = 0; rank < 4; rank++) {
		tb_op(&tb, world, rank, LAG_FUNC_ALL_REDUCE, 0, -1, 4, 10 * MS, 11 * MS);
		tb_op(&tb, data, rank, LAG_FUNC_ALL_REDUCE, 0, -1, 1 << 24, 20 * MS, 30 * MS);
	}
	trace = tb_finish(&tb);
	assert_int_equal(lag_roles_infer(trace, NULL, &roles, &err), LAG_OK);
	assert_string_equal(roles.shape, "DP 4");
	assert_int_equal(roles.comm_role[world], LAG_ROLE_WORLD);
	assert_int_equal(roles.comm_role[data], LAG_ROLE_DATA);
	lag_roles_release(&roles);
	lag_trace_close(trace);
}

static void a_layout_overrides_and_is_checked_against_the_job(void **state)
{
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_roles roles;
	struct lag_err err;

	(void)state;
	add_job(&tb, 2, NULL);
	trace = tb_finish(&tb);
	assert_int_equal(lag_roles_infer(trace, "tp=2,dp=2", &roles, &err), LAG_OK);
	assert_string_equal(roles.shape, "DP 2 \xc3\x97 TP 2");
	assert_int_equal(roles.ranks[3].tp, 1);
	assert_int_equal(roles.ranks[2].dp, 1);
	lag_roles_release(&roles);
	assert_int_equal(lag_roles_infer(trace, "pp=3", &roles, &err), LAG_ERR_USAGE);
	assert_int_equal(lag_roles_infer(trace, "pp=two", &roles, &err), LAG_ERR_USAGE);
	assert_int_equal(lag_roles_infer(trace, "zz=2", &roles, &err), LAG_ERR_USAGE);
	lag_trace_close(trace);
}

static void steps_come_from_annotations_and_keep_their_numbers(void **state)
{
	static const char *const prefixes[] = { "step ", "ProfilerStep#", "Iteration_" };

	(void)state;
	for (size_t f = 0; f < 3; f++) {
		struct trace_builder tb;
		struct lag_trace *trace;
		struct lag_steps steps;
		struct lag_err err;

		add_job(&tb, 5, prefixes[f]);
		trace = tb_finish(&tb);
		assert_int_equal(lag_steps_find(trace, NULL, &steps, &err), LAG_OK);
		assert_int_equal(steps.source, LAG_STEPS_RANGE);
		assert_int_equal(steps.n_steps, 5);
		for (size_t s = 0; s < 5; s++) {
			assert_int_equal(steps.steps[s].number, s + 3);
			assert_true(steps.steps[s].complete);
		}
		/* Steps tile: each begins where the previous one's last GPU work ended. */
		assert_int_equal(lag_steps_span(&steps, 2, 1)->start_ns,
				 lag_steps_span(&steps, 1, 1)->end_ns);
		lag_steps_release(&steps);
		lag_trace_close(trace);
	}
}

static void without_annotations_the_communication_repeats(void **state)
{
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_steps steps;
	struct lag_err err;

	(void)state;
	add_job(&tb, 12, NULL);
	trace = tb_finish(&tb);
	assert_int_equal(lag_steps_find(trace, NULL, &steps, &err), LAG_OK);
	assert_int_equal(steps.source, LAG_STEPS_REPEAT);
	assert_in_range(steps.n_steps, 11, 12);
	assert_int_equal(steps.steps[5].end_ns - steps.steps[4].end_ns, 100 * MS);
	lag_steps_release(&steps);
	lag_trace_close(trace);
}

static void a_trace_without_any_structure_is_one_step(void **state)
{
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_steps steps;
	struct lag_err err;

	(void)state;
	tb_init(&tb, 1, 1);
	tb_kernel(&tb, 0, 7, "a", 10 * MS, 20 * MS);
	tb_kernel(&tb, 0, 7, "b", 30 * MS, 35 * MS);
	trace = tb_finish(&tb);
	assert_int_equal(lag_steps_find(trace, NULL, &steps, &err), LAG_OK);
	assert_int_equal(steps.source, LAG_STEPS_WHOLE);
	assert_int_equal(steps.n_steps, 1);
	assert_int_equal(steps.steps[0].end_ns - steps.steps[0].start_ns, 25 * MS);
	lag_steps_release(&steps);
	lag_trace_close(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipeline_data_and_world_are_told_apart),
		cmocka_unit_test(a_job_without_pipeline_is_one_data_group),
		cmocka_unit_test(a_layout_overrides_and_is_checked_against_the_job),
		cmocka_unit_test(steps_come_from_annotations_and_keep_their_numbers),
		cmocka_unit_test(without_annotations_the_communication_repeats),
		cmocka_unit_test(a_trace_without_any_structure_is_one_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

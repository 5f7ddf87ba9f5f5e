/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of made traces: which there are, and which each GPU event is in. */
#include <stdio.h>

#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/model/steps.h"

#define US(n) ((int64_t)(n)*1000)

/* One kernel a step, launched in the step's range; `never` (a bit a step) says which did not end. */
static struct lag_trace *one_kernel_a_step(int n_steps, unsigned never)
{
	struct trace_builder tb;

	tb_init(&tb, 1, 1);
	for (int s = 0; s < n_steps; s++) {
		int64_t at = US(100 * s);
		char name[32];
		size_t gpu = tb_kernel(&tb, 0, 7, "k", at + US(10),
				       never >> s & 1 ? LAG_NONE : at + US(90));

		(void)snprintf(name, sizeof(name), "step %d", s);
		tb_range(&tb, 0, 1, name, at, at + US(99));
		tb_launched(&tb, gpu, 1, at + US(1), at + US(2));
	}
	return tb_finish(&tb);
}

static void expect(int n_steps, unsigned never, const int64_t *numbers, size_t n,
		   const int32_t *of_gpu)
{
	struct lag_trace *trace = one_kernel_a_step(n_steps, never);
	struct lag_steps steps;
	struct lag_err err;

	assert_int_equal(lag_steps_find(trace, NULL, &steps, &err), LAG_OK);
	assert_int_equal(steps.n_steps, n);
	for (size_t s = 0; s < n; s++)
		assert_int_equal(steps.steps[s].number, numbers[s]);
	assert_int_equal(trace->n_gpu, n_steps);
	for (int i = 0; i < n_steps; i++)
		assert_int_equal(steps.of_gpu[i], of_gpu[i]);
	lag_steps_release(&steps);
	lag_trace_close(trace);
}

/* What still runs in a step that is none must not be counted in the one that takes its place. */
static void work_that_never_ended_makes_no_step(void **state)
{
	(void)state;
	expect(4, 0, (const int64_t[]){ 0, 1, 2, 3 }, 4, (const int32_t[]){ 0, 1, 2, 3 });
	expect(4, 1U << 1, (const int64_t[]){ 0, 2, 3 }, 3, (const int32_t[]){ 0, -1, 1, 2 });
	expect(4, 1U << 3, (const int64_t[]){ 0, 1, 2 }, 3, (const int32_t[]){ 0, 1, 2, -1 });
	expect(4, 15, NULL, 0, (const int32_t[]){ -1, -1, -1, -1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_that_never_ended_makes_no_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

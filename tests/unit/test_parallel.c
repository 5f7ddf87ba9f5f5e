/* SPDX-License-Identifier: Apache-2.0 */
/* Every task is done once; the failure that counts is the first one's, whatever the threads do; and who
 * calls can end it. */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "merge/parallel.h"

#define N 500

struct job {
	_Atomic unsigned done[N];
	size_t fails_from;
	unsigned ticks, ticks_until_end;
	int64_t task_ns;
};

static void nap(int64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };

	(void)nanosleep(&ts, NULL);
}

static enum lag_status task(void *state, size_t i, struct lag_err *err)
{
	struct job *job = state;

	if (job->task_ns)
		nap(job->task_ns);
	atomic_fetch_add(&job->done[i], 1);
	/* Later tasks fail sooner. */
	if (i >= job->fails_from) {
		nap(i == job->fails_from ? 2000000 : 1000);
		return lag_err_set(err, LAG_ERR_INPUT, "task %zu", i);
	}
	return i % 2 ? LAG_WARN : LAG_OK;
}

static bool tick(void *state)
{
	struct job *job = state;

	return ++job->ticks < job->ticks_until_end;
}

static void each_task_is_done_once(void **state)
{
	for (unsigned threads = 1; threads < 9; threads += 3) {
		struct job job = { .fails_from = N, .ticks_until_end = 1000 };
		struct lag_parallel how = { threads, tick, &job };
		struct lag_err err = { 0 };

		(void)state;
		assert_int_equal(lag_parallel_run(&how, N, task, &job, &err), LAG_OK);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(job.done[i], 1);
		assert_true(job.ticks > 0);
		assert_int_equal(lag_parallel_run(&how, 0, task, &job, &err), LAG_OK);
	}
}

static void the_first_failure_counts(void **state)
{
	for (size_t from = 0; from < 100; from += 33) {
		struct job job = { .fails_from = from };
		struct lag_parallel how = { 4, NULL, NULL };
		struct lag_err err = { 0 };
		char text[32];

		(void)state;
		(void)snprintf(text, sizeof(text), "task %zu", from);
		assert_int_equal(lag_parallel_run(&how, N, task, &job, &err), LAG_ERR_INPUT);
		assert_string_equal(err.text, text);
		for (size_t i = 0; i <= from; i++)
			assert_int_equal(job.done[i], 1);
		assert_int_equal(job.done[N - 1], 0);
	}
}

static void the_caller_can_end_it(void **state)
{
	struct job job = { .fails_from = N, .ticks_until_end = 2, .task_ns = 5000000 };
	struct lag_parallel how = { 2, tick, &job };
	struct lag_err err = { 0 };

	(void)state;
	assert_int_equal(lag_parallel_run(&how, N, task, &job, &err), LAG_ERR_LIMIT);
	assert_non_null(strstr(err.text, "interrupted"));
	assert_int_equal(job.done[N - 1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_task_is_done_once),
		cmocka_unit_test(the_first_failure_counts),
		cmocka_unit_test(the_caller_can_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

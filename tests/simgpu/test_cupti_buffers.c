/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of CUPTI's headers about buffers, each in our words above its test: when they are asked for,
 * when they come back, and what is in them. */
#include "tests/simgpu/cupti_sink.h"

#include <pthread.h>

static const char *const quiet[] = { NO_NOISE, NULL };

/* A buffer is asked for when a record needs one, not before. */
static void body_lazy(void)
{
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink.n_requested == 0 && sink.n_completed == 0);
	test_launch(k, 1000, s);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink.n_requested == 1 && sink.n_completed == 1);
}

static void buffers_are_requested_lazily(void **state)
{
	(void)state;
	child_passes(body_lazy, quiet);
}

/* A default flush returns buffers whose records are all complete, full or not; the context and the
 * stream that come with them are always NULL and 0. */
static void body_default_flush(void)
{
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	for (int i = 0; i < 3; i++) {
		test_launch(k, 1000, s);
	}
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 3);
	NEED(sink.context == NULL && sink.stream == 0);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink.n_completed == 1);
}

static void default_flush_returns_complete_buffers(void **state)
{
	(void)state;
	child_passes(body_default_flush, quiet);
}

/* A default flush keeps back a buffer in which one record is not complete, and all that is in it. */
static void body_withheld(void)
{
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream(), t = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	test_launch(k, 300000000, s);
	usleep(5000);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS); /* the long kernel has its place now */
	test_launch(k, 1000, t);
	NEED(cudaStreamSynchronize(t) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 0);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 2);
	NEED(sink_kernel(0)->start > sink_kernel(1)->start); /* in order of their ends */
	NEED(sink_kernel(0)->end < sink_kernel(1)->end);
}

static void unfinished_kernel_withholds_its_buffer(void **state)
{
	static const char *const env[] = { NO_NOISE, "SIMGPU_CUPTI_SEAL=0", NULL };

	(void)state;
	child_passes(body_withheld, env);
}

/* What was launched after such a flush does not wait for the kept buffer. */
static void body_sealed(void)
{
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream(), t = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	test_launch(k, 300000000, s);
	usleep(5000);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	test_launch(k, 1000, t);
	NEED(cudaStreamSynchronize(t) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 1);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 2);
}

static void later_work_gets_a_new_buffer(void **state)
{
	(void)state;
	child_passes(body_sealed, quiet);
}

/* A forced flush returns all buffers; what has not finished has a start and no end, and is not
 * reported again. */
static void body_forced(void)
{
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream();
	test_launch(test_kernel("alpha"), 300000000, s);
	usleep(5000);
	NEED(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 1);
	NEED(sink_kernel(0)->start > 0 && sink_kernel(0)->end == 0);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 1);
}

static void forced_flush_returns_unfinished_work(void **state)
{
	(void)state;
	child_passes(body_forced, quiet);
}

/* A full buffer comes back without a flush, by CUPTI's own thread. */
static void body_full(void)
{
	sink.size = 4 * sizeof(CUpti_ActivityKernel10) + 8;
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	for (int i = 0; i < 10; i++) {
		test_launch(k, 1000, s);
	}
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	for (int i = 0; i < 200 && __atomic_load_n(&sink.n_completed, __ATOMIC_SEQ_CST) < 2; i++) {
		usleep(5000);
	}
	NEED(sink.n_completed == 2);
	NEED(sink.buffers[0].valid == 4 * sizeof(CUpti_ActivityKernel10));
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 10);
}

static void full_buffers_come_by_themselves(void **state)
{
	(void)state;
	child_passes(body_full, quiet);
}

/* A number of records above 0 limits what is placed in a buffer. */
static void body_max_records(void)
{
	sink.max_records = 2;
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	for (int i = 0; i < 5; i++) {
		test_launch(k, 1000, s);
	}
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink.n_completed == 3);
	NEED(sink.buffers[0].valid == 2 * sizeof(CUpti_ActivityKernel10));
}

static void a_record_limit_is_kept(void **state)
{
	(void)state;
	child_passes(body_max_records, quiet);
}

/* A client that gives no buffer, or one too small, loses records; they are counted, and reading the
 * count resets it. */
static void body_refused(void)
{
	size_t dropped;

	sink.refuse = true;
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	for (int i = 0; i < 5; i++) {
		test_launch(k, 1000, s);
	}
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
	NEED(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS && dropped == 5);
	NEED(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS && dropped == 0);
	NEED(cuptiActivityGetNumDroppedRecords(NULL, 0, NULL) == CUPTI_ERROR_INVALID_PARAMETER);
	NEED(sink.n_completed == 0);
}

static void refused_buffers_are_counted_as_dropped(void **state)
{
	(void)state;
	child_passes(body_refused, quiet);
}

/* Flushing needs registered callbacks, and both of them. */
static void body_register(void)
{
	NEED(cuptiActivityFlushAll(0) == CUPTI_ERROR_INVALID_OPERATION);
	NEED(cuptiGetLastError() == CUPTI_ERROR_INVALID_OPERATION);
	NEED(cuptiGetLastError() == CUPTI_SUCCESS);
	NEED(cuptiActivityRegisterCallbacks(sink_request, NULL) == CUPTI_ERROR_INVALID_PARAMETER);
	NEED(cuptiActivityRegisterCallbacks(NULL, sink_complete) == CUPTI_ERROR_INVALID_PARAMETER);
	NEED(cuptiActivityRegisterCallbacks(sink_request, sink_complete) == CUPTI_SUCCESS);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
}

static void flushing_needs_callbacks(void **state)
{
	(void)state;
	child_passes(body_register, quiet);
}

/* A periodic flush returns full buffers only; asking for one does not forbid flushing by hand. */
static void body_period(void)
{
	sink_start(sink_kernels, 1);
	NEED(cuptiActivityFlushPeriod(5) == CUPTI_SUCCESS);
	test_launch(test_kernel("alpha"), 1000, NULL);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	usleep(100000);
	NEED(sink.n_requested == 1 && sink.n_completed == 0);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink.n_completed == 1);
	NEED(cuptiActivityFlushPeriod(0) == CUPTI_SUCCESS);
}

static void periodic_flush_returns_full_buffers_only(void **state)
{
	(void)state;
	child_passes(body_period, quiet);
}

static void *launch_elsewhere(void *arg)
{
	test_launch(*(cudaKernel_t *)arg, 1000, NULL);
	return NULL;
}

/* API records of two threads: one buffer for all, or one for each, as the attribute says. */
static void api_buffers(uint8_t each, unsigned want)
{
	static const CUpti_ActivityKind runtime[] = { CUPTI_ACTIVITY_KIND_RUNTIME };
	size_t size = sizeof each;
	cudaKernel_t k = test_kernel("alpha");
	pthread_t other;

	NEED(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size,
				       &each) == CUPTI_SUCCESS);
	sink_start(runtime, 1);
	test_launch(k, 1000, NULL);
	NEED(pthread_create(&other, NULL, launch_elsewhere, &k) == 0);
	NEED(pthread_join(other, NULL) == 0);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink.n_completed == want && sink_count(CUPTI_ACTIVITY_KIND_RUNTIME) == 2);
}

static void body_shared(void)
{
	api_buffers(0, 1);
}

static void body_per_thread(void)
{
	api_buffers(1, 2);
}

static void threads_share_buffers_or_not(void **state)
{
	(void)state;
	child_passes(body_shared, quiet);
	child_passes(body_per_thread, quiet);
}

/* Attributes are written and read with their size; without size or value, or with no room, an error. */
static void body_attributes(void)
{
	const CUpti_ActivityAttribute a = CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE;
	size_t value = 0, size = sizeof value;

	NEED(cuptiActivityGetAttribute(a, &size, &value) == CUPTI_SUCCESS && value > 0);
	value = 1 << 20;
	NEED(cuptiActivitySetAttribute(a, &size, &value) == CUPTI_SUCCESS);
	value = 0;
	NEED(cuptiActivityGetAttribute(a, &size, &value) == CUPTI_SUCCESS && value == 1 << 20);
	NEED(cuptiActivitySetAttribute(a, NULL, &value) == CUPTI_ERROR_INVALID_PARAMETER);
	NEED(cuptiActivitySetAttribute(a, &size, NULL) == CUPTI_ERROR_INVALID_PARAMETER);
	size = 0;
	NEED(cuptiActivitySetAttribute(a, &size, &value) ==
	     CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
}

static void attributes_have_sizes(void **state)
{
	(void)state;
	child_passes(body_attributes, quiet);
}

/* Iterating ends with MAX_LIMIT_REACHED behind the last record and INVALID_KIND at a broken one. */
static void body_walk(void)
{
	uint64_t words[16] = { CUPTI_ACTIVITY_KIND_RUNTIME };
	uint8_t *p = (uint8_t *)words;
	CUpti_Activity *r = NULL;

	NEED(cuptiActivityGetNextRecord(p, 40, &r) == CUPTI_SUCCESS && (uint8_t *)r == p);
	NEED(cuptiActivityGetNextRecord(p, 40, &r) == CUPTI_ERROR_MAX_LIMIT_REACHED);
	NEED(cuptiActivityGetNextRecord(p, 80, &r) == CUPTI_ERROR_INVALID_KIND);
	r = NULL;
	NEED(cuptiActivityGetNextRecord(NULL, 40, &r) == CUPTI_ERROR_INVALID_PARAMETER);
	NEED(cuptiActivityGetNextRecord(p, 0, &r) == CUPTI_ERROR_MAX_LIMIT_REACHED);
}

static void iteration_ends_with_an_error(void **state)
{
	(void)state;
	child_passes(body_walk, quiet);
}

/* The dropped-buffer and the lost-timestamp faults show as CUPTI would show them. */
static void body_faults(void)
{
	size_t dropped;

	sink.size = 4 * sizeof(CUpti_ActivityKernel10);
	sink_start(sink_kernels, 1);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	for (int i = 0; i < 400; i++) {
		test_launch(k, 1000, s);
	}
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
	NEED(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS);
	unsigned n = sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), zero = 0;
	NEED(dropped > 40 && n + dropped == 400);
	for (unsigned i = 0; i < n; i++) {
		zero += sink_kernel(i)->start == 0 && sink_kernel(i)->end == 0;
	}
	NEED(zero > n / 10 && zero < n);
}

static void losses_are_counted_or_zero(void **state)
{
	static const char *const env[] = { NO_NOISE, "SIMGPU_DROP=0.3",
					   "SIMGPU_CUPTI_LOST_TIMES=0.3", NULL };

	(void)state;
	child_passes(body_faults, env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_are_requested_lazily),
		cmocka_unit_test(default_flush_returns_complete_buffers),
		cmocka_unit_test(unfinished_kernel_withholds_its_buffer),
		cmocka_unit_test(later_work_gets_a_new_buffer),
		cmocka_unit_test(forced_flush_returns_unfinished_work),
		cmocka_unit_test(full_buffers_come_by_themselves),
		cmocka_unit_test(a_record_limit_is_kept),
		cmocka_unit_test(refused_buffers_are_counted_as_dropped),
		cmocka_unit_test(flushing_needs_callbacks),
		cmocka_unit_test(periodic_flush_returns_full_buffers_only),
		cmocka_unit_test(threads_share_buffers_or_not),
		cmocka_unit_test(attributes_have_sizes),
		cmocka_unit_test(iteration_ends_with_an_error),
		cmocka_unit_test(losses_are_counted_or_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

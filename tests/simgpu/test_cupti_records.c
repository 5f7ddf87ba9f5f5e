/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of CUPTI's headers about records, each in our words above its test: what they hold, how they
 * belong together, and which are made. */
#include "tests/simgpu/cupti_sink.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <pthread.h>
#include <sys/syscall.h>

static const char *const quiet[] = { NO_NOISE, NULL };

static const CUpti_ActivityKind all_kinds[] = {
	CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	CUPTI_ACTIVITY_KIND_MEMCPY,
	CUPTI_ACTIVITY_KIND_MEMSET,
	CUPTI_ACTIVITY_KIND_RUNTIME,
	CUPTI_ACTIVITY_KIND_DRIVER,
	CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
	CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
	CUPTI_ACTIVITY_KIND_CUDA_EVENT,
	CUPTI_ACTIVITY_KIND_CONTEXT,
	CUPTI_ACTIVITY_KIND_DEVICE,
	CUPTI_ACTIVITY_KIND_STREAM,
	CUPTI_ACTIVITY_KIND_MEMCPY2,
};

#define N_KINDS (sizeof all_kinds / sizeof all_kinds[0])

static CUpti_ActivityAPI *api_of(CUpti_ActivityKind kind, uint32_t cbid)
{
	CUpti_ActivityAPI *a;

	for (unsigned i = 0; (a = sink_api(kind, i)); i++) {
		if (a->cbid == cbid) {
			return a;
		}
	}
	return NULL;
}

/* A kernel's correlation id is the one of the API call that launched it; its stream id is the one
 * that cuptiGetStreamIdEx tells; its times lie on the clock of cuptiGetTimestamp. */
static void body_kernel(void)
{
	uint64_t before, after;
	uint32_t id;

	sink_start(all_kinds, N_KINDS);
	NEED(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) == CUPTI_SUCCESS);
	NEED(cuptiActivityEnableLatencyTimestamps(1) == CUPTI_SUCCESS);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("beta");
	NEED(cuptiGetTimestamp(&before) == CUPTI_SUCCESS);
	test_launch(k, 2000000, s);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiGetTimestamp(&after) == CUPTI_SUCCESS);
	NEED(cuptiGetStreamIdEx(NULL, s, 0, &id) == CUPTI_SUCCESS);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	CUpti_ActivityKernel10 *r = sink_kernel(0);
	CUpti_ActivityAPI *a = api_of(CUPTI_ACTIVITY_KIND_RUNTIME,
				      CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
	NEED(r && a && r->correlationId == a->correlationId);
	NEED(strcmp(r->name, "beta") == 0 && r->streamId == id && r->deviceId == 0);
	NEED(r->end - r->start == 2000000 && r->completed == r->end);
	NEED(a->start < r->queued && r->queued < r->submitted && r->submitted < r->start);
	NEED(before <= a->start && a->start < a->end && a->start < r->start && r->end <= after);
	NEED(a->processId == (uint32_t)getpid() && a->threadId == (uint32_t)syscall(SYS_gettid));
	NEED(a->returnValue == 0);
}

static void kernels_correlate_with_their_launch(void **state)
{
	(void)state;
	child_passes(body_kernel, quiet);
}

static void *push_elsewhere(void *arg)
{
	NEED(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 99) ==
	     CUPTI_SUCCESS);
	return arg;
}

/* Inside a pushed region each API record is preceded by one record for each kind that is on the
 * calling thread's stacks, with the same correlation id and the top of that stack. */
static void body_external(void)
{
	const CUpti_ExternalCorrelationKind c1 = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
	const CUpti_ExternalCorrelationKind c2 = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
	uint64_t last;
	pthread_t other;

	sink_start(all_kinds, N_KINDS);
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	NEED(pthread_create(&other, NULL, push_elsewhere, NULL) == 0);
	NEED(pthread_join(other, NULL) == 0);
	NEED(cuptiActivityPushExternalCorrelationId(c1, 11) == CUPTI_SUCCESS);
	NEED(cuptiActivityPushExternalCorrelationId(c2, 20) == CUPTI_SUCCESS);
	NEED(cuptiActivityPushExternalCorrelationId(c2, 22) == CUPTI_SUCCESS);
	test_launch(k, 1000, s);
	NEED(cuptiActivityPopExternalCorrelationId(c2, &last) == CUPTI_SUCCESS && last == 22);
	NEED(cuptiActivityPopExternalCorrelationId(c2, NULL) == CUPTI_SUCCESS);
	NEED(cuptiActivityPopExternalCorrelationId(c2, &last) == CUPTI_ERROR_QUEUE_EMPTY);
	NEED(cuptiActivityPopExternalCorrelationId(c1, &last) == CUPTI_SUCCESS && last == 11);
	NEED(cuptiActivityPushExternalCorrelationId(0, 1) == CUPTI_ERROR_INVALID_PARAMETER);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) == 2);
	CUpti_ActivityExternalCorrelation *e =
		(void *)sink_find(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0);
	NEED(e[0].externalKind == c1 && e[0].externalId == 11);
	NEED(e[1].externalKind == c2 && e[1].externalId == 22);
	CUpti_ActivityAPI *a = (void *)&e[2];
	NEED(a->kind == CUPTI_ACTIVITY_KIND_RUNTIME &&
	     a->cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
	NEED(e[0].correlationId == a->correlationId && e[1].correlationId == a->correlationId);
}

static void external_ids_precede_their_api_record(void **state)
{
	(void)state;
	child_passes(body_external, quiet);
}

/* Without API records there is nothing to correlate external ids with. */
static void body_external_alone(void)
{
	static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION };

	sink_start(kinds, 1);
	NEED(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, 1) ==
	     CUPTI_SUCCESS);
	test_launch(test_kernel("alpha"), 1000, NULL);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) == 0);
}

static void external_ids_need_api_records(void **state)
{
	(void)state;
	child_passes(body_external_alone, quiet);
}

/* Single runtime calls can be switched on without the kind, and off after it; the kind, enabled
 * later, overrides. */
static void body_api_subset(void)
{
	const uint32_t launch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;

	NEED(cuptiActivityRegisterCallbacks(sink_request, sink_complete) == CUPTI_SUCCESS);
	NEED(cuptiActivityEnableRuntimeApi(launch, 1) == CUPTI_SUCCESS);
	cudaKernel_t k = test_kernel("alpha");
	test_launch(k, 1000, NULL);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_RUNTIME) == 1);
	NEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS);
	NEED(cuptiActivityEnableRuntimeApi(launch, 0) == CUPTI_SUCCESS);
	test_launch(k, 1000, NULL);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS);
	test_launch(k, 1000, NULL);
	NEED(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_RUNTIME) == 3);
	NEED(sink_api(CUPTI_ACTIVITY_KIND_RUNTIME, 1)->cbid ==
	     CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
	NEED(sink_api(CUPTI_ACTIVITY_KIND_RUNTIME, 2)->cbid == launch);
}

static void api_calls_can_be_chosen(void **state)
{
	(void)state;
	child_passes(body_api_subset, quiet);
}

/* Synchronisation records tell type, stream and event; a stream's wait for an event names both. An
 * event's record carries its id. Queries of unfinished work can be left out. */
static void body_sync(void)
{
	cudaEvent_t e;

	sink_start(all_kinds, N_KINDS);
	NEED(cuptiActivityEnableAllSyncRecords(0) == CUPTI_SUCCESS);
	cudaStream_t s = test_stream(), t = test_stream();
	uint32_t s_id, t_id;
	NEED(cuptiGetStreamIdEx(NULL, s, 0, &s_id) == CUPTI_SUCCESS);
	NEED(cuptiGetStreamIdEx(NULL, t, 0, &t_id) == CUPTI_SUCCESS);
	NEED(cudaEventCreate(&e) == cudaSuccess);
	test_launch(test_kernel("alpha"), 100000000, s);
	NEED(cudaEventRecord(e, s) == cudaSuccess);
	NEED(cudaStreamWaitEvent(t, e, 0) == cudaSuccess);
	NEED(cudaEventQuery(e) == cudaErrorNotReady); /* left out */
	NEED(cudaEventSynchronize(e) == cudaSuccess);
	NEED(cudaEventQuery(e) == cudaSuccess);
	NEED(cudaStreamSynchronize(t) == cudaSuccess);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	CUpti_ActivityCudaEvent2 *r = (void *)sink_find(CUPTI_ACTIVITY_KIND_CUDA_EVENT, 0);
	NEED(r && r->streamId == s_id);
	static const CUpti_ActivitySynchronizationType want[] = {
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
	};
	NEED(sink_count(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) == 5);
	for (unsigned i = 0; i < 5; i++) {
		CUpti_ActivitySynchronization2 *y =
			(void *)sink_find(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, i);
		NEED(y->type == want[i]);
		NEED(i > 2 || y->cudaEventId == r->eventId);
		NEED(i != 0 || (y->streamId == t_id && y->cudaEventSyncId == r->cudaEventSyncId));
		NEED(i != 1 || y->end - y->start > 10000000);
	}
}

static void synchronisation_names_stream_and_event(void **state)
{
	(void)state;
	child_passes(body_sync, quiet);
}

/* Copies tell kind, bytes and whether they were asynchronous; sets tell value and bytes. */
static void body_copies(void)
{
	static char host[1000];
	void *dev;

	sink_start(all_kinds, N_KINDS);
	NEED(cudaMalloc(&dev, sizeof host) == cudaSuccess);
	NEED(cudaMemcpy(dev, host, sizeof host, cudaMemcpyHostToDevice) == cudaSuccess);
	NEED(cudaMemcpyAsync(host, dev, 500, cudaMemcpyDeviceToHost, NULL) == cudaSuccess);
	NEED(cudaMemcpyAsync(dev, (char *)dev + 500, 500, cudaMemcpyDefault, NULL) == cudaSuccess);
	NEED(cudaMemset(dev, 7, 300) == cudaSuccess);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	CUpti_ActivityMemcpy6 *m[3];
	for (unsigned i = 0; i < 3; i++) {
		m[i] = (void *)sink_find(CUPTI_ACTIVITY_KIND_MEMCPY, i);
		NEED(m[i] && m[i]->end > m[i]->start);
	}
	NEED(m[0]->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD && m[0]->bytes == 1000);
	NEED(m[0]->flags == 0 && m[1]->flags == CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
	NEED(m[1]->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH && m[1]->bytes == 500);
	NEED(m[2]->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
	CUpti_ActivityMemset4 *s = (void *)sink_find(CUPTI_ACTIVITY_KIND_MEMSET, 0);
	NEED(s && s->value == 7 && s->bytes == 300);
}

static void copies_and_sets_tell_what_they_did(void **state)
{
	(void)state;
	child_passes(body_copies, quiet);
}

/* A driver launch is a driver record; a runtime launch is a runtime record only. A disabled kind
 * makes no more records. Making a context or a stream is recorded too. */
static void body_kinds(void)
{
	CUmodule m;
	CUfunction f;
	uint64_t ns = 1000;
	void *params[] = { &ns };

	sink_start(all_kinds, N_KINDS);
	NEED(cuInit(0) == CUDA_SUCCESS);
	NEED(cuModuleLoadData(&m, ".entry one(.param .u64 p)") == CUDA_SUCCESS);
	NEED(cuModuleGetFunction(&f, m, "one") == CUDA_SUCCESS);
	NEED(cuLaunchKernel(f, 2, 3, 4, 32, 1, 1, 0, NULL, params, NULL) == CUDA_SUCCESS);
	test_launch(test_kernel("alpha"), 1000, test_stream());
	NEED(cuCtxSynchronize() == CUDA_SUCCESS);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	CUpti_ActivityAPI *d =
		api_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	NEED(d && sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 2);
	CUpti_ActivityKernel10 *k =
		sink_kernel(0)->correlationId == d->correlationId ? sink_kernel(0) : sink_kernel(1);
	NEED(k->correlationId == d->correlationId && k->gridX == 2 && k->gridZ == 4);
	NEED(k->blockX == 32 && k->streamId == 7);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONTEXT) == 1);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_DEVICE) == 1);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_STREAM) == 1);
	NEED(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
	NEED(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_SUCCESS);
	NEED(cuCtxSynchronize() == CUDA_SUCCESS);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 2);
	NEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EVENT) == CUPTI_ERROR_INVALID_KIND);
	NEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID) == CUPTI_ERROR_INVALID_KIND);
}

static void kinds_are_kept_apart(void **state)
{
	(void)state;
	child_passes(body_kinds, quiet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_correlate_with_their_launch),
		cmocka_unit_test(external_ids_precede_their_api_record),
		cmocka_unit_test(external_ids_need_api_records),
		cmocka_unit_test(api_calls_can_be_chosen),
		cmocka_unit_test(synchronisation_names_stream_and_event),
		cmocka_unit_test(copies_and_sets_tell_what_they_did),
		cmocka_unit_test(kinds_are_kept_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

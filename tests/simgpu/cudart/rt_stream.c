/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime API: streams, events, host functions. */
#include "tests/simgpu/cudart/rt.h"

static struct sim_event *event_of(cudaEvent_t e)
{
	return (struct sim_event *)(void *)e;
}

static cudaError_t create(struct sim_api *a, cudaStream_t *out, unsigned int flags, int priority)
{
	sim_rt_enter(a);
	struct sim_stream *s = out ? sim_stream_new(flags, priority) : NULL;
	if (!s) {
		return sim_rt_leave(a, cudaErrorInvalidValue);
	}
	*out = (cudaStream_t)(void *)s;
	const struct sim_hooks *h = sim_hooks_get();
	if (h) {
		h->resource(SIM_RES_STREAM_CREATED, sim_context_current(), s);
	}
	return sim_rt_leave(a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t *stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaStreamCreate_v3020);

	return create(&a, stream, cudaStreamDefault, 0);
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaStreamCreateWithFlags_v5000);

	return create(&a, stream, flags, 0);
}

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags,
						   int priority)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaStreamCreateWithPriority_v5050);

	return create(&a, stream, flags, priority);
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaStreamDestroy_v5050);

	sim_rt_enter(&a);
	if (!stream) {
		return sim_rt_leave(&a, cudaErrorInvalidResourceHandle);
	}
	const struct sim_hooks *h = sim_hooks_get();
	if (h) {
		h->resource(SIM_RES_STREAM_DESTROYED, sim_context_current(), stream);
	}
	sim_stream_destroy(sim_stream_of(stream));
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaStreamSynchronize_v3020);

	sim_rt_enter(&a);
	sim_sync_stream(sim_stream_of(stream), a.corr);
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaStreamQuery_v3020);

	sim_rt_enter(&a);
	bool done = sim_query_stream(sim_stream_of(stream), a.corr);
	return sim_rt_leave(&a, done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
					  unsigned int flags)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaStreamWaitEvent_v3020);

	(void)flags;
	sim_rt_enter(&a);
	if (!event) {
		return sim_rt_leave(&a, cudaErrorInvalidResourceHandle);
	}
	sim_sync_stream_wait(sim_stream_of(stream), event_of(event), a.corr);
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	*priority = sim_stream_of(stream)->priority;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	*flags = sim_stream_of(stream)->flags;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	*id = sim_stream_of(stream)->id;
	return cudaSuccess;
}

static cudaError_t event_create(struct sim_api *a, cudaEvent_t *out, unsigned int flags)
{
	sim_rt_enter(a);
	struct sim_event *e = out ? sim_event_new(flags) : NULL;
	if (!e) {
		return sim_rt_leave(a, cudaErrorInvalidValue);
	}
	*out = (cudaEvent_t)(void *)e;
	return sim_rt_leave(a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t *event)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventCreate_v3020);

	return event_create(&a, event, 0);
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventCreateWithFlags_v3020);

	return event_create(&a, event, flags);
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventDestroy_v3020);

	sim_rt_enter(&a);
	if (!event) {
		return sim_rt_leave(&a, cudaErrorInvalidResourceHandle);
	}
	sim_event_free(event_of(event));
	return sim_rt_leave(&a, cudaSuccess);
}

static cudaError_t record(struct sim_api *a, cudaEvent_t event, cudaStream_t stream)
{
	sim_rt_enter(a);
	if (!event) {
		return sim_rt_leave(a, cudaErrorInvalidResourceHandle);
	}
	sim_event_record(event_of(event), sim_stream_of(stream), a->corr);
	return sim_rt_leave(a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventRecord_v3020);

	return record(&a, event, stream);
}

cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
					       unsigned int flags)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventRecordWithFlags_v11010);

	(void)flags;
	return record(&a, event, stream);
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventSynchronize_v3020);

	sim_rt_enter(&a);
	sim_sync_event(event_of(event), a.corr);
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventQuery_v3020);

	sim_rt_enter(&a);
	bool done = sim_query_event(event_of(event), a.corr);
	return sim_rt_leave(&a, done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaEventElapsedTime_v12080);

	sim_rt_enter(&a);
	int rc = sim_event_elapsed(event_of(start), event_of(end), ms);
	return sim_rt_leave(&a, rc == 0    ? cudaSuccess
				: rc == -1 ? cudaErrorInvalidResourceHandle
					   : cudaErrorNotReady);
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaLaunchHostFunc_v10000);

	sim_rt_enter(&a);
	sim_host_fn(sim_stream_of(stream), fn, arg, a.corr);
	return sim_rt_leave(&a, cudaSuccess);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: streams, events, host functions. */
#include "tests/simgpu/cuda/drv.h"

static struct sim_stream *stream_of(CUstream s)
{
	return sim_stream_of(s);
}

static struct sim_event *event_of(CUevent e)
{
	return (struct sim_event *)(void *)e;
}

static CUresult stream_create(struct sim_api *a, CUstream *out, unsigned int flags, int priority)
{
	sim_api_enter(a);
	struct sim_stream *s = sim_stream_new(flags, priority);
	if (!s) {
		return sim_leave(a, CUDA_ERROR_OUT_OF_MEMORY);
	}
	*out = (CUstream)(void *)s;
	const struct sim_hooks *h = sim_hooks_get();
	if (h) {
		h->resource(SIM_RES_STREAM_CREATED, sim_context_current(), s);
	}
	return sim_leave(a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags)
{
	struct sim_api a = SIM_DRIVER_CALL(cuStreamCreate);

	return stream_create(&a, stream, flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	struct sim_api a = SIM_DRIVER_CALL(cuStreamCreateWithPriority);

	return stream_create(&a, stream, flags, priority);
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuStreamDestroy_v2);

	sim_api_enter(&a);
	if (!stream) {
		return sim_leave(&a, CUDA_ERROR_INVALID_HANDLE);
	}
	sim_stream_destroy(stream_of(stream));
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuStreamSynchronize);

	sim_api_enter(&a);
	sim_sync_stream(stream_of(stream), a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamQuery(CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuStreamQuery);

	sim_api_enter(&a);
	bool done = sim_query_stream(stream_of(stream), a.corr);
	return sim_leave(&a, done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	struct sim_api a = SIM_DRIVER_CALL(cuStreamWaitEvent);

	(void)flags;
	sim_api_enter(&a);
	sim_sync_stream_wait(stream_of(stream), event_of(event), a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamGetPriority(CUstream stream, int *priority)
{
	*priority = stream_of(stream)->priority;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	*flags = stream_of(stream)->flags;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	*ctx = sim_context_of(stream_of(stream)->device);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetId(CUstream stream, unsigned long long *id)
{
	*id = stream_of(stream)->id;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags)
{
	struct sim_api a = SIM_DRIVER_CALL(cuEventCreate);

	sim_api_enter(&a);
	*event = (CUevent)(void *)sim_event_new(flags);
	return sim_leave(&a, *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuEventDestroy(CUevent event)
{
	struct sim_api a = SIM_DRIVER_CALL(cuEventDestroy_v2);

	sim_api_enter(&a);
	sim_event_free(event_of(event));
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuEventRecord);

	sim_api_enter(&a);
	sim_event_record(event_of(event), stream_of(stream), a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	struct sim_api a = SIM_DRIVER_CALL(cuEventRecordWithFlags);

	(void)flags;
	sim_api_enter(&a);
	sim_event_record(event_of(event), stream_of(stream), a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
	struct sim_api a = SIM_DRIVER_CALL(cuEventSynchronize);

	sim_api_enter(&a);
	sim_sync_event(event_of(event), a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuEventQuery(CUevent event)
{
	struct sim_api a = SIM_DRIVER_CALL(cuEventQuery);

	sim_api_enter(&a);
	bool done = sim_query_event(event_of(event), a.corr);
	return sim_leave(&a, done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	int rc = sim_event_elapsed(event_of(start), event_of(end), ms);

	return rc == 0 ? CUDA_SUCCESS : rc == -1 ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg)
{
	struct sim_api a = SIM_DRIVER_CALL(cuLaunchHostFunc);

	sim_api_enter(&a);
	sim_host_fn(stream_of(stream), fn, arg, a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that CUPTI answers without collecting: time, ids, names. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/cupti/cu.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
	if (!timestamp) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	*timestamp = sim_report_host(sim_host_now());
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext ctx, uint32_t *id)
{
	if (!ctx) {
		return cu_return(CUPTI_ERROR_INVALID_CONTEXT);
	}
	*id = sim_context_id(ctx);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext ctx, uint32_t *id)
{
	CUptiResult gate = cu_gate();

	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	*id = (uint32_t)(ctx ? sim_context_device(ctx) : sim_device_current());
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext ctx, CUstream stream, uint8_t per_thread,
					uint32_t *id)
{
	CUptiResult gate = cu_gate();

	(void)ctx;
	(void)per_thread;
	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	if (!id) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	*id = sim_stream_of(stream)->id;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext ctx, CUstream stream, uint32_t *id)
{
	return cuptiGetStreamIdEx(ctx, stream, 0, id);
}

CUptiResult CUPTIAPI cuptiDeviceSupported(CUdevice dev, int *support)
{
	*support = dev >= 0 && dev < sim_device_count();
	return CUPTI_SUCCESS;
}

static const struct {
	uint32_t cbid;
	const char *name;
} runtime_names[] = {

#define RT(n)                                    \
	{                                        \
		CUPTI_RUNTIME_TRACE_CBID_##n, #n \
	}
	RT(cudaLaunchKernel_v7000),
	RT(cudaLaunchKernelExC_v11060),
	RT(cudaMemcpy_v3020),
	RT(cudaMemcpyAsync_v3020),
	RT(cudaMemset_v3020),
	RT(cudaMemsetAsync_v3020),
	RT(cudaStreamSynchronize_v3020),
	RT(cudaDeviceSynchronize_v3020),
	RT(cudaEventSynchronize_v3020),
	RT(cudaEventRecord_v3020),
	RT(cudaEventQuery_v3020),
	RT(cudaStreamWaitEvent_v3020),
	RT(cudaStreamQuery_v3020),
	RT(cudaMalloc_v3020),
	RT(cudaFree_v3020),
	RT(cudaLaunchHostFunc_v10000),
	RT(cudaStreamCreateWithFlags_v5000),
#undef RT
};

static const struct {
	uint32_t cbid;
	const char *name;
} driver_names[] = {

#define DR(n)                                   \
	{                                       \
		CUPTI_DRIVER_TRACE_CBID_##n, #n \
	}
	DR(cuLaunchKernel),       DR(cuLaunchKernelEx),    DR(cuMemcpyHtoDAsync_v2),
	DR(cuMemcpyDtoHAsync_v2), DR(cuStreamSynchronize), DR(cuCtxSynchronize),
	DR(cuEventRecord),        DR(cuStreamWaitEvent),   DR(cuMemsetD8Async),
#undef DR
};

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
					  const char **name)
{
	if (!name) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
		for (size_t i = 0; i < sizeof runtime_names / sizeof runtime_names[0]; i++) {
			if (runtime_names[i].cbid == cbid) {
				*name = runtime_names[i].name;
				return CUPTI_SUCCESS;
			}
		}
	} else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
		for (size_t i = 0; i < sizeof driver_names / sizeof driver_names[0]; i++) {
			if (driver_names[i].cbid == cbid) {
				*name = driver_names[i].name;
				return CUPTI_SUCCESS;
			}
		}
	}
	*name = NULL;
	return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text)
{
	if (!text) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	switch (result) {
	case CUPTI_SUCCESS:
		*text = "CUPTI_SUCCESS";
		break;
	case CUPTI_ERROR_INVALID_PARAMETER:
		*text = "CUPTI_ERROR_INVALID_PARAMETER";
		break;
	case CUPTI_ERROR_INVALID_OPERATION:
		*text = "CUPTI_ERROR_INVALID_OPERATION";
		break;
	case CUPTI_ERROR_MAX_LIMIT_REACHED:
		*text = "CUPTI_ERROR_MAX_LIMIT_REACHED";
		break;
	case CUPTI_ERROR_QUEUE_EMPTY:
		*text = "CUPTI_ERROR_QUEUE_EMPTY";
		break;
	case CUPTI_ERROR_INVALID_KIND:
		*text = "CUPTI_ERROR_INVALID_KIND";
		break;
	case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
		*text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
		break;
	case CUPTI_ERROR_API_NOT_IMPLEMENTED:
		*text = "CUPTI_ERROR_API_NOT_IMPLEMENTED";
		break;
	default:
		*text = "CUPTI_ERROR_UNKNOWN";
	}
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult result, const char **text)
{
	return cuptiGetResultString(result, text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime API: the call bracket, last error, names of errors, versions, profiler control. */
#include "tests/simgpu/cudart/rt.h"

#include <cuda_profiler_api.h>

static _Thread_local cudaError_t last_error;

void sim_rt_enter(struct sim_api *a)
{
	sim_init();
	sim_context_current();
	sim_api_enter(a);
}

cudaError_t sim_rt_error(cudaError_t r)
{
	if (r != cudaSuccess && r != cudaErrorNotReady) {
		last_error = r;
	}
	return r;
}

cudaError_t sim_rt_leave(struct sim_api *a, cudaError_t r)
{
	sim_api_leave(a, (int)r);
	return sim_rt_error(r);
}

cudaError_t CUDARTAPI cudaGetLastError(void)
{
	cudaError_t e = last_error;

	last_error = cudaSuccess;
	return e;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
	return last_error;
}

static const struct {
	cudaError_t code;
	const char *name, *text;
} errors[] = {
	{ cudaSuccess, "cudaSuccess", "no error" },
	{ cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
	{ cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
	{ cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error" },
	{ cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction",
	  "invalid device function" },
	{ cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
	  "invalid configuration argument" },
	{ cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
	  "invalid resource handle" },
	{ cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
	{ cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
	{ cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found" },
	{ cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported" },
};

const char *CUDARTAPI cudaGetErrorName(cudaError_t e)
{
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		if (errors[i].code == e) {
			return errors[i].name;
		}
	}
	return "cudaErrorUnknown";
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t e)
{
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		if (errors[i].code == e) {
			return errors[i].text;
		}
	}
	return "unknown error";
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
	return (cudaError_t)cuDriverGetVersion(version);
}

cudaError_t CUDARTAPI cudaProfilerStart(void)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaProfilerStart_v4000);

	sim_rt_enter(&a);
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaProfilerStop(void)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaProfilerStop_v4000);

	sim_rt_enter(&a);
	return sim_rt_leave(&a, cudaSuccess);
}

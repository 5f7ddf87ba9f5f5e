/* SPDX-License-Identifier: Apache-2.0 */
/* How a runtime API function declares itself to the call bracket; the thread's last error. */
#ifndef SIM_CUDART_RT_H
#define SIM_CUDART_RT_H

#include "tests/simgpu/cuda/sim.h"

#include <cuda_runtime_api.h>
#include <cupti_runtime_cbid.h>

/* fn carries the version that CUPTI's names have, e.g. cudaMalloc_v3020. */
#define SIM_RUNTIME_CALL(fn)                                                         \
	{                                                                            \
		.domain = SIM_DOMAIN_RUNTIME, .cbid = CUPTI_RUNTIME_TRACE_CBID_##fn, \
		.function = #fn                                                      \
	}

/* Makes the context, as each runtime call that needs one does, and enters the call. */
void sim_rt_enter(struct sim_api *a);
/* Leaves the call, remembers an error for cudaGetLastError, returns r. */
cudaError_t sim_rt_leave(struct sim_api *a, cudaError_t r);
cudaError_t sim_rt_error(cudaError_t r);

#endif

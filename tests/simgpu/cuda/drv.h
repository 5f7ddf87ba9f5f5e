/* SPDX-License-Identifier: Apache-2.0 */
/* How a driver API function declares itself to the call bracket. */
#ifndef SIM_CUDA_DRV_H
#define SIM_CUDA_DRV_H

#include "tests/simgpu/cuda/sim.h"

#include <cupti_driver_cbid.h>

#define SIM_DRIVER_CALL(fn)                                                                        \
	{                                                                                          \
		.domain = SIM_DOMAIN_DRIVER, .cbid = CUPTI_DRIVER_TRACE_CBID_##fn, .function = #fn \
	}

static inline CUresult sim_leave(struct sim_api *a, CUresult r)
{
	sim_api_leave(a, (int)r);
	return r;
}

#endif

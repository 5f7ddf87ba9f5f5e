/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime API: libraries of kernels and their launches. */
#include "tests/simgpu/cudart/rt.h"

#include <generated_cuda_runtime_api_meta.h>
#include <string.h>

cudaError_t CUDARTAPI cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
					  enum cudaJitOption *jit, void **jit_values,
					  unsigned int n_jit, enum cudaLibraryOption *options,
					  void **values, unsigned int n)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaLibraryLoadData_v12060);

	(void)jit;
	(void)jit_values;
	(void)n_jit;
	(void)options;
	(void)values;
	(void)n;
	sim_rt_enter(&a);
	struct sim_module *m = code ? sim_module_new(code) : NULL;
	if (!m) {
		return sim_rt_leave(&a, cudaErrorInvalidValue);
	}
	*library = (cudaLibrary_t)(void *)m;
	const struct sim_hooks *h = sim_hooks_get();
	if (h) {
		h->resource(SIM_RES_MODULE_LOADED, sim_context_current(), m);
	}
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaLibraryUnload(cudaLibrary_t library)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaLibraryUnload_v12060);

	sim_rt_enter(&a);
	sim_module_free((struct sim_module *)(void *)library);
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library,
					   const char *name)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaLibraryGetKernel_v12060);

	sim_rt_enter(&a);
	struct sim_kernel *k = sim_module_kernel((struct sim_module *)(void *)library, name);
	*kernel = (cudaKernel_t)(void *)k;
	return sim_rt_leave(&a, k ? cudaSuccess : cudaErrorSymbolNotFound);
}

static cudaError_t launch(struct sim_api *a, const void *func, struct sim_launch *l,
			  cudaStream_t stream)
{
	void *p = NULL;

	memcpy(&p, &func, sizeof p);
	l->kernel = p;
	if (!l->kernel) {
		return sim_rt_error(cudaErrorInvalidDeviceFunction);
	}
	a->symbol = l->kernel->name;
	sim_rt_enter(a);
	if (!l->grid.x || !l->grid.y || !l->grid.z || !l->block.x || !l->block.y || !l->block.z) {
		return sim_rt_leave(a, cudaErrorInvalidConfiguration);
	}
	l->corr = a->corr;
	sim_launch(l, sim_stream_of(stream));
	return sim_rt_leave(a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
				       size_t shared, cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaLaunchKernel_v7000);
	struct sim_launch l = { .grid = { grid.x, grid.y, grid.z },
				.block = { block.x, block.y, block.z },
				.shared_bytes = (uint32_t)shared,
				.params = args };
	cudaLaunchKernel_v7000_params params = { func, grid, block, args, shared, stream };

	a.params = &params;
	return launch(&a, func, &l, stream);
}

cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *func,
					  void **args)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaLaunchKernelExC_v11060);
	struct sim_launch l = { .grid = { c->gridDim.x, c->gridDim.y, c->gridDim.z },
				.block = { c->blockDim.x, c->blockDim.y, c->blockDim.z },
				.shared_bytes = (uint32_t)c->dynamicSmemBytes,
				.params = args };
	cudaLaunchKernelExC_v11060_params params = { c, func, args };

	a.params = &params;
	return launch(&a, func, &l, c->stream);
}

cudaError_t CUDARTAPI cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	(void)attr;
	(void)value;
	return func ? cudaSuccess : sim_rt_error(cudaErrorInvalidDeviceFunction);
}

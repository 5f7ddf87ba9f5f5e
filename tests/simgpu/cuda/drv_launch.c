/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: modules, libraries, kernel launches, symbol look-up. */
#include "tests/simgpu/cuda/drv.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static CUresult load(struct sim_api *a, void **out, const void *image)
{
	sim_api_enter(a);
	if (!image) {
		return sim_leave(a, CUDA_ERROR_INVALID_VALUE);
	}
	struct sim_module *m = sim_module_new(image);
	*out = m;
	const struct sim_hooks *h = sim_hooks_get();
	if (h && m) {
		h->resource(SIM_RES_MODULE_LOADED, sim_context_current(), m);
	}
	return sim_leave(a, m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
	struct sim_api a = SIM_DRIVER_CALL(cuModuleLoadData);

	return load(&a, (void **)module, image);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n,
				    CUjit_option *options, void **values)
{
	struct sim_api a = SIM_DRIVER_CALL(cuModuleLoadDataEx);

	(void)n;
	(void)options;
	(void)values;
	return load(&a, (void **)module, image);
}

CUresult CUDAAPI cuModuleUnload(CUmodule module)
{
	struct sim_api a = SIM_DRIVER_CALL(cuModuleUnload);

	sim_api_enter(&a);
	sim_module_free((struct sim_module *)(void *)module);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name)
{
	struct sim_kernel *k = sim_module_kernel((struct sim_module *)(void *)module, name);

	*f = (CUfunction)(void *)k;
	return k ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit,
				   void **jit_values, unsigned int n_jit, CUlibraryOption *options,
				   void **values, unsigned int n)
{
	struct sim_api a = SIM_DRIVER_CALL(cuLibraryLoadData);

	(void)jit;
	(void)jit_values;
	(void)n_jit;
	(void)options;
	(void)values;
	(void)n;
	return load(&a, (void **)library, code);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
	sim_module_free((struct sim_module *)(void *)library);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	struct sim_kernel *k = sim_module_kernel((struct sim_module *)(void *)library, name);

	*kernel = (CUkernel)(void *)k;
	return k ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *f, CUkernel kernel)
{
	*f = (CUfunction)(void *)kernel;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction f)
{
	*name = ((struct sim_kernel *)(void *)f)->name;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel kernel)
{
	*name = ((struct sim_kernel *)(void *)kernel)->name;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
	(void)attribute;
	(void)value;
	return f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch(struct sim_api *a, struct sim_launch *l, CUstream stream)
{
	if (!l->kernel) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	a->symbol = l->kernel->name;
	sim_api_enter(a);
	if (!l->grid.x || !l->grid.y || !l->grid.z || !l->block.x || !l->block.y || !l->block.z) {
		return sim_leave(a, CUDA_ERROR_INVALID_VALUE);
	}
	l->corr = a->corr;
	sim_launch(l, sim_stream_of(stream));
	return sim_leave(a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				unsigned int bx, unsigned int by, unsigned int bz,
				unsigned int shared, CUstream stream, void **params, void **extra)
{
	struct sim_api a = SIM_DRIVER_CALL(cuLaunchKernel);
	struct sim_launch l = { .kernel = (struct sim_kernel *)(void *)f,
				.grid = { gx, gy, gz },
				.block = { bx, by, bz },
				.shared_bytes = shared,
				.params = params };
	cuLaunchKernel_params given = { f, gx, gy, gz, bx, by, bz, shared, stream, params, extra };

	a.params = &given;
	return launch(&a, &l, stream);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params,
				  void **extra)
{
	struct sim_api a = SIM_DRIVER_CALL(cuLaunchKernelEx);
	struct sim_launch l = { .kernel = (struct sim_kernel *)(void *)f,
				.grid = { c->gridDimX, c->gridDimY, c->gridDimZ },
				.block = { c->blockDimX, c->blockDimY, c->blockDimZ },
				.shared_bytes = c->sharedMemBytes,
				.params = params };
	cuLaunchKernelEx_params given = { c, f, params, extra };

	a.params = &given;
	return launch(&a, &l, c->hStream);
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **fn, int version, cuuint64_t flags,
				  CUdriverProcAddressQueryResult *status)
{
	static const char *const suffixes[] = { "_v4", "_v3", "_v2", "" };
	char name[256];

	(void)version;
	(void)flags;
	*fn = NULL;
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && !*fn; i++) {
		snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]);
		*fn = dlsym(RTLD_DEFAULT, name);
	}
	if (status) {
		*status = *fn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	}
	return *fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

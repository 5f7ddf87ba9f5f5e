/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: initialisation, devices, contexts, errors, profiler control. */
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/cuda/drv.h"

#include <cudaProfiler.h>
#include <stdio.h>
#include <string.h>

CUresult CUDAAPI cuInit(unsigned int flags)
{
	struct sim_api a = SIM_DRIVER_CALL(cuInit);

	if (flags != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_api_enter(&a);
	return sim_leave(&a, sim_device_count() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
	if (!version) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*version = (int)sim_env_i64("SIMGPU_DRIVER_VERSION", CUDA_VERSION);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
	*count = sim_device_count();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
	if (ordinal < 0 || ordinal >= sim_device_count()) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
	(void)dev;
	snprintf(name, (size_t)len, "%s", sim_device_name());
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	sim_device_uuid(dev, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
	(void)dev;
	*bytes = (size_t)sim_env_i64("SIMGPU_MEMORY_BYTES", 80LL << 30);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	int domain, bus, slot;

	sim_device_pci(dev, &domain, &bus, &slot);
	snprintf(id, (size_t)len, "%04x:%02x:%02x.0", domain, bus, slot);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} known[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3 },
		{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120 },
	};

	int domain, bus, slot;

	*value = 0;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (known[i].attribute == attribute) {
			*value = known[i].value;
		}
	}
	sim_device_pci(dev, &domain, &bus, &slot);
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
		*value = bus;
	}
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	struct sim_api a = SIM_DRIVER_CALL(cuDevicePrimaryCtxRetain);

	sim_api_enter(&a);
	if (dev < 0 || dev >= sim_device_count()) {
		return sim_leave(&a, CUDA_ERROR_INVALID_DEVICE);
	}
	*ctx = sim_context_of(dev);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
	(void)dev;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	(void)dev;
	*flags = 0;
	*active = 1;
	return CUDA_SUCCESS;
}

/* Every context of a device is its primary one. */
CUresult CUDAAPI cuCtxCreate(CUcontext *ctx, CUctxCreateParams *params, unsigned int flags,
			     CUdevice dev)
{
	struct sim_api a = SIM_DRIVER_CALL(cuCtxCreate_v4);

	(void)params;
	(void)flags;
	sim_api_enter(&a);
	if (sim_device_set(dev) != 0) {
		return sim_leave(&a, CUDA_ERROR_INVALID_DEVICE);
	}
	*ctx = sim_context_current();
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
	return ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = sim_context_current();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
	struct sim_api a = SIM_DRIVER_CALL(cuCtxSetCurrent);

	sim_api_enter(&a);
	sim_context_set(ctx);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
	sim_context_set(ctx);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *ctx)
{
	if (ctx) {
		*ctx = sim_context_current();
	}
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *dev)
{
	*dev = sim_device_current();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	(void)ctx;
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	*id = sim_context_id(ctx ? ctx : sim_context_current());
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
	struct sim_api a = SIM_DRIVER_CALL(cuCtxSynchronize);

	sim_api_enter(&a);
	sim_sync_stream(NULL, a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **text)
{
	switch (error) {
	case CUDA_SUCCESS:
		*text = "CUDA_SUCCESS";
		return CUDA_SUCCESS;
	case CUDA_ERROR_INVALID_VALUE:
		*text = "CUDA_ERROR_INVALID_VALUE";
		return CUDA_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY:
		*text = "CUDA_ERROR_OUT_OF_MEMORY";
		return CUDA_SUCCESS;
	case CUDA_ERROR_NOT_FOUND:
		*text = "CUDA_ERROR_NOT_FOUND";
		return CUDA_SUCCESS;
	case CUDA_ERROR_NOT_READY:
		*text = "CUDA_ERROR_NOT_READY";
		return CUDA_SUCCESS;
	case CUDA_ERROR_INVALID_DEVICE:
		*text = "CUDA_ERROR_INVALID_DEVICE";
		return CUDA_SUCCESS;
	default:
		*text = "CUDA_ERROR_UNKNOWN";
		return CUDA_SUCCESS;
	}
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text)
{
	return cuGetErrorName(error, text);
}

CUresult CUDAAPI cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuProfilerStart(void)
{
	struct sim_api a = SIM_DRIVER_CALL(cuProfilerStart);

	sim_api_enter(&a);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuProfilerStop(void)
{
	struct sim_api a = SIM_DRIVER_CALL(cuProfilerStop);

	sim_api_enter(&a);
	return sim_leave(&a, CUDA_SUCCESS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: memory, copies and sets. */
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/cuda/drv.h"

static void *address(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

static CUresult copy(struct sim_api *a, struct sim_copy c, CUstream stream)
{
	sim_api_enter(a);
	c.corr = a->corr;
	sim_copy(&c, sim_stream_of(stream));
	return sim_leave(a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *p, size_t bytes)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemAlloc_v2);

	sim_api_enter(&a);
	void *m = bytes ? sim_mem_alloc(bytes, sim_device_current()) : NULL;
	*p = (CUdeviceptr)(uintptr_t)m;
	return sim_leave(&a, m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuMemFree(CUdeviceptr p)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemFree_v2);

	sim_api_enter(&a);
	sim_stream_wait_all(NULL);
	int rc = sim_mem_free(address(p));
	return sim_leave(&a, rc == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemAllocHost(void **p, size_t bytes)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemAllocHost_v2);

	sim_api_enter(&a);
	*p = sim_mem_alloc(bytes, -1);
	return sim_leave(&a, *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuMemHostAlloc(void **p, size_t bytes, unsigned int flags)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemHostAlloc);

	(void)flags;
	sim_api_enter(&a);
	*p = sim_mem_alloc(bytes, -1);
	return sim_leave(&a, *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemFreeHost);

	sim_api_enter(&a);
	int rc = sim_mem_free(p);
	return sim_leave(&a, rc == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemGetInfo(size_t *free_bytes, size_t *total)
{
	*total = (size_t)sim_env_i64("SIMGPU_MEMORY_BYTES", 80LL << 30);
	*free_bytes = *total - sim_mem_used(sim_device_current());
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t n)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemcpyHtoD_v2);

	return copy(&a, (struct sim_copy){ .dst = address(dst), .src = src, .bytes = n }, NULL);
}

CUresult CUDAAPI cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t n)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemcpyDtoH_v2);

	return copy(&a, (struct sim_copy){ .dst = dst, .src = address(src), .bytes = n }, NULL);
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t n, CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemcpyHtoDAsync_v2);
	struct sim_copy c = { .dst = address(dst), .src = src, .bytes = n, .async = true };

	return copy(&a, c, stream);
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t n, CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemcpyDtoHAsync_v2);
	struct sim_copy c = { .dst = dst, .src = address(src), .bytes = n, .async = true };

	return copy(&a, c, stream);
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemcpyDtoDAsync_v2);
	struct sim_copy c = { .dst = address(dst), .src = address(src), .bytes = n, .async = true };

	return copy(&a, c, stream);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemcpyAsync);
	struct sim_copy c = { .dst = address(dst), .src = address(src), .bytes = n, .async = true };

	return copy(&a, c, stream);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemsetD8Async);

	sim_api_enter(&a);
	sim_set(address(dst), value, 1, n, sim_stream_of(stream), a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	struct sim_api a = SIM_DRIVER_CALL(cuMemsetD32Async);

	sim_api_enter(&a);
	sim_set(address(dst), value, 4, n, sim_stream_of(stream), a.corr);
	return sim_leave(&a, CUDA_SUCCESS);
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr p)
{
	int device = sim_mem_device(address(p));

	if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
		*(CUmemorytype *)data = device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	}
	if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL && device >= 0) {
		*(int *)data = device;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

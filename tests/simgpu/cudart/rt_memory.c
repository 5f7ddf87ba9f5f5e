/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime API: memory, copies and sets. */
#include "tests/simgpu/cudart/rt.h"

#include <generated_cuda_runtime_api_meta.h>
#include <string.h>

static cudaError_t alloc(struct sim_api *a, void **p, size_t bytes, bool device)
{
	sim_rt_enter(a);
	if (!p) {
		return sim_rt_leave(a, cudaErrorInvalidValue);
	}
	*p = sim_mem_alloc(bytes, device ? sim_device_current() : -1);
	return sim_rt_leave(a, *p ? cudaSuccess : cudaErrorMemoryAllocation);
}

static cudaError_t release(struct sim_api *a, void *p, bool wait)
{
	sim_rt_enter(a);
	if (wait && p) {
		sim_stream_wait_all(NULL);
	}
	return sim_rt_leave(a, sim_mem_free(p) == 0 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t CUDARTAPI cudaMalloc(void **p, size_t bytes)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMalloc_v3020);

	return alloc(&a, p, bytes, true);
}

cudaError_t CUDARTAPI cudaFree(void *p)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaFree_v3020);

	return release(&a, p, true);
}

cudaError_t CUDARTAPI cudaMallocHost(void **p, size_t bytes)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMallocHost_v3020);

	return alloc(&a, p, bytes, false);
}

cudaError_t CUDARTAPI cudaHostAlloc(void **p, size_t bytes, unsigned int flags)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaHostAlloc_v3020);

	(void)flags;
	return alloc(&a, p, bytes, false);
}

cudaError_t CUDARTAPI cudaFreeHost(void *p)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaFreeHost_v3020);

	return release(&a, p, true);
}

cudaError_t CUDARTAPI cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMallocAsync_v11020);

	(void)stream;
	return alloc(&a, p, bytes, true);
}

cudaError_t CUDARTAPI cudaFreeAsync(void *p, cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaFreeAsync_v11020);

	(void)stream;
	return release(&a, p, true);
}

cudaError_t CUDARTAPI cudaMallocManaged(void **p, size_t bytes, unsigned int flags)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMallocManaged_v6000);

	(void)flags;
	return alloc(&a, p, bytes, true);
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMemGetInfo_v3020);

	sim_rt_enter(&a);
	return sim_rt_leave(&a, (cudaError_t)cuMemGetInfo(free_bytes, total));
}

cudaError_t CUDARTAPI cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
	(void)bytes;
	(void)flags;
	return p ? cudaSuccess : sim_rt_error(cudaErrorInvalidValue);
}

cudaError_t CUDARTAPI cudaHostUnregister(void *p)
{
	return p ? cudaSuccess : sim_rt_error(cudaErrorInvalidValue);
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *p)
{
	void *base;
	size_t bytes;
	int device = sim_mem_device(p);

	memset(out, 0, sizeof *out);
	out->device = device < 0 ? 0 : device;
	if (!sim_mem_known(p, &base, &bytes)) {
		out->type = cudaMemoryTypeUnregistered;
	} else {
		out->type = device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
	}
	/* The simulated device's addresses are the process's own. */
	memcpy(&out->devicePointer, &p, sizeof p);
	memcpy(&out->hostPointer, &p, sizeof p);
	return cudaSuccess;
}

static cudaError_t copy(struct sim_api *a, struct sim_copy c, cudaStream_t stream)
{
	sim_rt_enter(a);
	if (c.bytes > 0 && (!c.dst || !c.src)) {
		return sim_rt_leave(a, cudaErrorInvalidValue);
	}
	if (c.bytes > 0) {
		c.corr = a->corr;
		sim_copy(&c, sim_stream_of(stream));
	}
	return sim_rt_leave(a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaMemcpy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMemcpy_v3020);
	cudaMemcpy_v3020_params params = { dst, src, n, kind };

	a.params = &params;
	return copy(&a, (struct sim_copy){ .dst = dst, .src = src, .bytes = n }, NULL);
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void *dst, const void *src, size_t n,
				      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMemcpyAsync_v3020);
	cudaMemcpyAsync_v3020_params params = { dst, src, n, kind, stream };

	a.params = &params;
	return copy(&a, (struct sim_copy){ .dst = dst, .src = src, .bytes = n, .async = true },
		    stream);
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src,
					  int src_device, size_t n, cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMemcpyPeerAsync_v4000);

	(void)dst_device;
	(void)src_device;
	return copy(&a, (struct sim_copy){ .dst = dst, .src = src, .bytes = n, .async = true },
		    stream);
}

static cudaError_t set(struct sim_api *a, void *dst, int value, size_t n, cudaStream_t stream)
{
	sim_rt_enter(a);
	if (n > 0) {
		sim_set(dst, (uint32_t)(value & 0xff), 1, n, sim_stream_of(stream), a->corr);
	}
	return sim_rt_leave(a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaMemset(void *dst, int value, size_t n)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMemset_v3020);

	return set(&a, dst, value, n, NULL);
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *dst, int value, size_t n, cudaStream_t stream)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaMemsetAsync_v3020);

	return set(&a, dst, value, n, stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Failing CUDA and NCCL calls end the program; device set-up and kernels that last as long as told.
 * On a GPU a kernel spins on the global timer; the simulated driver takes the same argument as the
 * duration. */
#ifndef LAG_TESTS_APPS_PT_GPU_H
#define LAG_TESTS_APPS_PT_GPU_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stddef.h>
#include <stdint.h>

#define PT_CUDA(call) pt_cuda_check((call), #call)
#define PT_NCCL(call) pt_nccl_check((call), #call)

void pt_cuda_check(cudaError_t e, const char *what);
void pt_nccl_check(ncclResult_t e, const char *what);

enum pt_kernel {
	PT_GEMM,
	PT_DGRAD,
	PT_WGRAD,
	PT_ATTN_FWD,
	PT_ATTN_BWD,
	PT_NORM_FWD,
	PT_NORM_BWD,
	PT_GELU_FWD,
	PT_GELU_BWD,
	PT_EMBED,
	PT_LOSS_FWD,
	PT_LOSS_BWD,
	PT_GRAD_NORM,
	PT_ADAM,
	PT_N_KERNELS
};

struct pt_gpu {
	cudaLibrary_t library;
	cudaKernel_t kernels[PT_N_KERNELS];
};

/* Takes device local_rank (modulo the devices there are) and loads the kernels. */
void pt_gpu_init(struct pt_gpu *gpu, int local_rank);
void pt_gpu_release(struct pt_gpu *gpu);
void pt_gpu_launch(const struct pt_gpu *gpu, enum pt_kernel k, int64_t ns, cudaStream_t stream);
/* Device memory, zeroed. */
void *pt_gpu_alloc(size_t bytes);
/* Host to device, finished on return. */
void pt_gpu_put(void *dst, const void *src, size_t bytes, cudaStream_t stream);
/* Device to host, finished on return. */
void pt_gpu_fetch(void *dst, const void *src, size_t bytes, cudaStream_t stream);

#endif

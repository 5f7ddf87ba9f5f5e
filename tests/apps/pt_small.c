/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, a one-rank communicator and an NVTX range, with nothing torn down afterwards. */
#include "tests/apps/pt_small.h"

#include "tests/apps/pt_gpu.h"
#include "tests/apps/pt_nvtx.h"

void pt_small_work(int n)
{
	struct pt_gpu gpu;
	struct pt_nvtx nvtx;
	ncclUniqueId id;
	ncclComm_t comm;
	cudaStream_t stream;
	pt_gpu_init(&gpu, 0);
	pt_nvtx_init(&nvtx, true, NULL);
	PT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	PT_NCCL(ncclGetUniqueId(&id));
	PT_NCCL(ncclCommInitRank(&comm, 1, id, 0));
	float *buf = pt_gpu_alloc(2 * sizeof(*buf));
	pt_nvtx_push(&nvtx, "work", -1);
	for (int i = 0; i < n; i++) {
		pt_gpu_launch(&gpu, PT_GEMM, 1000000, stream);
		PT_NCCL(ncclAllReduce(buf, buf + 1, 1, ncclFloat32, ncclSum, comm, stream));
	}
	PT_CUDA(cudaStreamSynchronize(stream));
	pt_nvtx_pop(&nvtx);
}

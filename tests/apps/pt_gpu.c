/* SPDX-License-Identifier: Apache-2.0 */
/* Device, memory and the spinning kernels, under the mangled names that real training shows. */
#include "tests/apps/pt_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernel_def {
	const char *entry;
	unsigned grid, block;
};

/* Grids stay below the number of multiprocessors: blocks that queue would multiply the duration. */
static const struct kernel_def defs[PT_N_KERNELS] = {
	[PT_GEMM] = { "_ZN7cutlass7Kernel2I68cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_"
		      "256x128_32x3_tn_align8EEvNT_6ParamsE",
		      64, 256 },
	[PT_DGRAD] = { "_ZN7cutlass7Kernel2I63cutlass_80_tensorop_bf16_s16816gemm_bf16_"
		       "128x256_64x3_nn_align8EEvNT_6ParamsE",
		       64, 256 },
	[PT_WGRAD] = { "_ZN7cutlass7Kernel2I62cutlass_80_tensorop_bf16_s16816gemm_f32_"
		       "128x128_64x4_nt_align8EEvNT_6ParamsE",
		       60, 128 },
	[PT_ATTN_FWD] = { "_ZN5flash16flash_fwd_kernelINS_23Flash_fwd_kernel_traitsILi128ELi128E"
			  "Li64ELi4ELb0ELb0EN7cutlass10bfloat16_tENS_19Flash_kernel_traitsILi128E"
			  "Li128ELi64ELi4ES3_EEEELb0ELb1ELb0ELb0ELb1ELb0ELb0ELb0EEEvNS_16Flash_"
			  "fwd_paramsE",
			  48, 128 },
	[PT_ATTN_BWD] = { "_ZN5flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelINS_23Flash_bwd_"
			  "kernel_traitsILi128ELi64ELi128ELi8ELi2ELi4ELi2ELb0ELb0EN7cutlass10"
			  "bfloat16_tENS_19Flash_kernel_traitsILi128ELi64ELi128ELi8ES3_EEEELb0E"
			  "Lb1ELb0ELb0ELb1ELb1ELb0EEEvNS_16Flash_bwd_paramsE",
			  48, 256 },
	[PT_NORM_FWD] = { "_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIN3c108"
			  "BFloat16EfEEviT0_PKT_S7_S7_PS4_PS5_S9_",
			  32, 128 },
	[PT_NORM_BWD] = { "_ZN2at6native12_GLOBAL__N_128layer_norm_grad_input_kernelIN3c108"
			  "BFloat16EfEEvPKT_S7_PKT0_SA_S7_PS5_i",
			  32, 128 },
	[PT_GELU_FWD] = { "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11GeluFunctorIN3c10"
			  "8BFloat16EEESt5arrayIPcLm2EEEEviT0_T1_",
			  64, 128 },
	[PT_GELU_BWD] = { "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_19Gelu"
			  "BackwardFunctorIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_",
			  64, 128 },
	[PT_EMBED] = { "_ZN2at6native12_GLOBAL__N_124vectorized_gather_kernelILi16ElEEvPcS3_PT0_"
		       "illlb",
		       40, 256 },
	[PT_LOSS_FWD] = { "_ZN2at6native19cunn_SoftMaxForwardILi8EN3c108BFloat16EffNS0_12_GLOBAL__"
			  "N_125LogSoftMaxForwardEpilogueEEEvPT2_PKT0_i",
			  64, 512 },
	[PT_LOSS_BWD] = { "_ZN2at6native20cunn_SoftMaxBackwardILi8EN3c108BFloat16EffNS0_12_GLOBAL__"
			  "N_126LogSoftMaxBackwardEpilogueEEEvPT0_PKT2_S9_l",
			  64, 512 },
	[PT_GRAD_NORM] = { "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorList"
			   "MetadataILi1EEENS1_14LpNormFunctorTIffLi1ELi1ELi0EEEJPfiEEEvT_T0_DpT1_",
			   60, 512 },
	[PT_ADAM] = { "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_32FusedOptimizer"
		      "TensorListMetadataILi4EEENS1_"
		      "20FusedAdamMathFunctorIfLi4ELi0ELb0EEEJPKfdddddd"
		      "S7_S7_EEEvT_T0_DpT1_",
		      60, 512 },
};

static const char ptx_head[] = ".version 6.5\n.target sm_50\n.address_size 64\n";
static const char ptx_entry[] = ".visible .entry %s(.param .u64 span_ns)\n"
				"{\n"
				"\t.reg .u64 %%begin, %%now, %%span;\n"
				"\t.reg .pred %%more;\n"
				"\tld.param.u64 %%span, [span_ns];\n"
				"\tmov.u64 %%begin, %%globaltimer;\n"
				"again:\n"
				"\tmov.u64 %%now, %%globaltimer;\n"
				"\tsub.u64 %%now, %%now, %%begin;\n"
				"\tsetp.lt.u64 %%more, %%now, %%span;\n"
				"\t@%%more bra again;\n"
				"\tret;\n"
				"}\n";

void pt_cuda_check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
	exit(1);
}

void pt_nccl_check(ncclResult_t e, const char *what)
{
	if (e == ncclSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, ncclGetErrorString(e));
	exit(1);
}

static char *ptx_text(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	fputs(ptx_head, f);
	for (int k = 0; k < PT_N_KERNELS; k++)
		fprintf(f, ptx_entry, defs[k].entry);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

void pt_gpu_init(struct pt_gpu *gpu, int local_rank)
{
	int n = 0;
	PT_CUDA(cudaGetDeviceCount(&n));
	if (n < 1) {
		fprintf(stderr, "no CUDA device\n");
		exit(1);
	}
	PT_CUDA(cudaSetDevice(local_rank % n));
	char *text = ptx_text();
	if (!text) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	PT_CUDA(cudaLibraryLoadData(&gpu->library, text, NULL, NULL, 0, NULL, NULL, 0));
	free(text);
	for (int k = 0; k < PT_N_KERNELS; k++)
		PT_CUDA(cudaLibraryGetKernel(&gpu->kernels[k], gpu->library, defs[k].entry));
}

void pt_gpu_release(struct pt_gpu *gpu)
{
	PT_CUDA(cudaLibraryUnload(gpu->library));
}

void pt_gpu_launch(const struct pt_gpu *gpu, enum pt_kernel k, int64_t ns, cudaStream_t stream)
{
	if (ns <= 0)
		return;
	unsigned long long span = (unsigned long long)ns;
	void *args[] = { &span };
	dim3 grid = { defs[k].grid, 1, 1 };
	dim3 block = { defs[k].block, 1, 1 };
	PT_CUDA(cudaLaunchKernel((const void *)gpu->kernels[k], grid, block, args, 0, stream));
}

void *pt_gpu_alloc(size_t bytes)
{
	void *p = NULL;
	PT_CUDA(cudaMalloc(&p, bytes));
	PT_CUDA(cudaMemset(p, 0, bytes));
	return p;
}

void pt_gpu_put(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
	PT_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream));
	PT_CUDA(cudaStreamSynchronize(stream));
}

void pt_gpu_fetch(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
	PT_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, stream));
	PT_CUDA(cudaStreamSynchronize(stream));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the simulator's buffers with NVIDIA's own cuptiActivityGetNextRecord, where that library is on
 * the machine, and compares every step with ours. Skips (77) where it is not. */
#include "tests/simgpu/cupti_sink.h"

#include <dlfcn.h>

typedef CUptiResult (*next_fn)(uint8_t *, size_t, CUpti_Activity **);

/* In a namespace of its own: the simulator's library has the same name. */
static next_fn real_next(void)
{
	static const char *const places[] = { SIM_REAL_CUPTI, "/usr/local/cuda/lib/libcupti.so.13",
					      "/usr/local/cuda/lib64/libcupti.so.13",
					      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13" };
	next_fn fn = NULL;

	for (size_t i = 0; i < sizeof places / sizeof places[0] && !fn; i++) {
		void *h = access(places[i], R_OK) == 0 ? dlmopen(LM_ID_NEWLM, places[i], RTLD_NOW)
						       : NULL;
		void *sym = h ? dlsym(h, "cuptiActivityGetNextRecord") : NULL;
		memcpy(&fn, &sym, sizeof fn);
	}
	return fn;
}

static void work(void)
{
	static char host[4096];
	cudaStream_t s = test_stream(), t;
	cudaKernel_t k = test_kernel("alpha");
	cudaEvent_t e;
	void *dev;

	NEED(cudaStreamCreate(&t) == cudaSuccess);
	NEED(cudaEventCreate(&e) == cudaSuccess);
	NEED(cudaMalloc(&dev, sizeof host) == cudaSuccess);
	for (uint64_t i = 0; i < 100; i++) {
		NEED(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2,
							    i) == CUPTI_SUCCESS);
		test_launch(k, 1000 + i, s);
		NEED(cudaEventRecord(e, s) == cudaSuccess);
		NEED(cudaStreamWaitEvent(t, e, 0) == cudaSuccess);
		NEED(cudaMemcpyAsync(host, dev, 100, cudaMemcpyDeviceToHost, t) == cudaSuccess);
		NEED(cudaMemsetAsync(dev, 1, 100, t) == cudaSuccess);
		NEED(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2,
							   NULL) == CUPTI_SUCCESS);
	}
	NEED(cudaDeviceSynchronize() == cudaSuccess);
}

int main(void)
{
	static const CUpti_ActivityKind kinds[] = {
		CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		CUPTI_ACTIVITY_KIND_MEMCPY,
		CUPTI_ACTIVITY_KIND_MEMSET,
		CUPTI_ACTIVITY_KIND_RUNTIME,
		CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
		CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		CUPTI_ACTIVITY_KIND_CUDA_EVENT,
		CUPTI_ACTIVITY_KIND_CONTEXT,
		CUPTI_ACTIVITY_KIND_DEVICE,
		CUPTI_ACTIVITY_KIND_STREAM,
		CUPTI_ACTIVITY_KIND_OVERHEAD,
	};
	next_fn next = real_next();
	unsigned seen[64] = { 0 };

	if (!next) {
		printf("skipped: no libcupti.so.13 of NVIDIA's on this machine\n");
		return 77;
	}
	sink.size = 4096;
	sink_start(kinds, sizeof kinds / sizeof kinds[0]);
	work();
	NEED(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
	for (unsigned i = 0; i < sink.n_completed; i++) {
		CUpti_Activity *theirs = NULL, *ours = NULL;
		CUptiResult a, b;
		do {
			a = next(sink.buffers[i].data, sink.buffers[i].valid, &theirs);
			b = cuptiActivityGetNextRecord(sink.buffers[i].data, sink.buffers[i].valid,
						       &ours);
			NEED(a == b && (a != CUPTI_SUCCESS || theirs == ours));
			if (a == CUPTI_SUCCESS) {
				seen[theirs->kind]++;
			}
		} while (a == CUPTI_SUCCESS);
		NEED(a == CUPTI_ERROR_MAX_LIMIT_REACHED);
	}
	for (size_t i = 0; i < 10; i++) { /* all but OVERHEAD must have come */
		NEED(seen[kinds[i]] > 0);
	}
	NEED(seen[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] == 100);
	printf("%u buffers walked alike\n", sink.n_completed);
	return 0;
}

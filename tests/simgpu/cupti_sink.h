/* SPDX-License-Identifier: Apache-2.0 */
/* A CUPTI client for tests: gives buffers of a chosen size, keeps what comes back, finds records. */
#ifndef SIM_CUPTI_SINK_H
#define SIM_CUPTI_SINK_H

#include "tests/simgpu/sim_test.h"

#include <cupti.h>

#define SINK_MAX 4096

struct sink_buffer {
	uint8_t *data;
	size_t valid;
};

static struct {
	size_t size, max_records;
	bool refuse;
	unsigned n_requested, n_completed;
	struct sink_buffer buffers[SINK_MAX];
	CUcontext context; /* as the last completion said */
	uint32_t stream;
} sink = { .size = 1 << 16 };

static inline void CUPTIAPI sink_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	sink.n_requested++;
	*buffer = sink.refuse ? NULL : aligned_alloc(8, sink.size);
	*size = sink.size;
	*max_records = sink.max_records;
}

static inline void CUPTIAPI sink_complete(CUcontext context, uint32_t stream, uint8_t *buffer,
					  size_t size, size_t valid)
{
	(void)size;
	sink.context = context;
	sink.stream = stream;
	NEED(sink.n_completed < SINK_MAX);
	sink.buffers[sink.n_completed++] = (struct sink_buffer){ buffer, valid };
}

static inline void sink_start(const CUpti_ActivityKind *kinds, size_t n)
{
	NEED(cuptiActivityRegisterCallbacks(sink_request, sink_complete) == CUPTI_SUCCESS);
	for (size_t i = 0; i < n; i++) {
		NEED(cuptiActivityEnable(kinds[i]) == CUPTI_SUCCESS);
	}
}

/* The i-th record of a kind over all delivered buffers, NULL when there are fewer. */
static inline CUpti_Activity *sink_find(CUpti_ActivityKind kind, unsigned i)
{
	for (unsigned b = 0; b < sink.n_completed; b++) {
		CUpti_Activity *r = NULL;
		while (cuptiActivityGetNextRecord(sink.buffers[b].data, sink.buffers[b].valid,
						  &r) == CUPTI_SUCCESS) {
			if (r->kind == kind && i-- == 0) {
				return r;
			}
		}
	}
	return NULL;
}

static inline unsigned sink_count(CUpti_ActivityKind kind)
{
	unsigned n = 0;

	while (sink_find(kind, n)) {
		n++;
	}
	return n;
}

static inline CUpti_ActivityKernel10 *sink_kernel(unsigned i)
{
	return (CUpti_ActivityKernel10 *)(void *)sink_find(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
							   i);
}

static inline CUpti_ActivityAPI *sink_api(CUpti_ActivityKind kind, unsigned i)
{
	return (CUpti_ActivityAPI *)(void *)sink_find(kind, i);
}

static const CUpti_ActivityKind sink_kernels[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL };

#endif

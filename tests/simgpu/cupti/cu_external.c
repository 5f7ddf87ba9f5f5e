/* SPDX-License-Identifier: Apache-2.0 */
/* External correlation ids: one stack per thread and kind. */
#include "tests/simgpu/cupti/cu.h"

#include <stdlib.h>

struct stack {
	uint64_t *v;
	size_t n, cap;
};

static _Thread_local struct stack stacks[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];

static struct stack *stack_of(CUpti_ExternalCorrelationKind kind)
{
	return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
			       kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE
		       ? &stacks[kind]
		       : NULL;
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
							    uint64_t id)
{
	CUptiResult gate = cu_gate();
	struct stack *s = stack_of(kind);

	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	if (!s) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 16;
		uint64_t *v = realloc(s->v, cap * sizeof *v);
		if (!v) {
			return cu_return(CUPTI_ERROR_OUT_OF_MEMORY);
		}
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n++] = id;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
							   uint64_t *last)
{
	CUptiResult gate = cu_gate();
	struct stack *s = stack_of(kind);

	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	if (!s) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	if (s->n == 0) {
		return cu_return(CUPTI_ERROR_QUEUE_EMPTY);
	}
	s->n--;
	if (last) {
		*last = s->v[s->n];
	}
	return CUPTI_SUCCESS;
}

size_t cu_external_records(uint32_t corr, CUpti_ActivityExternalCorrelation *out, size_t max)
{
	size_t n = 0;

	for (int k = 1; k < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE && n < max; k++) {
		const struct stack *s = &stacks[k];
		if (s->n > 0) {
			out[n++] = (CUpti_ActivityExternalCorrelation){
				.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
				.externalKind = (CUpti_ExternalCorrelationKind)k,
				.externalId = s->v[s->n - 1],
				.correlationId = corr,
			};
		}
	}
	return n;
}

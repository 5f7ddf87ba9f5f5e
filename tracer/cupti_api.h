/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the tracer's CUPTI part: the functions found at run time, and what they told about records. */
#ifndef TRACER_CUPTI_API_H
#define TRACER_CUPTI_API_H

#include <cupti.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "schema/trace/trace_writer.h"

struct lag_cupti_api {
	char path[512]; /* of the library, and why this one */
	const char *why;
	uint32_t version;
	CUptiResult (*get_version)(uint32_t *);
	CUptiResult (*get_timestamp)(uint64_t *);
	CUptiResult (*get_result_string)(CUptiResult, const char **);
	CUptiResult (*get_callback_name)(CUpti_CallbackDomain, uint32_t, const char **);
	CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
	CUptiResult (*enable_callback)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
				       CUpti_CallbackId);
	CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc,
					  CUpti_BuffersCallbackCompleteFunc);
	CUptiResult (*enable)(CUpti_ActivityKind);
	CUptiResult (*enable_runtime_api)(CUpti_CallbackId, uint8_t);
	CUptiResult (*enable_driver_api)(CUpti_CallbackId, uint8_t);
	CUptiResult (*enable_all_sync)(uint8_t);
	CUptiResult (*set_thread_id_type)(CUpti_ActivityThreadIdType);
	CUptiResult (*flush_all)(uint32_t);
	CUptiResult (*get_next_record)(uint8_t *, size_t, CUpti_Activity **);
	CUptiResult (*get_dropped)(CUcontext, uint32_t, size_t *);
	CUptiResult (*push_id)(CUpti_ExternalCorrelationKind, uint64_t);
	CUptiResult (*pop_id)(CUpti_ExternalCorrelationKind, uint64_t *);
	CUptiResult (*get_stream_id)(CUcontext, CUstream, uint8_t, uint32_t *);
};

/* Loads CUPTI and fills the table. False with *why set when there is none to use. */
bool lag_cupti_load(struct lag_cupti_api *api, const char **why);

/* Bytes of one record of `kind` in this CUPTI, 0 = it has no such kind. Measured with CUPTI's own
 * iterator, which needs neither driver nor device. */
size_t lag_cupti_stride(const struct lag_cupti_api *api, CUpti_ActivityKind kind);

/* Buffers for CUPTI: a fixed pool. */
bool lag_cupti_pool_open(void);
uint8_t *lag_cupti_pool_take(size_t *size); /* NULL = empty */
uint8_t *lag_cupti_pool_grow(size_t *size); /* beyond the pool, where refusing is fatal */
void lag_cupti_pool_complete(uint8_t *buffer, size_t valid); /* from CUPTI's callback */

/* Writer: completed buffers in the order of completion, and back they go. */
uint8_t *lag_cupti_pool_next(size_t *valid);
void lag_cupti_pool_give(uint8_t *buffer);

/* API calls worth a record, by CUPTI's callback numbers. */
bool lag_cupti_call_wanted(const struct lag_cupti_api *api, bool driver, uint32_t cbid);
/* "cudaLaunchKernel", without version suffix; *n = length. */
const char *lag_cupti_call_name(const struct lag_cupti_api *api, bool driver, uint32_t cbid,
				size_t *n);

/* Turns records into ours. */
struct lag_cupti_parser {
	const struct lag_cupti_api *api;
	struct lag_trace_producer *prod;
	size_t stride[CUPTI_ACTIVITY_KIND_COUNT];
	uint64_t n_bad; /* records of a layout that is too short to read */
};

void lag_cupti_parser_init(struct lag_cupti_parser *ps, const struct lag_cupti_api *api);

/* True when a finished kernel, copy or set was in the buffer. */
bool lag_cupti_parse(struct lag_cupti_parser *ps, uint8_t *buffer, size_t valid);

/* Kernels that a forced flush showed before they had started and that never came again. */
uint64_t lag_cupti_parser_unstarted(void);

/* Event edges (cupti_sync.c). */
void lag_cupti_see_call(struct lag_trace_producer *prod, uint32_t correlation, int64_t start_ns,
			int64_t end_ns);
void lag_cupti_see_event(struct lag_trace_producer *prod, const uint8_t *rec, size_t stride);
void lag_cupti_see_sync(struct lag_trace_producer *prod, const uint8_t *rec, size_t stride);

/* Fields by their fixed offsets. */
static inline uint64_t lag_u64(const uint8_t *rec, size_t at)
{
	uint64_t v;

	memcpy(&v, rec + at, sizeof(v));
	return v;
}

static inline uint32_t lag_u32(const uint8_t *rec, size_t at)
{
	uint32_t v;

	memcpy(&v, rec + at, sizeof(v));
	return v;
}

#endif

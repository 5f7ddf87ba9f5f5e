/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI as the rest of the tracer sees it. No CUDA type leaves the cupti_*.c files. */
#ifndef TRACER_CUPTI_DOOR_H
#define TRACER_CUPTI_DOOR_H

#include "schema/trace/trace_writer.h"

/* Finds CUPTI and switches the activity kinds on. Inside cuInit, before any context exists. What fails
 * is remembered for lag_cupti_describe. */
void lag_cupti_open(void);

/* Writer thread. */
void lag_cupti_describe(struct lag_trace_producer *prod); /* once, when open was called */
bool lag_cupti_drain(struct lag_trace_producer *prod);    /* true: finished GPU work was among it */
void lag_cupti_flush(bool force);
/* Adds what CUPTI dropped since the last call; with `last`, also what it showed only unstarted. */
void lag_cupti_count_lost(struct lag_trace_counters *counters, bool last);
uint64_t lag_cupti_requests(void);  /* buffers CUPTI has asked for so far */
uint64_t lag_cupti_completed(void); /* and given back */
bool lag_cupti_is_active(void);

/* Any thread. */
bool lag_cupti_timestamp(int64_t *ns);

/* Kernels launched by this thread between push and pop carry `id`. False: not pushed. */
bool lag_cupti_push(int64_t id);
void lag_cupti_pop(void);

/* The id that kernel records show for a stream; LAG_NONE when unknown. */
int64_t lag_cupti_stream_id(void *stream);

#endif

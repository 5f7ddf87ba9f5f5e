/* SPDX-License-Identifier: Apache-2.0 */
/* A trace with too many events to hold them all: its rows of time come from the pyramid, and the GPU events of
 * a few ranks are loaded for the window that is looked at, as soon as they are few enough. Times are relative
 * to the trace's origin, as all the model's. Not for several threads. */
#ifndef VIZ_MODEL_DETAIL_H
#define VIZ_MODEL_DETAIL_H

#include "viz/model/pyramid.h"
#include "viz/model/trace.h"

#define LAG_DETAIL_EVENTS_MAX 50000 /* that a window loads: a moment's work */

struct lag_detail; /* opaque */

/* How many events a merged trace holds, without reading them. */
enum lag_status lag_detail_size(const char *path, int64_t *n_events,
				struct lag_err *err) LAG_MUST_USE;

/* Opens path without its events: *trace has ranks, streams, clocks, findings, span, and the GPU events that
 * lag_detail_load leaves in it. Both are the caller's; the detail is closed first. LAG_END: the trace has no
 * pyramid. */
enum lag_status lag_detail_open(const char *path, struct lag_detail **out, struct lag_trace **trace,
				struct lag_err *err) LAG_MUST_USE;
void lag_detail_close(struct lag_detail *detail); /* NULL is allowed */

/* Adds to out what lies between the n + 1 ascending edges, of a rank (lane -1) or of one of its streams
 * (index into trace->lanes): from events where they are loaded, else as lag_pyramid_columns does. */
enum lag_status lag_detail_columns(struct lag_detail *detail, size_t r, int32_t lane,
				   const int64_t *edges, int n, struct lag_bucket *out,
				   struct lag_err *err) LAG_MUST_USE;

/* How many events of these ranks (indices) begin in [t0, t1), about: exact but for the buckets at the ends. */
enum lag_status lag_detail_count(struct lag_detail *detail, const uint32_t *ranks, size_t n_ranks,
				 int64_t t0, int64_t t1, uint64_t *n,
				 struct lag_err *err) LAG_MUST_USE;

/* Has trace->gpu hold the events of these ranks (ascending) that run in [t0, t1), and of its neighbourhood
 * where that is not too much. Nothing is read where the last load covers it. *changed: what trace->gpu holds
 * has. LAG_ERR_LIMIT: several times LAG_DETAIL_EVENTS_MAX, which the caller is to count before. */
enum lag_status lag_detail_load(struct lag_detail *detail, const uint32_t *ranks, size_t n_ranks,
				int64_t t0, int64_t t1, bool *changed,
				struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How far the common clock may be off for a rank, at a moment. */
#ifndef VIZ_MODEL_CLOCK_ERROR_H
#define VIZ_MODEL_CLOCK_ERROR_H

#include "viz/model/trace.h"

/* Clock error of a rank's GPU times at a moment of the common clock, INT64_MAX unknown; and what of it the
 * rank does not share with others of its host. */
int64_t lag_trace_error_at(const struct lag_trace *trace, size_t r, int64_t ns);
int64_t lag_trace_own_error_at(const struct lag_trace *trace, size_t r, int64_t ns);
/* Error of the difference between times of two ranks, each at its moment. */
int64_t lag_trace_error_between(const struct lag_trace *trace, size_t a, int64_t a_ns, size_t b,
				int64_t b_ns);

/* Puts the rows of devices on the common clock and says which are whose (once, after loading). Rows come
 * by host, the host's own first. */
void lag_clock_place_rows(struct lag_trace *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One partition of each rank's time: every nanosecond has exactly one class, by precedence. */
#ifndef VIZ_MODEL_LEDGER_H
#define VIZ_MODEL_LEDGER_H

#include "viz/model/trace.h"

struct lag_context;

/* In order of precedence. */
enum lag_time_class {
	LAG_TIME_COMPUTE = 0,
	LAG_TIME_COPY,
	LAG_TIME_BUBBLE, /* waiting for a pipeline peer; warm-up and cool-down in the window */
	LAG_TIME_EXPOSED_TRANSFER, /* not covered by the rank's own compute */
	LAG_TIME_EXPOSED_WAIT,     /* waiting inside other groups' communication */
	LAG_TIME_HOST,             /* the next launch came too late */
	LAG_TIME_IDLE,             /* anything else */
	LAG_TIME_LIMIT,
};

struct lag_time_slice {
	int64_t start_ns, end_ns;
	uint8_t class;  /* enum lag_time_class */
	int32_t launch; /* communication launch it lies in, -1 */
};

struct lag_ledger {
	/* All recorded time of rank r, gapless: slices[first[r] .. first[r + 1]). */
	struct lag_time_slice *slices;
	size_t *first;
	size_t n_ranks;
	/* ns by [(step * n_ranks + r) * LAG_TIME_LIMIT + class]; a rank's row adds up to its step span. */
	int64_t *by_step;
	size_t n_steps;
};

const char *
	lag_time_class_name(enum lag_time_class class); /* "compute", "bubble", ... JSON names */
const char *lag_time_class_title(enum lag_time_class class); /* for people */

/* Whether the record of rank index r can tell a class at all: copies are in no operation table, a late host
 * only where launch calls are on record. What it cannot tell is in the other classes, and not 0. */
bool lag_ledger_tells(const struct lag_trace *trace, size_t r, enum lag_time_class class);

enum lag_status lag_ledger_compute(struct lag_context *ctx, struct lag_ledger *out,
				   struct lag_err *err) LAG_MUST_USE;
/* The first slice of rank index r that ends after ns; first[r + 1] if none. A slice may reach beyond its
 * step: work that never ended lasts until the recording does. */
size_t lag_ledger_find(const struct lag_ledger *ledger, size_t r, int64_t ns);

/* The slice's part in [from, to), ns. */
static inline int64_t lag_time_slice_in(const struct lag_time_slice *slice, int64_t from_ns,
					int64_t to_ns)
{
	int64_t a = slice->start_ns > from_ns ? slice->start_ns : from_ns;
	int64_t b = slice->end_ns < to_ns ? slice->end_ns : to_ns;

	return b > a ? b - a : 0;
}

void lag_ledger_release(struct lag_ledger *ledger);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting and transfer per communication launch: arrival A = latest start over all members,
 * wait = A - start, transfer = last end - A. Send/receive: a sender may run ahead; it waited only if
 * its end is after the receive's start; a grouped exchange arrives when its latest matched peer does.
 * Where a member is not on record the wait is a lower bound and the rest withheld; who was last is
 * withheld where the wait is within the clock error. */
#ifndef VIZ_MODEL_WAITS_H
#define VIZ_MODEL_WAITS_H

#include "viz/model/trace.h"

struct lag_wait {
	int64_t wait_ns;         /* this launch waited for the last arrival; LAG_NONE withheld */
	int64_t transfer_ns;     /* LAG_NONE withheld */
	int64_t arrival_ns;      /* A, LAG_NONE withheld */
	int32_t last;            /* rank index that was waited for, -1 nobody or cannot tell */
	uint32_t uncertainty_ns; /* clock error of the comparison */
	bool lower_bound;        /* members missing: at least this much */
	bool undirected;         /* messages whose partners are not on record: also a lower bound */
	bool outside;            /* it began before all its members recorded: also a lower bound */
};

struct lag_waits {
	struct lag_wait *launch; /* by launch index */
	size_t n;
	uint64_t n_within_error; /* comparisons withheld because the clock error is larger */
	uint64_t n_contradicted; /* waits withheld: the last came after the end, by these clocks */
	uint64_t n_incomplete;   /* launches with members missing */
	uint64_t n_undirected;   /* launches of messages whose partners are not on record */
	uint64_t n_outside;      /* launches that began before all members recorded */
};

enum lag_status lag_waits_compute(const struct lag_trace *trace, struct lag_waits *out,
				  struct lag_err *err) LAG_MUST_USE;
void lag_waits_release(struct lag_waits *waits);

#endif

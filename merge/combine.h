/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make one process of two recordings of it, by different tools. */
#ifndef MERGE_COMBINE_H
#define MERGE_COMBINE_H

#include "merge/state.h"

/* A stretch of host time: a communication call (key 0), a launch of a communication kernel (key 0), or
 * something that both sources recorded (key: hash of its name; until_ns == from_ns). */
struct lag_mark {
	uint64_t key;
	int64_t from_ns, until_ns;
	int64_t id;   /* call: op_id or group_id; launch: index of the kernel */
	uint8_t func; /* LAG_FUNC_UNKNOWN: may be any */
};

/* What is to be added to the donor's times to have them on the base's clock. */
struct lag_combine_clock {
	bool told;
	int64_t offset_ns, uncertainty_ns;
	size_t n, n_agree; /* cases that were looked at, and those that agree */
	const char *by;    /* what they are: "launches inside communication calls" */
};

/* Communication calls of a part (outermost groups, single operations), by time: struct lag_mark. */
enum lag_status lag_combine_calls(const struct lag_part *part, struct lag_vec *out) LAG_MUST_USE;

/* Launch calls of its communication kernels, but for those of graphs, by time: struct lag_mark. */
enum lag_status lag_combine_launches(const struct lag_merge *m, const struct lag_part *part,
				     struct lag_vec *out) LAG_MUST_USE;

/* The nearest of marks (sorted by key and from_ns) to [from_ns, until_ns]; NULL: none of that key. */
const struct lag_mark *lag_combine_nearest(const struct lag_vec *marks, uint64_t key,
					   int64_t from_ns, int64_t until_ns);

/* How far the clocks of two recordings of one process are apart, from what both saw: communication calls
 * that must hold the launches of their kernels, kernels, annotations. Times within 200 us of one offset
 * agree; told where nine of ten cases do, of three at least. */
enum lag_status lag_combine_clocks(const struct lag_merge *m, const struct lag_part *base,
				   const struct lag_part *donor,
				   struct lag_combine_clock *out) LAG_MUST_USE;

/* Makes one process of two recordings of one rank by different tools, where they are known to be of one
 * process; the other one is unused afterwards and says so. */
enum lag_status lag_merge_combine(struct lag_merge *m) LAG_MUST_USE;

#endif

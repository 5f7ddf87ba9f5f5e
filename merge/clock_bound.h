/* SPDX-License-Identifier: Apache-2.0 */
/* Causality bounds: nothing ends before what it needs has begun. From single constraints between
 * two hosts to the interval in which each host's correction must lie. */
#ifndef MERGE_CLOCK_BOUND_H
#define MERGE_CLOCK_BOUND_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

/* error(later) - error(earlier) <= slack_ns at x, where error is what a host's corrected time is
 * still off: `earlier` has ended something that cannot end before `later` started. */
struct lag_bound_limit {
	uint32_t earlier, later; /* hosts: whose end, whose start */
	double x, slack_ns;
};

struct lag_bound {
	double lo_ns, hi_ns; /* +-INFINITY where nothing limits */
};

/* Between which moments around x a host's residual error is taken to be a line over x. */
struct lag_bound_window {
	double from, until;
};

/* When, and against whom; windows (by host) may be NULL: the whole run. */
struct lag_bound_moment {
	uint32_t reference;
	double x;
	const struct lag_bound_window *windows;
};

/* Limits must be sorted by lag_bound_order. The result (n_hosts) holds at that moment. Limits that contradict each other are
 * relaxed by the smallest equal amount; *relaxed_ns gets the largest such amount. */
enum lag_status lag_bound_solve(const struct lag_bound_limit *limits, size_t n, uint32_t n_hosts,
				const struct lag_bound_moment *at, struct lag_bound *bounds,
				double *relaxed_ns, struct lag_err *err) LAG_MUST_USE;

/* qsort order: by unordered pair of hosts. */
int lag_bound_order(const void *a, const void *b);

#endif

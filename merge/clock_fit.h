/* SPDX-License-Identifier: Apache-2.0 */
/* Robust least squares of one line per host: moments that several hosts saw at (nearly) the same
 * time in, offset and drift of each host against a reference host out. Hosts need not all share one
 * group: the graph of groups joins them. */
#ifndef MERGE_CLOCK_FIT_H
#define MERGE_CLOCK_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

/* One host's reading of a group's common moment. */
struct lag_fit_obs {
	uint32_t host;
	double x;        /* when, on a scale of about -1..1 over the run */
	double y_ns;     /* the host's reading, relative to any origin of the group */
	double weight;   /* 1 / variance, in 1 / ns^2; errors that repeat in each group included */
	double noise_ns; /* by which single readings scatter: what is beyond it counts less */
};

/* Observations [first, first + n) belong together. */
struct lag_fit_group {
	size_t first;
	uint32_t n;
};

struct lag_fit_problem {
	uint32_t n_hosts, reference;
	const struct lag_fit_obs *obs;
	size_t n_obs;
	const struct lag_fit_group *groups;
	size_t n_groups;
	double slope_weight; /* 1 / variance of the prior drift, in 1 / ns^2 per unit of x */
};

/* correction(x) = offset_ns + slope_ns * x; added to the host's reading. */
struct lag_fit_line {
	double offset_ns, slope_ns;
	/* Information that the host's observations carry: sums of w, w x, w x^2. */
	double sw, swx, swxx;
	uint32_t n_obs;
};

/* Fills lines (n_hosts) and residual_out (n_obs, may be NULL): the corrected reading minus its group's
 * mean. The reference's line stays zero. `scale` gets the robust ratio of residuals to noise. */
enum lag_status lag_fit_solve(const struct lag_fit_problem *p, struct lag_fit_line *lines,
			      double *residual_out, double *scale,
			      struct lag_err *err) LAG_MUST_USE;

/* Variance of a line's value at x, from its information (times scale^2 for the data's own noise). */
double lag_fit_variance(const struct lag_fit_line *line, double slope_weight, double x);

/* Middle value; reorders v. n == 0 gives 0. */
double lag_fit_median(double *v, size_t n);

#endif

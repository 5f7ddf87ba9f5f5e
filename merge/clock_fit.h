/* SPDX-License-Identifier: Apache-2.0 */
/* Robust least squares of one curve per host: moments that several hosts saw at (nearly) the same
 * time in, each host's correction against a reference host out. Hosts need not all share one group:
 * the graph of groups joins them, and errors add up along it. */
#ifndef MERGE_CLOCK_FIT_H
#define MERGE_CLOCK_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/mem.h"

/* One host's reading of a group's common moment. */
struct lag_fit_obs {
	uint32_t host;
	double x;        /* when, on a scale of about -1..1 over the run */
	double y_ns;     /* the host's reading, relative to any origin of the group */
	double weight;   /* 1 / variance, in 1 / ns^2; errors that repeat in each group included */
	double noise_ns; /* by which single readings scatter */
	double limit_ns; /* by which they may be off, repeated errors included: beyond it they count less */
};

/* Observations [first, first + n) belong together. */
struct lag_fit_group {
	size_t first;
	uint32_t n;
};

/* Where a host's clock changed its rate (its correction bends, and stays continuous) or was set. */
struct lag_fit_knot {
	uint32_t host;
	bool step;
	double x;
	double reach; /* it happened within x +- reach */
};

/* One curve per host: correction(x) = offset + slope x + sum over its knots of c max(0, x - knot) or,
 * where it was set, c for x >= knot; added to the host's reading. */
struct lag_fit_model {
	uint32_t n_hosts;
	struct lag_vec knots; /* struct lag_fit_knot, by host, then x */
	uint32_t *first_knot; /* n_hosts + 1 */
	double *coef;         /* by host: offset, slope, one a knot; see lag_fit_first */
	uint32_t *n_obs;      /* by host */
	/* Of the parameters, as far as single readings scatter: square of lag_fit_size, in ns^2. NULL: too
	 * many hosts for one. */
	double *covariance;
	double *repeated; /* by host: variance of what each of its readings may be off alike, in ns^2 */
	double *info;     /* by host: sums of w, w x, w x^2 over its observations */
	double belief_weight;
};

struct lag_fit_problem {
	uint32_t n_hosts;
	const bool *
		fixed; /* by host: its correction is zero: what is joined to it is put on its clock */
	const struct lag_fit_obs *obs;
	size_t n_obs;
	const struct lag_fit_group *groups;
	size_t n_groups;
	/* 1 / variance of the prior drift, in 1 / ns^2 per unit of x: next to nothing, so that data win;
	 * and what is really believed, for the variances. */
	double slope_weight, belief_weight;
};

/* All corrections zero, no knots. */
enum lag_status lag_fit_init(struct lag_fit_model *model, uint32_t n_hosts,
			     struct lag_err *err) LAG_MUST_USE;
void lag_fit_release(struct lag_fit_model *model);

/* The knots to fit with from now on (copied, by host and x); corrections are undefined until the
 * next lag_fit_solve. */
enum lag_status lag_fit_set_knots(struct lag_fit_model *model, const struct lag_fit_knot *knots,
				  size_t n, struct lag_err *err) LAG_MUST_USE;

/* Number of parameters, and index of a host's first. */
size_t lag_fit_size(const struct lag_fit_model *model);
size_t lag_fit_first(const struct lag_fit_model *model, uint32_t host);
/* A host's knots. */
const struct lag_fit_knot *lag_fit_knots(const struct lag_fit_model *model, uint32_t host,
					 uint32_t *n);

/* Factor of a host's k-th parameter at x. */
static inline double lag_fit_basis(const struct lag_fit_model *model, uint32_t host, uint32_t k,
				   double x)
{
	const struct lag_fit_knot *knot;

	if (k < 2)
		return k ? x : 1;
	knot = &LAG_VEC_AT(&model->knots, struct lag_fit_knot, model->first_knot[host] + k - 2);
	if (x < knot->x)
		return 0;
	return knot->step ? 1 : x - knot->x;
}

double lag_fit_value(const struct lag_fit_model *model, uint32_t host, double x);
/* Change of the correction with x, right of x. */
double lag_fit_slope(const struct lag_fit_model *model, uint32_t host, double x);

/* Fills coef and n_obs, and where `sure` all else but the knots, with more
 * care. residual_out (n_obs, may be NULL): the corrected reading minus its group's
 * mean; share_out (n_obs, may be NULL): what of that mean is the reading itself. `scale` gets the
 * robust ratio of residuals to noise. */
enum lag_status lag_fit_solve(const struct lag_fit_problem *p, struct lag_fit_model *model,
			      bool sure, double *residual_out, double *share_out, double *scale,
			      struct lag_err *err) LAG_MUST_USE;

/* Variance of a host's correction against its reference's at x, in ns^2, if single readings scatter as
 * their noise says, what they may all be off alike left out; INFINITY where nothing says. */
double lag_fit_variance(const struct lag_fit_model *model, uint32_t host, double x);

/* Middle value; reorders v. n == 0 gives 0. */
double lag_fit_median(double *v, size_t n);

/* What would stand at place k < n if v were in order; reorders v. */
double lag_fit_place(double *v, size_t n, size_t k);

#endif

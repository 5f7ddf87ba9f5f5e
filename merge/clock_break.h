/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where a host's clock changed its rate, or was set, from what a fit without it leaves over. */
#ifndef MERGE_CLOCK_BREAK_H
#define MERGE_CLOCK_BREAK_H

#include "merge/clock_fit.h"

struct lag_break_input {
	const struct lag_fit_problem *problem;
	const struct lag_fit_model *model; /* solved */
	const double *residual, *share;    /* of the solution; see lag_fit_solve */
	double min_step_ns; /* smaller steps may be a device's conversion, not its host's clock */
	double min_bend_ns; /* smaller bends are not worth a parameter: they are left to the uncertainty */
};

/* Adds to `knots` (by host, then x; those of the model are in it) at most one knot a host, of hosts
 * whose own change explains more than that of their neighbours would. *found: how many. Where a change
 * lies is known to the distance between the observations before and after. */
enum lag_status lag_break_find(const struct lag_break_input *in, struct lag_vec *knots,
			       size_t *found, struct lag_err *err) LAG_MUST_USE;

#endif

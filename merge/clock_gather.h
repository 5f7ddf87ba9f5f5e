/* SPDX-License-Identifier: Apache-2.0 */
/* From repaired times to the observations of the fit: ends of n-to-n collectives as groups of
 * simultaneous readings, and messages as two-way lines between pairs of hosts. */
#ifndef MERGE_CLOCK_GATHER_H
#define MERGE_CLOCK_GATHER_H

#include "merge/clock_fit.h"
#include "merge/clock_pair.h"
#include "merge/clock_view.h"

enum {
	LAG_CLOCK_WINDOWS = 40
};

/* What messages of one size say about hosts a < b; differences are relative to the hosts' origins. */
struct lag_clock_pair {
	uint32_t a, b;
	int64_t bytes;
	double x_from, x_until; /* by a's clock */
	struct lag_pair_line line;
	uint32_t n_windows; /* at x by a's clock, the messages around it lie off_ns from the line */
	double x[LAG_CLOCK_WINDOWS], off_ns[LAG_CLOCK_WINDOWS];
	double excess_ns; /* transfer beyond what this size takes between most hosts */
	bool in_fit;      /* its line is part of the fit, not a check of it */
};

struct lag_clock_gather {
	struct lag_vec obs;    /* struct lag_fit_obs */
	struct lag_vec groups; /* struct lag_fit_group; collectives first, in input order */
	struct lag_vec which;  /* size_t: collective of each of the first groups */
	struct lag_vec pairs;  /* struct lag_clock_pair, the best size of each pair of hosts */
	uint32_t *set;         /* by host: hosts joined by any observation share a number */
	uint32_t *often;       /* by host: the same for frequent collectives alone */
	uint32_t *ends;        /* by host: the same for n-to-n operations, however few */
	size_t n_exchanges;    /* groups that are exchanges of two */
	double *least_ns;      /* by communicator: shortest transfer of its collectives */
};

enum lag_status lag_clock_gather_init(struct lag_clock_gather *g, const struct lag_clock_view *view,
				      struct lag_err *err) LAG_MUST_USE;
void lag_clock_gather_release(struct lag_clock_gather *g);

/* Of a line: its noise, and what the two directions may differ by. */
double lag_clock_pair_variance(const struct lag_clock_pair *pair);

/* How far the messages of a pair put the clocks from where a fit puts them, on average. */
double lag_clock_pair_gap(const struct lag_clock_view *view, const struct lag_clock_pair *pair,
			  const struct lag_fit_model *model);

/* How far a message lies from its pair's line; false when its receiver came too late to say. */
bool lag_clock_message_residual(const struct lag_clock_view *view,
				const struct lag_clock_pair *pair,
				const struct lag_align_message *m, double *x, double *ns);

/* By how much the windows of a pair's messages lie around that distance (root of their mean square). */
double lag_clock_pair_scatter(const struct lag_clock_view *view, const struct lag_clock_pair *pair,
			      const struct lag_fit_model *model);

/* Lets a pair's messages take part in the fit. */
enum lag_status lag_clock_use_pair(struct lag_clock_gather *g, const struct lag_clock_view *view,
				   struct lag_clock_pair *pair, struct lag_err *err) LAG_MUST_USE;

/* By how much the ends of a collective may differ: a part of a ring of n members is late by its own
 * time, and by the hops that it has yet to go, which the communicator's shortest operation shows. */
double lag_clock_skew(const struct lag_clock_gather *g, const struct lag_clock_view *view,
		      const struct lag_align_collective *c);

#endif

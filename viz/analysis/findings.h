/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of the summary: each with what fixing it would win at most, collected from the tables of the
 * other analyses (by name, so that none is needed) and from the ledger. */
#ifndef VIZ_ANALYSIS_FINDINGS_H
#define VIZ_ANALYSIS_FINDINGS_H

#include "viz/analysis/analysis.h"

struct lag_found {
	const char *item; /* kind: "straggler", "imbalance", "exposed_comm", ... */
	char text[320];
	int64_t gain_ns; /* of one step; LAG_NONE not known */
	double share;    /* of the mean step that the gain was worked out on; NaN not known */
	int64_t rank;    /* LAG_NONE none */
};

struct lag_findings {
	struct lag_vec found;               /* struct lag_found, largest gain first */
	int64_t without_stragglers_gain_ns; /* of one step; LAG_NONE not known */
	bool spared;         /* exposed communication goes without the waiting for accused ranks */
	double bubble_ideal; /* share of the step; NaN n/a */
	bool accuses;        /* a straggler is named */
	bool stands;         /* something that had not ended holds up the job */
	bool unsure;         /* who is late cannot be told, of some rank at least */
	size_t n_compared;   /* ranks with a peer that does the same work */
	double most_ratio,
		slow_from; /* the slowest of them, v. its peers; NaN none; slow is from */
	int64_t most_rank;
	char withheld[160]; /* why blame is withheld; "" = it is not */
};

/* Mean ns of a step that one rank spends in each class, over ranks and chosen steps. */
struct lag_mean_step {
	double of[LAG_TIME_LIMIT], step_ns;
	double unsplit_ns;             /* part of the exposed transfer that may hold waiting */
	size_t n;                      /* ranks x steps behind it */
	size_t n_told[LAG_TIME_LIMIT]; /* of them such whose record can tell the class */
};

enum lag_status lag_mean_step_compute(struct lag_context *ctx, struct lag_mean_step *out,
				      struct lag_err *err) LAG_MUST_USE;

/* The same over the whole run, whatever was chosen: what gains of the replay are a part of. */
enum lag_status lag_mean_step_of_run(struct lag_context *ctx, struct lag_mean_step *out,
				     struct lag_err *err) LAG_MUST_USE;

enum lag_status lag_findings_collect(struct lag_context *ctx, const struct lag_mean_step *mean,
				     struct lag_findings *out, struct lag_err *err) LAG_MUST_USE;
void lag_findings_release(struct lag_findings *findings);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One analysis = one file = one line in analyses.def; report, CSV, JSON and TUI follow by themselves. */
#ifndef VIZ_ANALYSIS_ANALYSIS_H
#define VIZ_ANALYSIS_ANALYSIS_H

#include "viz/model/context.h"
#include "viz/model/table.h"

#define LAG_WHOLE_RUN 1U /* of all steps: habits and replays need the whole run */
#define LAG_ALL_RANKS 2U /* its rows are not of single ranks */

struct lag_analysis {
	const char *name;    /* as typed: "what-if" */
	const char *summary; /* one line for help */
	const struct lag_column *columns;
	size_t n_columns;
	/* Fills *out (initialised by lag_analysis_run). */
	enum lag_status (*run)(struct lag_context *ctx, struct lag_table *out, struct lag_err *err);
	unsigned ignores; /* of LAG_WHOLE_RUN, LAG_ALL_RANKS: the choice does not narrow it */
};

#define LAG_ANALYSIS(id, title) extern const struct lag_analysis lag_analysis_##id;
#include "viz/analysis/analyses.def"

extern const struct lag_analysis
	*const lag_analyses[]; /* NULL-terminated, in the order of analyses.def */

const struct lag_analysis *lag_analysis_find(const char *name); /* NULL = none */

/* Runs it. The table is the caller's to release, also after a failure. */
enum lag_status lag_analysis_run(const struct lag_analysis *analysis, struct lag_context *ctx,
				 struct lag_table *out, struct lag_err *err) LAG_MUST_USE;

#endif

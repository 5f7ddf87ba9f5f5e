/* SPDX-License-Identifier: Apache-2.0 */
/* Two merged traces of the same run shape, view by view: every analysis' table, matched by the keys of
 * diff_views.def. */
#ifndef VIZ_ANALYSIS_DIFF_RUNS_H
#define VIZ_ANALYSIS_DIFF_RUNS_H

#include "viz/analysis/analysis.h"
#include "viz/model/diff.h"

/* Can the two be compared? LAG_WARN: no, and *err says why (ranks, layout). */
enum lag_status lag_diff_comparable(struct lag_context *a, struct lag_context *b,
				    struct lag_err *err) LAG_MUST_USE;

/* Does a compared table have the column that n bytes name, "start_ns" or "kernels.share"? */
bool lag_diff_has_column(const char *entry, size_t n);

/* Adds a view for each analysis in `names` ("kernels,steps"; NULL = all). LAG_ERR_USAGE: no such one. */
enum lag_status lag_diff_runs(struct lag_diff *diff, struct lag_context *a, struct lag_context *b,
			      const char *names, struct lag_err *err) LAG_MUST_USE;

/* After lag_diff_finish. One row a view: how many rows are the same, added, removed, changed. */
enum lag_status lag_diff_summary_table(const struct lag_diff *diff, struct lag_table *out,
				       struct lag_err *err) LAG_MUST_USE;

/* The changes that were kept, biggest first. exact: numbers for programs, in the unit that each row names,
 * rather than as people read them. */
enum lag_status lag_diff_changes_table(const struct lag_diff *diff, bool exact,
				       struct lag_table *out, struct lag_err *err) LAG_MUST_USE;

#endif

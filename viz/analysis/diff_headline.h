/* SPDX-License-Identifier: Apache-2.0 */
/* Did the change help? The lines of a comparison that answer it. */
#ifndef VIZ_ANALYSIS_DIFF_HEADLINE_H
#define VIZ_ANALYSIS_DIFF_HEADLINE_H

#include "viz/analysis/analysis.h"

/* One row each for the mean step, the classes of its time, ranks whose verdict changed, and findings that
 * came, went or changed, with what fixing them wins. exact: numbers in ns for programs. *step_ns is A's
 * mean step, 0 not known. */
enum lag_status lag_diff_headline(struct lag_context *a, struct lag_context *b, bool exact,
				  struct lag_table *out, int64_t *step_ns,
				  struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the whole run that several views use: the typical step, clock error, warnings.
 * Computed once; nothing to release. */
#ifndef VIZ_TUI_FACTS_H
#define VIZ_TUI_FACTS_H

#include "viz/tui/tui.h"

struct lag_facts {
	size_t n_complete;      /* steps that every recorded rank has whole */
	int64_t step_median_ns; /* start to end over all ranks; LAG_NONE: no complete step */
	size_t median_step;     /* the complete step nearest the median */
	int n_recorded, n_ranks, n_hosts;
	int64_t clock_ns; /* worst clock uncertainty; LAG_NONE: one host, or unknown */
	int n_warnings;   /* rows of the trust analysis */
	int n_errors, n_notes;
	size_t n_steps;
	bool stands; /* communication is on record that had not ended */
};

enum lag_status lag_facts_compute(const struct lag_tui_data *data, struct lag_facts *out,
				  struct lag_err *err) LAG_MUST_USE;
#endif

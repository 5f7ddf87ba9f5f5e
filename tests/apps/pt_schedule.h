/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a pipeline stage works through its microbatches: GPipe, 1F1B, and interleaved
 * 1F1B (Narayanan et al., SC'21). Pure functions. */
#ifndef LAG_TESTS_APPS_PT_SCHEDULE_H
#define LAG_TESTS_APPS_PT_SCHEDULE_H

#include "tests/apps/pt_options.h"

struct pt_act {
	bool backward;
	int chunk, mb;
};

/* Number of actions of a stage in one step: a forward and a backward for each chunk and microbatch. */
int pt_schedule_size(const struct pt_options *opt);
/* Writes pt_schedule_size() actions of one stage, in order. */
void pt_schedule_fill(const struct pt_options *opt, int stage, struct pt_act *acts);
/* The stage that act's input comes from, and that its result goes to; -1 at the model's ends. */
int pt_act_source(const struct pt_options *opt, int stage, struct pt_act act);
int pt_act_target(const struct pt_options *opt, int stage, struct pt_act act);
/* Index of act's message among those of its direction: below microbatches x chunks. */
int pt_act_slot(const struct pt_options *opt, struct pt_act act);

#endif

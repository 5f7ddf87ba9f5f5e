/* SPDX-License-Identifier: Apache-2.0 */
/* The ladder from the ideal bubble to the measured one: the executed order of one pipeline group in
 * one step, replayed with more and more of what really happened. */
#ifndef VIZ_ANALYSIS_BUBBLE_LADDER_H
#define VIZ_ANALYSIS_BUBBLE_LADDER_H

#include "viz/model/context.h"

/* In the order in which they are added; the order is part of the definition. */
enum lag_rung {
	LAG_RUNG_IDEAL = 0, /* every stage takes the same: mean of the stages' own times */
	LAG_RUNG_IMBALANCE, /* each stage takes what its sound ranks take (medians) */
	LAG_RUNG_SLOW,      /* each rank takes what it usually takes itself */
	LAG_RUNG_VARIATION, /* each forward and backward takes what it took */
	LAG_RUNG_SEND_RECV, /* inputs come by messages that take time and queue behind others */
	LAG_RUNG_HOST,      /* gaps inside blocks, and launches that came late */
	LAG_RUNG_LIMIT,
};

/* What all groups and steps share; made once an analysis. */
struct lag_ladder;

enum lag_status lag_ladder_new(struct lag_context *ctx, struct lag_ladder **out,
			       struct lag_err *err) LAG_MUST_USE;
void lag_ladder_free(struct lag_ladder *ladder);

/* Messages of the group come from or go to ranks that are not on record: there are stages that nobody has
 * seen, and nothing can be said about its bubbles. */
bool lag_ladder_is_cut(const struct lag_ladder *ladder, size_t group);

struct lag_ladder_stage {
	int64_t bubble_ns[LAG_RUNG_LIMIT]; /* of the window, at each rung */
	int64_t ideal_window_ns;           /* of the first rung */
	int64_t window_ns, measured_ns;
	int64_t warm_up_ns, cool_down_ns; /* parts of measured_ns */
};

/* One group's stages in one step (room for its n_stages). LAG_END: the group is cut, or has no
 * whole schedule in this step. */
enum lag_status lag_ladder_climb(struct lag_ladder *ladder, size_t group, size_t step,
				 struct lag_ladder_stage *out) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The aligner's input from a merge's state. */
#ifndef MERGE_CLOCK_OBSERVE_H
#define MERGE_CLOCK_OBSERVE_H

#include "merge/state.h"

struct lag_observations {
	const struct lag_merge *m;
	struct lag_vec members, collectives, messages, brackets, states, steps;
	struct lag_align_input in; /* borrows all of them, and the merge's devices */
};

enum lag_status lag_observe(struct lag_merge *m, struct lag_observations *o,
			    struct lag_err *err) LAG_MUST_USE;
void lag_observations_release(struct lag_observations *o);

/* The member that a reference stands for; NULL for 0. */
const struct lag_instance_member *lag_observe_member(const struct lag_merge *m, uint32_t ref);
/* What executed a member's operation. */
const struct lag_launch *lag_observe_launch(const struct lag_merge *m,
					    const struct lag_instance_member *at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Where no observation joins hosts, what their time daemons said of their clocks does: two clocks that
 * are within some time of UTC each are within the sum of each other. */
#ifndef MERGE_CLOCK_PRIOR_H
#define MERGE_CLOCK_PRIOR_H

#include "merge/clock_gather.h"

/* set: by host, what observations join shares a number. Shifts the curves of hosts that are not joined
 * to the reference onto its clock where both sides have a word on UTC. error_ns (by host): 0 for hosts
 * that are joined, the stated error for those that UTC joins, INFINITY for the rest. *contradicted:
 * hosts whose word the observations deny, by at most *worst_ns more than they admit; what is stated is
 * then at least that. */
enum lag_status lag_clock_prior(const struct lag_clock_view *view, const uint32_t *set,
				uint32_t reference, struct lag_fit_model *model, double *error_ns,
				uint32_t *contradicted, double *worst_ns,
				struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How far the corrected times of each device can be off, by moment. Devices convert their times to
 * the host clock with errors of their own that nothing here may correct: what shows of them in
 * collectives' ends, and what must be assumed from it, becomes uncertainty. */
#ifndef MERGE_CLOCK_TRUST_H
#define MERGE_CLOCK_TRUST_H

#include "merge/clock_sample.h"

struct lag_clock_trust {
	struct lag_vec rows; /* struct lag_align_device, by device, then from_ns (repaired times) */
	double *host_ns;     /* by host: worst of its devices while it was observed; < 0 unknown */
	double device_ns;    /* standard error of one device's conversion */
	double arriver_ns;   /* ends move by this with who came last; < 0 cannot tell */
};

enum lag_status lag_clock_trust_init(struct lag_clock_trust *t, const struct lag_clock_solved *s,
				     struct lag_err *err) LAG_MUST_USE;
void lag_clock_trust_release(struct lag_clock_trust *t);

#endif

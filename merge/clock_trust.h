/* SPDX-License-Identifier: Apache-2.0 */
/* How far the corrected times of each device can be off, by moment. Devices convert their times to
 * the host clock with errors of their own that nothing here may correct: what shows of them in
 * collectives' ends, and what must be assumed from it, becomes uncertainty. */
#ifndef MERGE_CLOCK_TRUST_H
#define MERGE_CLOCK_TRUST_H

#include "merge/clock_fit.h"
#include "merge/clock_gather.h"

struct lag_clock_trust {
	struct lag_vec rows; /* struct lag_align_device, by device, then from_ns (repaired times) */
	double *host_ns;     /* by host: worst of its devices; < 0 unknown */
	double device_ns;    /* standard error of one device's conversion, as far as ends show it */
	double skew_ns;      /* by which ends or directions may differ always the same way */
	double factor;       /* from standard errors to stated uncertainty (99 %) */
	double arriver_ns;   /* lines by last arriver differ by this; < 0 cannot tell */
};

struct lag_clock_solved {
	const struct lag_clock_view *view;
	const struct lag_clock_gather *gather;
	const struct lag_fit_line *lines;
	uint32_t reference;
	double slope_weight, scale;
};

/* Corrected time relative to the reference's origin. */
double lag_clock_corrected(const struct lag_clock_solved *s, uint32_t host, int64_t repaired_ns);

enum lag_status lag_clock_trust_init(struct lag_clock_trust *t, const struct lag_clock_solved *s,
				     struct lag_err *err) LAG_MUST_USE;
void lag_clock_trust_release(struct lag_clock_trust *t);

#endif

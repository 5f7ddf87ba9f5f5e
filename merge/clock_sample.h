/* SPDX-License-Identifier: Apache-2.0 */
/* What a solved alignment shows about single devices: how far their ends lie from the reference's,
 * and from that, how far one device's conversion to its host's clock is off. */
#ifndef MERGE_CLOCK_SAMPLE_H
#define MERGE_CLOCK_SAMPLE_H

#include "merge/clock_fit.h"
#include "merge/clock_gather.h"

struct lag_clock_solved {
	const struct lag_clock_view *view;
	const struct lag_clock_gather *gather;
	const struct lag_fit_line *lines;
	uint32_t reference;
	double slope_weight, scale;
};

/* A device's end in one collective, minus the mean of the reference's devices (of all hosts, where
 * the reference takes no part). */
struct lag_clock_sample {
	uint32_t device;
	double x, err_ns, weight;
	int64_t at_ns; /* repaired */
};

struct lag_clock_samples {
	struct lag_vec across; /* struct lag_clock_sample, by device, then x */
	double device_ns;      /* standard error of one device's conversion */
	double freedom;        /* degrees of freedom behind device_ns */
	double arriver_ns;     /* ends of hosts move by this with who came last; < 0 cannot tell */
};

/* Corrected time relative to the reference's origin. */
double lag_clock_corrected(const struct lag_clock_solved *s, uint32_t host, int64_t repaired_ns);

enum lag_status lag_clock_samples_init(struct lag_clock_samples *out,
				       const struct lag_clock_solved *s,
				       struct lag_err *err) LAG_MUST_USE;
void lag_clock_samples_release(struct lag_clock_samples *samples);

#endif

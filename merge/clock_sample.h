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
	const struct lag_fit_model *model;
	const bool *
		fixed; /* by host: keeps its own clock; one for each set of hosts that are joined */
	const double
		*prior_ns; /* by host: error of the tie to the reference; see lag_clock_prior */
	uint32_t reference;
	double scale;
};

/* A device's end in one collective, minus the mean of the reference's devices (of all hosts, where
 * the reference takes no part; of the others, for a reference of one device), and minus the mean of its
 * own host's. */
struct lag_clock_sample {
	uint32_t device;
	double x, err_ns, own_ns, weight;
	int64_t at_ns; /* repaired */
};

struct lag_clock_samples {
	struct lag_vec across; /* struct lag_clock_sample, by device, then x */
	double device_ns;      /* standard error of one device's conversion */
	bool blind;            /* that is a guess: no host shows two devices */
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

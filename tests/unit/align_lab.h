/* SPDX-License-Identifier: Apache-2.0 */
/* A laboratory for clock alignment: communications of a pipelined run made in memory in true time and
 * shown on clocks that are off, so that every estimate can be held against the truth. */
#ifndef TESTS_UNIT_ALIGN_LAB_H
#define TESTS_UNIT_ALIGN_LAB_H

#include "merge/align.h"
#include "schema/base/mem.h"

struct lag_lab_opts {
	uint64_t seed;
	uint32_t hosts, per_host; /* stage = host; the host's ranks are the DP group of its stage */
	int steps, microbatches;
	double step_ms;
	double offset_ms, drift_ppm; /* uniform, either sign */
	double device_us, step_us; /* conversion error, uniform; a step of that size, either sign */
	double hop_us;             /* between hosts; a fifth of it inside one */
	double transfer_us;        /* of a message */
	int world_every;           /* steps from one world all-reduce to the next; 0 = none */
	bool straggler;            /* one rank comes last to each world all-reduce */
	bool first_last;           /* else stage 0 does, as in a pipeline */
	bool dp;                   /* a reduction inside each host a step */
	bool own_brackets;         /* devices' own clocks are bracketed */
	double set_clock_ms;       /* the last host's wall clock is set by this much half way */
	bool late_receivers;       /* most receives start after their sends */
	bool no_messages;
	double slow_way; /* factor on messages from host 1 to 2, not back; 0 = none */
};

struct lag_lab_clock {
	double offset_ns, drift;
	int64_t set_at_ns, set_by_ns;
};

struct lag_lab_device {
	double before_ns, after_ns;
	int64_t step_at_ns; /* true time */
};

struct lag_lab {
	struct lag_lab_opts opts;
	struct lag_align_input in;
	struct lag_vec members, collectives, messages, brackets;
	uint32_t *device_host;
	struct lag_lab_clock *clocks;
	struct lag_lab_device *devices;
	int64_t length_ns;
	uint64_t random;
};

/* A run as the acceptance tests describe it: 4 hosts x 2 ranks; PP across hosts, DP inside. */
struct lag_lab_opts lag_lab_defaults(uint64_t seed);

/* Exits the test program without memory: it is a test's helper. */
void lag_lab_make(struct lag_lab *lab, const struct lag_lab_opts *opts);
void lag_lab_release(struct lag_lab *lab);

/* What a host's wall clock, and times of one of its devices, show at a true time. */
int64_t lag_lab_host_ns(const struct lag_lab *lab, uint32_t host, int64_t true_ns);
int64_t lag_lab_device_ns(const struct lag_lab *lab, uint32_t device, int64_t true_ns);

struct lag_lab_score {
	size_t n, covered; /* (device, moment) samples; error within the stated uncertainty */
	size_t n_bounds, outside;      /* segments; true correction outside the causality bound */
	struct lag_vec errors, stated; /* double, ns */
};

/* Adds one result's samples. */
void lag_lab_judge(const struct lag_lab *lab, const struct lag_align_result *res,
		   struct lag_lab_score *score);
void lag_lab_score_init(struct lag_lab_score *score);
void lag_lab_score_release(struct lag_lab_score *score);
/* q-quantile; reorders v. */
double lag_lab_quantile(struct lag_vec *v, double q);

#endif

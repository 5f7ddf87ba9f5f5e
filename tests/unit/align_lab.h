/* SPDX-License-Identifier: Apache-2.0 */
/* A laboratory for clock alignment: communications of a training run made in memory in true time and
 * shown on clocks that are off, so that every estimate can be held against the truth. */
#ifndef TESTS_UNIT_ALIGN_LAB_H
#define TESTS_UNIT_ALIGN_LAB_H

#include "merge/align.h"
#include "schema/base/mem.h"

/* Which communicators there are besides the pipeline's messages (stage = host, unless it says else). */
enum lag_lab_shape {
	LAG_LAB_WORLD,     /* one of all ranks; a reduction inside each host */
	LAG_LAB_DP_ACROSS, /* tensor parallel inside a host; the k-th ranks of a stage's hosts reduce */
	LAG_LAB_NEIGHBOURS, /* all ranks of two neighbouring hosts: a chain */
	LAG_LAB_HALVES,     /* two halves of the hosts that nothing joins */
};

enum lag_lab_spread {
	LAG_LAB_RING,    /* stepped through hop by hop */
	LAG_LAB_TREE,    /* ends go down from a root */
	LAG_LAB_ORDERED, /* rank k always ends k times the same later */
};

struct lag_lab_opts {
	uint64_t seed;
	uint32_t hosts, per_host;
	enum lag_lab_shape shape;
	enum lag_lab_spread spread;
	int steps, microbatches;
	double step_ms;
	double offset_ms, drift_ppm; /* uniform, either sign */
	int n_bends;                 /* of each clock but the first host's */
	double bend_ppm;             /* by at most so much, at least a third of it */
	double wave_ppm;             /* of a rate that swings, once over the run */
	double device_us, step_us; /* conversion error, uniform; a step of that size, either sign */
	double hop_us;             /* between hosts; a fifth of it inside one */
	double transfer_us;        /* of a message */
	int world_every;           /* steps from one reduction over hosts to the next; 0 = none */
	bool straggler;            /* one rank comes last to each world reduction */
	bool first_last;           /* else stage 0 does, as in a pipeline */
	bool dp;                   /* a reduction inside each host a step */
	bool own_brackets;         /* devices' own clocks are bracketed */
	bool no_brackets;          /* as in an imported trace */
	double set_clock_ms;       /* a host's wall clock is set by this much, about half way */
	uint32_t set_host;         /* which; the last one unless it is set below */
	bool late_receivers;       /* most receives start after their sends */
	bool no_messages, one_way; /* none; downstream only */
	double slow_way;           /* factor on messages from host 1 to 2, not back; 0 = none */
	int thin;                  /* of each `thin` operations one is kept; 0, 1 = all */
	bool lose_rank, cut_rank;  /* one rank recorded nothing; nothing after half of the run */
	double state_error_ms; /* hosts say that they are within this of UTC, and are; 0 = silent */
	bool state_some;       /* only the even ones say so */
};

#define LAG_LAB_BENDS 4

struct lag_lab_clock {
	double offset_ns, drift;
	int n_bends;
	int64_t bend_at_ns[LAG_LAB_BENDS];
	double bend_by[LAG_LAB_BENDS]; /* change of the drift */
	double wave, wave_phase;
	int64_t set_at_ns, set_by_ns;
};

struct lag_lab_device {
	double before_ns, after_ns;
	int64_t step_at_ns; /* true time */
};

struct lag_lab {
	struct lag_lab_opts opts;
	struct lag_align_input in;
	struct lag_vec members, collectives, messages, brackets, states;
	uint32_t *device_host;
	struct lag_lab_clock *clocks;
	struct lag_lab_device *devices;
	int64_t length_ns;
	uint64_t random;
	size_t made; /* operations, those thinned out included */
};

/* A run as the acceptance tests describe it: 4 hosts x 2 ranks; PP across hosts, DP inside. */
struct lag_lab_opts lag_lab_defaults(uint64_t seed);

/* Exits the test program without memory: it is a test's helper. */
void lag_lab_make(struct lag_lab *lab, const struct lag_lab_opts *opts);
void lag_lab_release(struct lag_lab *lab);
void *lag_lab_push(struct lag_vec *v);

double lag_lab_uniform(struct lag_lab *lab, double lo, double hi);
double lag_lab_exponential(struct lag_lab *lab, double mean);
double lag_lab_normal(struct lag_lab *lab, double sigma);

/* What a host's wall clock, and times of one of its devices, show at a true time. */
int64_t lag_lab_host_ns(const struct lag_lab *lab, uint32_t host, int64_t true_ns);
int64_t lag_lab_device_ns(const struct lag_lab *lab, uint32_t device, int64_t true_ns);

/* Fills the communications of one step. */
void lag_lab_step(struct lag_lab *lab, int k);

struct lag_lab_score {
	size_t n, covered; /* (device, moment) samples; error within the stated uncertainty */
	size_t n_silent,
		right; /* of devices that nothing joins; it was said that nothing is known */
	size_t n_bounds, outside;      /* segments; true correction outside the causality bound */
	struct lag_vec errors, stated; /* double, ns; of samples with a statement */
};

/* Adds one result's samples: moments over the run, its ends included. The common clock is the reference
 * host's; where that has one device, as this device shows it on average. */
void lag_lab_judge(const struct lag_lab *lab, const struct lag_align_result *res,
		   struct lag_lab_score *score);
void lag_lab_score_init(struct lag_lab_score *score);
void lag_lab_score_release(struct lag_lab_score *score);
/* q-quantile; reorders v. */
double lag_lab_quantile(struct lag_vec *v, double q);

#endif

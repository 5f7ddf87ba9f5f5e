/* SPDX-License-Identifier: Apache-2.0 */
/* What the comparison of ranks takes apart: which kernels, what the others take, step by step. */
#ifndef VIZ_MODEL_PEERS_INTERNAL_H
#define VIZ_MODEL_PEERS_INTERNAL_H

#include "viz/model/peers.h"

struct lag_peers_keys {
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	const struct lag_roles *roles;
	struct lag_peers *peers; /* key and n_keys are filled; key has room for every gpu event */
	uint8_t *left_out;       /* by gpu event, zeroed: not compared, runs beside communication */
};

enum lag_status lag_peers_find_keys(struct lag_peers_keys *w) LAG_MUST_USE;

struct lag_rank_value {
	double mean;
	size_t r;
};

/* What the other ranks take, for each rank that has a value: of the job, and of its stage. */
struct lag_others {
	const struct lag_roles *roles;
	struct lag_rank_value *values; /* in: of up to n_ranks ranks, each once */
	double *job, *stage;           /* out, by rank index; NAN: there are no others */
	size_t *n_job, *n_stage;       /* out, by rank index: how many others */
	struct lag_rank_value *of_stage;
	double *sums;
};

enum lag_status lag_others_init(struct lag_others *o, const struct lag_roles *roles,
				size_t n_ranks) LAG_MUST_USE;
void lag_others_release(struct lag_others *o);

/* Of the first n values, which it uses up; only the ranks among them are written. */
void lag_others_find(struct lag_others *o, size_t n);

/* Each step's compute of a rank against what its peers take for the same kernels in the same step: fills
 * peers->step_ratio. */
struct lag_peers_steps {
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	struct lag_peers *peers; /* key, n_keys */
	const uint8_t *left_out; /* by gpu event */
	const double *job_ratio; /* [key * n_ranks + r]: NAN = only its stage is comparable */
	struct lag_others *others;
};

enum lag_status lag_peers_compare_steps(const struct lag_peers_steps *in) LAG_MUST_USE;

#endif

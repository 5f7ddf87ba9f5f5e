/* SPDX-License-Identifier: Apache-2.0 */
/* Who is slow, from peers that do the same work: ranks of one stage, kernel by kernel (name and
 * launch configuration). Arriving last is no part of it. */
#ifndef VIZ_MODEL_PEERS_H
#define VIZ_MODEL_PEERS_H

#include "viz/model/roles.h"
#include "viz/model/steps.h"
#include "viz/model/trace.h"

/* Sound GPUs of one kind differ by about 1.5 % (sigma). One is called slow when it exceeds the others
 * (the mean of their middle third) by three times that, times what that mean itself varies: 1.050
 * against seven others, 1.064 against one. */
#define LAG_GPU_SPREAD   0.015
#define LAG_SLOW_MARGIN  0.0455
#define LAG_SLOW_V_STAGE 1.02 /* and at least this much against its own stage */
#define LAG_SLOW_WORK    1.05 /* more work than the peers: the data differ */
#define LAG_SLOW_STEP    1.15 /* a single step far off the rank's own usual */

enum lag_peer_state {
	LAG_PEER_SAME = 0,
	LAG_PEER_SLOW,    /* every kernel takes longer than on its peers: the GPU */
	LAG_PEER_MORE,    /* only some kernels, or more of them: other data */
	LAG_PEER_ALONE,   /* no rank does the same work: nothing to compare with */
	LAG_PEER_UNUSUAL, /* no peer in its stage, and more work than other stages: rank or stage */
};

struct lag_peer {
	enum lag_peer_state state;
	uint32_t n_peers; /* recorded ranks of the same stage, without itself */
	double ratio; /* of the kernels that the data do not change, v. the others of its stage */
	double job_ratio; /* the same v. all ranks that run these kernels; NAN: fewer than four */
	uint32_t n_compared; /* how many others the better of the two ratios rests on */
	double work_ratio;   /* whole compute time a step v. the others of its stage */
	double slow_from;    /* a step counts as slow from this ratio on */
	uint32_t steps_seen; /* complete steps with compute of this rank */
	uint32_t steps_slow; /* of them slower than expected by half of what the rank is slower */
};

struct lag_peers {
	struct lag_peer *ranks; /* by rank index */
	/* [step * n_ranks + r]: compute v. what its peers take for the same kernels in that step; NAN none */
	float *step_ratio;
	size_t n_ranks, n_steps;
	int32_t *key; /* by gpu event: which kernel; -1: not compute, or in no step */
	size_t n_keys;
	double *mean;      /* [key * n_ranks + r]: mean duration, NAN where it does not run */
	double *reference; /* the same: what its peers take (the rank itself left out), NAN unknown */
};

enum lag_status lag_peers_find(const struct lag_trace *trace, const struct lag_steps *steps,
			       const struct lag_roles *roles, struct lag_peers *out,
			       struct lag_err *err) LAG_MUST_USE;
void lag_peers_release(struct lag_peers *peers);

/* Ratio from which on the rank's GPU is called slow, by how many others it is compared with. */
double lag_peers_slow_from(const struct lag_peer *peer);

/* Duration of gpu event i had its rank been like its peers; the measured one where unknown. */
int64_t lag_peers_duration(const struct lag_peers *peers, const struct lag_trace *trace, size_t i);

/* Median of n values (which are reordered); NAN for none. */
double lag_median(double *values, size_t n);

#endif

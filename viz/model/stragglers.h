/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on ranks: who is slow (from peers), how often, what it costs (from the replay), and who
 * waited for whom (from arrivals; this explains, it does not accuse). */
#ifndef VIZ_MODEL_STRAGGLERS_H
#define VIZ_MODEL_STRAGGLERS_H

#include "viz/model/trace.h"

struct lag_context;

enum lag_verdict {
	LAG_VERDICT_NONE = 0,
	LAG_VERDICT_CHRONIC,     /* in at least four of five steps */
	LAG_VERDICT_ROTATING,    /* again and again, not always */
	LAG_VERDICT_ONE_OFF,     /* in at most two steps, or one in ten */
	LAG_VERDICT_CANNOT_TELL, /* no peer in its stage: rank or stage */
	LAG_VERDICT_WITHHELD,    /* ranks of the job are not on record */
};

enum lag_cause {
	LAG_CAUSE_NONE = 0,
	LAG_CAUSE_GPU,     /* all its kernels take longer */
	LAG_CAUSE_DATA,    /* only those that depend on the data, or there are more of them */
	LAG_CAUSE_COMPUTE, /* GPU or data: too few steps to tell */
	LAG_CAUSE_HOST,    /* its host stalls */
};

struct lag_straggler {
	enum lag_verdict verdict;
	enum lag_cause cause;
	int64_t step_cost_ns; /* mean a step: what the run would win; LAG_NONE: not accused, withheld */
	double step_cost_share;
	/* Part of the cost that may be the GPU's own nature, by which sound ones differ (sigma). LAG_NONE:
	 * not accused of a slow GPU. */
	int64_t step_cost_error_ns;
	int64_t waiting_caused_ns; /* exposed waiting of others for it, whole steps; LAG_NONE withheld */
	/* Part of waiting_caused in which its work was ready and its device did not start it: no lateness of
	 * the rank. LAG_NONE: withheld, or of no launch on record what it waited for itself. */
	int64_t contention_ns;
	/* Waiting of others, exposed or not, that the replay without its slowness does not have: the delay
	 * is followed to where it began. LAG_NONE: not accused, withheld. */
	int64_t waiting_root_ns;
	uint32_t steps_last; /* steps in which it was waited for the longest */
	uint32_t steps_slow, steps_seen;
	double ratio; /* compute v. peers; NAN: none */
};

struct lag_stragglers {
	struct lag_straggler *ranks; /* by rank index */
	size_t n_ranks;
	int64_t step_ns;    /* mean step as measured; LAG_NONE unknown */
	size_t n_accused;   /* chronic, rotating and one-off */
	size_t n_unsure;    /* cannot tell */
	char withheld[160]; /* why blame is withheld; "" = it is not */
	int64_t waiting_ns; /* exposed waiting that someone was last in, all ranks, whole steps */
};

const char *lag_verdict_name(enum lag_verdict verdict); /* "chronic", ... */
const char *lag_cause_name(enum lag_cause cause);       /* "slow GPU", ...; NULL for none */

static inline bool lag_verdict_accuses(enum lag_verdict verdict)
{
	return verdict >= LAG_VERDICT_CHRONIC && verdict <= LAG_VERDICT_ONE_OFF;
}

enum lag_status lag_stragglers_find(struct lag_context *ctx, struct lag_stragglers *out,
				    struct lag_err *err) LAG_MUST_USE;
void lag_stragglers_release(struct lag_stragglers *stragglers);

/* Durations of all GPU work had the ranks marked in `fixed` (by rank index) been like their peers (or,
 * where the verdict is "cannot tell", their stage like the others). The caller frees it; NULL without
 * memory. */
int64_t *lag_stragglers_durations(struct lag_context *ctx, const struct lag_stragglers *stragglers,
				  const uint8_t *fixed);

#endif

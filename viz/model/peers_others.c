/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank is compared with: values of the other ranks, of the whole job and of its stage. */
#include <math.h>
#include <stdlib.h>

#include "viz/model/peers_internal.h"

enum lag_status lag_others_init(struct lag_others *o, const struct lag_roles *roles, size_t n_ranks)
{
	*o = (struct lag_others){
		.roles = roles,
		.values = lag_calloc(n_ranks, sizeof(*o->values)),
		.job = lag_calloc(n_ranks, sizeof(*o->job)),
		.stage = lag_calloc(n_ranks, sizeof(*o->stage)),
		.n_job = lag_calloc(n_ranks, sizeof(*o->n_job)),
		.n_stage = lag_calloc(n_ranks, sizeof(*o->n_stage)),
		.of_stage = lag_calloc(n_ranks, sizeof(*o->of_stage)),
		.sums = lag_calloc(n_ranks + 1, sizeof(*o->sums)),
	};
	return o->values && o->job && o->stage && o->n_job && o->n_stage && o->of_stage && o->sums
		       ? LAG_OK
		       : LAG_ERR_SYSTEM;
}

void lag_others_release(struct lag_others *o)
{
	free(o->values);
	free(o->job);
	free(o->stage);
	free(o->n_job);
	free(o->n_stage);
	free(o->of_stage);
	free(o->sums);
	*o = (struct lag_others){ 0 };
}

static int by_mean(const void *a, const void *b)
{
	const struct lag_rank_value *x = a, *y = b;

	return (x->mean > y->mean) - (x->mean < y->mean);
}

/* For each of n sorted values what the others are like: the mean of their middle third, which varies
 * less than the median and, like it, does not follow a few that are off. sum: scratch, n + 1. */
static void leave_one_out(const struct lag_rank_value *v, size_t n, double *sum, double *out,
			  size_t *count)
{
	size_t m = n - 1, cut = m / 3;

	sum[0] = 0;
	for (size_t i = 0; i < n; i++)
		sum[i + 1] = sum[i] + v[i].mean;
	for (size_t i = 0; i < n; i++) {
		/* The others from cut to m - cut; from i on they stand one further along. */
		size_t lo = cut + (cut >= i), hi = m - cut + (m - cut > i);
		double total = sum[hi] - sum[lo];

		if (lo <= i && i < hi)
			total -= v[i].mean;
		count[v[i].r] = m;
		out[v[i].r] = m == 0 ? NAN : total / (double)(m - 2 * cut);
	}
}

void lag_others_find(struct lag_others *o, size_t n)
{
	if (n == 0)
		return;
	qsort(o->values, n, sizeof(*o->values), by_mean);
	leave_one_out(o->values, n, o->sums, o->job, o->n_job);
	/* Takes out one stage after the other; each keeps its order. */
	while (n > 0) {
		int32_t stage = o->roles->ranks[o->values[0].r].stage;
		size_t n_stage = 0, kept = 0;

		for (size_t i = 0; i < n; i++) {
			if (o->roles->ranks[o->values[i].r].stage == stage) {
				o->of_stage[n_stage++] = o->values[i];
			} else {
				o->values[kept++] = o->values[i];
			}
		}
		leave_one_out(o->of_stage, n_stage, o->sums, o->stage, o->n_stage);
		n = kept;
	}
}

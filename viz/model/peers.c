/* SPDX-License-Identifier: Apache-2.0 */
/* Means by kernel and rank, references that leave each rank out, ratios, states. */
#include "viz/model/peers.h"

#include <math.h>
#include <stdlib.h>

#include "viz/model/peers_internal.h"

#define SAME_WORK 0.05 /* a stage's kernels are those of the job when they take the same to this */

struct work {
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	const struct lag_roles *roles;
	struct lag_peers *out;
	uint8_t *left_out;               /* by gpu event: not compared */
	double *total;                   /* [key * n_ranks + r] */
	double *compute;                 /* by rank: compute a complete step */
	double *stage_ratio, *job_ratio; /* [key * n_ranks + r]: mean v. others */
	struct lag_others others;
	double *values, *pairs; /* scratch: n_ranks, and 2 * n_keys of ratio and weight */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double lag_median(double *values, size_t n)
{
	if (n == 0)
		return NAN;
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void sum_up(struct work *w)
{
	struct lag_peers *out = w->out;
	size_t n_complete = 0;

	for (size_t s = 0; s < w->steps->n_steps; s++)
		n_complete += w->steps->steps[s].complete;
	for (size_t i = 0; i < w->trace->n_gpu; i++) {
		const struct lag_gpu_event *g = &w->trace->gpu[i];
		size_t at;

		if (out->key[i] < 0)
			continue;
		if (w->steps->steps[w->steps->of_gpu[i]].complete)
			w->compute[g->r] += (double)(g->end_ns - g->start_ns);
		if (w->left_out[i])
			continue;
		at = (size_t)out->key[i] * out->n_ranks + g->r;
		/* mean holds the count until the end of this function. */
		out->mean[at] += 1;
		w->total[at] += (double)(g->end_ns - g->start_ns);
	}
	for (size_t k = 0; k < out->n_keys * out->n_ranks; k++)
		out->mean[k] = out->mean[k] > 0 ? w->total[k] / out->mean[k] : NAN;
	for (size_t r = 0; r < out->n_ranks; r++)
		w->compute[r] = n_complete ? w->compute[r] / (double)n_complete : 0;
}

static bool same_stage(const struct work *w, size_t a, size_t b)
{
	return w->roles->ranks[a].stage == w->roles->ranks[b].stage;
}

/* What the others take for kernel k over the whole run: of the job, and of each rank's stage. */
static void find_others(struct work *w, size_t k)
{
	const double *mean = &w->out->mean[k * w->out->n_ranks];
	struct lag_others *o = &w->others;
	size_t n = 0;

	for (size_t r = 0; r < w->out->n_ranks; r++) {
		o->job[r] = o->stage[r] = NAN;
		o->n_job[r] = o->n_stage[r] = 0;
		if (!isnan(mean[r]))
			o->values[n++] = (struct lag_rank_value){ mean[r], r };
	}
	lag_others_find(o, n);
}

static int by_ratio(const void *a, const void *b)
{
	return by_value(a, b);
}

/* Weighted lower quartile of ratio/weight pairs: what all but a few kernels reach. A slow GPU slows
 * them all; longer sequences only some. */
static double low_quartile(double *pairs, size_t n)
{
	double sum = 0, upto = 0;

	for (size_t i = 0; i < n; i++)
		sum += pairs[2 * i + 1];
	qsort(pairs, n, 2 * sizeof(*pairs), by_ratio);
	for (size_t i = 0; i < n; i++) {
		upto += pairs[2 * i + 1];
		if (upto >= sum / 4)
			return pairs[2 * i];
	}
	return NAN;
}

static bool is_same(double a, double b)
{
	return fabs(a / b - 1) <= SAME_WORK;
}

/* References of all kernels and ranks. The whole job gives the steadier one where three others run the
 * kernel, but only where the rank or the others of its stage agree with it: one name may do different
 * work in another stage, and only peers of the stage do the same for sure. */
static void refer(struct work *w)
{
	struct lag_peers *out = w->out;
	const struct lag_others *o = &w->others;

	for (size_t k = 0; k < out->n_keys; k++) {
		find_others(w, k);
		for (size_t r = 0; r < out->n_ranks; r++) {
			size_t at = k * out->n_ranks + r;

			out->reference[at] = w->stage_ratio[at] = w->job_ratio[at] = NAN;
			if (isnan(out->mean[at]) || o->n_stage[r] == 0)
				continue;
			out->reference[at] = o->stage[r];
			w->stage_ratio[at] = out->mean[at] / o->stage[r];
			if (o->n_job[r] < 3 || (!is_same(o->stage[r], o->job[r]) &&
						!is_same(out->mean[at], o->job[r])))
				continue;
			out->reference[at] = o->job[r];
			w->job_ratio[at] = out->mean[at] / o->job[r];
			if (o->n_job[r] > out->ranks[r].n_compared)
				out->ranks[r].n_compared = (uint32_t)o->n_job[r];
		}
		for (size_t r = 0; r < out->n_ranks; r++) {
			if (out->ranks[r].n_compared < o->n_stage[r])
				out->ranks[r].n_compared = (uint32_t)o->n_stage[r];
		}
	}
}

static double low_ratio(struct work *w, const double *ratio, size_t r)
{
	size_t n = 0;

	for (size_t k = 0; k < w->out->n_keys; k++) {
		size_t at = k * w->out->n_ranks + r;

		if (isnan(ratio[at]))
			continue;
		w->pairs[2 * n] = ratio[at];
		w->pairs[2 * n++ + 1] = w->total[at];
	}
	return low_quartile(w->pairs, n);
}

static void compare_work(struct work *w, size_t r)
{
	struct lag_peer *peer = &w->out->ranks[r];
	const struct lag_rank *rank = &w->trace->ranks[r];
	size_t n = 0;

	/* Where most of a large job is not on record, comparing nothing with all would take hours. */
	peer->work_ratio = NAN;
	if (rank->gpu_begin == rank->gpu_end)
		return;
	for (size_t o = 0; o < w->out->n_ranks; o++) {
		if (o != r && w->compute[o] > 0 && same_stage(w, o, r))
			w->values[n++] = w->compute[o];
	}
	peer->n_peers = (uint32_t)n;
	if (n == 0) {
		for (size_t o = 0; o < w->out->n_ranks; o++) {
			if (o != r && w->compute[o] > 0)
				w->values[n++] = w->compute[o];
		}
	}
	peer->work_ratio = n ? w->compute[r] / lag_median(w->values, n) : NAN;
}

/* Ratio from which on a GPU is slow, when n others give the median it is compared with. The variance
 * of a median of n is about 1.57 / (n + 0.57) of one's. */
static double slow_ratio(uint32_t n)
{
	return 1 + LAG_SLOW_MARGIN * sqrt(1 + 1.57 / ((double)n + 0.57));
}

double lag_peers_slow_from(const struct lag_peer *peer)
{
	return slow_ratio(peer->n_compared);
}

/* By how much all other ranks of the rank's pipeline take longer than their own peers. They share its
 * microbatches: what they all have in common is the data, not this GPU. */
static double replica_ratio(const struct work *w, size_t r)
{
	int32_t pipeline = w->roles->ranks[r].pipeline;
	double least = INFINITY;

	for (size_t o = 0; o < w->out->n_ranks && pipeline >= 0; o++) {
		double ratio = w->out->ranks[o].ratio;

		if (o == r || w->roles->ranks[o].pipeline != pipeline || isnan(ratio))
			continue;
		least = ratio < least ? ratio : least;
	}
	return isfinite(least) && least > 1 ? least : 1;
}

static bool is_slow(const struct work *w, size_t r)
{
	const struct lag_peer *peer = &w->out->ranks[r];
	double replica = replica_ratio(w, r);

	if (isnan(peer->ratio))
		return false;
	if (isnan(peer->job_ratio))
		return peer->ratio >= replica * slow_ratio(peer->n_compared);
	return peer->ratio >= replica * LAG_SLOW_V_STAGE &&
	       peer->job_ratio >= replica * slow_ratio(peer->n_compared);
}

static void judge(struct work *w, size_t r)
{
	struct lag_peers *out = w->out;
	struct lag_peer *peer = &out->ranks[r];
	/* What a slow GPU does not explain. */
	double more = isnan(peer->ratio) ? peer->work_ratio : peer->work_ratio / peer->ratio;

	if (w->compute[r] <= 0 || isnan(peer->work_ratio)) {
		peer->state = LAG_PEER_ALONE;
	} else if (peer->n_peers == 0) {
		peer->state = peer->work_ratio >= LAG_SLOW_WORK ? LAG_PEER_UNUSUAL : LAG_PEER_ALONE;
	} else if (is_slow(w, r)) {
		peer->state = LAG_PEER_SLOW;
	} else if (more >= LAG_SLOW_WORK) {
		peer->state = LAG_PEER_MORE;
	}
	peer->slow_from = LAG_SLOW_STEP;
	if (peer->state == LAG_PEER_SLOW) {
		peer->slow_from =
			(1 + (isnan(peer->job_ratio) ? peer->ratio : peer->job_ratio)) / 2;
	} else if (peer->state == LAG_PEER_MORE) {
		peer->slow_from = (1 + more) / 2;
	}
	for (size_t s = 0; s < out->n_steps; s++) {
		float ratio = out->step_ratio[s * out->n_ranks + r];

		if (!w->steps->steps[s].complete || w->compute[r] <= 0)
			continue;
		peer->steps_seen++;
		peer->steps_slow += ratio >= (float)peer->slow_from; /* never where NAN */
	}
}

static enum lag_status allocate(struct work *w)
{
	struct lag_peers *out = w->out;
	size_t cells = out->n_keys * out->n_ranks;

	out->ranks = lag_calloc(out->n_ranks, sizeof(*out->ranks));
	out->step_ratio = lag_calloc(out->n_steps * out->n_ranks, sizeof(*out->step_ratio));
	out->mean = lag_calloc(cells, sizeof(*out->mean));
	out->reference = lag_calloc(cells, sizeof(*out->reference));
	w->total = lag_calloc(cells, sizeof(*w->total));
	w->compute = lag_calloc(out->n_ranks, sizeof(*w->compute));
	w->values = lag_calloc(out->n_ranks, sizeof(*w->values));
	w->pairs = lag_calloc(out->n_keys, 2 * sizeof(*w->pairs));
	w->stage_ratio = lag_calloc(cells, sizeof(*w->stage_ratio));
	w->job_ratio = lag_calloc(cells, sizeof(*w->job_ratio));
	return out->ranks && out->step_ratio && out->mean && out->reference && w->total &&
			       w->compute && w->values && w->pairs && w->stage_ratio && w->job_ratio
		       ? lag_others_init(&w->others, w->roles, out->n_ranks)
		       : LAG_ERR_SYSTEM;
}

enum lag_status lag_peers_find(const struct lag_trace *trace, const struct lag_steps *steps,
			       const struct lag_roles *roles, struct lag_peers *out,
			       struct lag_err *err)
{
	struct work w = { .trace = trace, .steps = steps, .roles = roles, .out = out };
	enum lag_status status = LAG_ERR_SYSTEM;

	*out = (struct lag_peers){ .n_ranks = trace->n_ranks, .n_steps = steps->n_steps };
	out->key = lag_calloc(trace->n_gpu, sizeof(*out->key));
	w.left_out = lag_calloc(trace->n_gpu, sizeof(*w.left_out));
	if (out->key && w.left_out) {
		status = lag_peers_find_keys(&(struct lag_peers_keys){
			.trace = trace,
			.steps = steps,
			.roles = roles,
			.peers = out,
			.left_out = w.left_out,
		});
	}
	if (!lag_failed(status))
		status = allocate(&w);
	if (!lag_failed(status)) {
		sum_up(&w);
		refer(&w);
		for (size_t r = 0; r < out->n_ranks; r++) {
			out->ranks[r].ratio = low_ratio(&w, w.stage_ratio, r);
			out->ranks[r].job_ratio = low_ratio(&w, w.job_ratio, r);
			compare_work(&w, r);
		}
		status = lag_peers_compare_steps(&(struct lag_peers_steps){
			.trace = trace,
			.steps = steps,
			.peers = out,
			.left_out = w.left_out,
			.job_ratio = w.job_ratio,
			.others = &w.others,
		});
		for (size_t r = 0; r < out->n_ranks; r++)
			judge(&w, r);
	}
	free(w.left_out);
	free(w.total);
	free(w.compute);
	free(w.values);
	free(w.pairs);
	free(w.stage_ratio);
	free(w.job_ratio);
	lag_others_release(&w.others);
	if (lag_failed(status)) {
		lag_peers_release(out);
		return lag_err_set(err, status, "no memory to compare %zu ranks", trace->n_ranks);
	}
	return LAG_OK;
}

void lag_peers_release(struct lag_peers *peers)
{
	free(peers->ranks);
	free(peers->step_ratio);
	free(peers->key);
	free(peers->mean);
	free(peers->reference);
	*peers = (struct lag_peers){ 0 };
}

int64_t lag_peers_duration(const struct lag_peers *peers, const struct lag_trace *trace, size_t i)
{
	const struct lag_gpu_event *g = &trace->gpu[i];
	int64_t measured = g->end_ns == LAG_NONE ? 0 : g->end_ns - g->start_ns;
	double mean, reference;

	if (peers->key[i] < 0)
		return measured;
	mean = peers->mean[(size_t)peers->key[i] * peers->n_ranks + g->r];
	reference = peers->reference[(size_t)peers->key[i] * peers->n_ranks + g->r];
	if (isnan(reference) || !(mean > 0))
		return measured;
	return (int64_t)llround((double)measured * reference / mean);
}

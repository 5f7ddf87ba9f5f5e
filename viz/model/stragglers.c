/* SPDX-License-Identifier: Apache-2.0 */
/* Puts peers, stalls, waits and the replay together into one verdict a rank. */
#include "viz/model/stragglers.h"
#include "schema/base/fmt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "viz/model/context.h"
#include "viz/model/interval.h"

/* A replay a suspect: more suspects than this are a job to look at as a whole. */
#define COSTED_MAX 64

struct work {
	struct lag_context *ctx;
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	const struct lag_roles *roles;
	const struct lag_peers *peers;
	const struct lag_waits *waits;
	const struct lag_ledger *ledger;
	const struct lag_replay *replay;
	const struct lag_ready *ready;
	struct lag_stragglers *out;
	struct lag_replay_result as_measured;
	size_t n_complete;
};

const char *lag_verdict_name(enum lag_verdict verdict)
{
	switch (verdict) {
	case LAG_VERDICT_CHRONIC:
		return "chronic";
	case LAG_VERDICT_ROTATING:
		return "rotating";
	case LAG_VERDICT_ONE_OFF:
		return "one-off";
	case LAG_VERDICT_CANNOT_TELL:
		return "cannot tell: rank or stage";
	case LAG_VERDICT_WITHHELD:
		return "withheld";
	case LAG_VERDICT_NONE:
		break;
	}
	return "none";
}

const char *lag_cause_name(enum lag_cause cause)
{
	switch (cause) {
	case LAG_CAUSE_GPU:
		return "slow GPU";
	case LAG_CAUSE_DATA:
		return "data";
	case LAG_CAUSE_COMPUTE:
		return "GPU or data";
	case LAG_CAUSE_HOST:
		return "host stall";
	case LAG_CAUSE_NONE:
		break;
	}
	return NULL;
}

/* Blame needs every rank: one that is not on record may be the one all wait for. */
static void check_whole(struct work *w)
{
	size_t n_missing = 0;
	int64_t n_more;

	for (size_t r = 0; r < w->trace->n_ranks; r++)
		n_missing += !w->trace->ranks[r].recorded;
	n_more = w->trace->world_size != LAG_NONE
			 ? w->trace->world_size - (int64_t)w->trace->n_ranks
			 : 0;
	if (n_more > 0)
		n_missing += (size_t)n_more;
	if (!w->trace->n_gpu) {
		(void)snprintf(w->out->withheld, sizeof(w->out->withheld),
			       "no GPU work is on record: who was slow cannot be known");
		return;
	}
	if (n_missing) {
		(void)snprintf(w->out->withheld, sizeof(w->out->withheld),
			       "%zu of %lld ranks %s not on record: whom the others waited for "
			       "cannot be known",
			       n_missing, (long long)w->trace->n_ranks + (n_more > 0 ? n_more : 0),
			       LAG_PLURAL(n_missing, "is", "are"));
	}
	for (size_t c = 0; c < w->trace->n_comms && !n_missing; c++) {
		const struct lag_comm *comm = &w->trace->comms[c];

		if (comm->complete || comm->n_ranks <= 1)
			continue;
		(void)snprintf(
			w->out->withheld, sizeof(w->out->withheld),
			"a communicator of %d %s is not on record as a whole: whom the others "
			"waited for cannot be known",
			comm->n_ranks, LAG_PLURAL(comm->n_ranks, "rank", "ranks"));
		return;
	}
}

static enum lag_verdict how_often(uint32_t n, uint32_t seen)
{
	if (n == 0 || seen == 0)
		return LAG_VERDICT_NONE;
	/* One or two steps are no habit, however short the recording is. */
	if (seen >= 3 && 5 * n >= 4 * seen)
		return LAG_VERDICT_CHRONIC;
	return n <= 2 || 10 * n <= seen ? LAG_VERDICT_ONE_OFF : LAG_VERDICT_ROTATING;
}

static void judge_compute(struct work *w, size_t r)
{
	const struct lag_peer *peer = &w->peers->ranks[r];
	struct lag_straggler *s = &w->out->ranks[r];

	s->ratio = isnan(peer->job_ratio) ? peer->ratio : peer->job_ratio;
	s->steps_seen = peer->steps_seen;
	s->steps_slow = peer->steps_slow;
	switch (peer->state) {
	case LAG_PEER_SLOW:
		s->verdict = how_often(peer->steps_slow, peer->steps_seen);
		s->cause = LAG_CAUSE_GPU;
		break;
	case LAG_PEER_MORE:
		s->ratio = peer->work_ratio;
		s->verdict = how_often(peer->steps_slow, peer->steps_seen);
		s->cause = LAG_CAUSE_DATA;
		break;
	case LAG_PEER_UNUSUAL:
		s->ratio = peer->work_ratio;
		s->verdict = LAG_VERDICT_CANNOT_TELL;
		break;
	case LAG_PEER_SAME:
		s->verdict = how_often(peer->steps_slow, peer->steps_seen);
		s->cause = s->verdict ? LAG_CAUSE_COMPUTE : LAG_CAUSE_NONE;
		break;
	case LAG_PEER_ALONE:
		break;
	}
	if (s->verdict == LAG_VERDICT_NONE)
		s->cause = LAG_CAUSE_NONE;
}

/* Longest stall of each rank in one step, beyond what ranks usually have in it: everybody's data
 * loading is nobody's fault. */
static enum lag_status judge_hosts(struct work *w)
{
	size_t n = w->trace->n_ranks, n_seen = 0;
	double *stall = lag_calloc(n, sizeof(*stall)), *copy = lag_calloc(n, sizeof(*copy));
	uint32_t *count = lag_calloc(n, sizeof(*count));

	for (size_t s = 0; stall && copy && count && s < w->steps->n_steps; s++) {
		double usual;

		/* A run's first step loads, compiles and allocates: everybody's stall, at odd moments. */
		if (!w->steps->steps[s].complete || (s == 0 && w->n_complete > 3))
			continue;
		n_seen++;
		for (size_t r = 0; r < n; r++)
			stall[r] = copy[r] = (double)lag_replay_stall(w->replay, r, s);
		usual = n > 1 ? lag_median(copy, n) : stall[0];
		for (size_t r = 0; r < n; r++) {
			count[r] += stall[r] > 2 * usual && stall[r] - usual > 2e6 &&
				    stall[r] - usual > 0.01 * (double)w->out->step_ns;
		}
	}
	for (size_t r = 0; stall && copy && count && r < n; r++) {
		struct lag_straggler *s = &w->out->ranks[r];

		if (s->verdict != LAG_VERDICT_NONE || count[r] == 0)
			continue;
		s->verdict = how_often(count[r], (uint32_t)n_seen);
		s->cause = LAG_CAUSE_HOST;
		s->steps_slow = count[r];
		if (s->steps_seen == 0)
			s->steps_seen = (uint32_t)n_seen;
	}
	free(stall);
	free(copy);
	free(count);
	return stall && copy && count ? LAG_OK : LAG_ERR_SYSTEM;
}

/* A part of a wait for `s`: how much of it was contention on the device of `s`. */
static void blame_device(const struct work *w, const struct lag_time_slice *slice,
			 struct lag_straggler *s)
{
	int64_t arrival = w->waits->launch[slice->launch].arrival_ns, from, until;
	int64_t contention = lag_ready_of_last(w->trace, w->waits, w->ready, (size_t)slice->launch);

	if (contention == LAG_NONE)
		return;
	from = lag_ns_add(arrival, -contention);
	from = from > slice->start_ns ? from : slice->start_ns;
	until = arrival < slice->end_ns ? arrival : slice->end_ns;
	if (s->contention_ns == LAG_NONE)
		s->contention_ns = 0;
	s->contention_ns += until > from ? until - from : 0;
}

/* Exposed waiting by whom it was for: by rank over the whole steps, and who was it most in each. */
static enum lag_status blame(struct work *w)
{
	size_t n = w->trace->n_ranks;
	int64_t *caused = lag_calloc(w->steps->n_steps * n, sizeof(*caused));

	if (!caused)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < w->ledger->first[n]; i++) {
		const struct lag_time_slice *slice = &w->ledger->slices[i];
		const struct lag_launch *launch;
		int32_t last, step;

		if (slice->launch < 0 ||
		    (slice->class != LAG_TIME_BUBBLE && slice->class != LAG_TIME_EXPOSED_WAIT))
			continue;
		launch = &w->trace->launches[slice->launch];
		last = w->waits->launch[slice->launch].last;
		step = launch->gpu >= 0 ? w->steps->of_gpu[launch->gpu] : -1;
		if (last < 0 || step < 0 || !w->steps->steps[step].complete)
			continue;
		caused[(size_t)step * n + (size_t)last] += slice->end_ns - slice->start_ns;
		w->out->ranks[last].waiting_caused_ns += slice->end_ns - slice->start_ns;
		w->out->waiting_ns += slice->end_ns - slice->start_ns;
		blame_device(w, slice, &w->out->ranks[last]);
	}
	for (size_t s = 0; s < w->steps->n_steps; s++) {
		size_t most = 0;

		for (size_t r = 1; r < n; r++)
			most = caused[s * n + r] > caused[s * n + most] ? r : most;
		w->out->ranks[most].steps_last += n > 0 && caused[s * n + most] > 0;
	}
	for (size_t r = 0; r < n; r++) {
		if (w->out->ranks[r].waiting_caused_ns == 0)
			w->out->ranks[r].contention_ns = 0;
	}
	free(caused);
	return LAG_OK;
}

static int64_t fixed_duration(const struct work *w, size_t i)
{
	const struct lag_gpu_event *g = &w->trace->gpu[i];
	const struct lag_straggler *s = &w->out->ranks[g->r];
	int64_t measured = g->end_ns - g->start_ns;
	int32_t step = w->steps->of_gpu[i];
	double ratio;

	if (g->class != LAG_CLASS_COMPUTE)
		return measured;
	if (s->verdict == LAG_VERDICT_CANNOT_TELL)
		return llround((double)measured / s->ratio);
	if (s->verdict == LAG_VERDICT_CHRONIC) {
		return s->cause == LAG_CAUSE_HOST ? measured
						  : lag_peers_duration(w->peers, w->trace, i);
	}
	if (s->cause == LAG_CAUSE_HOST || step < 0)
		return measured;
	/* Slow at times: only those steps, each by as much as it was slower. */
	ratio = w->peers->step_ratio[(size_t)step * w->peers->n_ranks + g->r];
	return ratio >= w->peers->ranks[g->r].slow_from ? llround((double)measured / ratio)
							: measured;
}

static int64_t *durations(const struct work *w, const uint8_t *fixed)
{
	int64_t *out = lag_calloc(w->trace->n_gpu, sizeof(*out));

	for (size_t i = 0; out && i < w->trace->n_gpu; i++) {
		const struct lag_gpu_event *g = &w->trace->gpu[i];

		if (g->end_ns != LAG_NONE)
			out[i] = fixed[g->r] ? fixed_duration(w, i) : g->end_ns - g->start_ns;
	}
	return out;
}

static enum lag_status cost_of(struct work *w, size_t r, uint8_t *fixed, struct lag_err *err)
{
	struct lag_straggler *s = &w->out->ranks[r];
	struct lag_replay_change change = { 0 };
	struct lag_replay_result result;
	int64_t *dur = NULL;
	enum lag_status status;

	fixed[r] = 1;
	if (s->cause == LAG_CAUSE_HOST) {
		change.stall_free = fixed;
	} else {
		dur = durations(w, fixed);
		if (!dur)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to replay");
		change.duration_ns = dur;
	}
	status = lag_replay_run(w->replay, &change, &result, err);
	free(dur);
	fixed[r] = 0;
	if (lag_failed(status))
		return status;
	s->step_cost_ns = w->out->step_ns - lag_replay_step_ns(&result);
	s->step_cost_share = (double)s->step_cost_ns / (double)w->out->step_ns;
	if (s->cause == LAG_CAUSE_GPU && s->ratio > 1) {
		s->step_cost_error_ns =
			llround((double)s->step_cost_ns * LAG_GPU_SPREAD / (s->ratio - 1));
	}
	s->waiting_root_ns = 0;
	for (size_t o = 0; o < w->trace->n_ranks; o++) {
		if (o != r)
			s->waiting_root_ns += w->as_measured.waiting_ns[o] - result.waiting_ns[o];
	}
	lag_replay_result_release(&result);
	return LAG_OK;
}

/* A stall that costs the run nothing (the GPU had enough to do) accuses nobody. */
static void drop_harmless(struct work *w, struct lag_straggler *s)
{
	if (s->cause != LAG_CAUSE_HOST || s->step_cost_ns == LAG_NONE)
		return;
	if ((double)s->step_cost_ns * (double)w->n_complete >= 0.01 * (double)w->out->step_ns)
		return;
	s->verdict = LAG_VERDICT_NONE;
	s->cause = LAG_CAUSE_NONE;
	s->step_cost_ns = s->waiting_root_ns = LAG_NONE;
	s->steps_slow = 0;
}

static enum lag_status add_costs(struct work *w, struct lag_err *err)
{
	uint8_t *fixed = lag_calloc(w->trace->n_ranks, 1);
	enum lag_status status = LAG_OK;
	size_t n = 0;

	if (!fixed)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to replay");
	for (size_t r = 0; r < w->out->n_ranks && !lag_failed(status); r++) {
		struct lag_straggler *s = &w->out->ranks[r];

		if (s->verdict == LAG_VERDICT_NONE || w->out->step_ns == LAG_NONE)
			continue;
		if (n++ < COSTED_MAX)
			status = cost_of(w, r, fixed, err);
		drop_harmless(w, s);
		w->out->n_accused += lag_verdict_accuses(s->verdict);
		w->out->n_unsure += s->verdict == LAG_VERDICT_CANNOT_TELL;
	}
	free(fixed);
	return status;
}

static void withhold(struct lag_stragglers *out)
{
	for (size_t r = 0; r < out->n_ranks; r++) {
		struct lag_straggler *s = &out->ranks[r];

		/* Who is slow comes from the peers on record, whoever else there is. What it costs, and a
		 * stall that may cost nothing, does not. */
		if (lag_verdict_accuses(s->verdict) && s->cause != LAG_CAUSE_HOST) {
			out->n_accused++;
		} else {
			s->verdict = LAG_VERDICT_WITHHELD;
			s->cause = LAG_CAUSE_NONE;
		}
		out->ranks[r].waiting_caused_ns = out->ranks[r].contention_ns = LAG_NONE;
	}
	out->waiting_ns = LAG_NONE;
}

static enum lag_status borrow(struct work *w, struct lag_context *ctx, struct lag_err *err)
{
	w->ctx = ctx;
	w->trace = lag_context_trace(ctx);
	w->steps = lag_context_steps(ctx, err);
	w->roles = lag_context_roles(ctx, err);
	w->peers = lag_context_peers(ctx, err);
	w->waits = lag_context_waits(ctx, err);
	w->ledger = lag_context_ledger(ctx, err);
	w->replay = lag_context_replay(ctx, err);
	w->ready = lag_context_ready(ctx, err);
	if (!w->steps || !w->roles || !w->peers || !w->waits || !w->ledger || !w->replay ||
	    !w->ready)
		return err->status;
	for (size_t s = 0; s < w->steps->n_steps; s++)
		w->n_complete += w->steps->steps[s].complete;
	return LAG_OK;
}

static enum lag_status measure_step(struct work *w, struct lag_err *err)
{
	struct lag_replay_change change = { 0 };
	enum lag_status status = lag_replay_run(w->replay, &change, &w->as_measured, err);

	if (!lag_failed(status))
		w->out->step_ns = lag_replay_step_ns(&w->as_measured);
	return status;
}

enum lag_status lag_stragglers_find(struct lag_context *ctx, struct lag_stragglers *out,
				    struct lag_err *err)
{
	struct work w = { .out = out };
	enum lag_status status;

	*out = (struct lag_stragglers){ 0 };
	status = borrow(&w, ctx, err);
	if (lag_failed(status))
		return status;
	out->n_ranks = w.trace->n_ranks;
	out->ranks = lag_calloc(out->n_ranks, sizeof(*out->ranks));
	if (!out->ranks)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu ranks", out->n_ranks);
	for (size_t r = 0; r < out->n_ranks; r++) {
		out->ranks[r].step_cost_ns = out->ranks[r].step_cost_error_ns =
			out->ranks[r].waiting_root_ns = out->ranks[r].contention_ns = LAG_NONE;
	}
	check_whole(&w);
	status = measure_step(&w, err);
	for (size_t r = 0; r < out->n_ranks; r++)
		judge_compute(&w, r);
	if (!lag_failed(status) && (lag_failed(judge_hosts(&w)) || lag_failed(blame(&w))))
		status = lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu ranks", out->n_ranks);
	if (!lag_failed(status)) {
		if (out->withheld[0]) {
			withhold(out);
		} else {
			status = add_costs(&w, err);
		}
	}
	lag_replay_result_release(&w.as_measured);
	if (lag_failed(status))
		lag_stragglers_release(out);
	return status;
}

void lag_stragglers_release(struct lag_stragglers *stragglers)
{
	free(stragglers->ranks);
	*stragglers = (struct lag_stragglers){ 0 };
}

int64_t *lag_stragglers_durations(struct lag_context *ctx, const struct lag_stragglers *stragglers,
				  const uint8_t *fixed)
{
	struct lag_err err;
	struct lag_stragglers view = *stragglers;
	struct work w = { .out = &view };

	if (lag_failed(borrow(&w, ctx, &err)))
		return NULL;
	return durations(&w, fixed);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Step time with one cause removed, from the replay of the run's own graph. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/findings.h"
#include "viz/model/opmodel.h"

#define HOST_FREE "the host is never late"

static const struct lag_column columns[] = {
	{ "scenario", "scenario", LAG_UNIT_TEXT, NULL },
	{ "s", "speed-up", LAG_UNIT_RATIO, "the measured step over the scenario's" },
	{ "step_ns", "step", LAG_UNIT_NS, "mean step" },
	{ "gain_ns", "gain a step", LAG_UNIT_NS, "mean step" },
};

struct what_if {
	struct lag_context *ctx;
	const struct lag_trace *trace;
	const struct lag_roles *roles;
	const struct lag_stragglers *stragglers;
	const struct lag_replay *replay;
	struct lag_table *out;
	int64_t replayed_ns; /* the replay's own mean step, nothing changed */
	double step_ns;      /* the mean step that every report has */
};

/* A scenario of which nothing can be said. */
static void add_unknown(struct what_if *w, const char *scenario)
{
	lag_table_row(w->out);
	lag_table_text(w->out, scenario);
	lag_table_null(w->out);
	lag_table_null(w->out);
	lag_table_null(w->out);
}

static enum lag_status replay(const struct what_if *w, const struct lag_replay_change *change,
			      int64_t *step_ns, struct lag_err *err)
{
	struct lag_replay_result result;
	enum lag_status status = lag_replay_run(w->replay, change, &result, err);

	if (lag_failed(status))
		return status;
	*step_ns = lag_replay_step_ns(&result);
	lag_replay_result_release(&result);
	return LAG_OK;
}

/* The replay's step also holds what lies between steps: only its gain is used, so that a step has one
 * length in all reports. before_ns: the replay that has the cause. */
static enum lag_status add_to(struct what_if *w, const char *scenario, int64_t before_ns,
			      const struct lag_replay_change *change, struct lag_err *err)
{
	int64_t ns, gain_ns;
	double step_ns;
	enum lag_status status = replay(w, change, &ns, err);

	if (lag_failed(status))
		return status;
	gain_ns = before_ns - ns;
	step_ns = w->step_ns - (double)gain_ns;
	if (before_ns == LAG_NONE || ns == LAG_NONE || ns <= 0 || step_ns <= 0) {
		add_unknown(w, scenario);
		return LAG_OK;
	}
	lag_table_row(w->out);
	lag_table_text(w->out, scenario);
	lag_table_real(w->out, w->step_ns / step_ns);
	lag_table_int(w->out, llround(step_ns));
	lag_table_int(w->out, gain_ns);
	return LAG_OK;
}

static enum lag_status add(struct what_if *w, const char *scenario,
			   const struct lag_replay_change *change, struct lag_err *err)
{
	return add_to(w, scenario, w->replayed_ns, change, err);
}

/* Ranks in `fixed` like their peers, their hosts without stalls. */
static enum lag_status add_fixed(struct what_if *w, const char *scenario, const uint8_t *fixed,
				 const uint8_t *stall_free, struct lag_err *err)
{
	int64_t *durations = lag_stragglers_durations(w->ctx, w->stragglers, fixed);
	struct lag_replay_change change = { .duration_ns = durations, .stall_free = stall_free };
	enum lag_status status;

	if (!durations)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to replay");
	status = add(w, scenario, &change, err);
	free(durations);
	return status;
}

/* Each accused rank alone, then all of them. */
static enum lag_status add_stragglers(struct what_if *w, struct lag_err *err)
{
	size_t n = w->trace->n_ranks, accused = 0;
	uint8_t *all = lag_calloc(n, 2), *one = lag_calloc(n, 2);
	enum lag_status status = all && one ? LAG_OK : LAG_ERR_SYSTEM;

	for (size_t r = 0; r < n && !lag_failed(status); r++) {
		const struct lag_straggler *s = &w->stragglers->ranks[r];
		size_t at = s->cause == LAG_CAUSE_HOST ? n + r : r;
		char name[96];

		if (!lag_verdict_accuses(s->verdict))
			continue;
		(void)snprintf(name, sizeof(name), "rank %lld %s",
			       (long long)w->trace->ranks[r].rank,
			       s->cause == LAG_CAUSE_HOST ? "without its host's stalls"
							  : "like its peers");
		all[at] = one[at] = 1;
		if (accused++ < 64)
			status = add_fixed(w, name, one, one + n, err);
		one[at] = 0;
	}
	if (accused > 0 && !lag_failed(status))
		status = add_fixed(w, "without stragglers", all, all + n, err);
	free(all);
	free(one);
	return status;
}

/* Durations had the accused ranks been like their peers; the caller frees them. */
static int64_t *sound_durations(struct what_if *w)
{
	uint8_t *fixed = lag_calloc(w->trace->n_ranks, 1);
	int64_t *durations;

	if (!fixed)
		return NULL;
	for (size_t r = 0; r < w->trace->n_ranks; r++) {
		fixed[r] = lag_verdict_accuses(w->stragglers->ranks[r].verdict) &&
			   w->stragglers->ranks[r].cause != LAG_CAUSE_HOST;
	}
	durations = lag_stragglers_durations(w->ctx, w->stragglers, fixed);
	free(fixed);
	return durations;
}

/* Every stage's compute scaled to the mean of the stages. A slow rank must not pass for a heavy stage, nor
 * hide one: ranks are sound before and after, as in the ladder of the bubbles. */
static enum lag_status add_balanced(struct what_if *w, struct lag_err *err)
{
	size_t n_stages = (size_t)w->roles->n_stages;
	double *stage = lag_calloc(n_stages, sizeof(*stage)), all = 0;
	int64_t *durations = sound_durations(w), before_ns = LAG_NONE;
	enum lag_status status = stage && durations ? LAG_OK : LAG_ERR_SYSTEM;
	struct lag_replay_change change = { .duration_ns = durations };

	if (!lag_failed(status))
		status = replay(w, &change, &before_ns, err);
	for (size_t i = 0; !lag_failed(status) && i < w->trace->n_gpu; i++) {
		const struct lag_gpu_event *g = &w->trace->gpu[i];
		int32_t s = w->roles->ranks[g->r].stage;

		if (g->class == LAG_CLASS_COMPUTE && s >= 0) {
			stage[s] += (double)durations[i];
			all += (double)durations[i];
		}
	}
	for (size_t i = 0; !lag_failed(status) && i < w->trace->n_gpu; i++) {
		const struct lag_gpu_event *g = &w->trace->gpu[i];
		int32_t s = w->roles->ranks[g->r].stage;

		if (g->class == LAG_CLASS_COMPUTE && s >= 0 && stage[s] > 0) {
			durations[i] =
				llround((double)durations[i] * all / (double)n_stages / stage[s]);
		}
	}
	if (!lag_failed(status))
		status = add_to(w, "stages balanced", before_ns, &change, err);
	free(stage);
	free(durations);
	return lag_failed(status) ? lag_err_set(err, status, "no memory to replay") : LAG_OK;
}

static enum lag_status add_free_transfers(struct what_if *w, bool pipeline, const char *scenario,
					  struct lag_err *err)
{
	struct lag_replay_change change = { .scale_transfer = true };

	for (int role = 0; role < LAG_ROLE_LIMIT; role++)
		change.transfer_scale[role] = (role == LAG_ROLE_PIPELINE) == pipeline ? 0 : 1;
	return add(w, scenario, &change, err);
}

static bool tells_host(const struct lag_trace *trace)
{
	for (size_t r = 0; r < trace->n_ranks; r++) {
		if (lag_ledger_tells(trace, r, LAG_TIME_HOST))
			return true;
	}
	return false;
}

static void add_notes(const struct what_if *w)
{
	const struct lag_replay_facts *f = lag_replay_facts(w->replay);
	uint64_t edges = f->n_edges + f->n_inferred;

	lag_table_note(
		w->out,
		"each scenario replays the run's own graph with one cause removed; step: the "
		"mean step as measured minus the gain; gains overlap and must not be added");
	if (w->roles->n_stages > 1 && w->stragglers->n_accused) {
		lag_table_note(w->out,
			       "stages balanced: slow ranks are like their peers before and "
			       "after");
	}
	if (edges) {
		lag_table_note(
			w->out,
			"%.1f %% of the edges between streams are inferred from times, %llu %s "
			"explained by none, %llu %s were dropped",
			100.0 * (double)f->n_inferred / (double)edges,
			(unsigned long long)f->n_unexplained,
			LAG_PLURAL(f->n_unexplained, "start is", "starts are"),
			(unsigned long long)f->n_forced, LAG_PLURAL(f->n_forced, "edge", "edges"));
	}
	if (lag_opmodel_applies(w->trace)) {
		lag_table_note(w->out, "an operation table: report operations has the slowdown by "
				       "type, stage and worker");
	}
	if (w->stragglers->withheld[0])
		lag_table_note(w->out, "scenarios are withheld: %s", w->stragglers->withheld);
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	struct what_if w = { .ctx = ctx, .out = out, .replayed_ns = LAG_NONE };
	struct lag_replay_change change = { 0 };
	struct lag_mean_step mean;
	enum lag_status status;

	w.trace = lag_context_trace(ctx);
	w.roles = lag_context_roles(ctx, err);
	w.replay = lag_context_replay(ctx, err);
	w.stragglers = lag_context_stragglers(ctx, err);
	if (!w.roles || !w.replay || !w.stragglers)
		return err->status;
	status = lag_mean_step_of_run(ctx, &mean, err);
	w.step_ns = mean.step_ns;
	if (!lag_failed(status))
		status = replay(&w, &change, &w.replayed_ns, err);
	if (!lag_failed(status))
		status = add(&w, "as measured", &change, err);
	if (!lag_failed(status) && !w.stragglers->withheld[0]) {
		status = add_stragglers(&w, err);
		if (!lag_failed(status) && w.roles->n_stages > 1)
			status = add_balanced(&w, err);
		if (!lag_failed(status) && w.roles->n_pipelines > 0) {
			status = add_free_transfers(&w, true,
						    "send/recv between stages take no time", err);
		}
		if (!lag_failed(status) && w.trace->n_instances > 0) {
			status = add_free_transfers(
				&w, false, "other communication takes no time once all came", err);
		}
	}
	change.host_free = true;
	if (!lag_failed(status) && !w.stragglers->withheld[0]) {
		if (tells_host(w.trace)) {
			status = add(&w, HOST_FREE, &change, err);
		} else {
			add_unknown(&w, HOST_FREE);
			lag_table_note(out, "the host: n/a, no launch call is on record");
		}
	}
	if (!lag_failed(status))
		add_notes(&w);
	return status;
}

const struct lag_analysis lag_analysis_what_if = {
	.name = "what-if",
	.summary = "Step time with one cause removed",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN | LAG_ALL_RANKS,
};

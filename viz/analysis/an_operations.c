/* SPDX-License-Identifier: Apache-2.0 */
/* Operation tables: how much slower the job is than if equal operations took equally long, and which
 * types, stages, workers and steps that is due to, by simulation (viz/model/opmodel.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "viz/analysis/analysis.h"
#include "viz/model/opmodel.h"

#define TOP_SHARE 3 /* percent of the workers that are taken as the slowest */

static const struct lag_column columns[] = {
	{ "kind", "", LAG_UNIT_TEXT, NULL },
	{ "name", "", LAG_UNIT_TEXT, NULL },
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "step", "step", LAG_UNIT_ID, NULL },
	{ "s", "slowdown", LAG_UNIT_RATIO, "the simulated step over the ideal one" },
	{ "step_ns", "time", LAG_UNIT_NS, "simulated mean step" },
	{ "ideal_ns", "ideal", LAG_UNIT_NS, "mean step with equal operations equally long" },
	{ "share", "explains", LAG_UNIT_SHARE, "the simulated step minus the ideal one" },
};

struct work {
	struct lag_opmodel model;
	const struct lag_roles *roles;
	struct lag_table *out;
	double *mixed, *steps, *ideal_steps, *own_steps;
	double ideal_ns, own_ns; /* mean step */
	double *s_stage, *s_dp;  /* slowdown, by stage and by data-parallel rank */
	bool *chosen;            /* by rank */
};

/* Whether a node is one of those that a scenario is about. */
typedef bool picker(const struct work *w, const struct lag_op_node *node, int64_t which);

static bool is_type(const struct work *w, const struct lag_op_node *node, int64_t which)
{
	int merged = lag_optype_is_message((enum lag_optype)node->type)
			     ? -(int)lag_optype_compute((enum lag_optype)node->type)
			     : 0;

	(void)w;
	return which < 0 ? merged == which : !merged && node->name == (uint64_t)which;
}

static bool is_stage(const struct work *w, const struct lag_op_node *node, int64_t which)
{
	return w->roles->ranks[node->r].stage == which;
}

static bool is_dp(const struct work *w, const struct lag_op_node *node, int64_t which)
{
	return w->roles->ranks[node->r].dp == which;
}

static double mean_of(const struct work *w, const double *steps)
{
	double sum = 0;
	size_t n = 0;

	for (size_t s = 0; s < w->model.steps->n_steps; s++) {
		if (isnan(steps[s]))
			continue;
		sum += steps[s];
		n++;
	}
	return n ? sum / (double)n : NAN;
}

/* Mean step with `from` for the picked nodes and `rest` for all others. */
static double simulate(struct work *w, const double *from, const double *rest, picker *pick,
		       int64_t which)
{
	for (size_t i = 0; i < w->model.nodes.n; i++) {
		const struct lag_op_node *node =
			&LAG_VEC_AT(&w->model.nodes, struct lag_op_node, i);

		w->mixed[i] = pick(w, node, which) ? from[i] : rest[i];
	}
	(void)lag_opmodel_run(&w->model, w->mixed, w->steps);
	return mean_of(w, w->steps);
}

static void row(struct lag_table *out, const char *kind, const char *name, int64_t rank,
		int64_t step)
{
	lag_table_row(out);
	lag_table_text(out, kind);
	lag_table_text(out, name);
	lag_table_int(out, rank);
	lag_table_int(out, step);
}

static void numbers(const struct work *w, double step_ns, double ideal_ns, double share)
{
	lag_table_real(w->out, step_ns / ideal_ns);
	lag_table_int(w->out, isfinite(step_ns) ? llround(step_ns) : LAG_NONE);
	lag_table_int(w->out, isfinite(ideal_ns) ? llround(ideal_ns) : LAG_NONE);
	lag_table_real(w->out, share);
}

/* S of all that is not picked made ideal. */
static double add_only(struct work *w, const char *kind, const char *name, picker *pick,
		       int64_t which)
{
	double step_ns = simulate(w, w->model.duration, w->model.ideal, pick, which);

	row(w->out, kind, name, LAG_NONE, LAG_NONE);
	numbers(w, step_ns, w->ideal_ns, NAN);
	return step_ns / w->ideal_ns;
}

static void add_types(struct work *w)
{
	const struct lag_op_node *nodes = w->model.nodes.items;

	for (size_t i = 0; i < w->model.nodes.n; i++) {
		bool known = false, message = lag_optype_is_message((enum lag_optype)nodes[i].type);
		int64_t which =
			message ? -(int64_t)lag_optype_compute((enum lag_optype)nodes[i].type)
				: (int64_t)nodes[i].name;

		/* First of its type? There are few types, and most come early. */
		for (size_t k = 0; k < i && !known; k++)
			known = is_type(w, &nodes[k], which);
		if (known)
			continue;
		(void)add_only(w, "type",
			       !message ? lag_trace_text(w->model.trace, nodes[i].name)
			       : which == -(int64_t)LAG_OT_FORWARD ? "forward send/recv"
								   : "backward send/recv",
			       is_type, which);
	}
}

static void add_axes(struct work *w)
{
	char name[64];

	for (int32_t s = 0; s < w->roles->n_stages; s++) {
		(void)snprintf(name, sizeof(name), "stage %d", s);
		w->s_stage[s] = add_only(w, "stage", name, is_stage, s);
	}
	for (int32_t d = 0; d < w->roles->n_dp; d++) {
		(void)snprintf(name, sizeof(name), "dp rank %d", d);
		w->s_dp[d] = add_only(w, "dp", name, is_dp, d);
	}
}

/* A worker's slowdown, from its stage's and its data-parallel rank's: as many simulations as there are
 * of both, not of workers. */
static double slowdown_of(const struct work *w, size_t r)
{
	const struct lag_rank_role *role = &w->roles->ranks[r];

	if (role->stage < 0 || role->dp < 0)
		return NAN;
	return fmin(w->s_stage[role->stage], w->s_dp[role->dp]);
}

static bool is_chosen(const struct work *w, const struct lag_op_node *node, int64_t which)
{
	(void)which;
	return w->chosen[node->r];
}

struct score {
	double s;
	size_t r;
};

static int by_score(const void *a, const void *b)
{
	const struct score *x = a, *y = b;

	if (x->s != y->s)
		return x->s > y->s ? -1 : 1;
	return x->r < y->r ? -1 : x->r > y->r;
}

/* What making the picked operations ideal wins, as a share of what making all of them does. */
static void add_explains(struct work *w, const char *name, int64_t rank, picker *pick,
			 int64_t which)
{
	double without = simulate(w, w->model.ideal, w->model.duration, pick, which);

	row(w->out, "explains", name, rank, LAG_NONE);
	numbers(w, without, w->ideal_ns, (w->own_ns - without) / (w->own_ns - w->ideal_ns));
}

static enum lag_status add_workers(struct work *w)
{
	size_t n = w->model.trace->n_ranks, n_top = (n * TOP_SHARE + 99) / 100, n_scored = 0;
	struct score *scores = lag_calloc(n, sizeof(*scores));
	char name[64];

	if (!scores)
		return LAG_ERR_SYSTEM;
	for (size_t r = 0; r < n; r++) {
		double s = slowdown_of(w, r);

		if (isnan(s))
			continue;
		scores[n_scored++] = (struct score){ s, r };
		row(w->out, "worker", NULL, w->model.trace->ranks[r].rank, LAG_NONE);
		numbers(w, s * w->ideal_ns, w->ideal_ns, NAN);
	}
	qsort(scores, n_scored, sizeof(*scores), by_score);
	for (size_t i = 0; i < n_top && i < n_scored; i++)
		w->chosen[scores[i].r] = true;
	if (n_scored) {
		(void)snprintf(name, sizeof(name), "slowest %d %% of workers (M_W)", TOP_SHARE);
		add_explains(w, name,
			     n_top == 1 ? w->model.trace->ranks[scores[0].r].rank : LAG_NONE,
			     is_chosen, 0);
	}
	if (w->roles->n_stages > 1)
		add_explains(w, "last stage (M_S)", LAG_NONE, is_stage, w->roles->n_stages - 1);
	free(scores);
	return LAG_OK;
}

static void add_steps(struct work *w)
{
	const struct lag_steps *steps = w->model.steps;

	for (size_t s = 0; s < steps->n_steps; s++) {
		if (isnan(w->own_steps[s]))
			continue;
		row(w->out, "step", NULL, LAG_NONE, steps->steps[s].number);
		numbers(w, w->own_steps[s], w->ideal_steps[s], NAN);
	}
}

/* Mean step as recorded, from its first operation to the end of its last. */
static double recorded_mean(const struct work *w)
{
	const struct lag_op_node *nodes = w->model.nodes.items;
	size_t n_steps = w->model.steps->n_steps;

	for (size_t s = 0; s < n_steps; s++)
		w->mixed[s] = w->steps[s] = NAN;
	for (size_t i = 0; i < w->model.nodes.n; i++) {
		double *first = &w->mixed[nodes[i].step], *last = &w->steps[nodes[i].step];

		*first = fmin(*first, (double)nodes[i].start_ns);
		*last = fmax(*last, (double)nodes[i].end_ns);
	}
	for (size_t s = 0; s < n_steps; s++)
		w->steps[s] -= w->mixed[s];
	return mean_of(w, w->steps);
}

static void add_notes(struct work *w, double recorded_ns)
{
	lag_table_note(w->out,
		       "simulated: recorded durations, no time between operations; it is %.1f %% "
		       "below the recorded mean step",
		       100 * (1 - w->own_ns / recorded_ns));
	lag_table_note(w->out,
		       "ideal: computations of a type take their mean, communication the median of "
		       "its transfers; type, stage, dp, worker: all others are ideal");
	lag_table_note(w->out,
		       "explains: made ideal alone; above 100 %% where the mean that others "
		       "are given then costs them");
	if (w->own_ns / w->ideal_ns < 1.1)
		lag_table_note(w->out, "below 1.1 a job is not said to straggle");
}

static enum lag_status fill(struct work *w)
{
	double recorded_ns;
	enum lag_status st;

	if (!lag_opmodel_run(&w->model, w->model.duration, w->own_steps) ||
	    !lag_opmodel_run(&w->model, w->model.ideal, w->ideal_steps)) {
		lag_table_note(w->out, "operations wait for each other in a circle: the recorded "
				       "order contradicts itself, nothing can be simulated");
		w->out->outcome = LAG_OUTCOME_UNSURE;
		return LAG_OK;
	}
	w->own_ns = mean_of(w, w->own_steps);
	w->ideal_ns = mean_of(w, w->ideal_steps);
	row(w->out, "all", "all operations", LAG_NONE, LAG_NONE);
	numbers(w, w->own_ns, w->ideal_ns, NAN);
	add_types(w);
	add_axes(w);
	st = add_workers(w);
	add_steps(w);
	recorded_ns = recorded_mean(w);
	add_notes(w, recorded_ns);
	return st;
}

static bool allocate(struct work *w)
{
	size_t n_steps = w->model.steps->n_steps, n = w->model.nodes.n;

	w->mixed = lag_calloc(n > n_steps ? n : n_steps, sizeof(*w->mixed));
	w->steps = lag_calloc(n_steps, sizeof(*w->steps));
	w->ideal_steps = lag_calloc(n_steps, sizeof(*w->steps));
	w->own_steps = lag_calloc(n_steps, sizeof(*w->steps));
	w->chosen = lag_calloc(w->model.trace->n_ranks, sizeof(*w->chosen));
	w->s_stage = lag_calloc(w->roles->n_stages > 0 ? (size_t)w->roles->n_stages : 0,
				sizeof(*w->s_stage));
	w->s_dp = lag_calloc(w->roles->n_dp > 0 ? (size_t)w->roles->n_dp : 0, sizeof(*w->s_dp));
	return w->mixed && w->steps && w->ideal_steps && w->own_steps && w->chosen && w->s_stage &&
	       w->s_dp;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	struct work w = { .out = out };
	enum lag_status st;

	if (!lag_opmodel_applies(lag_context_trace(ctx))) {
		lag_table_note(out, "not an operation table: see what-if and stragglers");
		return LAG_OK;
	}
	w.roles = lag_context_roles(ctx, err);
	if (!w.roles)
		return err->status;
	st = lag_opmodel_build(ctx, &w.model, err);
	if (st == LAG_OK && w.model.nodes.n) {
		st = allocate(&w) ? fill(&w) : LAG_ERR_SYSTEM;
		if (lag_failed(st))
			(void)lag_err_set(err, st, "operations: no memory");
	}
	free(w.mixed);
	free(w.steps);
	free(w.ideal_steps);
	free(w.own_steps);
	free(w.chosen);
	free(w.s_stage);
	free(w.s_dp);
	lag_opmodel_release(&w.model);
	return st;
}

const struct lag_analysis lag_analysis_operations = {
	.name = "operations",
	.summary = "operation tables: what the slowdown is due to, by simulation",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN | LAG_ALL_RANKS,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks with verdict, cause and cost: the accused first, dearest first. */
#include <math.h>
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/findings.h"
#include "viz/analysis/stat.h"

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "verdict", "verdict", LAG_UNIT_TEXT, NULL },
	{ "cause", "cause", LAG_UNIT_TEXT, NULL },
	{ "step_cost_ns", "cost a step", LAG_UNIT_NS, "mean step" },
	{ "step_cost_error_ns", "+/-", LAG_UNIT_NS, "what sound GPUs differ by, sigma" },
	{ "step_cost_share", "cost share", LAG_UNIT_SHARE, "the mean step" },
	{ "waiting_caused_ns", "waiting caused", LAG_UNIT_NS,
	  "rank-time of others, all whole steps" },
	{ "contention_ns", "contention", LAG_UNIT_NS,
	  "part of waiting caused in which its GPU held up work that was ready" },
	{ "waiting_root_ns", "root of waiting", LAG_UNIT_NS, "rank-time of others, all steps" },
	{ "steps_last", "steps last", LAG_UNIT_COUNT, NULL },
	{ "steps_slow", "steps slow", LAG_UNIT_COUNT, NULL },
	{ "steps_seen", "steps seen", LAG_UNIT_COUNT, NULL },
	{ "compute_ratio", "v. peers", LAG_UNIT_RATIO, "compute of ranks that do the same work" },
	{ "stage", "stage", LAG_UNIT_ID, NULL },
};

struct line {
	const struct lag_straggler *s;
	size_t r;
};

static int by_cost(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	bool ax = x->s->verdict != LAG_VERDICT_NONE, ay = y->s->verdict != LAG_VERDICT_NONE;

	if (ax != ay)
		return ax ? -1 : 1;
	if (x->s->step_cost_ns != y->s->step_cost_ns)
		return x->s->step_cost_ns > y->s->step_cost_ns ? -1 : 1;
	return x->r < y->r ? -1 : 1;
}

static void add_row(struct lag_table *out, const struct lag_trace *trace,
		    const struct lag_roles *roles, double step_ns, const struct line *line)
{
	const struct lag_straggler *s = line->s;

	lag_table_row(out);
	lag_table_int(out, trace->ranks[line->r].rank);
	lag_table_text(out, lag_verdict_name(s->verdict));
	lag_table_text(out, lag_cause_name(s->cause));
	lag_table_int(out, s->step_cost_ns);
	lag_table_int(out, s->step_cost_error_ns);
	if (s->step_cost_ns == LAG_NONE || step_ns <= 0) {
		lag_table_null(out);
	} else {
		lag_table_real(out, (double)s->step_cost_ns / step_ns);
	}
	lag_table_int(out, s->waiting_caused_ns);
	lag_table_int(out, s->contention_ns);
	lag_table_int(out, s->waiting_root_ns);
	if (s->waiting_caused_ns == LAG_NONE) {
		lag_table_null(out);
	} else {
		lag_table_int(out, s->steps_last);
	}
	lag_table_int(out, s->steps_slow);
	lag_table_int(out, s->steps_seen);
	lag_table_real(out, s->ratio);
	lag_table_int(out,
		      roles->ranks[line->r].stage < 0 ? LAG_NONE : roles->ranks[line->r].stage);
}

/* Who came last because its device was busy with something else: an explanation, no verdict. */
static void note_contention(const struct lag_trace *trace, const struct lag_stragglers *all,
			    struct lag_table *out)
{
	const struct lag_straggler *most = NULL;
	size_t n = 0, n_unknown = 0;

	for (size_t r = 0; r < all->n_ranks; r++) {
		const struct lag_straggler *s = &all->ranks[r];

		n_unknown += s->waiting_caused_ns > 0 && s->contention_ns == LAG_NONE;
		/* Of a millisecond of waiting it does not matter why. */
		if (s->contention_ns == LAG_NONE || s->waiting_caused_ns <= 1000000 ||
		    2 * s->contention_ns <= s->waiting_caused_ns)
			continue;
		n++;
		if (!most || s->contention_ns > most->contention_ns)
			most = s;
	}
	if (most) {
		lag_table_note(
			out,
			"device contention is most of the waiting caused by %zu of %zu ranks, "
			"first rank %lld (%.0f %%): its communication was ready and its own "
			"GPU did not start it (queue, SMs, priority); no lateness of the rank",
			n, all->n_ranks, (long long)trace->ranks[most - all->ranks].rank,
			100.0 * (double)most->contention_ns / (double)most->waiting_caused_ns);
	}
	if (n_unknown) {
		lag_table_note(out,
			       "contention of %zu %s cannot be told: what their communication "
			       "waited for (events, launches) is not on record, or the clock error "
			       "is not known",
			       n_unknown, LAG_PLURAL(n_unknown, "rank", "ranks"));
	}
}

static void add_notes(struct lag_context *ctx, const struct lag_stragglers *all,
		      struct lag_table *out)
{
	struct lag_err err;
	const struct lag_replay *replay = lag_context_replay(ctx, &err);
	const struct lag_replay_facts *f = replay ? lag_replay_facts(replay) : NULL;
	uint64_t edges = f ? f->n_edges + f->n_inferred : 0;

	if (all->withheld[0]) {
		lag_table_note(out, "cost and waiting, and who is not slow, are withheld: %s",
			       all->withheld);
		return;
	}
	lag_table_note(
		out,
		"verdicts compare compute with ranks of the same stage, kernel by kernel; "
		"arriving last (waiting caused, steps last) explains, it does not accuse; root of "
		"waiting is what the replay without a rank's slowness saves the others");
	note_contention(lag_context_trace(ctx), all, out);
	lag_table_note(
		out,
		"waiting caused, contention: summed over the other ranks and all whole steps; root "
		"of waiting: over the other ranks and all steps; cost and its error: of one step");
	lag_table_note(out,
		       "+/-: part of the cost that may be the GPU's own nature, one sigma of how "
		       "sound ones differ");
	lag_table_note(out,
		       "cost: mean step as measured minus the replay in which the rank is like its "
		       "peers; computed for accused ranks only");
	if (edges) {
		lag_table_note(out,
			       "replay: %.1f %% of the edges between streams are inferred from "
			       "times, %llu %s explained by none",
			       100.0 * (double)f->n_inferred / (double)edges,
			       (unsigned long long)f->n_unexplained,
			       LAG_PLURAL(f->n_unexplained, "start is", "starts are"));
	}
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *trace = lag_context_trace(ctx);
	const struct lag_roles *roles = lag_context_roles(ctx, err);
	const struct lag_stragglers *all = roles ? lag_context_stragglers(ctx, err) : NULL;
	struct lag_mean_step mean;
	struct line *lines;
	size_t n = 0, n_alone = 0;

	if (!all || lag_failed(lag_mean_step_of_run(ctx, &mean, err)))
		return err->status;
	lines = lag_calloc(all->n_ranks, sizeof(*lines));
	if (!lines)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu ranks", all->n_ranks);
	for (size_t r = 0; r < all->n_ranks; r++) {
		if (!trace->ranks[r].recorded || !lag_context_has_rank(ctx, trace->ranks[r].rank))
			continue;
		lines[n++] = (struct line){ &all->ranks[r], r };
		n_alone += isfinite(all->ranks[r].ratio) ? 0 : 1;
		if (lag_verdict_accuses(all->ranks[r].verdict)) {
			out->outcome = LAG_OUTCOME_FINDING;
		} else if (all->ranks[r].verdict != LAG_VERDICT_NONE &&
			   out->outcome == LAG_OUTCOME_FINE) {
			out->outcome = LAG_OUTCOME_UNSURE;
		}
	}
	/* A job in which no rank has a peer has been compared with nothing. */
	if ((all->withheld[0] || n_alone == n) && out->outcome == LAG_OUTCOME_FINE)
		out->outcome = LAG_OUTCOME_UNSURE;
	if (n)
		qsort(lines, n, sizeof(*lines), by_cost);
	for (size_t i = 0; i < n; i++)
		add_row(out, trace, roles, mean.step_ns, &lines[i]);
	free(lines);
	if (n_alone) {
		lag_table_note(out,
			       "%zu of %zu ranks %s no peer that does the same work: nothing to "
			       "compare with",
			       n_alone, n, LAG_PLURAL(n_alone, "has", "have"));
	}
	lag_note_losses(ctx, out);
	add_notes(ctx, all, out);
	return LAG_OK;
}

const struct lag_analysis lag_analysis_stragglers = {
	.name = "stragglers",
	.summary = "Who is slow, how often, what it costs, what fixing it wins",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN,
};

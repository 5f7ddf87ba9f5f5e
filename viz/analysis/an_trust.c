/* SPDX-License-Identifier: Apache-2.0 */
/* What is not in the trace, and why: losses, damaged and missing files, missing ranks, quarantined
 * events, moments without recording, and what the merge found. An empty table means: nothing known. */
#include <string.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/unfinished.h"

#define QUARANTINED_SHOWN 12
#define UNFINISHED_SHOWN  4 /* what came later mostly waits for the first */

static const struct lag_column columns[] = {
	{ "severity", "severity", LAG_UNIT_TEXT, NULL }, { "kind", "kind", LAG_UNIT_TEXT, NULL },
	{ "rank", "rank", LAG_UNIT_ID, NULL },           { "count", "count", LAG_UNIT_COUNT, NULL },
	{ "text", "what", LAG_UNIT_PROSE, NULL },
};

static const char *const severities[] = { "note", "warning", "error" };

static void row(struct lag_table *out, int severity, const char *kind, int64_t rank, int64_t count,
		const char *text)
{
	lag_table_row(out);
	if (severity)
		out->outcome = LAG_OUTCOME_FINDING;
	lag_table_text(out, severities[severity]);
	lag_table_text(out, kind);
	lag_table_int(out, rank);
	lag_table_int(out, count);
	lag_table_text(out, text);
}

/* Missing ranks are one row, however many they are: "4-7". */
static void missing_ranks(const struct lag_trace *t, struct lag_table *out)
{
	struct lag_buf text = { 0 };
	int64_t n = 0;

	for (size_t r = 0; r < t->n_ranks; r++) {
		size_t last = r;

		if (t->ranks[r].recorded)
			continue;
		while (last + 1 < t->n_ranks && !t->ranks[last + 1].recorded &&
		       t->ranks[last + 1].rank == t->ranks[last].rank + 1)
			last++;
		lag_buf_printf(&text, "%s%lld", n ? ", " : "no trace of rank ",
			       (long long)t->ranks[r].rank);
		if (last > r)
			lag_buf_printf(&text, "-%lld", (long long)t->ranks[last].rank);
		n += (int64_t)(last - r) + 1;
		r = last;
	}
	if (n) {
		lag_buf_puts(&text, ": blame, transfer and gain are withheld where it took part");
		row(out, 1, "missing_rank", LAG_NONE, n, lag_buf_text(&text));
	}
	lag_buf_release(&text);
}

static void losses(const struct lag_context *ctx, const struct lag_trace *t, struct lag_table *out)
{
	struct lag_buf text = { 0 };

	for (size_t i = 0; i < t->n_losses; i++) {
		const struct lag_loss_row *l = &t->losses[i];

		if (l->rank != LAG_NONE && !lag_context_has_rank(ctx, l->rank))
			continue;
		lag_buf_clear(&text);
		lag_fmt_count(&text, l->count);
		lag_buf_printf(&text, " %s records lost: %s", l->kind, l->reason);
		row(out, 1, "lost", l->rank, l->count, lag_buf_text(&text));
	}
	for (size_t i = 0; i < t->n_gaps; i++) {
		const struct lag_gap_row *g = &t->gaps[i];

		if (g->rank != LAG_NONE && !lag_context_has_rank(ctx, g->rank))
			continue;
		lag_buf_clear(&text);
		lag_buf_printf(&text, "no %s records", g->what);
		if (g->from_ns != LAG_NONE && g->until_ns != LAG_NONE) {
			lag_buf_printf(&text, " for %.3f s from %.3f s on",
				       (double)(g->until_ns - g->from_ns) / 1e9,
				       (double)g->from_ns / 1e9);
		}
		lag_buf_printf(&text, ": %s", g->reason);
		row(out, 1, "gap", g->rank, LAG_NONE, lag_buf_text(&text));
	}
	lag_buf_release(&text);
}

static void processes(const struct lag_context *ctx, const struct lag_trace *t,
		      struct lag_table *out)
{
	for (size_t r = 0; r < t->n_ranks; r++) {
		const struct lag_rank *rank = &t->ranks[r];
		size_t running = 0;

		if (!rank->recorded || !lag_context_has_rank(ctx, rank->rank))
			continue;
		if (rank->clean_exit == 0) {
			row(out, 1, "cut_off", rank->rank, LAG_NONE,
			    "its recording ends without an orderly exit: the last moments may be "
			    "missing");
		}
		for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++)
			running += t->gpu[i].end_ns == LAG_NONE;
		if (running) {
			row(out, 1, "running", rank->rank, (int64_t)running,
			    "some of its GPU work had not ended when recording did");
		}
	}
}

/* What had begun and not ended tells where a run stood; rank lists do not narrow it: who is missing
 * from it may be another rank. */
static enum lag_status unfinished(const struct lag_trace *t, struct lag_table *out,
				  struct lag_err *err)
{
	struct lag_vec found;
	enum lag_status status = lag_unfinished_find(t, &found, err);

	for (size_t i = 0; !lag_failed(status) && i < found.n && i < UNFINISHED_SHOWN; i++) {
		const struct lag_unfinished *u = &LAG_VEC_AT(&found, struct lag_unfinished, i);

		row(out, 1, "unfinished", u->rank, LAG_NONE, u->text);
	}
	lag_vec_release(&found);
	return status;
}

/* A row for each rank, kind and reason, of the most; the rest in one. */
static void quarantined(const struct lag_context *ctx, const struct lag_trace *t,
			struct lag_table *out)
{
	struct lag_buf text = { 0 };
	int64_t n_more = 0;
	size_t shown = 0;

	for (size_t i = 0; i < t->n_quarantine; i++) {
		const struct lag_quarantine_row *q = &t->quarantine[i];

		if (q->rank != LAG_NONE && !lag_context_has_rank(ctx, q->rank))
			continue;
		if (shown++ >= QUARANTINED_SHOWN) {
			n_more += q->count;
			continue;
		}
		lag_buf_clear(&text);
		lag_buf_printf(&text, "%s records in no analysis: %s", q->record, q->reason);
		row(out, 1, "quarantined", q->rank, q->count, lag_buf_text(&text));
	}
	if (n_more) {
		row(out, 1, "quarantined", LAG_NONE, n_more,
		    "more records whose times cannot be true (laggard report quarantine)");
	}
	lag_buf_release(&text);
}

/* What a source does not tell is unknown, not zero. */
static void unrecorded(const struct lag_trace *t, struct lag_table *out)
{
	struct lag_buf text = { 0 };

	for (size_t i = 0; i < t->n_unrecorded; i++) {
		const struct lag_unrecorded_row *u = &t->unrecorded[i];

		lag_buf_clear(&text);
		lag_buf_printf(
			&text,
			"%s: nothing on record in %lld of %lld sources: not recorded, or there "
			"was none",
			u->what, (long long)u->n_sources, (long long)u->n_all);
		row(out, 0, "not_recorded", LAG_NONE, u->n_sources, lag_buf_text(&text));
	}
	lag_buf_release(&text);
}

/* What recordings that begin or end at different times mean for the steps. */
static const char *counted(const struct lag_steps *steps)
{
	size_t n_whole = 0;

	for (size_t s = 0; s < steps->n_steps; s++)
		n_whole += steps->steps[s].complete;
	if (steps->n_steps == 0)
		return "there is no step";
	if (n_whole == 0)
		return "no step is whole on every rank, so that all are counted";
	if (steps->n_steps == 1) {
		return "the one step is counted: whether some rank has only a part of it cannot be "
		       "told";
	}
	return "steps that some rank has only a part of are in no statistics";
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_waits *waits = lag_context_waits(ctx, err);
	const struct lag_steps *steps = waits ? lag_context_steps(ctx, err) : NULL;
	struct lag_buf text = { 0 };
	enum lag_status status;

	if (!steps)
		return err->status;
	status = unfinished(t, out, err);
	if (lag_failed(status))
		return status;
	missing_ranks(t, out);
	if (lag_window_tells(t)) {
		lag_window_text(t, &text);
		lag_buf_printf(&text, "; %s", counted(steps));
		row(out, 1, "window", LAG_NONE, LAG_NONE, lag_buf_text(&text));
		lag_buf_clear(&text);
	}
	if (steps->given_missed)
		row(out, 1, "step_by", LAG_NONE, LAG_NONE, steps->label);
	losses(ctx, t, out);
	processes(ctx, t, out);
	quarantined(ctx, t, out);
	unrecorded(t, out);
	lag_buf_release(&text);
	if (waits->n_within_error) {
		row(out, 0, "within_clock_error", LAG_NONE, (int64_t)waits->n_within_error,
		    "waits too short to say who came last");
	}
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct lag_finding *f = &t->findings[i];

		/* Said above, in one row. */
		if (!strcmp(f->kind, "missing_rank"))
			continue;
		if (f->rank == LAG_NONE || lag_context_has_rank(ctx, f->rank))
			row(out, f->severity, f->kind, f->rank, f->count, f->text);
	}
	if (!out->n_rows)
		lag_table_note(out, "nothing is known to be lost, damaged or missing");
	return LAG_OK;
}

const struct lag_analysis lag_analysis_trust = {
	.name = "trust",
	.summary = "lost, damaged, quarantined, missing",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Every step: when it was, how long it took, and whether it is whole on all recorded ranks. */
#include "viz/analysis/analysis.h"
#include "viz/analysis/stat.h"

static const struct lag_column columns[] = {
	{ "step", "step", LAG_UNIT_ID, NULL },
	{ "start_ns", "start", LAG_UNIT_NS, "since the first event" },
	{ "end_ns", "end", LAG_UNIT_NS, "since the first event" },
	{ "step_ns", "length", LAG_UNIT_NS, "mean of the recorded ranks" },
	{ "longest_ns", "longest", LAG_UNIT_NS, "rank with the longest span" },
	{ "longest_rank", "rank", LAG_UNIT_ID, "rank with the longest span" },
	{ "n_ranks", "ranks", LAG_UNIT_COUNT, "with work in the step" },
	{ "complete", "complete", LAG_UNIT_TEXT, NULL },
};

static void row(const struct lag_trace *t, const struct lag_steps *steps, size_t s,
		struct lag_table *out)
{
	const struct lag_step *step = &steps->steps[s];
	int64_t longest = LAG_NONE, rank = LAG_NONE, n = 0;

	for (size_t r = 0; r < steps->n_ranks; r++) {
		const struct lag_step_span *span = lag_steps_span(steps, s, r);

		if (span->start_ns == LAG_NONE)
			continue;
		n++;
		if (longest == LAG_NONE || span->end_ns - span->start_ns > longest) {
			longest = span->end_ns - span->start_ns;
			rank = t->ranks[r].rank;
		}
	}
	lag_table_row(out);
	lag_table_int(out, step->number);
	lag_table_int(out, step->start_ns);
	lag_table_int(out, step->end_ns);
	lag_table_int(out, lag_step_length(steps, s));
	lag_table_int(out, longest);
	lag_table_int(out, rank);
	lag_table_int(out, n);
	lag_table_text(out, step->complete ? "yes" : "no");
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_steps *steps = lag_context_steps(ctx, err);

	if (!steps)
		return err->status;
	for (size_t s = 0; s < steps->n_steps; s++) {
		if (lag_context_has_step(ctx, steps->steps[s].number))
			row(lag_context_trace(ctx), steps, s, out);
	}
	lag_table_note(out, "steps from: %s", steps->label);
	if (steps->source >= LAG_STEPS_WINDOW) {
		lag_table_note(out,
			       "no training step was found; name its annotation with --step-by");
	}
	return LAG_OK;
}

const struct lag_analysis lag_analysis_steps = {
	.name = "steps",
	.summary = "every training step: when, how long, where it was found",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_ALL_RANKS,
};

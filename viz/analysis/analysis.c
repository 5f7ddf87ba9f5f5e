/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of analyses, and running one. */
#include "viz/analysis/analysis.h"

#include <string.h>

#include "schema/base/fmt.h"

const struct lag_analysis *const lag_analyses[] = {
#define LAG_ANALYSIS(id, title) &lag_analysis_##id,
#include "viz/analysis/analyses.def"
	NULL,
};

/* "what_if" is as good as "what-if". */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
			return false;
	}
	return *a == *b;
}

const struct lag_analysis *lag_analysis_find(const char *name)
{
	for (size_t i = 0; lag_analyses[i]; i++) {
		if (same_name(lag_analyses[i]->name, name))
			return lag_analyses[i];
	}
	return NULL;
}

/* Steps and ranks that were asked for and of which none is there: empty tables would not say so. */
static enum lag_status check_chosen(struct lag_context *ctx, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_steps *steps;
	size_t r = 0, s = 0;

	while (r < t->n_ranks && !lag_context_has_rank(ctx, t->ranks[r].rank))
		r++;
	if (r == t->n_ranks && r > 0) {
		return lag_err_set(
			err, LAG_ERR_USAGE,
			"none of these ranks is in the trace: its ranks are %lld to %lld",
			(long long)t->ranks[0].rank, (long long)t->ranks[r - 1].rank);
	}
	if (lag_context_has_all_steps(ctx))
		return LAG_OK;
	steps = lag_context_steps(ctx, err);
	if (!steps)
		return err->status;
	while (s < steps->n_steps && !lag_context_has_step(ctx, steps->steps[s].number))
		s++;
	if (s == steps->n_steps && s > 0) {
		return lag_err_set(
			err, LAG_ERR_USAGE,
			"none of these steps is in the trace: its steps are %lld to %lld",
			(long long)steps->steps[0].number, (long long)steps->steps[s - 1].number);
	}
	return LAG_OK;
}

/* The word for what a list as it was typed names: "7" is one, "7-9" and "7,9" are several. */
static const char *listed(const char *list, const char *one, const char *many)
{
	return LAG_PLURAL(strpbrk(list, ",-") == NULL, one, many);
}

/* What the table leaves out because it was asked to. */
static void note_filters(const struct lag_analysis *analysis, struct lag_context *ctx,
			 struct lag_table *out)
{
	const struct lag_model_opts *opts = lag_context_opts(ctx);
	const struct lag_steps *steps = NULL;
	size_t n = 0;

	if (opts->ranks && *opts->ranks) {
		lag_table_note(out,
			       analysis->ignores & LAG_ALL_RANKS
				       ? "not narrowed to %s %.100s: its rows are of several ranks"
				       : "only %s %.100s",
			       listed(opts->ranks, "rank", "ranks"), opts->ranks);
	}
	if (!opts->steps || !*opts->steps)
		return;
	if (analysis->ignores & LAG_WHOLE_RUN) {
		lag_table_note(out, "not narrowed to %s %.100s: it is of the whole run",
			       listed(opts->steps, "step", "steps"), opts->steps);
		return;
	}
	steps = lag_context_steps(ctx, NULL);
	for (size_t s = 0; steps && s < steps->n_steps; s++)
		n += lag_context_has_step(ctx, steps->steps[s].number);
	lag_table_note(out, "only %s %.100s: %zu of %zu", listed(opts->steps, "step", "steps"),
		       opts->steps, n, steps ? steps->n_steps : 0);
}

/* What was recorded by some ranks only, which is in no comparison. */
static void note_window(struct lag_context *ctx, struct lag_table *out)
{
	struct lag_buf text = { 0 };

	if (!lag_window_tells(lag_context_trace(ctx)))
		return;
	lag_window_text(lag_context_trace(ctx), &text);
	lag_table_note(out, "%.300s", lag_buf_text(&text));
	lag_buf_release(&text);
}

enum lag_status lag_analysis_run(const struct lag_analysis *analysis, struct lag_context *ctx,
				 struct lag_table *out, struct lag_err *err)
{
	enum lag_status status = check_chosen(ctx, err);

	lag_table_init(out, analysis->name, analysis->columns, analysis->n_columns);
	if (!lag_failed(status)) {
		note_filters(analysis, ctx, out);
		status = analysis->run(ctx, out, err);
	}
	if (!lag_failed(status))
		note_window(ctx, out);
	if (!lag_failed(status))
		status = lag_table_finish(out, err);
	return status;
}

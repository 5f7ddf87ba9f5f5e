/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of analyses, and running one. */
#include "viz/analysis/analysis.h"

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
	if (r == t->n_ranks && r > 0)
		return lag_err_set(
			err, LAG_ERR_USAGE,
			"none of these ranks is in the trace: its ranks are %lld to %lld",
			(long long)t->ranks[0].rank, (long long)t->ranks[r - 1].rank);
	if (lag_context_has_all_steps(ctx))
		return LAG_OK;
	steps = lag_context_steps(ctx, err);
	if (!steps)
		return err->status;
	while (s < steps->n_steps && !lag_context_has_step(ctx, steps->steps[s].number))
		s++;
	if (s == steps->n_steps && s > 0)
		return lag_err_set(
			err, LAG_ERR_USAGE,
			"none of these steps is in the trace: its steps are %lld to %lld",
			(long long)steps->steps[0].number, (long long)steps->steps[s - 1].number);
	return LAG_OK;
}

enum lag_status lag_analysis_run(const struct lag_analysis *analysis, struct lag_context *ctx,
				 struct lag_table *out, struct lag_err *err)
{
	enum lag_status status = check_chosen(ctx, err);

	lag_table_init(out, analysis->name, analysis->columns, analysis->n_columns);
	if (!lag_failed(status))
		status = analysis->run(ctx, out, err);
	if (!lag_failed(status))
		status = lag_table_finish(out, err);
	return status;
}

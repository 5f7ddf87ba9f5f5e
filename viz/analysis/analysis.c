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

enum lag_status lag_analysis_run(const struct lag_analysis *analysis, struct lag_context *ctx,
				 struct lag_table *out, struct lag_err *err)
{
	enum lag_status status;

	lag_table_init(out, analysis->name, analysis->columns, analysis->n_columns);
	status = analysis->run(ctx, out, err);
	if (!lag_failed(status))
		status = lag_table_finish(out, err);
	return status;
}

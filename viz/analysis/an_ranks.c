/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of the job: where each ran, its place in the parallel layout, what was recorded of it. */
#include "viz/analysis/analysis.h"

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "host", "host", LAG_UNIT_TEXT, NULL },
	{ "device", "device", LAG_UNIT_ID, NULL },
	{ "pipeline", "pipeline", LAG_UNIT_ID, NULL },
	{ "stage", "stage", LAG_UNIT_ID, NULL },
	{ "dp", "dp", LAG_UNIT_ID, NULL },
	{ "tp", "tp", LAG_UNIT_ID, NULL },
	{ "recorded", "recorded", LAG_UNIT_TEXT, NULL },
	{ "n_gpu_events", "GPU events", LAG_UNIT_COUNT, NULL },
	{ "n_ops", "comm calls", LAG_UNIT_COUNT, NULL },
	{ "first_ns", "first", LAG_UNIT_NS, "since the first event of the job" },
	{ "last_ns", "last", LAG_UNIT_NS, "since the first event of the job" },
	{ "uncertainty_ns", "clock error", LAG_UNIT_NS, "of the estimate" },
	{ "lost", "lost", LAG_UNIT_COUNT, "records" },
	{ "exit", "exit", LAG_UNIT_TEXT, NULL },
};

static int64_t or_none(int32_t value)
{
	return value < 0 ? LAG_NONE : value;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_roles *roles = lag_context_roles(ctx, err);
	bool unknown = false, alone = lag_trace_n_recorded(t) < 2;

	if (!roles)
		return err->status;
	for (size_t r = 0; r < t->n_ranks; r++) {
		const struct lag_rank *rank = &t->ranks[r];
		const struct lag_rank_role *role = &roles->ranks[r];

		if (!lag_context_has_rank(ctx, rank->rank))
			continue;
		unknown = unknown || (rank->recorded && rank->uncertainty_ns == INT64_MAX);
		lag_table_row(out);
		lag_table_int(out, rank->rank);
		lag_table_text(out, rank->host < 0 ? NULL : t->hosts[rank->host].name);
		lag_table_int(out, rank->device);
		lag_table_int(out, or_none(role->pipeline));
		lag_table_int(out, or_none(role->stage));
		lag_table_int(out, or_none(role->dp));
		lag_table_int(out, or_none(role->tp));
		lag_table_text(out, rank->recorded ? "yes" : "no");
		lag_table_int(out, (int64_t)(rank->gpu_end - rank->gpu_begin));
		lag_table_int(out, (int64_t)(rank->op_end - rank->op_begin));
		lag_table_int(out, rank->first_ns);
		lag_table_int(out, rank->last_ns);
		lag_table_int(out, alone || rank->uncertainty_ns == INT64_MAX
					   ? LAG_NONE
					   : rank->uncertainty_ns);
		lag_table_int(out, (int64_t)rank->lost);
		lag_table_text(out, rank->clean_exit < 0 ? NULL
				    : rank->clean_exit   ? "orderly"
							 : "cut off");
	}
	if (alone) {
		lag_table_note(out, "clock error: n/a, one rank has nobody to be compared with");
	} else if (unknown) {
		lag_table_note(out, "clock error: not known, the clocks could not be compared");
	}
	lag_table_note(out, "layout: %s (confidence %.2f): %s", roles->shape, roles->confidence,
		       roles->why);
	return LAG_OK;
}

const struct lag_analysis lag_analysis_ranks = {
	.name = "ranks",
	.summary = "ranks: host, device, stage, roles, what was recorded",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN,
};

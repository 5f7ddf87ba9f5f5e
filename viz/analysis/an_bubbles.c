/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline bubbles per stage and step: measured, ideal, and what lies between, rung by rung. */
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/bubble_ladder.h"
#include "viz/analysis/stat.h"

#define OF_WINDOW "the group's window: first forward to last backward"

static const struct lag_column columns[] = {
	{ "group", "group", LAG_UNIT_ID, NULL },
	{ "stage", "stage", LAG_UNIT_ID, NULL },
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "step", "step", LAG_UNIT_ID, NULL },
	{ "window_ns", "window", LAG_UNIT_NS, NULL },
	{ "measured_ns", "measured", LAG_UNIT_NS, NULL },
	{ "measured_share", "measured share", LAG_UNIT_SHARE, OF_WINDOW },
	{ "ideal_ns", "ideal", LAG_UNIT_NS, NULL },
	{ "ideal_share", "ideal share", LAG_UNIT_SHARE, "the ideal's own window" },
	{ "imbalance_ns", "+imbalance", LAG_UNIT_NS, NULL },
	{ "slow_ranks_ns", "+slow ranks", LAG_UNIT_NS, NULL },
	{ "variation_ns", "+variation", LAG_UNIT_NS, NULL },
	{ "send_recv_ns", "+send/recv", LAG_UNIT_NS, NULL },
	{ "host_ns", "+host", LAG_UNIT_NS, NULL },
	{ "residual_ns", "+residual", LAG_UNIT_NS, NULL },
	{ "warm_up_ns", "warm-up", LAG_UNIT_NS, NULL },
	{ "steady_ns", "steady", LAG_UNIT_NS, NULL },
	{ "cool_down_ns", "cool-down", LAG_UNIT_NS, NULL },
};

/* Sums over stages and steps of one group, for its line in the notes. */
struct sums {
	double window, measured, rung[LAG_RUNG_LIMIT];
	size_t n_steps, n_skipped;
};

static void add_row(struct lag_table *out, size_t group, int32_t stage, int64_t rank, int64_t step,
		    const struct lag_ladder_stage *s)
{
	lag_table_row(out);
	lag_table_int(out, (int64_t)group);
	lag_table_int(out, stage);
	lag_table_int(out, rank);
	lag_table_int(out, step);
	lag_table_int(out, s->window_ns);
	lag_table_int(out, s->measured_ns);
	lag_table_real(out, (double)s->measured_ns / (double)s->window_ns);
	lag_table_int(out, s->bubble_ns[LAG_RUNG_IDEAL]);
	lag_table_real(out, (double)s->bubble_ns[LAG_RUNG_IDEAL] / (double)s->ideal_window_ns);
	for (int r = LAG_RUNG_IMBALANCE; r < LAG_RUNG_LIMIT; r++)
		lag_table_int(out, s->bubble_ns[r] - s->bubble_ns[r - 1]);
	lag_table_int(out, s->measured_ns - s->bubble_ns[LAG_RUNG_HOST]);
	lag_table_int(out, s->warm_up_ns);
	lag_table_int(out, s->measured_ns - s->warm_up_ns - s->cool_down_ns);
	lag_table_int(out, s->cool_down_ns);
}

static void add_sums(struct sums *sums, const struct lag_ladder_stage *s)
{
	sums->window += (double)s->window_ns;
	sums->measured += (double)s->measured_ns;
	for (int r = 0; r < LAG_RUNG_LIMIT; r++)
		sums->rung[r] += (double)s->bubble_ns[r];
}

/* The ladder of a group in points of its window. */
static void add_note(struct lag_table *out, size_t g, const struct lag_pipe_group *group,
		     const struct sums *s)
{
	double point = s->window / 100;

	if (s->n_skipped) {
		lag_table_note(out, "group %zu: %zu %s without a whole schedule are left out", g,
			       s->n_skipped, LAG_PLURAL(s->n_skipped, "step", "steps"));
	}
	if (s->n_steps == 0)
		return;
	lag_table_note(
		out,
		"group %zu: %s, %d %s%s, %d %s; measured %.1f %% of the window = "
		"ideal %.1f, imbalance %+.1f, slow ranks %+.1f, variation %+.1f, send/recv %+.1f, "
		"host %+.1f, residual %+.1f (added in this order)",
		g, lag_schedule_name(group->schedule), group->n_stages,
		LAG_PLURAL(group->n_stages, "stage", "stages"),
		group->n_chunks > 1 ? " with several chunks" : "", group->n_microbatches,
		LAG_PLURAL(group->n_microbatches, "microbatch", "microbatches"),
		s->measured / point, s->rung[LAG_RUNG_IDEAL] / point,
		(s->rung[LAG_RUNG_IMBALANCE] - s->rung[LAG_RUNG_IDEAL]) / point,
		(s->rung[LAG_RUNG_SLOW] - s->rung[LAG_RUNG_IMBALANCE]) / point,
		(s->rung[LAG_RUNG_VARIATION] - s->rung[LAG_RUNG_SLOW]) / point,
		(s->rung[LAG_RUNG_SEND_RECV] - s->rung[LAG_RUNG_VARIATION]) / point,
		(s->rung[LAG_RUNG_HOST] - s->rung[LAG_RUNG_SEND_RECV]) / point,
		(s->measured - s->rung[LAG_RUNG_HOST]) / point);
	if (group->schedule == LAG_SCHEDULE_UNKNOWN) {
		lag_table_note(out,
			       "group %zu: the executed order is no textbook schedule; ideal is "
			       "this order with equal stages and no waits",
			       g);
	}
}

static enum lag_status add_group(struct lag_context *ctx, struct lag_ladder *ladder, size_t g,
				 struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *trace = lag_context_trace(ctx);
	const struct lag_pipeline *p = lag_context_pipeline(ctx, err);
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	const struct lag_pipe_group *group = &p->groups[g];
	struct lag_ladder_stage *stages;
	struct sums sums = { 0 };
	enum lag_status status;

	if (lag_ladder_is_cut(ladder, g)) {
		lag_table_note(out, "group %zu: a stage is not on record; its bubbles are withheld",
			       g);
		return LAG_OK;
	}
	stages = lag_calloc((size_t)group->n_stages, sizeof(*stages));
	status = stages ? LAG_OK : LAG_ERR_SYSTEM;

	for (size_t step = 0; step < p->n_steps && !lag_failed(status); step++) {
		if (!lag_context_has_step(ctx, steps->steps[step].number))
			continue;
		status = lag_ladder_climb(ladder, g, step, stages);
		if (status == LAG_END) {
			sums.n_skipped++;
			continue;
		}
		sums.n_steps++;
		for (int32_t s = 0; s < group->n_stages && !lag_failed(status); s++) {
			int64_t rank = trace->ranks[group->rank_of_stage[s]].rank;

			add_sums(&sums, &stages[s]);
			if (lag_context_has_rank(ctx, rank))
				add_row(out, g, s, rank, steps->steps[step].number, &stages[s]);
		}
	}
	free(stages);
	if (lag_failed(status))
		return lag_err_set(err, status, "no memory for bubbles");
	add_note(out, g, group, &sums);
	return LAG_OK;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_pipeline *p = lag_context_pipeline(ctx, err);
	struct lag_ladder *ladder = NULL;
	enum lag_status status;

	if (!p)
		return err->status;
	if (p->n_groups == 0) {
		lag_table_note(out,
			       "no pipeline: no two ranks pass messages as stages do, so bubbles "
			       "are not applicable (which is not 0)");
		return LAG_OK;
	}
	if (p->n_blocks == 0) {
		lag_table_note(out, "forwards and backwards could not be told apart: neither "
				    "annotations nor the order of sends and receives show them");
		return LAG_OK;
	}
	status = lag_ladder_new(ctx, &ladder, err);
	for (size_t g = 0; g < p->n_groups && !lag_failed(status); g++)
		status = add_group(ctx, ladder, g, out, err);
	lag_ladder_free(ladder);
	if (!lag_failed(status)) {
		lag_table_note(out,
			       "forward and backward from %s; measured = window - work in its "
			       "forwards and backwards (compute, copies, other groups' "
			       "communication)",
			       p->how);
	}
	return status;
}

const struct lag_analysis lag_analysis_bubbles = {
	.name = "bubbles",
	.summary = "Pipeline bubbles: measured, ideal, and the ladder between",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline groups with their blocks, windows and the schedule they execute. */
#include "viz/model/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "viz/model/interval.h"
#include "viz/model/pipeline_internal.h"
#include "viz/model/schedule.h"

static int by_launch(const void *a, const void *b)
{
	const struct lag_launched *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

enum lag_status lag_pipeline_launched(const struct lag_trace *trace, size_t r, struct lag_vec *out)
{
	const struct lag_rank *rank = &trace->ranks[r];

	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];
		struct lag_launched *l;

		if (g->class != LAG_CLASS_COMPUTE || g->end_ns == LAG_NONE)
			continue;
		l = lag_vec_push(out);
		if (!l)
			return LAG_ERR_SYSTEM;
		l->at_ns = g->launch_start_ns != LAG_NONE ? g->launch_start_ns : g->start_ns;
		l->gpu = i;
	}
	if (out->n)
		qsort(out->items, out->n, out->item_size, by_launch);
	return LAG_OK;
}

enum lag_status lag_pipeline_add(const struct lag_trace *trace, const struct lag_vec *launched,
				 size_t first, size_t last, const struct lag_block *like,
				 struct lag_vec *blocks)
{
	struct lag_intervals busy = { 0 };
	enum lag_status status = LAG_OK;
	struct lag_block *b;

	for (size_t i = first; i < last && !lag_failed(status); i++) {
		const struct lag_gpu_event *g =
			&trace->gpu[LAG_VEC_AT(launched, struct lag_launched, i).gpu];

		status = lag_intervals_add(&busy, g->start_ns, g->end_ns);
	}
	lag_intervals_normalize(&busy);
	if (!lag_failed(status) && busy.n) {
		b = lag_vec_push(blocks);
		status = b ? LAG_OK : LAG_ERR_SYSTEM;
		if (b) {
			*b = *like;
			b->start_ns = busy.at[0].start_ns;
			b->end_ns = busy.at[busy.n - 1].end_ns;
			b->busy_ns = lag_intervals_length(&busy);
		}
	}
	lag_intervals_release(&busy);
	return status;
}

static int by_rank_and_start(const void *a, const void *b)
{
	const struct lag_block *x = a, *y = b;

	if (x->r != y->r)
		return x->r < y->r ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static enum lag_status find_groups(const struct lag_trace *trace, const struct lag_roles *roles,
				   struct lag_pipeline *out)
{
	out->n_groups = (size_t)roles->n_pipelines;
	out->groups = lag_calloc(out->n_groups, sizeof(*out->groups));
	if (!out->groups)
		return LAG_ERR_SYSTEM;
	for (size_t r = 0; r < trace->n_ranks; r++) {
		const struct lag_rank_role *role = &roles->ranks[r];

		if (role->pipeline >= 0 && role->stage + 1 > out->groups[role->pipeline].n_stages)
			out->groups[role->pipeline].n_stages = role->stage + 1;
	}
	for (size_t g = 0; g < out->n_groups; g++) {
		struct lag_pipe_group *group = &out->groups[g];

		group->rank_of_stage =
			lag_calloc((size_t)group->n_stages, sizeof(*group->rank_of_stage));
		if (!group->rank_of_stage)
			return LAG_ERR_SYSTEM;
		for (int32_t s = 0; s < group->n_stages; s++)
			group->rank_of_stage[s] = -1;
	}
	for (size_t r = 0; r < trace->n_ranks; r++) {
		const struct lag_rank_role *role = &roles->ranks[r];

		if (role->pipeline >= 0 && role->stage >= 0)
			out->groups[role->pipeline].rank_of_stage[role->stage] = (int32_t)r;
	}
	return LAG_OK;
}

static enum lag_status find_blocks(const struct lag_trace *trace, const struct lag_steps *steps,
				   const struct lag_roles *roles, struct lag_pipeline *out)
{
	struct lag_vec blocks = LAG_VEC_INIT(struct lag_block);
	bool *wanted = lag_calloc(trace->n_ranks, sizeof(*wanted));
	enum lag_status status = wanted ? LAG_OK : LAG_ERR_SYSTEM;
	size_t n_ranges = 0, n_order = 0, before;

	for (size_t r = 0; r < trace->n_ranks && !lag_failed(status); r++) {
		if (roles->ranks[r].pipeline < 0 || !trace->ranks[r].recorded)
			continue;
		before = blocks.n;
		status = lag_pipeline_from_ranges(trace, steps, r, &blocks);
		n_ranges += blocks.n > before;
		wanted[r] = blocks.n == before;
	}
	before = blocks.n;
	if (!lag_failed(status))
		status = lag_pipeline_from_order(trace, steps, roles, wanted, &blocks);
	n_order += blocks.n > before;
	free(wanted);
	if (blocks.n)
		qsort(blocks.items, blocks.n, blocks.item_size, by_rank_and_start);
	out->blocks = blocks.items;
	out->n_blocks = blocks.n;
	(void)snprintf(out->how, sizeof(out->how), "%s%s%s", n_ranges ? "annotations" : "",
		       n_ranges && n_order ? ", on some ranks " : "",
		       n_order ? "order of sends and receives" : "");
	return status;
}

static enum lag_status index_blocks(const struct lag_trace *trace, struct lag_pipeline *out)
{
	size_t at = 0;

	out->first_block = lag_calloc(trace->n_ranks + 1, sizeof(*out->first_block));
	if (!out->first_block)
		return LAG_ERR_SYSTEM;
	for (size_t r = 0; r < trace->n_ranks; r++) {
		out->first_block[r] = at;
		while (at < out->n_blocks && out->blocks[at].r == r)
			at++;
	}
	out->first_block[trace->n_ranks] = at;
	return LAG_OK;
}

/* Largest microbatch and chunk seen decide the shape. */
static void measure_group(const struct lag_pipeline *out, struct lag_pipe_group *group)
{
	for (int32_t s = 0; s < group->n_stages; s++) {
		int32_t r = group->rank_of_stage[s];

		for (size_t i = r < 0 ? 0 : out->first_block[r];
		     r >= 0 && i < out->first_block[r + 1]; i++) {
			const struct lag_block *b = &out->blocks[i];

			if (b->microbatch + 1 > group->n_microbatches)
				group->n_microbatches = b->microbatch + 1;
			if (b->chunk + 1 > group->n_chunks)
				group->n_chunks = b->chunk + 1;
		}
	}
}

/* Blocks of rank r in step executed exactly in this order? -1 when the rank has none in the step. */
static int follows(const struct lag_pipeline *out, int32_t r, int32_t step,
		   const struct lag_slot *slots, size_t n)
{
	size_t at = 0, seen = 0;

	for (size_t i = out->first_block[r]; i < out->first_block[r + 1]; i++) {
		const struct lag_block *b = &out->blocks[i];

		if (b->step != step)
			continue;
		seen++;
		if (at < n && b->kind == slots[at].kind && b->microbatch == slots[at].microbatch &&
		    b->chunk == slots[at].chunk)
			at++;
	}
	return seen == 0 ? -1 : at == n && seen == n;
}

static bool executes(const struct lag_pipeline *out, const struct lag_pipe_group *group,
		     enum lag_schedule schedule, struct lag_slot *slots)
{
	struct lag_schedule_shape shape = { schedule, group->n_stages, group->n_chunks,
					    group->n_microbatches };
	size_t n = lag_schedule_length(&shape), n_steps = 0;

	for (int32_t s = 0; s < group->n_stages; s++) {
		int32_t r = group->rank_of_stage[s];

		if (r < 0 || !lag_schedule_order(&shape, s, slots))
			return false;
		for (size_t step = 0; step < out->n_steps; step++) {
			int same = follows(out, r, (int32_t)step, slots, n);

			if (same == 0)
				return false;
			n_steps += same > 0;
		}
	}
	return n_steps > 0;
}

static enum lag_status recognise(struct lag_pipeline *out, struct lag_pipe_group *group)
{
	static const enum lag_schedule known[] = { LAG_SCHEDULE_1F1B, LAG_SCHEDULE_GPIPE,
						   LAG_SCHEDULE_INTERLEAVED };
	struct lag_schedule_shape shape = { LAG_SCHEDULE_UNKNOWN, group->n_stages, group->n_chunks,
					    group->n_microbatches };
	struct lag_slot *slots;

	/* A number in a hostile annotation must not size an array: a whole step has that many blocks. */
	if (lag_schedule_length(&shape) > out->n_blocks)
		return LAG_OK;
	slots = lag_calloc(lag_schedule_length(&shape), sizeof(*slots));
	if (!slots)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0;
	     i < sizeof(known) / sizeof(known[0]) && group->schedule == LAG_SCHEDULE_UNKNOWN; i++) {
		if ((known[i] == LAG_SCHEDULE_INTERLEAVED) == (group->n_chunks > 1) &&
		    executes(out, group, known[i], slots))
			group->schedule = known[i];
	}
	free(slots);
	return LAG_OK;
}

static enum lag_status find_windows(struct lag_pipeline *out)
{
	out->windows = lag_calloc(out->n_steps * out->n_groups, sizeof(*out->windows));
	if (!out->windows)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < out->n_steps * out->n_groups; i++)
		out->windows[i] = (struct lag_pipe_window){ LAG_NONE, LAG_NONE };
	for (size_t g = 0; g < out->n_groups; g++) {
		const struct lag_pipe_group *group = &out->groups[g];

		for (int32_t s = 0; s < group->n_stages; s++) {
			int32_t r = group->rank_of_stage[s];

			for (size_t i = r < 0 ? 0 : out->first_block[r];
			     r >= 0 && i < out->first_block[r + 1]; i++) {
				const struct lag_block *b = &out->blocks[i];
				struct lag_pipe_window *w =
					&out->windows[(size_t)b->step * out->n_groups + g];

				if (b->kind == LAG_BLOCK_FORWARD &&
				    (w->start_ns == LAG_NONE || b->start_ns < w->start_ns))
					w->start_ns = b->start_ns;
				if (b->kind != LAG_BLOCK_FORWARD &&
				    (w->end_ns == LAG_NONE || b->end_ns > w->end_ns))
					w->end_ns = b->end_ns;
			}
		}
	}
	return LAG_OK;
}

/* A window needs both of its ends. */
static void drop_half_windows(struct lag_pipeline *out)
{
	for (size_t i = 0; i < out->n_steps * out->n_groups; i++) {
		struct lag_pipe_window *w = &out->windows[i];

		if (w->start_ns == LAG_NONE || w->end_ns == LAG_NONE || w->end_ns <= w->start_ns)
			*w = (struct lag_pipe_window){ LAG_NONE, LAG_NONE };
	}
}

enum lag_status lag_pipeline_find(struct lag_context *ctx, struct lag_pipeline *out,
				  struct lag_err *err)
{
	const struct lag_trace *trace = lag_context_trace(ctx);
	const struct lag_roles *roles = lag_context_roles(ctx, err);
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	enum lag_status status;

	*out = (struct lag_pipeline){ 0 };
	if (!roles || !steps)
		return err ? err->status : LAG_ERR_SYSTEM;
	out->n_steps = steps->n_steps;
	status = find_groups(trace, roles, out);
	if (!lag_failed(status))
		status = find_blocks(trace, steps, roles, out);
	if (!lag_failed(status))
		status = index_blocks(trace, out);
	for (size_t g = 0; g < out->n_groups && !lag_failed(status); g++) {
		measure_group(out, &out->groups[g]);
		status = recognise(out, &out->groups[g]);
	}
	if (!lag_failed(status))
		status = find_windows(out);
	if (lag_failed(status)) {
		lag_pipeline_release(out);
		return lag_err_set(err, status, "no memory for the pipeline's blocks");
	}
	drop_half_windows(out);
	return LAG_OK;
}

void lag_pipeline_release(struct lag_pipeline *pipeline)
{
	for (size_t g = 0; pipeline->groups && g < pipeline->n_groups; g++)
		free(pipeline->groups[g].rank_of_stage);
	free(pipeline->groups);
	free(pipeline->blocks);
	free(pipeline->first_block);
	free(pipeline->windows);
	*pipeline = (struct lag_pipeline){ 0 };
}

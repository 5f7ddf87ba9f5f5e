/* SPDX-License-Identifier: Apache-2.0 */
/* Replays one group's blocks in their executed order, rung by rung. */
#include "viz/analysis/bubble_ladder.h"

#include <math.h>
#include <stdlib.h>

#include "viz/analysis/bubble_internal.h"
#include "viz/model/interval.h"

#define CHUNKS_MAX    256
#define WINDOW_MAX_NS INT64_C(1000000000000000) /* eleven days: not a step */

/* What begins this soon after what was launched before it has waited for it. */
#define FOLLOWS_NS 50000
/* What lies between a launch and the earliest start is the GPU's, up to this. */
#define LATENCY_NS 10000

static enum lag_status allocate(struct lag_ladder *l)
{
	size_t parts;

	l->n_stages = l->n_chunks = 1;
	for (size_t g = 0; g < l->pipe->n_groups; g++) {
		if (l->pipe->groups[g].n_stages > l->n_stages)
			l->n_stages = l->pipe->groups[g].n_stages;
	}
	for (size_t i = 0; i < l->pipe->n_blocks; i++) {
		const struct lag_block *b = &l->pipe->blocks[i];

		/* A number in a hostile annotation must not size an array. */
		if (b->chunk >= l->n_chunks && b->chunk < CHUNKS_MAX)
			l->n_chunks = b->chunk + 1;
	}
	parts = 2 * (size_t)l->n_stages * (size_t)l->n_chunks;
	l->work_ns = lag_calloc(l->pipe->n_blocks, sizeof(*l->work_ns));
	l->launch_ns = lag_calloc(l->pipe->n_blocks, sizeof(*l->launch_ns));
	l->end_ns = lag_calloc(l->pipe->n_blocks, sizeof(*l->end_ns));
	l->stage_usual = lag_calloc(parts, sizeof(*l->stage_usual));
	l->rank_usual = lag_calloc(parts * l->trace->n_ranks, sizeof(*l->rank_usual));
	l->receives = lag_calloc(l->pipe->n_blocks, sizeof(*l->receives));
	l->behind = lag_calloc(l->pipe->n_blocks, sizeof(*l->behind));
	l->values = (struct lag_vec)LAG_VEC_INIT(double);
	l->ops = (struct lag_vec)LAG_VEC_INIT(struct lag_message_op);
	if (!l->work_ns || !l->launch_ns || !l->end_ns || !l->receives || !l->behind ||
	    !l->stage_usual || !l->rank_usual)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < l->pipe->n_blocks; i++)
		l->launch_ns[i] = LAG_NONE;
	return LAG_OK;
}

enum lag_status lag_ladder_new(struct lag_context *ctx, struct lag_ladder **out,
			       struct lag_err *err)
{
	const struct lag_roles *roles = lag_context_roles(ctx, err);
	struct lag_ladder *l = lag_calloc(1, sizeof(*l));
	enum lag_status status;

	*out = l;
	if (!l)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for bubbles");
	l->trace = lag_context_trace(ctx);
	l->pipe = lag_context_pipeline(ctx, err);
	l->peers = lag_context_peers(ctx, err);
	if (!roles || !l->pipe || !l->peers)
		return err->status;
	status = lag_messages_new(ctx, &l->messages, err);
	if (lag_failed(status))
		return status;
	status = allocate(l);
	if (!lag_failed(status))
		status = lag_bubble_work_find(l, roles);
	return lag_failed(status) ? lag_err_set(err, status, "no memory for bubbles") : LAG_OK;
}

void lag_ladder_free(struct lag_ladder *ladder)
{
	if (!ladder)
		return;
	free(ladder->work_ns);
	free(ladder->launch_ns);
	free(ladder->end_ns);
	free(ladder->receives);
	free(ladder->behind);
	lag_vec_release(&ladder->ops);
	lag_messages_free(ladder->messages);
	free(ladder->stage_usual);
	free(ladder->rank_usual);
	free(ladder->transfers);
	free(ladder->cut);
	free(ladder->longer);
	free(ladder->slot);
	lag_vec_release(&ladder->values);
	free(ladder);
}

bool lag_ladder_is_cut(const struct lag_ladder *ladder, size_t group)
{
	return ladder->cut[group];
}

/* One group and step under replay. */
struct climb {
	struct lag_ladder *l;
	const struct lag_pipe_group *group;
	struct lag_pipe_window window;
	size_t *from, *to, *next; /* by stage: its blocks, and the one the replay is at */
	enum lag_rung rung;
};

static double usual_or(double usual, double other)
{
	return isnan(usual) ? other : usual;
}

/* What a block counts as work at a rung. */
static int64_t work_at(const struct climb *c, int32_t stage, size_t block)
{
	const struct lag_ladder *l = c->l;
	const struct lag_block *b = &l->pipe->blocks[block];
	size_t parts = 2 * (size_t)l->n_stages * (size_t)l->n_chunks;
	size_t part = lag_bubble_part(l, b->kind, stage, b->chunk);
	double actual = (double)l->work_ns[block];

	switch (c->rung) {
	case LAG_RUNG_IDEAL:
		return llround(l->balanced[b->kind != LAG_BLOCK_FORWARD]);
	case LAG_RUNG_IMBALANCE:
		return llround(usual_or(l->stage_usual[part], actual));
	case LAG_RUNG_SLOW:
		return llround(usual_or(l->rank_usual[(size_t)b->r * parts + part], actual));
	default:
		return l->work_ns[block];
	}
}

static size_t slot_of(const struct climb *c, uint8_t kind, int32_t part, int32_t microbatch)
{
	int32_t n_parts = c->group->n_stages * c->group->n_chunks;

	return ((size_t)(kind != LAG_BLOCK_FORWARD) * (size_t)n_parts + (size_t)part) *
		       (size_t)c->group->n_microbatches +
	       (size_t)microbatch;
}

/* The block whose output a block needs; -1 none. */
static int32_t input_of(const struct climb *c, int32_t stage, const struct lag_block *b)
{
	int32_t n_parts = c->group->n_stages * c->group->n_chunks;
	int32_t part = b->chunk * c->group->n_stages + stage;

	if (b->kind == LAG_BLOCK_FORWARD) {
		return part == 0
			       ? -1
			       : c->l->slot[slot_of(c, LAG_BLOCK_FORWARD, part - 1, b->microbatch)];
	}
	if (part == n_parts - 1)
		return c->l->slot[slot_of(c, LAG_BLOCK_FORWARD, part, b->microbatch)];
	return c->l->slot[slot_of(c, LAG_BLOCK_BACKWARD, part + 1, b->microbatch)];
}

/* The block that needs a block's result, and its stage; -1 at the ends of the model. */
static int32_t consumer_of(void *arg, int32_t stage, size_t i, int32_t *to)
{
	const struct climb *c = arg;
	const struct lag_block *b = &c->l->pipe->blocks[i];
	int32_t n_parts = c->group->n_stages * c->group->n_chunks;
	int32_t part = b->chunk * c->group->n_stages + stage;

	part += b->kind == LAG_BLOCK_FORWARD ? 1 : -1;
	*to = -1;
	if (part < 0 || part >= n_parts)
		return -1;
	*to = part % c->group->n_stages;
	return c->l->slot[slot_of(c, b->kind, part, b->microbatch)];
}

/* at becomes the later of both; false when `ns` is not known yet. */
static bool not_before(int64_t *at, int64_t ns)
{
	*at = ns > *at ? ns : *at;
	return ns != LAG_NONE;
}

/* Earliest begin of an operation by its launch, as of blocks; LAG_NONE unknown. */
static int64_t launched_from(const struct climb *c, const struct lag_message_op *op)
{
	const struct lag_launch *launch = &c->l->trace->launches[op->launch];
	int64_t ns = c->l->trace->gpu[launch->gpu].launch_start_ns;
	int64_t latest = ns == LAG_NONE ? LAG_NONE : lag_ns_add(ns, LATENCY_NS);

	if (ns == LAG_NONE)
		return LAG_NONE;
	if (launch->start_ns > ns)
		ns = launch->start_ns < latest ? launch->start_ns : latest;
	return lag_ns_add(ns, -c->window.start_ns);
}

/* What must have ended before an operation begins: what runs before it, and the blocks it comes from. */
static bool begin_message(const struct climb *c, struct lag_message_op *op)
{
	const struct lag_ladder *l = c->l;
	const struct lag_message_op *ops = l->ops.items;
	const int32_t blocks[2] = { op->sends, op->after };
	int64_t at = 0;
	bool ready = true;

	for (int k = 0; k < 2; k++) {
		if (op->before[k] >= 0)
			ready = not_before(&at, ops[op->before[k]].end_ns) && ready;
		if (blocks[k] >= 0)
			ready = not_before(&at, l->end_ns[blocks[k]]) && ready;
	}
	if (c->rung >= LAG_RUNG_HOST)
		(void)not_before(&at, launched_from(c, op));
	if (ready)
		op->begin_ns = at;
	return ready;
}

/* It ends once the partners that it waits for have begun. */
static bool end_message(const struct lag_ladder *l, struct lag_message_op *op)
{
	const struct lag_message_op *ops = l->ops.items;
	int64_t at = op->begin_ns;
	bool ready = true;

	if (op->from >= 0)
		ready = not_before(&at, ops[op->from].begin_ns);
	if (op->to >= 0 && !op->eager)
		ready = not_before(&at, ops[op->to].begin_ns) && ready;
	if (ready)
		op->end_ns = at + op->duration_ns;
	return ready;
}

/* Begins and ends what sends and receives can; true when any did. */
static bool advance_messages(const struct climb *c)
{
	const struct lag_ladder *l = c->l;
	struct lag_message_op *ops = l->ops.items;
	bool moved = false;

	for (size_t i = 0; i < l->ops.n; i++) {
		if (ops[i].begin_ns == LAG_NONE)
			moved = begin_message(c, &ops[i]) || moved;
		if (ops[i].begin_ns != LAG_NONE && ops[i].end_ns == LAG_NONE)
			moved = end_message(l, &ops[i]) || moved;
	}
	return moved;
}

/* When a block's input is there; LAG_NONE: not yet. */
static int64_t arrival_of(const struct climb *c, size_t block, int32_t input)
{
	const struct lag_ladder *l = c->l;
	const struct lag_block *from = &l->pipe->blocks[input], *to = &l->pipe->blocks[block];

	if (c->rung < LAG_RUNG_SEND_RECV || from->r == to->r)
		return l->end_ns[input];
	if (l->receives[block] >= 0)
		return LAG_VEC_AT(&l->ops, struct lag_message_op, l->receives[block]).end_ns;
	if (l->end_ns[input] == LAG_NONE)
		return LAG_NONE;
	return l->end_ns[input] + lag_bubble_transfer(l, (int32_t)from->r, (int32_t)to->r);
}

/* Whether the operation that a block followed has ended; no block starts before. */
static bool is_past(const struct climb *c, size_t block, int64_t *at_ns)
{
	const struct lag_ladder *l = c->l;
	int64_t end_ns;

	if (c->rung < LAG_RUNG_SEND_RECV || l->behind[block] < 0)
		return true;
	end_ns = LAG_VEC_AT(&l->ops, struct lag_message_op, l->behind[block]).end_ns;
	*at_ns = end_ns > *at_ns ? end_ns : *at_ns;
	return end_ns != LAG_NONE;
}

static void reset(struct climb *c)
{
	struct lag_ladder *l = c->l;

	for (int32_t s = 0; s < c->group->n_stages; s++) {
		for (size_t i = c->from[s]; i < c->to[s]; i++)
			l->end_ns[i] = LAG_NONE;
		c->next[s] = c->from[s];
	}
	for (size_t i = 0; i < l->ops.n; i++) {
		struct lag_message_op *op = &LAG_VEC_AT(&l->ops, struct lag_message_op, i);

		op->begin_ns = op->end_ns = LAG_NONE;
	}
}

/* Gives the next block of a stage its end; false when it must wait. *at_ns: its start. */
static bool run_block(struct climb *c, int32_t s, size_t i, int64_t *at_ns)
{
	struct lag_ladder *l = c->l;
	const struct lag_block *b = &l->pipe->blocks[i];
	int32_t input = input_of(c, s, b);
	int64_t work_ns = work_at(c, s, i);

	*at_ns = i > c->from[s] ? l->end_ns[i - 1] : 0;
	if ((input >= 0 && !not_before(at_ns, arrival_of(c, i, input))) || !is_past(c, i, at_ns))
		return false;
	if (c->rung >= LAG_RUNG_HOST) {
		if (l->launch_ns[i] != LAG_NONE)
			(void)not_before(at_ns, l->launch_ns[i] - c->window.start_ns);
		work_ns = b->end_ns - b->start_ns;
	}
	l->end_ns[i] = *at_ns + work_ns;
	return true;
}

/* Replays the group at c->rung; false when its blocks wait for each other in a circle. */
static bool replay(struct climb *c, int64_t *window_ns)
{
	int64_t first = INT64_MAX, last = INT64_MIN, at_ns;
	bool moved = true, whole = true;

	reset(c);
	while (moved) {
		moved = c->rung >= LAG_RUNG_SEND_RECV && advance_messages(c);
		for (int32_t s = 0; s < c->group->n_stages; s++) {
			while (c->next[s] < c->to[s] && run_block(c, s, c->next[s], &at_ns)) {
				int64_t end_ns = c->l->end_ns[c->next[s]++];

				first = at_ns < first ? at_ns : first;
				last = end_ns > last ? end_ns : last;
				moved = true;
			}
		}
	}
	for (int32_t s = 0; s < c->group->n_stages; s++)
		whole = whole && c->next[s] == c->to[s];
	*window_ns = last - first;
	return whole;
}

/* Fills c's ranges and the slots; false when a stage has not its whole schedule in the step. */
static bool find_blocks(struct climb *c, int32_t step)
{
	struct lag_ladder *l = c->l;
	const struct lag_pipe_group *g = c->group;
	int32_t per_stage = g->n_chunks * g->n_microbatches;

	for (size_t i = 0; i < l->n_slots; i++)
		l->slot[i] = -1;
	for (int32_t s = 0; s < g->n_stages; s++) {
		int32_t r = g->rank_of_stage[s];
		size_t lo, hi;

		if (r < 0)
			return false;
		lo = l->pipe->first_block[r];
		hi = l->pipe->first_block[r + 1];
		while (lo < hi) { /* steps follow each other in time */
			size_t mid = (lo + hi) / 2;

			if (l->pipe->blocks[mid].step < step) {
				lo = mid + 1;
			} else {
				hi = mid;
			}
		}
		c->from[s] = c->to[s] = lo;
		for (; c->to[s] < l->pipe->first_block[r + 1] &&
		       l->pipe->blocks[c->to[s]].step == step;
		     c->to[s]++) {
			const struct lag_block *b = &l->pipe->blocks[c->to[s]];

			if (b->microbatch < 0 || b->microbatch >= g->n_microbatches ||
			    b->chunk < 0 || b->chunk >= g->n_chunks || b->kind == LAG_BLOCK_WEIGHT)
				return false;
			l->slot[slot_of(c, b->kind, b->chunk * g->n_stages + s, b->microbatch)] =
				(int32_t)c->to[s];
		}
		if (c->to[s] - c->from[s] != 2 * (size_t)per_stage)
			return false;
	}
	for (size_t i = 0; i < l->n_slots; i++) {
		if (l->slot[i] < 0)
			return false;
	}
	return true;
}

static bool follows(int64_t start_ns, int64_t end_ns)
{
	return start_ns >= end_ns && start_ns - end_ns <= FOLLOWS_NS;
}

/* First block of a stage that starts at ns or later. */
static size_t block_from(const struct climb *c, int32_t stage, int64_t ns)
{
	size_t lo = c->from[stage], hi = c->to[stage];

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (c->l->pipe->blocks[mid].start_ns < ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* Streams may wait for each other where no message says so: a receive that starts only after the block
 * before it, a block that starts only after the send before it. */
static void find_followers(struct climb *c)
{
	struct lag_ladder *l = c->l;

	for (size_t i = 0; i < l->ops.n; i++) {
		struct lag_message_op *op = &LAG_VEC_AT(&l->ops, struct lag_message_op, i);
		const struct lag_launch *launch = &l->trace->launches[op->launch];
		int64_t launched_ns = l->trace->gpu[launch->gpu].launch_start_ns;
		size_t next = block_from(c, op->stage, launch->start_ns);

		if (next > c->from[op->stage] && (int32_t)next - 1 != op->sends &&
		    l->launch_ns[next - 1] < launched_ns &&
		    follows(launch->start_ns, l->pipe->blocks[next - 1].end_ns))
			op->after = (int32_t)next - 1;
		next = block_from(c, op->stage, launch->end_ns);
		if (next < c->to[op->stage] && l->receives[next] != (int32_t)i &&
		    launched_ns < l->launch_ns[next] &&
		    follows(l->pipe->blocks[next].start_ns, launch->end_ns))
			l->behind[next] = (int32_t)i;
	}
}

static enum lag_status find_messages(struct climb *c, int32_t step)
{
	struct lag_ladder *l = c->l;
	struct lag_message_blocks blocks = { c->group, c->from, c->to, consumer_of, c };
	enum lag_status status = lag_messages_find(l->messages, step, &blocks, &l->ops);

	for (int32_t s = 0; s < c->group->n_stages; s++) {
		for (size_t i = c->from[s]; i < c->to[s]; i++)
			l->receives[i] = l->behind[i] = -1;
	}
	for (size_t i = 0; i < l->ops.n && !lag_failed(status); i++) {
		const struct lag_message_op *op = &LAG_VEC_AT(&l->ops, struct lag_message_op, i);

		if (op->receives >= 0)
			l->receives[op->receives] = (int32_t)i;
	}
	if (!lag_failed(status))
		find_followers(c);
	return status;
}

static void measure(const struct climb *c, int32_t stage, struct lag_ladder_stage *out)
{
	const struct lag_ladder *l = c->l;
	int64_t first = LAG_NONE, last = LAG_NONE;

	out->window_ns = out->measured_ns = c->window.end_ns - c->window.start_ns;
	for (size_t i = c->from[stage]; i < c->to[stage]; i++) {
		const struct lag_block *b = &l->pipe->blocks[i];

		out->measured_ns -= l->work_ns[i];
		if (b->kind == LAG_BLOCK_FORWARD && first == LAG_NONE)
			first = b->start_ns;
		if (b->kind != LAG_BLOCK_FORWARD)
			last = b->end_ns;
	}
	out->warm_up_ns = first - c->window.start_ns;
	out->cool_down_ns = c->window.end_ns - last;
}

static void forget_messages(struct climb *c)
{
	c->l->ops.n = 0;
	for (int32_t s = 0; s < c->group->n_stages; s++) {
		for (size_t i = c->from[s]; i < c->to[s]; i++)
			c->l->receives[i] = c->l->behind[i] = -1;
	}
}

static enum lag_status climb(struct climb *c, struct lag_ladder_stage *out)
{
	for (c->rung = LAG_RUNG_IDEAL; c->rung < LAG_RUNG_LIMIT; c->rung++) {
		int64_t window_ns;

		/* Messages that wait for each other in a circle (clocks, lost records) are not
		 * understood: then the usual transfer stands for each. */
		if (c->rung == LAG_RUNG_SEND_RECV && !replay(c, &window_ns))
			forget_messages(c);
		if (!replay(c, &window_ns))
			return LAG_END;
		for (int32_t s = 0; s < c->group->n_stages; s++) {
			if (c->rung == LAG_RUNG_IDEAL)
				out[s].ideal_window_ns = window_ns;
			out[s].bubble_ns[c->rung] = window_ns;
			for (size_t i = c->from[s]; i < c->to[s]; i++)
				out[s].bubble_ns[c->rung] -= work_at(c, s, i);
		}
	}
	for (int32_t s = 0; s < c->group->n_stages; s++)
		measure(c, s, &out[s]);
	return LAG_OK;
}

enum lag_status lag_ladder_climb(struct lag_ladder *ladder, size_t group, size_t step,
				 struct lag_ladder_stage *out)
{
	const struct lag_pipeline *p = ladder->pipe;
	struct climb c = { .l = ladder, .group = &p->groups[group] };
	size_t n = 2 * (size_t)c.group->n_stages * (size_t)c.group->n_chunks *
		   (size_t)c.group->n_microbatches;
	enum lag_status status = LAG_END;

	c.window = p->windows[step * p->n_groups + group];
	if (ladder->cut[group] || c.window.start_ns == LAG_NONE ||
	    lag_ns_add(c.window.end_ns, -c.window.start_ns) > WINDOW_MAX_NS || n == 0 ||
	    n > p->n_blocks || c.group->n_chunks > ladder->n_chunks)
		return LAG_END;
	if (n != ladder->n_slots) {
		free(ladder->slot);
		ladder->slot = lag_calloc(n, sizeof(*ladder->slot));
		ladder->n_slots = ladder->slot ? n : 0;
	}
	c.from = lag_calloc((size_t)c.group->n_stages, 3 * sizeof(*c.from));
	if (!c.from || !ladder->slot) {
		status = LAG_ERR_SYSTEM;
	} else {
		c.to = c.from + c.group->n_stages;
		c.next = c.to + c.group->n_stages;
		if (find_blocks(&c, (int32_t)step)) {
			status = find_messages(&c, (int32_t)step);
			if (!lag_failed(status))
				status = climb(&c, out);
		}
	}
	free(c.from);
	return status;
}

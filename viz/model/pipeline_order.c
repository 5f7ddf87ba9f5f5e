/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks without annotations: the sends and receives of a stage cut its launches into segments. What
 * is launched before the k-th send to the next stage is forward k; before the k-th send to the
 * previous stage, or after the k-th receive from the next one, backward k. The last stage's segments
 * hold a forward and a backward, told apart by the launching thread (autograd's is another), else
 * by the share that forwards have elsewhere. One chunk per stage only: with more, peers wrap around. */
#include <stdlib.h>

#include "viz/model/pipeline_internal.h"

enum cut_kind {
	CUT_FORWARD_IN,
	CUT_FORWARD_OUT,
	CUT_BACKWARD_IN,
	CUT_BACKWARD_OUT
};

struct cut {
	int64_t at_ns;
	enum cut_kind kind;
};

/* Stage of the operation's peer, -1 unknown. */
static int32_t peer_stage(const struct lag_trace *trace, const struct lag_roles *roles,
			  const struct lag_op *op)
{
	const struct lag_comm *comm = &trace->comms[op->comm];

	for (uint32_t m = 0; m < comm->n_members; m++) {
		const struct lag_member *member = &trace->members[comm->first_member + m];

		if (member->comm_rank == op->peer && member->r >= 0)
			return roles->ranks[member->r].stage;
	}
	return -1;
}

static enum lag_status find_cuts(const struct lag_trace *trace, const struct lag_roles *roles,
				 size_t r, struct lag_vec *cuts)
{
	const struct lag_rank *rank = &trace->ranks[r];
	int32_t stage = roles->ranks[r].stage;

	for (size_t i = rank->op_begin; i < rank->op_end; i++) {
		const struct lag_op *op = &trace->ops[i];
		bool send = op->func == LAG_FUNC_SEND;
		int32_t peer;
		struct cut *cut;

		if (!send && op->func != LAG_FUNC_RECV)
			continue;
		peer = peer_stage(trace, roles, op);
		if (peer != stage - 1 && peer != stage + 1)
			continue;
		cut = lag_vec_push(cuts);
		if (!cut)
			return LAG_ERR_SYSTEM;
		cut->at_ns = op->enter_ns;
		if (peer > stage)
			cut->kind = send ? CUT_FORWARD_OUT : CUT_BACKWARD_IN;
		else
			cut->kind = send ? CUT_BACKWARD_OUT : CUT_FORWARD_IN;
	}
	return LAG_OK;
}

/* Where the second part of [first, last) begins: at the first kernel of another thread, else after
 * `share` of the compute time. */
static size_t split_at(const struct lag_trace *trace, const struct lag_vec *launched, size_t first,
		       size_t last, double share)
{
	const struct lag_gpu_event *head =
		&trace->gpu[LAG_VEC_AT(launched, struct lag_launched, first).gpu];
	double total = 0, sum = 0;

	for (size_t i = first; i < last; i++) {
		const struct lag_gpu_event *g =
			&trace->gpu[LAG_VEC_AT(launched, struct lag_launched, i).gpu];

		if (head->launch_tid && g->launch_tid && g->launch_tid != head->launch_tid)
			return i;
		total += (double)(g->end_ns - g->start_ns);
	}
	for (size_t i = first; i < last; i++) {
		const struct lag_gpu_event *g =
			&trace->gpu[LAG_VEC_AT(launched, struct lag_launched, i).gpu];
		double half = (double)(g->end_ns - g->start_ns) / 2;

		if (sum + half > share * total)
			return i;
		sum += 2 * half;
	}
	return last;
}

struct walk {
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	const struct lag_vec *launched;
	struct lag_vec *blocks;
	size_t r;
	int32_t step, next_forward, next_backward;
};

static enum lag_status add(struct walk *w, enum lag_block_kind kind, size_t first, size_t last)
{
	struct lag_block like = { .r = (uint32_t)w->r, .kind = (uint8_t)kind };

	if (first >= last)
		return LAG_OK;
	like.step = w->steps->of_gpu[LAG_VEC_AT(w->launched, struct lag_launched, first).gpu];
	if (like.step < 0)
		return LAG_OK;
	if (like.step != w->step) {
		w->step = like.step;
		w->next_forward = w->next_backward = 0;
	}
	like.microbatch = kind == LAG_BLOCK_FORWARD ? w->next_forward++ : w->next_backward++;
	return lag_pipeline_add(w->trace, w->launched, first, last, &like, w->blocks);
}

/* Forward's usual share of forward + backward: backward costs twice (Megatron-LM's model). */
#define FORWARD_SHARE (1.0 / 3)

static enum lag_status add_segment(struct walk *w, const struct cut *before,
				   const struct cut *after, size_t first, size_t last)
{
	enum lag_status status;
	size_t cut;

	if (after->kind == CUT_FORWARD_OUT)
		return add(w, LAG_BLOCK_FORWARD, first, last);
	if (after->kind == CUT_BACKWARD_OUT && before->kind == CUT_FORWARD_IN) {
		cut = split_at(w->trace, w->launched, first, last, FORWARD_SHARE);
		status = add(w, LAG_BLOCK_FORWARD, first, cut);
		return lag_failed(status) ? status : add(w, LAG_BLOCK_BACKWARD, cut, last);
	}
	if (after->kind == CUT_BACKWARD_OUT || before->kind == CUT_BACKWARD_IN)
		return add(w, LAG_BLOCK_BACKWARD, first, last);
	if (before->kind == CUT_FORWARD_IN)
		return add(w, LAG_BLOCK_FORWARD, first, last);
	return LAG_OK;
}

enum lag_status lag_pipeline_from_order(const struct lag_trace *trace,
					const struct lag_steps *steps,
					const struct lag_roles *roles, size_t r,
					struct lag_vec *blocks)
{
	struct lag_vec launched = LAG_VEC_INIT(struct lag_launched),
		       cuts = LAG_VEC_INIT(struct cut);
	struct walk w = { trace, steps, &launched, blocks, r, -1, 0, 0 };
	enum lag_status status = lag_pipeline_launched(trace, r, &launched);
	size_t at = 0;

	if (!lag_failed(status))
		status = find_cuts(trace, roles, r, &cuts);
	for (size_t i = 0; i + 1 <= cuts.n && !lag_failed(status); i++) {
		const struct cut *after = &LAG_VEC_AT(&cuts, struct cut, i);
		struct cut none = { 0, CUT_FORWARD_OUT };
		const struct cut *before = i ? after - 1 : &none;
		size_t first = at;

		while (at < launched.n &&
		       LAG_VEC_AT(&launched, struct lag_launched, at).at_ns < after->at_ns)
			at++;
		status = add_segment(&w, before, after, first, at);
	}
	lag_vec_release(&launched);
	lag_vec_release(&cuts);
	return status;
}

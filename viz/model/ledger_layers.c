/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of a rank's time that GPU work and the pipeline's windows decide. */
#include <stdlib.h>

#include "viz/model/ledger_internal.h"

static enum lag_status add(struct lag_vec *vec, int64_t start_ns, int64_t end_ns, int32_t launch)
{
	struct lag_ledger_span *span;

	if (end_ns <= start_ns)
		return LAG_OK;
	span = lag_vec_push(vec);
	if (!span)
		return LAG_ERR_SYSTEM;
	*span = (struct lag_ledger_span){ start_ns, end_ns, launch };
	return LAG_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct lag_ledger_span *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->launch > y->launch) - (x->launch < y->launch);
}

/* Sorts, and lets what started first keep the time that two spans share. */
static void make_disjoint(struct lag_vec *vec)
{
	struct lag_ledger_span *at = vec->items;
	size_t i, n = 0;

	for (i = 1; i < vec->n; i++) {
		if (by_start(&at[i - 1], &at[i]) > 0)
			break;
	}
	if (i < vec->n)
		qsort(at, vec->n, sizeof(*at), by_start);
	for (i = 0; i < vec->n; i++) {
		struct lag_ledger_span span = at[i];

		if (n && span.start_ns < at[n - 1].end_ns)
			span.start_ns = at[n - 1].end_ns;
		if (span.start_ns < span.end_ns)
			at[n++] = span;
	}
	vec->n = n;
}

/* Sends and receives between stages, in a communicator of their own or in one that does more. */
static bool is_pipeline_launch(const struct lag_ledger_inputs *in, const struct lag_launch *launch)
{
	const struct lag_trace *t = in->trace;
	enum lag_comm_role role = in->roles->comm_role[launch->comm];
	int32_t group = in->roles->ranks[launch->r].pipeline;

	if (group < 0 || !launch->n_ops)
		return false;
	for (uint32_t i = 0; i < launch->n_ops; i++) {
		const struct lag_op *op = &t->ops[launch->first_op + i];
		int32_t peer;

		if (op->func != LAG_FUNC_SEND && op->func != LAG_FUNC_RECV &&
		    op->func != LAG_FUNC_SEND_RECV)
			return false;
		if (role == LAG_ROLE_PIPELINE)
			continue;
		if (op->peer < 0)
			return false;
		peer = lag_trace_find_peer(t, op->comm, op->peer);
		if (peer >= 0 && in->roles->ranks[peer].pipeline != group)
			return false;
	}
	return role == LAG_ROLE_PIPELINE || role == LAG_ROLE_WORLD || role == LAG_ROLE_UNSURE;
}

/* [start, end) is waiting for a pipeline peer: bubble inside the windows, exposed waiting outside. */
static enum lag_status add_pipeline_wait(int64_t start_ns, int64_t end_ns, int32_t launch,
					 struct lag_ledger_layers *out)
{
	const struct lag_intervals *w = &out->windows;
	size_t lo = 0, hi = w->n;
	enum lag_status status = add(&out->of[LAG_TIME_EXPOSED_WAIT], start_ns, end_ns, launch);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (w->at[mid].end_ns <= start_ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (; lo < w->n && w->at[lo].start_ns < end_ns && !lag_failed(status); lo++) {
		status = add(&out->of[LAG_TIME_BUBBLE],
			     w->at[lo].start_ns > start_ns ? w->at[lo].start_ns : start_ns,
			     w->at[lo].end_ns < end_ns ? w->at[lo].end_ns : end_ns, launch);
	}
	return status;
}

static enum lag_status add_windows(const struct lag_ledger_inputs *in, size_t r,
				   struct lag_ledger_layers *out)
{
	const struct lag_pipeline *p = in->pipeline;
	int32_t group = in->roles->ranks[r].pipeline;
	enum lag_status status = LAG_OK;

	for (size_t s = 0; group >= 0 && (size_t)group < p->n_groups && s < p->n_steps; s++) {
		const struct lag_pipe_window *w = &p->windows[s * p->n_groups + (size_t)group];

		if (w->start_ns != LAG_NONE && !lag_failed(status))
			status = lag_intervals_add(&out->windows, w->start_ns, w->end_ns);
	}
	lag_intervals_normalize(&out->windows);
	return status;
}

static enum lag_status add_comm(const struct lag_ledger_inputs *in, const struct lag_gpu_event *ev,
				int64_t end_ns, struct lag_ledger_layers *out)
{
	const struct lag_wait *wait;
	const struct lag_launch *launch;
	int64_t split;
	enum lag_status status;

	if (ev->launch < 0)
		return add(&out->of[LAG_TIME_EXPOSED_TRANSFER], ev->start_ns, end_ns, -1);
	launch = &in->trace->launches[ev->launch];
	wait = &in->waits->launch[ev->launch];
	split = wait->wait_ns == LAG_NONE ? ev->start_ns : ev->start_ns + wait->wait_ns;
	if (split > end_ns)
		split = end_ns;
	if (is_pipeline_launch(in, launch)) {
		status = add_pipeline_wait(ev->start_ns, split, ev->launch, out);
	} else {
		status = add(&out->of[LAG_TIME_EXPOSED_WAIT], ev->start_ns, split, ev->launch);
	}
	if (!lag_failed(status))
		status = add(&out->of[LAG_TIME_EXPOSED_TRANSFER], split, end_ns, ev->launch);
	return status;
}

static enum lag_status add_events(const struct lag_ledger_inputs *in, size_t r,
				  struct lag_ledger_layers *out)
{
	const struct lag_rank *rank = &in->trace->ranks[r];
	enum lag_status status = LAG_OK;

	for (size_t i = rank->gpu_begin; i < rank->gpu_end && !lag_failed(status); i++) {
		const struct lag_gpu_event *ev = &in->trace->gpu[i];
		int64_t end_ns = ev->end_ns != LAG_NONE ? ev->end_ns : rank->last_ns;

		if (ev->class == LAG_CLASS_COMM) {
			status = add_comm(in, ev, end_ns, out);
		} else {
			status = add(&out->of[ev->class == LAG_CLASS_COPY ? LAG_TIME_COPY
									  : LAG_TIME_COMPUTE],
				     ev->start_ns, end_ns, -1);
		}
		if (out->from_ns == LAG_NONE || ev->start_ns < out->from_ns)
			out->from_ns = ev->start_ns;
		if (out->to_ns == LAG_NONE || end_ns > out->to_ns)
			out->to_ns = end_ns;
	}
	return status;
}

/* Warm-up and cool-down: inside the window, before the rank's first forward and after its last
 * backward, the rank waits for the pipeline whatever else it sits in. */
static enum lag_status add_window_ends(const struct lag_ledger_inputs *in, size_t r,
				       struct lag_ledger_layers *out)
{
	const struct lag_pipeline *p = in->pipeline;
	int32_t group = in->roles->ranks[r].pipeline;
	enum lag_status status = LAG_OK;
	int64_t *first, *last;

	if (group < 0 || (size_t)group >= p->n_groups)
		return LAG_OK;
	first = lag_calloc(p->n_steps, sizeof(*first));
	last = lag_calloc(p->n_steps, sizeof(*last));
	if (!first || !last) {
		status = LAG_ERR_SYSTEM;
		goto out;
	}
	for (size_t s = 0; s < p->n_steps; s++)
		first[s] = last[s] = LAG_NONE;
	for (size_t i = p->first_block[r]; i < p->first_block[r + 1]; i++) {
		const struct lag_block *b = &p->blocks[i];

		if (b->step < 0 || (size_t)b->step >= p->n_steps)
			continue;
		if (b->kind == LAG_BLOCK_FORWARD &&
		    (first[b->step] == LAG_NONE || b->start_ns < first[b->step]))
			first[b->step] = b->start_ns;
		if (b->kind != LAG_BLOCK_FORWARD &&
		    (last[b->step] == LAG_NONE || b->end_ns > last[b->step]))
			last[b->step] = b->end_ns;
	}
	for (size_t s = 0; s < p->n_steps && !lag_failed(status); s++) {
		const struct lag_pipe_window *w = &p->windows[s * p->n_groups + (size_t)group];

		if (w->start_ns == LAG_NONE || first[s] == LAG_NONE || last[s] == LAG_NONE)
			continue;
		status = add(&out->of[LAG_TIME_BUBBLE], w->start_ns, first[s], -1);
		if (!lag_failed(status))
			status = add(&out->of[LAG_TIME_BUBBLE], last[s], w->end_ns, -1);
	}
out:
	free(first);
	free(last);
	return status;
}

/* The ledger reaches over whole steps, and over windows that other ranks of the group end. */
static void widen(const struct lag_ledger_inputs *in, size_t r, struct lag_ledger_layers *out)
{
	const struct lag_vec *bubbles = &out->of[LAG_TIME_BUBBLE];

	for (size_t s = 0; s < in->steps->n_steps; s++) {
		const struct lag_step_span *span = lag_steps_span(in->steps, s, r);

		if (span->start_ns == LAG_NONE)
			continue;
		if (out->from_ns == LAG_NONE || span->start_ns < out->from_ns)
			out->from_ns = span->start_ns;
		if (out->to_ns == LAG_NONE || span->end_ns > out->to_ns)
			out->to_ns = span->end_ns;
	}
	for (size_t i = 0; i < bubbles->n; i++) {
		const struct lag_ledger_span *b = &LAG_VEC_AT(bubbles, struct lag_ledger_span, i);

		if (out->from_ns == LAG_NONE || b->start_ns < out->from_ns)
			out->from_ns = b->start_ns;
		if (out->to_ns == LAG_NONE || b->end_ns > out->to_ns)
			out->to_ns = b->end_ns;
	}
}

enum lag_status lag_ledger_layers_make(const struct lag_ledger_inputs *in, size_t r,
				       struct lag_ledger_layers *out)
{
	enum lag_status status;

	*out = (struct lag_ledger_layers){ .from_ns = LAG_NONE, .to_ns = LAG_NONE };
	for (int c = 0; c < LAG_TIME_HOST; c++)
		out->of[c].item_size = sizeof(struct lag_ledger_span);
	status = add_windows(in, r, out);
	if (!lag_failed(status))
		status = add_events(in, r, out);
	if (!lag_failed(status))
		status = add_window_ends(in, r, out);
	widen(in, r, out);
	for (int c = 0; c < LAG_TIME_HOST; c++)
		make_disjoint(&out->of[c]);
	return status;
}

void lag_ledger_layers_release(struct lag_ledger_layers *layers)
{
	for (int c = 0; c < LAG_TIME_HOST; c++)
		lag_vec_release(&layers->of[c]);
	lag_intervals_release(&layers->windows);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a pipeline: the k-th send from one rank to another in a step carries the result of the
 * k-th block there whose consumer is on the other; its receive is the matched one. */
#include "viz/analysis/bubble_messages.h"

#include <stdlib.h>

#include "schema/base/map.h"
#include "viz/model/interval.h"

#define TRANSFER_MAX_NS INT64_C(1000000000000000) /* beyond any: sums stay far from overflow */

/* A launch of the pipeline's traffic. */
struct item {
	int64_t enter_ns;
	uint32_t r;
	int32_t step, launch;
};

struct lag_messages {
	const struct lag_trace *trace;
	struct lag_vec items; /* struct item, by (r, step, enter) */
	struct lag_map order; /* (r, communicator) -> 1: its kernels run one after the other */
};

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->r != y->r)
		return x->r < y->r ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->enter_ns != y->enter_ns)
		return x->enter_ns < y->enter_ns ? -1 : 1;
	return (x->launch > y->launch) - (x->launch < y->launch);
}

static bool only_messages(const struct lag_trace *trace, const struct lag_launch *launch)
{
	for (uint32_t k = 0; k < launch->n_ops; k++) {
		uint8_t func = trace->ops[launch->first_op + k].func;

		if (func != LAG_FUNC_SEND && func != LAG_FUNC_RECV)
			return false;
	}
	return launch->n_ops > 0;
}

static enum lag_status list_items(struct lag_messages *m, const struct lag_roles *roles,
				  const struct lag_steps *steps)
{
	const struct lag_trace *trace = m->trace;

	for (size_t i = 0; i < trace->n_launches; i++) {
		const struct lag_launch *launch = &trace->launches[i];
		struct item *item;

		if (launch->gpu < 0 || launch->start_ns == LAG_NONE || launch->end_ns == LAG_NONE ||
		    roles->ranks[launch->r].pipeline < 0 || steps->of_gpu[launch->gpu] < 0 ||
		    !only_messages(trace, launch))
			continue;
		item = lag_vec_push(&m->items);
		if (!item)
			return LAG_ERR_SYSTEM;
		*item = (struct item){ trace->ops[launch->first_op].enter_ns, launch->r,
				       steps->of_gpu[launch->gpu], (int32_t)i };
	}
	if (m->items.n)
		qsort(m->items.items, m->items.n, sizeof(struct item), by_place);
	return LAG_OK;
}

static uint64_t comm_key(uint32_t r, uint32_t comm)
{
	return ((uint64_t)r << 32) | comm;
}

/* NCCL runs the kernels of one communicator in the order of their calls; taken where the rank's own
 * kernels on different streams bear it out. */
static enum lag_status find_order(struct lag_messages *m)
{
	const struct lag_trace *trace = m->trace;
	struct lag_map last = { 0 }, pairs = { 0 }, kept = { 0 };
	enum lag_status status = LAG_OK;

	for (size_t i = 0; i < m->items.n && !lag_failed(status); i++) {
		const struct item *item = &LAG_VEC_AT(&m->items, struct item, i);
		const struct lag_launch *now = &trace->launches[item->launch], *before;
		uint64_t key = comm_key(now->r, now->comm), at = 0, n_pairs = 0, n_kept = 0;

		(void)lag_map_find(&last, key, &at);
		status = lag_map_set(&last, key, (uint64_t)item->launch + 1);
		if (at == 0 || lag_failed(status))
			continue;
		before = &trace->launches[at - 1];
		if (trace->gpu[before->gpu].lane == trace->gpu[now->gpu].lane)
			continue;
		(void)lag_map_find(&pairs, key, &n_pairs);
		(void)lag_map_find(&kept, key, &n_kept);
		n_kept += before->end_ns <= now->start_ns;
		n_pairs++;
		status = lag_map_set(&pairs, key, n_pairs);
		if (!lag_failed(status))
			status = lag_map_set(&kept, key, n_kept);
		if (!lag_failed(status))
			status = lag_map_set(&m->order, key, 50 * (n_pairs - n_kept) <= n_pairs);
	}
	lag_map_release(&last);
	lag_map_release(&pairs);
	lag_map_release(&kept);
	return status;
}

enum lag_status lag_messages_new(struct lag_context *ctx, struct lag_messages **out,
				 struct lag_err *err)
{
	const struct lag_roles *roles = lag_context_roles(ctx, err);
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	struct lag_messages *m = lag_calloc(1, sizeof(*m));
	enum lag_status status;

	*out = m;
	if (!roles || !steps)
		return err->status;
	if (!m)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for messages");
	m->trace = lag_context_trace(ctx);
	m->items = (struct lag_vec)LAG_VEC_INIT(struct item);
	status = list_items(m, roles, steps);
	if (!lag_failed(status))
		status = find_order(m);
	return lag_failed(status) ? lag_err_set(err, status, "no memory for messages") : LAG_OK;
}

void lag_messages_free(struct lag_messages *messages)
{
	if (!messages)
		return;
	lag_vec_release(&messages->items);
	lag_map_release(&messages->order);
	free(messages);
}

/* First item of rank r in a step. */
static size_t first_item(const struct lag_messages *m, uint32_t r, int32_t step)
{
	size_t lo = 0, hi = m->items.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct item *item = &LAG_VEC_AT(&m->items, struct item, mid);

		if (item->r < r || (item->r == r && item->step < step)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* Being built for one group and step. */
struct find {
	const struct lag_messages *m;
	const struct lag_message_blocks *blocks;
	struct lag_vec *out;
	struct lag_map sender; /* instance -> 1 + operation that sends it */
	size_t *next;          /* [stage * n_stages + target]: block that sends there next */
};

static int32_t stage_of(const struct find *f, int32_t r)
{
	for (int32_t s = 0; s < f->blocks->group->n_stages; s++) {
		if (f->blocks->group->rank_of_stage[s] == r)
			return s;
	}
	return -1;
}

/* The next block of a stage whose result goes to another; -1 when there is none left. */
static int32_t next_sender(const struct find *f, int32_t stage, int32_t target)
{
	size_t *next = &f->next[stage * f->blocks->group->n_stages + target];

	while (*next < f->blocks->to[stage]) {
		size_t block = (*next)++;
		int32_t to = -1;

		if (f->blocks->consumer(f->blocks->arg, stage, block, &to) >= 0 && to == target)
			return (int32_t)block;
	}
	return -1;
}

/* Which block's result an operation sends, if it sends. */
static enum lag_status find_sent(struct find *f, int32_t stage, struct lag_message_op *op)
{
	const struct lag_trace *trace = f->m->trace;
	const struct lag_launch *launch = &trace->launches[op->launch];
	enum lag_status status = LAG_OK;

	for (uint32_t k = 0; k < launch->n_ops && !lag_failed(status); k++) {
		const struct lag_op *o = &trace->ops[launch->first_op + k];
		int32_t target;

		if (o->func != LAG_FUNC_SEND || o->instance < 0)
			continue;
		target = stage_of(f, trace->instances[o->instance].dst);
		op->sends = target < 0 ? -1 : next_sender(f, stage, target);
		status = lag_map_set(&f->sender, (uint64_t)o->instance, f->out->n);
	}
	return status;
}

static enum lag_status add_stage(struct find *f, int32_t stage, int32_t step)
{
	const struct lag_trace *trace = f->m->trace;
	uint32_t r = (uint32_t)f->blocks->group->rank_of_stage[stage];
	struct lag_map in_lane = { 0 }, in_comm = { 0 };
	enum lag_status status = LAG_OK;

	for (size_t i = first_item(f->m, r, step); i < f->m->items.n && !lag_failed(status); i++) {
		const struct item *item = &LAG_VEC_AT(&f->m->items, struct item, i);
		const struct lag_launch *launch = &trace->launches[item->launch];
		uint64_t lane = trace->gpu[launch->gpu].lane, at = 0, ordered = 0;
		struct lag_message_op *op;

		if (item->r != r || item->step != step)
			break;
		op = lag_vec_push(f->out);
		if (!op)
			status = LAG_ERR_SYSTEM;
		if (lag_failed(status))
			break;
		*op = (struct lag_message_op){ .launch = item->launch,
					       .stage = stage,
					       .sends = -1,
					       .receives = -1,
					       .to = -1,
					       .from = -1,
					       .before = { -1, -1 },
					       .after = -1 };
		if (lag_map_find(&in_lane, lane, &at))
			op->before[0] = (int32_t)at;
		if (lag_map_find(&f->m->order, comm_key(r, launch->comm), &ordered) && ordered &&
		    lag_map_find(&in_comm, launch->comm, &at))
			op->before[1] = (int32_t)at;
		status = lag_map_set(&in_lane, lane, f->out->n - 1);
		if (!lag_failed(status))
			status = lag_map_set(&in_comm, launch->comm, f->out->n - 1);
		if (!lag_failed(status))
			status = find_sent(f, stage, op);
	}
	lag_map_release(&in_lane);
	lag_map_release(&in_comm);
	return status;
}

/* Ties receives to their sends and to the blocks that need them. */
static void join(struct find *f)
{
	const struct lag_trace *trace = f->m->trace;

	for (size_t i = 0; i < f->out->n; i++) {
		struct lag_message_op *op = &LAG_VEC_AT(f->out, struct lag_message_op, i), *send;
		const struct lag_launch *launch = &trace->launches[op->launch];

		for (uint32_t k = 0; k < launch->n_ops; k++) {
			const struct lag_op *o = &trace->ops[launch->first_op + k];
			uint64_t at;
			int32_t stage;

			if (o->func != LAG_FUNC_RECV || o->instance < 0 ||
			    !lag_map_find(&f->sender, (uint64_t)o->instance, &at))
				continue;
			send = &LAG_VEC_AT(f->out, struct lag_message_op, at - 1);
			op->from = (int32_t)at - 1;
			send->to = (int32_t)i;
			if (send->sends >= 0) {
				op->receives = f->blocks->consumer(f->blocks->arg, send->stage,
								   (size_t)send->sends, &stage);
			}
		}
	}
}

/* How long each takes once those it waits for have begun. */
static void measure(struct find *f)
{
	const struct lag_trace *trace = f->m->trace;

	for (size_t i = 0; i < f->out->n; i++) {
		struct lag_message_op *op = &LAG_VEC_AT(f->out, struct lag_message_op, i);
		const struct lag_launch *mine = &trace->launches[op->launch];
		int64_t arrival = mine->start_ns, other;

		if (op->from >= 0) {
			other = trace->launches[LAG_VEC_AT(f->out, struct lag_message_op, op->from)
							.launch]
					.start_ns;
			arrival = other > arrival ? other : arrival;
		}
		if (op->to >= 0) {
			other = trace->launches[LAG_VEC_AT(f->out, struct lag_message_op, op->to)
							.launch]
					.start_ns;
			op->eager = other >= mine->end_ns;
			if (!op->eager && other > arrival)
				arrival = other;
		}
		op->duration_ns = lag_ns_add(mine->end_ns, -arrival);
		if (op->duration_ns < 0)
			op->duration_ns = 0;
		if (op->duration_ns > TRANSFER_MAX_NS)
			op->duration_ns = TRANSFER_MAX_NS;
	}
}

enum lag_status lag_messages_find(const struct lag_messages *messages, int32_t step,
				  const struct lag_message_blocks *blocks, struct lag_vec *out)
{
	size_t n = (size_t)blocks->group->n_stages;
	struct find f = { .m = messages, .blocks = blocks, .out = out };
	enum lag_status status = LAG_OK;

	out->n = 0;
	f.next = lag_calloc(n * n, sizeof(*f.next));
	if (!f.next)
		return LAG_ERR_SYSTEM;
	for (size_t s = 0; s < n; s++) {
		for (size_t t = 0; t < n; t++)
			f.next[s * n + t] = blocks->from[s];
	}
	for (int32_t s = 0; s < blocks->group->n_stages && !lag_failed(status); s++)
		status = add_stage(&f, s, step);
	if (!lag_failed(status)) {
		join(&f);
		measure(&f);
	}
	lag_map_release(&f.sender);
	free(f.next);
	return status;
}

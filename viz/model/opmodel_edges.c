/* SPDX-License-Identifier: Apache-2.0 */
/* What each operation of a rank waits for in a step: what came before on its stream, the receive that
 * brought its input, the computation whose output it sends. Streams: compute with everything after the last
 * backward; data-parallel communication; send and receive of each direction. */
#include <stdlib.h>

#include "viz/model/opmodel.h"

#define CLOSE_NS 50000 /* clocks of the table may be so far apart */

/* Nodes [first, last) are one rank's in one step, by start. */
struct span {
	struct lag_opmodel *m;
	size_t first, last;
	bool overlapped;   /* gradients are reduced beside compute */
	uint32_t *of_type; /* its nodes by type: of_type[from[type] .. from[type + 1]] */
	size_t from[LAG_OT_UNGROUPED + 3];
};

static const struct lag_op_node *node(const struct span *s, size_t i)
{
	return &LAG_VEC_AT(&s->m->nodes, struct lag_op_node, i);
}

static enum lag_status waits(const struct span *s, size_t who, size_t what)
{
	uint32_t *edge;

	if (who == SIZE_MAX || what == SIZE_MAX || who == what)
		return LAG_OK;
	edge = lag_vec_push(&s->m->edges);
	if (!edge)
		return LAG_ERR_SYSTEM;
	edge[0] = (uint32_t)who;
	edge[1] = (uint32_t)what;
	return LAG_OK;
}

static size_t count(const struct span *s, enum lag_optype type)
{
	return s->from[type + 1] - s->from[type];
}

/* The k-th node of a type; SIZE_MAX when there are not so many. */
static size_t nth(const struct span *s, enum lag_optype type, size_t k)
{
	return k < count(s, type) ? s->of_type[s->from[type] + k] : SIZE_MAX;
}

static void sort_by_type(struct span *s)
{
	size_t *from = s->from;

	for (size_t i = 0; i < sizeof(s->from) / sizeof(s->from[0]); i++)
		from[i] = 0;
	for (size_t i = s->first; i < s->last; i++)
		from[node(s, i)->type + 2]++;
	for (size_t i = 2; i < sizeof(s->from) / sizeof(s->from[0]); i++)
		from[i] += from[i - 1];
	for (size_t i = s->first; i < s->last; i++)
		s->of_type[from[node(s, i)->type + 1]++] = (uint32_t)i;
}

static int stream_of(const struct span *s, enum lag_optype type)
{
	if (lag_optype_is_message(type))
		return (int)type;
	return type == LAG_OT_PARAMS || (type == LAG_OT_GRADS && s->overlapped) ? -1 : 0;
}

static enum lag_status chain_streams(const struct span *s)
{
	size_t last_of[LAG_OT_UNGROUPED + 2];
	enum lag_status st = LAG_OK;
	size_t last_data = SIZE_MAX;

	for (size_t i = 0; i < sizeof(last_of) / sizeof(last_of[0]); i++)
		last_of[i] = SIZE_MAX;
	for (size_t i = s->first; i < s->last && st == LAG_OK; i++) {
		enum lag_optype type = (enum lag_optype)node(s, i)->type;
		size_t *last = &last_of[stream_of(s, type) + 1];

		st = waits(s, i, *last);
		*last = i;
		/* Gradients follow parameters on one stream, whatever else they wait for. */
		if (st == LAG_OK && (type == LAG_OT_PARAMS || type == LAG_OT_GRADS)) {
			st = waits(s, i, last_data);
			last_data = i;
		}
	}
	return st;
}

/* The computation that message k of n belongs to. Where some computations have none, time tells. */
static size_t compute_of(const struct span *s, size_t message, size_t k, size_t n)
{
	const struct lag_op_node *msg = node(s, message);
	enum lag_optype type = (enum lag_optype)msg->type, compute = lag_optype_compute(type);
	size_t found = SIZE_MAX;

	if (count(s, compute) == n)
		return nth(s, compute, k);
	for (size_t i = s->first; i < s->last; i++) {
		const struct lag_op_node *c = node(s, i);

		if ((enum lag_optype)c->type != compute)
			continue;
		if (lag_optype_sends(type) && c->end_ns <= msg->start_ns + CLOSE_NS) {
			found = i;
		} else if (!lag_optype_sends(type) && c->start_ns >= msg->end_ns - CLOSE_NS) {
			return i;
		}
	}
	return found;
}

static enum lag_status join_messages(const struct span *s, enum lag_optype type)
{
	size_t n = count(s, type), before = SIZE_MAX;
	enum lag_status st = LAG_OK;

	for (size_t k = 0; k < n && st == LAG_OK; k++) {
		size_t message = nth(s, type, k), compute = compute_of(s, message, k, n);

		if (lag_optype_sends(type)) {
			st = waits(s, message, compute);
		} else {
			/* It is posted once the computation before has been launched and run. */
			st = waits(s, compute, message);
			if (st == LAG_OK)
				st = waits(s, message, before);
		}
		before = compute;
	}
	return st;
}

/* The first backward messages are posted after the second computation before the first backward. */
static enum lag_status begin_backward(const struct span *s)
{
	size_t back[2] = { SIZE_MAX, SIZE_MAX };
	enum lag_status st = LAG_OK;

	for (size_t i = s->first; i < s->last; i++) {
		if (node(s, i)->type == LAG_OT_BACKWARD)
			break;
		if (node(s, i)->type == LAG_OT_FORWARD) {
			back[0] = back[1];
			back[1] = i;
		}
	}
	for (int type = LAG_OT_BACKWARD_SEND; type <= LAG_OT_BACKWARD_RECV && st == LAG_OK; type++)
		st = waits(s, nth(s, (enum lag_optype)type, 0), back[0]);
	return st;
}

/* Parameters before the forward that needs them; overlapped gradients after the backward that made them,
 * and before what follows all of them. */
static enum lag_status join_data(const struct span *s)
{
	enum lag_status st = LAG_OK;

	for (size_t i = s->first; i < s->last && st == LAG_OK; i++) {
		const struct lag_op_node *data = node(s, i);
		size_t before = SIZE_MAX, after = SIZE_MAX;

		if (data->type != LAG_OT_PARAMS && (data->type != LAG_OT_GRADS || !s->overlapped))
			continue;
		for (size_t k = s->first; k < s->last; k++) {
			const struct lag_op_node *c = node(s, k);

			if (c->type == LAG_OT_BACKWARD && c->end_ns <= data->start_ns + CLOSE_NS)
				before = k;
			if (after == SIZE_MAX && c->start_ns >= data->end_ns - CLOSE_NS &&
			    (data->type == LAG_OT_PARAMS
				     ? c->type == LAG_OT_FORWARD
				     : c->type > LAG_OT_GRADS || c->type == LAG_OT_LOCAL))
				after = k;
		}
		if (data->type == LAG_OT_GRADS)
			st = waits(s, i, before);
		if (st == LAG_OK)
			st = waits(s, after, i);
	}
	return st;
}

enum lag_status lag_opmodel_edges(struct lag_opmodel *m)
{
	enum lag_status st = LAG_OK;
	size_t n = m->nodes.n;
	uint32_t *of_type = lag_calloc(n, sizeof(*of_type));

	if (!of_type)
		return LAG_ERR_SYSTEM;
	for (size_t first = 0, last; first < n && st == LAG_OK; first = last) {
		struct span s = { .m = m, .first = first, .of_type = of_type };
		const struct lag_op_node *a = node(&s, first);

		for (last = first + 1; last < n; last++) {
			if (node(&s, last)->r != a->r || node(&s, last)->step != a->step)
				break;
		}
		s.last = last;
		sort_by_type(&s);
		s.overlapped = count(&s, LAG_OT_SEPARATE) > 0;
		st = chain_streams(&s);
		for (int type = LAG_OT_FORWARD_SEND; type <= LAG_OT_BACKWARD_RECV && st == LAG_OK;
		     type++)
			st = join_messages(&s, (enum lag_optype)type);
		if (st == LAG_OK)
			st = begin_backward(&s);
		if (st == LAG_OK)
			st = join_data(&s);
	}
	free(of_type);
	return st;
}

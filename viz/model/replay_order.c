/* SPDX-License-Identifier: Apache-2.0 */
/* One order for all scenarios: every stream and host advances as far as what it needs has happened.
 * Where nothing can advance (clock error, lost records), the earliest open edge is dropped. */
#include <stdlib.h>

#include "viz/model/replay_internal.h"

struct cursor {
	size_t next; /* into nodes_of_lane */
	size_t until;
};

struct sorter {
	struct lag_replay *rp;
	int32_t *lane_nodes; /* nodes by lane, in launch order */
	struct cursor *lanes;
	struct cursor *gates;     /* by rank */
	uint8_t *started, *ended; /* by node */
	uint8_t *opened;          /* by gate */
	int32_t *open_instances;  /* by node: communications that still gather */
	int32_t *missing;         /* by instance: members that have not started */
	size_t *rank_lane;        /* [r] .. [r + 1]: its lanes */
	uint32_t *queue;
	size_t n_queue;
	uint8_t *queued;
};

static enum lag_status emit(struct sorter *s, size_t index, enum lag_replay_task task)
{
	int64_t *code = lag_vec_push(&s->rp->order);

	if (!code)
		return LAG_ERR_SYSTEM;
	*code = (int64_t)(index * 4) + (int64_t)task;
	return LAG_OK;
}

static void wake(struct sorter *s, uint32_t r)
{
	if (s->queued[r])
		return;
	s->queued[r] = 1;
	s->queue[s->n_queue++] = r;
}

static enum lag_status finish(struct sorter *s, int32_t i)
{
	if (s->ended[i])
		return LAG_OK;
	s->ended[i] = 1;
	wake(s, s->rp->trace->gpu[i].r);
	return s->rp->nodes[i].comm ? emit(s, (size_t)i, LAG_TASK_END) : LAG_OK;
}

/* Communication i has started: partners that waited only for it may end. */
static enum lag_status arrive(struct sorter *s, int32_t i)
{
	const struct lag_trace *trace = s->rp->trace;
	const struct lag_launch *launch = &trace->launches[trace->gpu[i].launch];
	enum lag_status status = LAG_OK;

	for (uint32_t k = 0; k < launch->n_ops && !lag_failed(status); k++) {
		int32_t inst = trace->ops[launch->first_op + k].instance;
		const struct lag_instance *in;

		if (inst < 0 || --s->missing[inst] > 0)
			continue;
		in = &trace->instances[inst];
		for (uint32_t m = 0; m < in->n && !lag_failed(status); m++) {
			int32_t node = lag_replay_node_of(
				trace, &trace->ops[trace->instance_ops[in->first + m]]);

			if (node < 0 || --s->open_instances[node] > 0 || !s->started[node])
				continue;
			status = finish(s, node);
		}
	}
	return status;
}

static bool may_start(const struct sorter *s, int32_t i)
{
	const struct lag_replay_node *node = &s->rp->nodes[i];

	if (node->before >= 0 && !s->ended[node->before])
		return false;
	if (node->gate >= 0 && !s->opened[node->gate])
		return false;
	for (uint32_t d = 0; d < node->n_deps; d++) {
		if (!s->ended[LAG_VEC_AT(&s->rp->deps, int32_t, node->first_dep + d)])
			return false;
	}
	return true;
}

static enum lag_status start(struct sorter *s, int32_t i)
{
	enum lag_status status = emit(s, (size_t)i, LAG_TASK_START);

	s->started[i] = 1;
	if (lag_failed(status))
		return status;
	if (!s->rp->nodes[i].comm)
		return finish(s, i);
	status = arrive(s, i);
	if (!lag_failed(status) && (s->rp->nodes[i].alone || s->open_instances[i] <= 0))
		status = finish(s, i);
	return status;
}

static enum lag_status advance_lane(struct sorter *s, struct cursor *c, bool *moved)
{
	while (c->next < c->until) {
		int32_t i = s->lane_nodes[c->next];
		enum lag_status status = LAG_OK;

		if (!s->started[i]) {
			if (!may_start(s, i))
				return LAG_OK;
			status = start(s, i);
		}
		if (lag_failed(status))
			return status;
		if (!s->ended[i])
			return LAG_OK;
		c->next++;
		*moved = true;
	}
	return LAG_OK;
}

static enum lag_status advance_gates(struct sorter *s, struct cursor *c, bool *moved)
{
	while (c->next < c->until) {
		const struct lag_replay_gate *g =
			&LAG_VEC_AT(&s->rp->gates, struct lag_replay_gate, c->next);

		if (g->awaited >= 0 && !s->ended[g->awaited])
			return LAG_OK;
		s->opened[c->next] = 1;
		if (lag_failed(emit(s, c->next, LAG_TASK_GATE)))
			return LAG_ERR_SYSTEM;
		c->next++;
		*moved = true;
	}
	return LAG_OK;
}

static enum lag_status advance(struct sorter *s)
{
	while (s->n_queue > 0) {
		uint32_t r = s->queue[--s->n_queue];
		bool moved = true;

		s->queued[r] = 0;
		while (moved) {
			moved = false;
			if (lag_failed(advance_gates(s, &s->gates[r], &moved)))
				return LAG_ERR_SYSTEM;
			for (size_t l = s->rank_lane[r]; l < s->rank_lane[r + 1]; l++) {
				if (lag_failed(advance_lane(s, &s->lanes[l], &moved)))
					return LAG_ERR_SYSTEM;
			}
		}
	}
	return LAG_OK;
}

/* Nothing moves: lets the earliest waiting thing go. False when all is done. */
static bool force(struct sorter *s, enum lag_status *status)
{
	const struct lag_trace *trace = s->rp->trace;
	int64_t best = INT64_MAX;
	int32_t node = -1;
	size_t gate = 0;
	bool is_gate = false;

	for (size_t l = 0; l < trace->n_lanes; l++) {
		const struct cursor *c = &s->lanes[l];
		int32_t i = c->next < c->until ? s->lane_nodes[c->next] : -1;
		int64_t at = i < 0           ? INT64_MAX
			     : s->started[i] ? trace->gpu[i].end_ns
					     : trace->gpu[i].start_ns;

		if (at < best) {
			best = at;
			node = i;
		}
	}
	for (size_t r = 0; r < trace->n_ranks; r++) {
		const struct cursor *c = &s->gates[r];

		if (c->next < c->until &&
		    LAG_VEC_AT(&s->rp->gates, struct lag_replay_gate, c->next).return_ns < best) {
			best = LAG_VEC_AT(&s->rp->gates, struct lag_replay_gate, c->next).return_ns;
			gate = c->next;
			is_gate = true;
		}
	}
	*status = LAG_OK;
	if (node < 0 && !is_gate)
		return false;
	s->rp->facts.n_forced++;
	if (is_gate) {
		struct lag_replay_gate *g =
			&LAG_VEC_AT(&s->rp->gates, struct lag_replay_gate, gate);

		g->awaited = -1;
		g->delay_ns = g->return_ns - g->at_ns;
		wake(s, g->r);
	} else if (s->started[node]) {
		struct lag_replay_node *n = &s->rp->nodes[node];

		n->alone = true;
		n->duration_ns = trace->gpu[node].end_ns - trace->gpu[node].start_ns;
		*status = finish(s, node);
	} else {
		struct lag_replay_node *n = &s->rp->nodes[node];

		/* Pinned to its measured moment: nothing it waited for is known to have happened. */
		n->n_deps = 0;
		n->before = n->gate = -1;
		n->launched = false;
		n->delay_ns = trace->gpu[node].start_ns;
		wake(s, trace->gpu[node].r);
	}
	return true;
}

/* Nodes of each lane, in launch order: the chain of `before` read backwards. */
static enum lag_status list_lanes(struct sorter *s)
{
	const struct lag_trace *trace = s->rp->trace;
	size_t *at = lag_calloc(trace->n_lanes + 1, sizeof(*at));
	int32_t *next, *first;

	if (!at)
		return LAG_ERR_SYSTEM;
	next = lag_calloc(trace->n_gpu, sizeof(*next));
	first = lag_calloc(trace->n_lanes, sizeof(*first));
	for (size_t l = 0; first && l < trace->n_lanes; l++)
		first[l] = -1;
	for (size_t i = 0; next && first && i < trace->n_gpu; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];

		if (g->end_ns == LAG_NONE)
			continue;
		at[g->lane + 1]++;
		if (s->rp->nodes[i].before >= 0) {
			next[s->rp->nodes[i].before] = (int32_t)i + 1;
		} else {
			first[g->lane] = (int32_t)i;
		}
	}
	for (size_t l = 0; next && first && l < trace->n_lanes; l++) {
		size_t k = at[l];

		at[l + 1] += at[l];
		s->lanes[l].next = k;
		for (int32_t i = first[l]; i >= 0 && k < at[l + 1]; i = next[i] - 1)
			s->lane_nodes[k++] = i;
		s->lanes[l].until = k;
	}
	free(at);
	free(next);
	free(first);
	return next && first ? LAG_OK : LAG_ERR_SYSTEM;
}

static void count_partners(struct sorter *s)
{
	const struct lag_trace *trace = s->rp->trace;

	for (size_t i = 0; i < trace->n_instances; i++) {
		const struct lag_instance *in = &trace->instances[i];

		for (uint32_t m = 0; m < in->n; m++) {
			int32_t node = lag_replay_node_of(
				trace, &trace->ops[trace->instance_ops[in->first + m]]);

			if (node < 0 || trace->gpu[node].end_ns == LAG_NONE)
				continue;
			s->missing[i]++;
			s->open_instances[node]++;
		}
	}
}

static enum lag_status allocate(struct sorter *s)
{
	const struct lag_trace *trace = s->rp->trace;

	s->lane_nodes = lag_calloc(trace->n_gpu, sizeof(*s->lane_nodes));
	s->lanes = lag_calloc(trace->n_lanes, sizeof(*s->lanes));
	s->gates = lag_calloc(trace->n_ranks, sizeof(*s->gates));
	s->started = lag_calloc(trace->n_gpu, 1);
	s->ended = lag_calloc(trace->n_gpu, 1);
	s->opened = lag_calloc(s->rp->gates.n, 1);
	s->open_instances = lag_calloc(trace->n_gpu, sizeof(*s->open_instances));
	s->missing = lag_calloc(trace->n_instances, sizeof(*s->missing));
	s->rank_lane = lag_calloc(trace->n_ranks + 1, sizeof(*s->rank_lane));
	s->queue = lag_calloc(trace->n_ranks, sizeof(*s->queue));
	s->queued = lag_calloc(trace->n_ranks, 1);
	if (!s->lane_nodes || !s->lanes || !s->gates || !s->started || !s->ended || !s->opened ||
	    !s->open_instances || !s->missing || !s->rank_lane || !s->queue || !s->queued)
		return LAG_ERR_SYSTEM;
	for (size_t l = 0; l < trace->n_lanes; l++)
		s->rank_lane[trace->lanes[l].r + 1] = l + 1;
	for (size_t r = 0; r < trace->n_ranks; r++) {
		if (s->rank_lane[r + 1] < s->rank_lane[r])
			s->rank_lane[r + 1] = s->rank_lane[r];
	}
	for (size_t i = 0; i < s->rp->gates.n; i++) {
		struct cursor *c =
			&s->gates[LAG_VEC_AT(&s->rp->gates, struct lag_replay_gate, i).r];

		if (c->until == 0)
			c->next = i;
		c->until = i + 1;
	}
	return LAG_OK;
}

enum lag_status lag_replay_sort(struct lag_replay *rp)
{
	struct sorter s = { .rp = rp };
	enum lag_status status = allocate(&s);

	if (!lag_failed(status))
		status = list_lanes(&s);
	if (!lag_failed(status)) {
		count_partners(&s);
		for (size_t r = 0; r < rp->trace->n_ranks; r++)
			wake(&s, (uint32_t)r);
		do {
			status = advance(&s);
		} while (!lag_failed(status) && force(&s, &status) && !lag_failed(status));
	}
	free(s.lane_nodes);
	free(s.lanes);
	free(s.gates);
	free(s.started);
	free(s.ended);
	free(s.opened);
	free(s.open_instances);
	free(s.missing);
	free(s.rank_lane);
	free(s.queue);
	free(s.queued);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of one rank: its streams, its events in the order of the host's calls, its host's gates and
 * stalls. Works on measured times only. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/map.h"
#include "viz/model/replay_internal.h"

static int by_time(const void *a, const void *b)
{
	const struct lag_replay_moment *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static enum lag_status list_nodes(struct lag_replay_walk *w)
{
	const struct lag_trace *trace = w->rp->trace;
	const struct lag_rank *rank = &trace->ranks[w->r];

	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];
		struct lag_replay_node *node = &w->rp->nodes[i];
		struct lag_replay_moment *l, *e;

		node->before = node->gate = -1;
		if (g->end_ns == LAG_NONE)
			continue;
		node->duration_ns = g->end_ns - g->start_ns;
		node->launched = g->launch_start_ns != LAG_NONE;
		l = lag_vec_push(&w->launched);
		e = lag_vec_push(&w->ended);
		if (!l || !e)
			return LAG_ERR_SYSTEM;
		*l = (struct lag_replay_moment){ node->launched ? g->launch_start_ns : g->start_ns,
						 (int32_t)i };
		*e = (struct lag_replay_moment){ g->end_ns, (int32_t)i };
	}
	if (w->launched.n) {
		qsort(w->launched.items, w->launched.n, sizeof(struct lag_replay_moment), by_time);
		qsort(w->ended.items, w->ended.n, sizeof(struct lag_replay_moment), by_time);
	}
	return LAG_OK;
}

static int32_t comm_of(const struct lag_replay_walk *w, int32_t node)
{
	int32_t launch = w->rp->trace->gpu[node].launch;

	return launch < 0 ? -1 : (int32_t)w->rp->trace->launches[launch].comm;
}

/* NCCL runs the kernels of one communicator in the order of their calls, whatever their streams; where
 * the trace contradicts that (another library, several copies), no such edge is taken. */
static enum lag_status find_ordered_comms(struct lag_replay_walk *w)
{
	size_t n = w->rp->trace->n_comms;
	uint32_t *pairs = lag_calloc(n, sizeof(*pairs)), *kept = lag_calloc(n, sizeof(*kept));

	for (size_t i = 0; pairs && kept && i < w->launched.n; i++) {
		int32_t node = LAG_VEC_AT(&w->launched, struct lag_replay_moment, i).node;
		int32_t comm = comm_of(w, node), before;

		if (comm < 0)
			continue;
		before = w->last_of_comm[comm];
		w->last_of_comm[comm] = node;
		if (before < 0 || w->rp->trace->gpu[before].lane == w->rp->trace->gpu[node].lane)
			continue;
		pairs[comm]++;
		kept[comm] += w->rp->trace->gpu[before].end_ns <= w->rp->trace->gpu[node].start_ns;
	}
	for (size_t c = 0; pairs && kept && c < n; c++) {
		w->in_order[c] = pairs[c] > 0 && 50 * (pairs[c] - kept[c]) <= pairs[c];
		w->last_of_comm[c] = -1;
	}
	free(pairs);
	free(kept);
	return pairs && kept ? LAG_OK : LAG_ERR_SYSTEM;
}

static long lane_of(const struct lag_replay_walk *w, int64_t context, int64_t stream)
{
	const struct lag_trace *trace = w->rp->trace;
	long found = -1;

	for (size_t i = w->lane_begin; i < w->lane_end; i++) {
		const struct lag_lane *lane = &trace->lanes[i];

		if (lane->stream != stream)
			continue;
		if (lane->context == context)
			return (long)(i - w->lane_begin);
		if (context == LAG_NONE || lane->context == LAG_NONE)
			found = (long)(i - w->lane_begin);
	}
	return found;
}

static uint64_t event_key(int64_t kind, int64_t event, int64_t which)
{
	return lag_hash_pair(lag_hash_pair((uint64_t)kind, (uint64_t)event), (uint64_t)which);
}

static enum lag_status record_event(struct lag_replay_walk *w, const struct lag_sync *s)
{
	long lane = lane_of(w, s->context, s->stream);
	uint64_t node = lane >= 0 ? (uint64_t)(w->last[lane] + 1) : 0;
	enum lag_status status = LAG_OK;

	if (s->event_id != LAG_NONE) {
		status = lag_map_set(&w->events, event_key(0, s->event_id, 0), node);
		if (!lag_failed(status) && s->sync_id != LAG_NONE) {
			status = lag_map_set(&w->events, event_key(1, s->event_id, s->sync_id),
					     node);
		}
	}
	if (!lag_failed(status) && s->correlation != LAG_NONE)
		status = lag_map_set(&w->events, event_key(2, s->correlation, 0), node);
	return status;
}

/* Node that a wait waits for; -1 none, or nothing known. */
static int32_t awaited(const struct lag_replay_walk *w, const struct lag_sync *s)
{
	uint64_t node = 0;

	if (s->record_correlation != LAG_NONE &&
	    lag_map_find(&w->events, event_key(2, s->record_correlation, 0), &node))
		return (int32_t)node - 1;
	if (s->event_id == LAG_NONE)
		return -1;
	if (s->sync_id != LAG_NONE &&
	    lag_map_find(&w->events, event_key(1, s->event_id, s->sync_id), &node))
		return (int32_t)node - 1;
	if (lag_map_find(&w->events, event_key(0, s->event_id, 0), &node))
		return (int32_t)node - 1;
	return -1;
}

static enum lag_status host_sync(struct lag_replay_walk *w, const struct lag_sync *s)
{
	int32_t node = -1;
	long lane;

	if (s->end_ns == LAG_NONE)
		return LAG_OK;
	if (s->kind == LAG_SYNC_EVENT) {
		node = awaited(w, s);
	} else if (s->kind == LAG_SYNC_STREAM) {
		lane = lane_of(w, s->context, s->stream);
		node = lane >= 0 ? w->last[lane] : lag_replay_last_ended(w, s->end_ns);
	} else {
		node = lag_replay_last_ended(w, s->end_ns);
	}
	return lag_replay_add_gate(w, s->start_ns, s->end_ns, node);
}

static enum lag_status take_sync(struct lag_replay_walk *w, const struct lag_sync *s)
{
	int32_t node, *slot;
	long lane;

	if (s->kind == LAG_SYNC_EVENT_RECORD)
		return record_event(w, s);
	if (s->kind != LAG_SYNC_STREAM_WAIT)
		return host_sync(w, s);
	node = awaited(w, s);
	lane = lane_of(w, s->context, s->stream);
	if (node < 0 || lane < 0)
		return LAG_OK;
	slot = lag_vec_push(&w->pending[lane]);
	if (!slot)
		return LAG_ERR_SYSTEM;
	*slot = node;
	w->rp->facts.n_edges++;
	return LAG_OK;
}

/* What the node waits for by what the operations are. */
static enum lag_status add_by_type(struct lag_replay_walk *w, int32_t i)
{
	struct lag_replay *rp = w->rp;

	for (size_t k = rp->by_type ? rp->by_type_first[i] : 0;
	     rp->by_type && k < rp->by_type_first[i + 1]; k++) {
		int32_t *dep = lag_vec_push(&rp->deps);

		if (!dep)
			return LAG_ERR_SYSTEM;
		*dep = rp->by_type[k];
		rp->nodes[i].n_deps++;
		rp->facts.n_edges++;
	}
	return LAG_OK;
}

static enum lag_status take_launch(struct lag_replay_walk *w, const struct lag_replay_moment *l)
{
	const struct lag_gpu_event *g = &w->rp->trace->gpu[l->node];
	struct lag_replay_node *node = &w->rp->nodes[l->node];
	size_t lane = g->lane - w->lane_begin;
	struct lag_vec *pending = &w->pending[lane];
	int32_t comm;

	node->before = w->last[lane];
	w->last[lane] = l->node;
	node->first_dep = (uint32_t)w->rp->deps.n;
	for (size_t i = 0; i < pending->n; i++) {
		int32_t *dep, on = LAG_VEC_AT(pending, int32_t, i);

		if (w->rp->trace->gpu[on].lane == g->lane)
			continue;
		dep = lag_vec_push(&w->rp->deps);
		if (!dep)
			return LAG_ERR_SYSTEM;
		*dep = on;
		node->n_deps++;
	}
	pending->n = 0;
	comm = comm_of(w, l->node);
	if (comm >= 0) {
		int32_t on = w->last_of_comm[comm];

		w->last_of_comm[comm] = l->node;
		if (on >= 0 && w->in_order[comm] && w->rp->trace->gpu[on].lane != g->lane &&
		    w->rp->trace->gpu[on].end_ns <= g->start_ns) {
			int32_t *dep = lag_vec_push(&w->rp->deps);

			if (!dep)
				return LAG_ERR_SYSTEM;
			*dep = on;
			node->n_deps++;
			w->rp->facts.n_edges++;
		}
	}
	if (lag_failed(add_by_type(w, l->node)))
		return LAG_ERR_SYSTEM;
	node->gate = w->gate;
	if (!node->launched)
		return LAG_OK;
	node->launch_ns = g->launch_start_ns;
	node->stall_ns = lag_replay_stalled(w, g->launch_start_ns);
	if (w->gate >= 0) {
		int64_t base = LAG_VEC_AT(&w->rp->gates, struct lag_replay_gate, w->gate).return_ns;

		node->launch_ns -= base;
		node->stall_ns -= lag_replay_stalled(w, base);
	}
	/* From the call to the start, as far as nothing else held it up. */
	if (g->start_ns > g->launch_start_ns) {
		node->launch_ns += g->start_ns - g->launch_start_ns < LAG_REPLAY_LATENCY_NS
					   ? g->start_ns - g->launch_start_ns
					   : LAG_REPLAY_LATENCY_NS;
	}
	return LAG_OK;
}

/* One call launches all nodes of a graph, whose edges between each other are not recorded. */
static void mark_graphs(struct lag_replay_walk *w)
{
	for (size_t i = 1; i < w->launched.n; i++) {
		int32_t a = LAG_VEC_AT(&w->launched, struct lag_replay_moment, i - 1).node;
		int32_t b = LAG_VEC_AT(&w->launched, struct lag_replay_moment, i).node;
		const struct lag_gpu_event *x = &w->rp->trace->gpu[a], *y = &w->rp->trace->gpu[b];

		if (x->launch_start_ns != LAG_NONE && x->launch_start_ns == y->launch_start_ns &&
		    x->correlation == y->correlation)
			w->rp->nodes[a].unsure = w->rp->nodes[b].unsure = true;
	}
}

/* Walks launches and synchronisation together, in the order of the host's calls. */
static enum lag_status walk_host(struct lag_replay_walk *w)
{
	const struct lag_trace *trace = w->rp->trace;
	const struct lag_rank *rank = &trace->ranks[w->r];
	enum lag_status status = LAG_OK;
	size_t s = rank->sync_begin, a = rank->api_begin;
	bool has_gates = false;

	for (size_t i = s; i < rank->sync_end; i++)
		has_gates = has_gates || trace->syncs[i].kind >= LAG_SYNC_EVENT;
	for (size_t i = 0; i < w->launched.n && !lag_failed(status); i++) {
		const struct lag_replay_moment *l =
			&LAG_VEC_AT(&w->launched, struct lag_replay_moment, i);

		for (; s < rank->sync_end && trace->syncs[s].start_ns <= l->at_ns &&
		       !lag_failed(status);
		     s++)
			status = take_sync(w, &trace->syncs[s]);
		if (!has_gates && !lag_failed(status))
			status = lag_replay_api_gates(w, l->at_ns, &a);
		if (!lag_failed(status))
			status = take_launch(w, l);
	}
	return status;
}

/* Last end of the work that a node waited for, as measured; LAG_NONE: it waited for none. */
static int64_t work_ended(const struct lag_replay *rp, const struct lag_replay_node *node)
{
	const struct lag_trace *trace = rp->trace;
	int64_t at = node->before >= 0 ? trace->gpu[node->before].end_ns : LAG_NONE;

	for (uint32_t d = 0; d < node->n_deps; d++) {
		int64_t end =
			trace->gpu[LAG_VEC_AT(&rp->deps, int32_t, node->first_dep + d)].end_ns;

		at = end > at ? end : at;
	}
	return at;
}

bool lag_replay_released(const struct lag_replay *replay, size_t gpu,
			 struct lag_replay_release *out)
{
	const struct lag_replay_node *node = &replay->nodes[gpu];

	out->launched_ns = replay->trace->gpu[gpu].launch_end_ns;
	out->work_ns = work_ended(replay, node);
	return node->launched && !node->unsure && out->launched_ns != LAG_NONE;
}

/* When everything known had let node i start; LAG_NONE: nothing is known. */
static int64_t released(const struct lag_replay_walk *w, int32_t i)
{
	const struct lag_replay_node *node = &w->rp->nodes[i];
	int64_t at = LAG_NONE, work;

	if (node->launched) {
		at = node->launch_ns;
		if (node->gate >= 0) {
			at += LAG_VEC_AT(&w->rp->gates, struct lag_replay_gate, node->gate)
				      .return_ns;
		}
	}
	work = work_ended(w->rp, node);
	return work > at ? work : at;
}

/* One more edge of a node, whose edges stand together. */
static enum lag_status add_dep(struct lag_replay *rp, struct lag_replay_node *node, int32_t other)
{
	uint32_t first = (uint32_t)rp->deps.n;

	for (uint32_t d = 0; d <= node->n_deps; d++) {
		int32_t *dep = lag_vec_push(&rp->deps);

		if (!dep)
			return LAG_ERR_SYSTEM;
		*dep = d < node->n_deps ? LAG_VEC_AT(&rp->deps, int32_t, node->first_dep + d)
					: other;
	}
	node->first_dep = first;
	node->n_deps++;
	return LAG_OK;
}

/* Work that began just as other work of the rank ended, and late for all that is known, waited for
 * it: events may not be on record. */
static enum lag_status explain(struct lag_replay_walk *w, int32_t i)
{
	const struct lag_trace *trace = w->rp->trace;
	const struct lag_gpu_event *g = &trace->gpu[i];
	struct lag_replay_node *node = &w->rp->nodes[i];
	int64_t at = released(w, i);

	if (at == LAG_NONE || g->start_ns - at > LAG_REPLAY_COINCIDENCE_NS) {
		int32_t other = lag_replay_last_ended(w, g->start_ns);

		/* Where events told what it waits for, nothing is inferred; what operations are tells
		 * less: a receive is posted once other work has ended. */
		if (other >= 0 && other != i && trace->gpu[other].lane != g->lane &&
		    g->start_ns - trace->gpu[other].end_ns <= LAG_REPLAY_COINCIDENCE_NS &&
		    (node->n_deps == 0 || w->rp->by_type)) {
			if (lag_failed(add_dep(w->rp, node, other)))
				return LAG_ERR_SYSTEM;
			node->unsure = true;
			w->rp->facts.n_inferred++;
			at = released(w, i);
		}
	}
	node->delay_ns = at == LAG_NONE ? g->start_ns : g->start_ns - at;
	w->rp->facts.n_unexplained += at != LAG_NONE && node->delay_ns > LAG_REPLAY_UNEXPLAINED_NS;
	return LAG_OK;
}

static enum lag_status run(struct lag_replay_walk *w)
{
	enum lag_status status = list_nodes(w);

	if (!lag_failed(status))
		status = find_ordered_comms(w);
	if (!lag_failed(status))
		status = lag_replay_find_stalls(w);
	mark_graphs(w);
	if (!lag_failed(status))
		status = walk_host(w);
	for (size_t i = 0; i < w->launched.n && !lag_failed(status); i++)
		status = explain(w, LAG_VEC_AT(&w->launched, struct lag_replay_moment, i).node);
	if (!lag_failed(status))
		status = lag_replay_keep_stalls(w);
	return status;
}

enum lag_status lag_replay_connect(struct lag_replay *rp, size_t r)
{
	const struct lag_trace *trace = rp->trace;
	struct lag_replay_walk w = { .rp = rp,
				     .r = r,
				     .launched = LAG_VEC_INIT(struct lag_replay_moment),
				     .ended = LAG_VEC_INIT(struct lag_replay_moment),
				     .gate = -1,
				     .gaps = LAG_VEC_INIT(struct lag_replay_moment),
				     .stall_sum = LAG_VEC_INIT(int64_t) };
	enum lag_status status = LAG_ERR_SYSTEM;
	size_t n_lanes;

	while (w.lane_begin < trace->n_lanes && trace->lanes[w.lane_begin].r < r)
		w.lane_begin++;
	w.lane_end = w.lane_begin;
	while (w.lane_end < trace->n_lanes && trace->lanes[w.lane_end].r == r)
		w.lane_end++;
	n_lanes = w.lane_end - w.lane_begin;
	w.pending = lag_calloc(n_lanes, sizeof(*w.pending));
	w.last = lag_calloc(n_lanes, sizeof(*w.last));
	w.last_of_comm = lag_calloc(trace->n_comms, sizeof(*w.last_of_comm));
	w.in_order = lag_calloc(trace->n_comms, sizeof(*w.in_order));
	for (size_t c = 0; w.last_of_comm && c < trace->n_comms; c++)
		w.last_of_comm[c] = -1;
	for (size_t i = 0; w.pending && w.last && i < n_lanes; i++) {
		w.pending[i] = (struct lag_vec)LAG_VEC_INIT(int32_t);
		w.last[i] = -1;
	}
	if (w.pending && w.last && w.last_of_comm && w.in_order)
		status = run(&w);
	for (size_t i = 0; w.pending && i < n_lanes; i++)
		lag_vec_release(&w.pending[i]);
	free(w.pending);
	free(w.last);
	free(w.last_of_comm);
	free(w.in_order);
	lag_vec_release(&w.launched);
	lag_vec_release(&w.ended);
	lag_vec_release(&w.gaps);
	lag_vec_release(&w.stall_sum);
	lag_map_release(&w.events);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline groups from send/receive traffic: a group is a connected component in which every rank has
 * at most two neighbours and messages go both ways; its order is the chain's. Which end is stage 0 is
 * told by three witnesses: who sends first, communicator ranks, and rank numbers. */
#include <stdlib.h>
#include <string.h>

#include "viz/model/roles_internal.h"

#define NEIGHBOURS_MAX 3 /* one more than a pipeline has: that one proves it is none */

struct node {
	int32_t peer[NEIGHBOURS_MAX]; /* rank indices */
	bool sends_to[NEIGHBOURS_MAX], hears_from[NEIGHBOURS_MAX];
	int n_peers;
	int64_t first_ns; /* enter of the rank's first send or receive */
	bool first_is_send;
	int32_t first_peer;
	bool seen;
};

static int slot_of(struct node *node, int32_t peer)
{
	for (int i = 0; i < node->n_peers; i++) {
		if (node->peer[i] == peer)
			return i;
	}
	if (node->n_peers == NEIGHBOURS_MAX)
		return -1;
	node->peer[node->n_peers] = peer;
	return node->n_peers++;
}

static void note_edge(struct node *nodes, int32_t src, int32_t dst)
{
	int out = slot_of(&nodes[src], dst), in = slot_of(&nodes[dst], src);

	if (out >= 0)
		nodes[src].sends_to[out] = true;
	if (in >= 0)
		nodes[dst].hears_from[in] = true;
}

static void note_first(struct node *node, const struct lag_op *op, int32_t peer)
{
	if (node->first_ns != LAG_NONE && node->first_ns <= op->enter_ns)
		return;
	node->first_ns = op->enter_ns;
	node->first_is_send = op->func == LAG_FUNC_SEND;
	node->first_peer = peer;
}

static void read_traffic(const struct lag_trace *trace, struct node *nodes)
{
	for (size_t r = 0; r < trace->n_ranks; r++)
		nodes[r].first_ns = LAG_NONE;
	for (size_t i = 0; i < trace->n_instances; i++) {
		const struct lag_instance *inst = &trace->instances[i];

		if (inst->src < 0 || inst->dst < 0 || inst->src == inst->dst)
			continue;
		note_edge(nodes, inst->src, inst->dst);
		for (uint32_t k = 0; k < inst->n; k++) {
			const struct lag_op *op = &trace->ops[trace->instance_ops[inst->first + k]];

			note_first(&nodes[op->r], op,
				   (int32_t)op->r == inst->src ? inst->dst : inst->src);
		}
	}
}

/* Collects the component of `start` into group (room n_ranks); its size. */
static size_t component(struct node *nodes, int32_t start, int32_t *group)
{
	size_t n = 0, at = 0;

	group[n++] = start;
	nodes[start].seen = true;
	while (at < n) {
		const struct node *node = &nodes[group[at++]];

		for (int i = 0; i < node->n_peers; i++) {
			if (!nodes[node->peer[i]].seen) {
				nodes[node->peer[i]].seen = true;
				group[n++] = node->peer[i];
			}
		}
	}
	return n;
}

static bool is_pipeline(const struct node *nodes, const int32_t *group, size_t n)
{
	bool ring = true, both_ways = true;

	for (size_t i = 0; i < n; i++) {
		const struct node *node = &nodes[group[i]];

		if (node->n_peers > 2)
			return false;
		ring = ring && node->n_peers == 2;
		for (int k = 0; k < node->n_peers; k++)
			both_ways = both_ways && node->sends_to[k] && node->hears_from[k];
	}
	/* A ring in one direction is context parallelism, not a pipeline. */
	return n >= 2 && (!ring || both_ways);
}

static int32_t next_in_chain(const struct node *node, int32_t from)
{
	for (int i = 0; i < node->n_peers; i++) {
		if (node->peer[i] != from)
			return node->peer[i];
	}
	return -1;
}

/* Writes the chain that starts at group[0] going to `second`; false when it is not one chain. */
static bool walk(const struct node *nodes, int32_t first, int32_t second, int32_t *order, size_t n)
{
	int32_t before = first, here = second;

	order[0] = first;
	for (size_t i = 1; i < n; i++) {
		int32_t next;

		if (here < 0)
			return false;
		order[i] = here;
		next = next_in_chain(&nodes[here], before);
		before = here;
		here = next;
	}
	return true;
}

/* The first stage of a ring: the only rank whose first call is a send. -1 when not the only one. */
static int32_t ring_start(const struct node *nodes, const int32_t *group, size_t n)
{
	int32_t found = -1;

	for (size_t i = 0; i < n; i++) {
		if (!nodes[group[i]].first_is_send)
			continue;
		if (found >= 0)
			return -1;
		found = group[i];
	}
	return found;
}

/* +1 when communicator ranks grow along the chain, -1 when they fall, 0 when they say nothing. */
static int comm_direction(const struct lag_trace *trace, const int32_t *order, size_t n)
{
	for (size_t c = 0; c < trace->n_comms; c++) {
		const struct lag_comm *comm = &trace->comms[c];
		int32_t first = -1, last = -1;

		if (comm->n_members != n)
			continue;
		for (uint32_t m = 0; m < comm->n_members; m++) {
			const struct lag_member *member = &trace->members[comm->first_member + m];

			if (member->r == order[0])
				first = member->comm_rank;
			if (member->r == order[n - 1])
				last = member->comm_rank;
		}
		if (first >= 0 && last >= 0)
			return first < last ? 1 : -1;
	}
	return 0;
}

static void reverse(int32_t *order, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		int32_t t = order[i];

		order[i] = order[n - 1 - i];
		order[n - 1 - i] = t;
	}
}

/* Orders the group by stage. Returns the share of witnesses that agree with the order taken. */
static double order_stages(const struct lag_trace *trace, const struct node *nodes,
			   const int32_t *group, size_t n, int32_t *order)
{
	int32_t start = -1;
	int votes = 0, witnesses = 0;
	int call, comm, number;

	for (size_t i = 0; i < n && start < 0; i++) {
		if (nodes[group[i]].n_peers == 1)
			start = group[i];
	}
	if (start < 0) { /* a ring */
		start = ring_start(nodes, group, n);
		if (start < 0)
			start = group[0];
		if (!walk(nodes, start, nodes[start].first_peer, order, n))
			return 0;
	} else if (!walk(nodes, start, nodes[start].peer[0], order, n)) {
		return 0;
	}
	call = nodes[order[0]].first_is_send - nodes[order[n - 1]].first_is_send;
	comm = comm_direction(trace, order, n);
	number = trace->ranks[order[0]].rank < trace->ranks[order[n - 1]].rank ? 1 : -1;
	/* Who sends first is what a pipeline is; the two conventions decide only where it is silent. */
	votes = 3 * call + comm + number;
	if (votes < 0)
		reverse(order, n);
	witnesses = 3 * abs(call) + abs(comm) + 1;
	return (double)abs(votes) / witnesses;
}

static void assign(struct lag_roles *out, const int32_t *order, size_t n)
{
	for (size_t s = 0; s < n; s++) {
		out->ranks[order[s]].stage = (int32_t)s;
		out->ranks[order[s]].pipeline = out->n_pipelines;
	}
	out->n_pipelines++;
	if (out->n_stages == 1) {
		out->n_stages = (int32_t)n;
	} else if (out->n_stages != (int32_t)n) {
		out->n_stages = -1;
	}
}

enum lag_status lag_roles_pipelines(const struct lag_trace *trace, struct lag_roles *out,
				    double *confidence, struct lag_err *err)
{
	struct node *nodes = lag_calloc(trace->n_ranks, sizeof(*nodes));
	int32_t *group = lag_calloc(trace->n_ranks, 2 * sizeof(*group));
	int32_t *order = group ? group + trace->n_ranks : NULL;

	*confidence = 1;
	out->n_stages = 1;
	if (!nodes || !group) {
		free(nodes);
		free(group);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the roles of %zu ranks",
				   trace->n_ranks);
	}
	read_traffic(trace, nodes);
	for (size_t r = 0; r < trace->n_ranks; r++) {
		size_t n;
		double agree;

		if (nodes[r].seen || nodes[r].n_peers == 0)
			continue;
		n = component(nodes, (int32_t)r, group);
		if (!is_pipeline(nodes, group, n))
			continue;
		agree = order_stages(trace, nodes, group, n, order);
		if (agree < *confidence)
			*confidence = agree;
		assign(out, order, n);
	}
	free(nodes);
	free(group);
	return LAG_OK;
}

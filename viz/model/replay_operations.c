/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of an operation table. It has no calls, events and waits; but its operations are known by what they
 * are: which receive brings a computation's input, which computation a send's output. */
#include <stdlib.h>

#include "viz/model/interval.h"
#include "viz/model/opmodel.h"
#include "viz/model/replay_internal.h"

#define CLOSE_NS 50000 /* clocks of the table may be so far apart */

/* The node that an edge is for and the one it waits for; false for an edge that the record contradicts, or
 * that the order in the stream tells. */
static bool is_edge(const struct lag_opmodel *m, size_t edge, int32_t *who, int32_t *what)
{
	const uint32_t *e = (const uint32_t *)m->edges.items + 2 * edge;
	const struct lag_op_node *a = &LAG_VEC_AT(&m->nodes, struct lag_op_node, e[0]);
	const struct lag_op_node *b = &LAG_VEC_AT(&m->nodes, struct lag_op_node, e[1]);

	*who = (int32_t)a->gpu;
	*what = (int32_t)b->gpu;
	return m->trace->gpu[*who].lane != m->trace->gpu[*what].lane &&
	       b->end_ns <= lag_ns_add(a->start_ns, CLOSE_NS);
}

static enum lag_status list(struct lag_replay *rp, const struct lag_opmodel *m)
{
	size_t n = rp->trace->n_gpu;
	int32_t who, what;

	rp->by_type_first = lag_calloc(n + 2, sizeof(*rp->by_type_first));
	rp->by_type = lag_calloc(m->edges.n, sizeof(*rp->by_type));
	if (!rp->by_type_first || !rp->by_type)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < m->edges.n; i++) {
		if (is_edge(m, i, &who, &what))
			rp->by_type_first[who + 2]++;
	}
	for (size_t i = 2; i < n + 2; i++)
		rp->by_type_first[i] += rp->by_type_first[i - 1];
	for (size_t i = 0; i < m->edges.n; i++) {
		if (is_edge(m, i, &who, &what))
			rp->by_type[rp->by_type_first[who + 1]++] = what;
	}
	return LAG_OK;
}

/* Steps of a rank follow each other: what waits for nothing in its step waits for what ended last in the
 * step before. */
static enum lag_status join_steps(struct lag_opmodel *m)
{
	size_t n = m->nodes.n, n_edges = m->edges.n, last = SIZE_MAX, ending = SIZE_MAX;
	const struct lag_op_node *nodes = m->nodes.items;
	bool *waits = lag_calloc(n, sizeof(*waits));
	enum lag_status status = waits ? LAG_OK : LAG_ERR_SYSTEM;

	for (size_t i = 0; waits && i < n_edges; i++)
		waits[((const uint32_t *)m->edges.items)[2 * i]] = true;
	for (size_t i = 0; i < n && !lag_failed(status); i++) {
		uint32_t *edge;

		if (i == 0 || nodes[i].r != nodes[i - 1].r) {
			last = ending = SIZE_MAX;
		} else if (nodes[i].step != nodes[i - 1].step) {
			last = ending;
			ending = SIZE_MAX;
		}
		if (ending == SIZE_MAX || nodes[i].end_ns > nodes[ending].end_ns)
			ending = i;
		if (waits[i] || last == SIZE_MAX)
			continue;
		edge = lag_vec_push(&m->edges);
		if (!edge) {
			status = LAG_ERR_SYSTEM;
			break;
		}
		edge[0] = (uint32_t)i;
		edge[1] = (uint32_t)last;
	}
	free(waits);
	return status;
}

enum lag_status lag_replay_find_operations(struct lag_replay *rp)
{
	struct lag_opmodel m;
	enum lag_status status;

	if (!lag_opmodel_applies(rp->trace))
		return LAG_OK;
	status = lag_opmodel_graph(rp->trace, rp->steps, &m);
	if (!lag_failed(status))
		status = join_steps(&m);
	if (!lag_failed(status))
		status = list(rp, &m);
	lag_opmodel_release(&m);
	return status;
}

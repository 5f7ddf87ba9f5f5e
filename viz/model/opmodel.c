/* SPDX-License-Identifier: Apache-2.0 */
/* Operations from GPU events, their groups from matched communication, and the simulation: an operation
 * starts when all it waits for has ended, communication transfers when all of its group have started. */
#include "viz/model/opmodel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/model/peers.h"

#define NEGATIVE_NS 10000000.0 /* an end so far before the last start is no clock error */

bool lag_opmodel_applies(const struct lag_trace *trace)
{
	bool any = false;

	for (size_t i = 0; i < trace->n_sources; i++) {
		const struct lag_source_row *s = &trace->sources[i];

		if (strcmp(s->status, "ok") != 0 && strcmp(s->status, "damaged") != 0)
			continue;
		if (strcmp(s->format, "optable") != 0)
			return false;
		any = true;
	}
	return any;
}

static enum lag_status add_nodes(struct lag_opmodel *m)
{
	const struct lag_trace *t = m->trace;

	for (size_t i = 0; i < t->n_gpu; i++) {
		const struct lag_gpu_event *g = &t->gpu[i];
		const struct lag_launch *l = g->launch < 0 ? NULL : &t->launches[g->launch];
		struct lag_op_node *node;

		if (m->steps->of_gpu[i] < 0 || g->end_ns == LAG_NONE)
			continue;
		node = lag_vec_push(&m->nodes);
		if (!node)
			return LAG_ERR_SYSTEM;
		*node = (struct lag_op_node){
			.start_ns = g->start_ns,
			.end_ns = g->end_ns,
			.gpu = (uint32_t)i,
			.r = g->r,
			.name = g->name,
			.step = m->steps->of_gpu[i],
			.group = l && l->n_ops ? t->ops[l->first_op].instance : -1,
			.type = (uint8_t)lag_optype_of(lag_trace_text(t, g->name)),
		};
	}
	return LAG_OK;
}

/* gpu[] is by rank and start; steps of one rank follow each other, but must stand together here. */
static int by_step(const void *a, const void *b)
{
	const struct lag_op_node *x = a, *y = b;

	if (x->r != y->r)
		return x->r < y->r ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

static struct lag_op_node *at(const struct lag_opmodel *m, size_t i)
{
	return &LAG_VEC_AT(&m->nodes, struct lag_op_node, i);
}

/* Members of groups one after the other. */
static enum lag_status list_members(struct lag_opmodel *m)
{
	size_t n = m->nodes.n;

	m->n_groups = m->trace->n_instances;
	m->member_first = lag_calloc(m->n_groups + 2, sizeof(*m->member_first));
	m->members = lag_calloc(n, sizeof(*m->members));
	m->arrived = lag_calloc(m->n_groups, sizeof(*m->arrived));
	if (!m->member_first || !m->members || !m->arrived)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < n; i++) {
		if (at(m, i)->group >= 0)
			m->member_first[at(m, i)->group + 2]++;
	}
	for (size_t g = 2; g < m->n_groups + 2; g++)
		m->member_first[g] += m->member_first[g - 1];
	for (size_t i = 0; i < n; i++) {
		if (at(m, i)->group >= 0)
			m->members[m->member_first[at(m, i)->group + 1]++] = (uint32_t)i;
	}
	return LAG_OK;
}

/* Who waits for each node, from the edges. */
static enum lag_status list_next(struct lag_opmodel *m)
{
	size_t n = m->nodes.n, n_edges = m->edges.n;
	const uint32_t *e = m->edges.items;

	m->next_first = lag_calloc(n + 2, sizeof(*m->next_first));
	m->next = lag_calloc(n_edges, sizeof(*m->next));
	m->n_waits = lag_calloc(n, sizeof(*m->n_waits));
	m->waits = lag_calloc(n, sizeof(*m->waits));
	m->queue = lag_calloc(n, sizeof(*m->queue));
	m->start = lag_calloc(n, sizeof(*m->start));
	m->end = lag_calloc(n, sizeof(*m->end));
	if (!m->next_first || !m->next || !m->n_waits || !m->waits || !m->queue || !m->start ||
	    !m->end)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < n_edges; i++) {
		m->next_first[e[2 * i + 1] + 2]++;
		m->n_waits[e[2 * i]]++;
	}
	for (size_t i = 2; i < n + 2; i++)
		m->next_first[i] += m->next_first[i - 1];
	for (size_t i = 0; i < n_edges; i++)
		m->next[m->next_first[e[2 * i + 1] + 1]++] = e[2 * i];
	return LAG_OK;
}

static enum lag_status set_durations(struct lag_opmodel *m)
{
	size_t n = m->nodes.n;

	m->duration = lag_calloc(n, sizeof(*m->duration));
	if (!m->duration)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < n; i++) {
		int64_t from = at(m, i)->start_ns;
		size_t g = at(m, i)->group < 0 ? SIZE_MAX : (size_t)at(m, i)->group;

		for (size_t k = g == SIZE_MAX ? 0 : m->member_first[g];
		     g != SIZE_MAX && k < m->member_first[g + 1]; k++) {
			if (at(m, m->members[k])->start_ns > from)
				from = at(m, m->members[k])->start_ns;
		}
		m->duration[i] = (double)(at(m, i)->end_ns - from);
		if (m->duration[i] <= -NEGATIVE_NS)
			m->duration[i] = 0;
	}
	return LAG_OK;
}

/* Each type's ideal to all of its nodes. */
static enum lag_status set_ideal(struct lag_opmodel *m)
{
	size_t n = m->nodes.n;
	double *sample = lag_calloc(n, sizeof(*sample));
	bool *done = lag_calloc(n, sizeof(*done));

	m->ideal = lag_calloc(n, sizeof(*m->ideal));
	for (size_t i = 0; m->ideal && sample && done && i < n; i++) {
		double sum = 0, value;
		size_t k = 0;

		for (size_t j = done[i] ? n : i; j < n; j++) {
			if (at(m, j)->name == at(m, i)->name) {
				sample[k++] = m->duration[j];
				sum += m->duration[j];
			}
		}
		if (!k)
			continue;
		value = lag_optype_is_comm((enum lag_optype)at(m, i)->type) ? lag_median(sample, k)
									    : sum / (double)k;
		for (size_t j = i; j < n; j++) {
			if (at(m, j)->name == at(m, i)->name) {
				m->ideal[j] = value;
				done[j] = true;
			}
		}
	}
	free(sample);
	free(done);
	return m->ideal && sample && done ? LAG_OK : LAG_ERR_SYSTEM;
}

enum lag_status lag_opmodel_graph(const struct lag_trace *trace, const struct lag_steps *steps,
				  struct lag_opmodel *m)
{
	enum lag_status st;

	*m = (struct lag_opmodel){ .trace = trace,
				   .steps = steps,
				   .nodes = LAG_VEC_INIT(struct lag_op_node),
				   .edges = { .item_size = 2 * sizeof(uint32_t) } };
	m->nodes.max = UINT32_MAX - 1;
	st = add_nodes(m);
	if (st == LAG_OK && m->nodes.n)
		qsort(m->nodes.items, m->nodes.n, m->nodes.item_size, by_step);
	return st == LAG_OK ? lag_opmodel_edges(m) : st;
}

enum lag_status lag_opmodel_build(struct lag_context *ctx, struct lag_opmodel *m,
				  struct lag_err *err)
{
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	enum lag_status st;

	*m = (struct lag_opmodel){ 0 };
	if (!steps)
		return err->status;
	st = lag_opmodel_graph(lag_context_trace(ctx), steps, m);
	if (st == LAG_OK)
		st = list_members(m);
	if (st == LAG_OK)
		st = list_next(m);
	if (st == LAG_OK)
		st = set_durations(m);
	if (st == LAG_OK)
		st = set_ideal(m);
	return st == LAG_OK ? st : lag_err_set(err, st, "operations: no memory");
}

void lag_opmodel_release(struct lag_opmodel *m)
{
	void *const owned[] = { m->duration, m->ideal,   m->next_first, m->next,
				m->n_waits,  m->waits,   m->queue,      m->member_first,
				m->members,  m->arrived, m->start,      m->end };

	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
		free(owned[i]);
	lag_vec_release(&m->nodes);
	lag_vec_release(&m->edges);
}

/* Node i has ended: who waited for it may be ready. */
static void release_next(struct lag_opmodel *m, size_t i, size_t *tail)
{
	for (size_t k = m->next_first[i]; k < m->next_first[i + 1]; k++) {
		uint32_t next = m->next[k];

		if (m->end[i] > m->start[next])
			m->start[next] = m->end[i];
		if (!--m->waits[next])
			m->queue[(*tail)++] = next;
	}
}

bool lag_opmodel_run(struct lag_opmodel *m, const double *duration, double *step_ns)
{
	size_t n = m->nodes.n, head = 0, tail = 0;

	for (size_t s = 0; s < m->steps->n_steps; s++)
		step_ns[s] = NAN;
	for (size_t i = 0; i < n; i++) {
		m->start[i] = 0;
		m->waits[i] = m->n_waits[i];
		if (!m->waits[i])
			m->queue[tail++] = (uint32_t)i;
	}
	for (size_t g = 0; g < m->n_groups; g++)
		m->arrived[g] = 0;
	while (head < tail) {
		uint32_t i = m->queue[head++];
		int32_t group = at(m, i)->group;
		size_t first = group < 0 ? 0 : m->member_first[group];
		size_t n_members = group < 0 ? 0 : m->member_first[group + 1] - first;
		double from = 0;

		if (group < 0) {
			m->end[i] = m->start[i] + duration[i];
			release_next(m, i, &tail);
			continue;
		}
		if (++m->arrived[group] < n_members)
			continue;
		for (size_t k = first; k < first + n_members; k++)
			from = fmax(from, m->start[m->members[k]]);
		for (size_t k = first; k < first + n_members; k++) {
			m->end[m->members[k]] = from + duration[m->members[k]];
			release_next(m, m->members[k], &tail);
		}
	}
	for (size_t i = 0; i < n; i++)
		step_ns[at(m, i)->step] = fmax(step_ns[at(m, i)->step], m->end[i]);
	return head == n;
}

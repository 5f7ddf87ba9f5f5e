/* SPDX-License-Identifier: Apache-2.0 */
/* How long forwards, backwards and messages take: measured, and usually. */
#include <math.h>
#include <stdlib.h>

#include "viz/analysis/bubble_internal.h"
#include "viz/model/interval.h"

size_t lag_bubble_part(const struct lag_ladder *l, uint8_t kind, int32_t stage, int32_t chunk)
{
	return ((size_t)(kind != LAG_BLOCK_FORWARD) * (size_t)l->n_stages + (size_t)stage) *
		       (size_t)l->n_chunks +
	       (size_t)chunk;
}

static bool is_pipeline_traffic(const struct lag_trace *trace, const struct lag_roles *roles,
				const struct lag_gpu_event *g)
{
	const struct lag_launch *launch;

	if (g->launch < 0)
		return false;
	launch = &trace->launches[g->launch];
	if (roles->comm_role[launch->comm] == LAG_ROLE_PIPELINE)
		return true;
	for (uint32_t k = 0; k < launch->n_ops; k++) {
		const struct lag_op *op = &trace->ops[launch->first_op + k];

		if (op->func != LAG_FUNC_SEND && op->func != LAG_FUNC_RECV)
			return false;
	}
	return roles->ranks[launch->r].pipeline >= 0 && launch->n_ops > 0;
}

/* Work of each block: what is busy inside it, the pipeline's own traffic left out. */
static enum lag_status measure_rank(struct lag_ladder *l, const struct lag_roles *roles, size_t r)
{
	const struct lag_rank *rank = &l->trace->ranks[r];
	struct lag_intervals busy = { 0 };
	enum lag_status status = LAG_OK;
	size_t b = l->pipe->first_block[r];

	for (size_t i = rank->gpu_begin; i < rank->gpu_end && !lag_failed(status); i++) {
		const struct lag_gpu_event *g = &l->trace->gpu[i];

		while (b < l->pipe->first_block[r + 1] && l->pipe->blocks[b].start_ns < g->start_ns)
			b++;
		if (b < l->pipe->first_block[r + 1] && l->pipe->blocks[b].start_ns == g->start_ns &&
		    g->class == LAG_CLASS_COMPUTE && g->launch_start_ns != LAG_NONE) {
			int64_t latency = g->start_ns - g->launch_start_ns;

			l->launch_ns[b] = g->launch_start_ns;
			l->launch_ns[b] += latency < 0 ? 0 : latency < 10000 ? latency : 10000;
		}
		if (g->end_ns == LAG_NONE ||
		    (g->class == LAG_CLASS_COMM && is_pipeline_traffic(l->trace, roles, g)))
			continue;
		status = lag_intervals_add(&busy, g->start_ns, g->end_ns);
	}
	lag_intervals_normalize(&busy);
	for (size_t i = l->pipe->first_block[r]; i < l->pipe->first_block[r + 1]; i++) {
		l->work_ns[i] = lag_intervals_length_in(&busy, l->pipe->blocks[i].start_ns,
							l->pipe->blocks[i].end_ns);
	}
	lag_intervals_release(&busy);
	return status;
}

static bool peer_recorded(const struct lag_trace *trace, const struct lag_op *op)
{
	int32_t r = lag_trace_find_peer(trace, op->comm, op->peer);

	return r >= 0 && trace->ranks[r].recorded;
}

/* A message that goes to or comes from a rank that is not on record: the group has stages that nobody
 * has seen. */
static bool is_cut(const struct lag_trace *trace, const struct lag_pipe_group *group)
{
	for (int32_t s = 0; s < group->n_stages; s++) {
		int32_t r = group->rank_of_stage[s];

		if (r < 0 || !trace->ranks[r].recorded)
			return true;
		for (size_t i = trace->ranks[r].op_begin; i < trace->ranks[r].op_end; i++) {
			const struct lag_op *op = &trace->ops[i];

			if ((op->func == LAG_FUNC_SEND || op->func == LAG_FUNC_RECV) &&
			    op->peer >= 0 && !peer_recorded(trace, op))
				return true;
		}
	}
	return false;
}

static enum lag_status find_cuts(struct lag_ladder *l)
{
	l->cut = lag_calloc(l->pipe->n_groups, sizeof(*l->cut));
	for (size_t g = 0; l->cut && g < l->pipe->n_groups; g++)
		l->cut[g] = is_cut(l->trace, &l->pipe->groups[g]);
	return l->cut ? LAG_OK : LAG_ERR_SYSTEM;
}

/* Longer data pass through every stage of a group. A single stage in which a rank has more work than its
 * peers is chance, and left out there alone it would look like a stage of other size. */
static enum lag_status find_longer(struct lag_ladder *l)
{
	l->longer = lag_calloc(l->pipe->n_groups, sizeof(*l->longer));
	for (size_t g = 0; l->longer && g < l->pipe->n_groups; g++) {
		const struct lag_pipe_group *group = &l->pipe->groups[g];
		int32_t n = 0;

		for (int32_t s = 0; s < group->n_stages; s++) {
			int32_t r = group->rank_of_stage[s];

			n += r >= 0 && l->peers->ranks[r].state == LAG_PEER_MORE;
		}
		l->longer[g] = 2 * n > group->n_stages;
	}
	return l->longer ? LAG_OK : LAG_ERR_SYSTEM;
}

static double median_of(struct lag_ladder *l)
{
	return lag_median(l->values.items, l->values.n);
}

static bool is_sound(const struct lag_ladder *l, size_t group, int32_t r)
{
	return l->peers->ranks[r].state != LAG_PEER_SLOW && !l->longer[group];
}

/* Adds the work of rank r's blocks of one kind and chunk to the scratch values. */
static enum lag_status take_rank(struct lag_ladder *l, int32_t r, uint8_t kind, int32_t chunk)
{
	for (size_t i = l->pipe->first_block[r]; i < l->pipe->first_block[r + 1]; i++) {
		const struct lag_block *b = &l->pipe->blocks[i];
		double *value;

		if ((b->kind != LAG_BLOCK_FORWARD) != (kind != LAG_BLOCK_FORWARD) ||
		    b->chunk != chunk)
			continue;
		value = lag_vec_push(&l->values);
		if (!value)
			return LAG_ERR_SYSTEM;
		*value = (double)l->work_ns[i];
	}
	return LAG_OK;
}

/* Usual work of a stage's part: of its sound ranks in all groups, of all when none is sound. */
static enum lag_status stage_usual(struct lag_ladder *l, uint8_t kind, int32_t stage, int32_t chunk)
{
	enum lag_status status = LAG_OK;

	l->values.n = 0;
	for (int any = 0; any < 2 && l->values.n == 0; any++) {
		for (size_t g = 0; g < l->pipe->n_groups && !lag_failed(status); g++) {
			const struct lag_pipe_group *group = &l->pipe->groups[g];
			int32_t r = stage < group->n_stages ? group->rank_of_stage[stage] : -1;

			if (r >= 0 && !l->cut[g] && (any || is_sound(l, g, r)))
				status = take_rank(l, r, kind, chunk);
		}
	}
	l->stage_usual[lag_bubble_part(l, kind, stage, chunk)] = median_of(l);
	return status;
}

/* Mean over the parts of the model of what one kind usually takes. */
static enum lag_status find_balanced(struct lag_ladder *l, uint8_t kind)
{
	enum lag_status status = LAG_OK;
	double sum = 0;
	int32_t n = 0;

	for (int32_t i = 0; i < l->n_stages * l->n_chunks && !lag_failed(status); i++) {
		int32_t s = i / l->n_chunks, c = i % l->n_chunks;
		double usual;

		status = stage_usual(l, kind, s, c);
		usual = l->stage_usual[lag_bubble_part(l, kind, s, c)];
		if (!isnan(usual)) {
			sum += usual;
			n++;
		}
	}
	l->balanced[kind] = n ? sum / n : 0;
	return status;
}

static enum lag_status rank_usual(struct lag_ladder *l, int32_t r, int32_t stage)
{
	size_t parts = 2 * (size_t)l->n_stages * (size_t)l->n_chunks;
	enum lag_status status = LAG_OK;

	for (int32_t k = 0; r >= 0 && k < 2 * l->n_chunks && !lag_failed(status); k++) {
		uint8_t kind = (uint8_t)(k / l->n_chunks);
		int32_t chunk = k % l->n_chunks;
		size_t at = (size_t)r * parts + lag_bubble_part(l, kind, stage, chunk);

		l->values.n = 0;
		status = take_rank(l, r, kind, chunk);
		l->rank_usual[at] = median_of(l);
	}
	return status;
}

static enum lag_status find_usual(struct lag_ladder *l)
{
	enum lag_status status = find_balanced(l, LAG_BLOCK_FORWARD);

	if (!lag_failed(status))
		status = find_balanced(l, LAG_BLOCK_BACKWARD);
	for (size_t g = 0; g < l->pipe->n_groups; g++) {
		const struct lag_pipe_group *group = &l->pipe->groups[g];

		for (int32_t s = 0; s < group->n_stages && !lag_failed(status); s++)
			status = rank_usual(l, group->rank_of_stage[s], s);
	}
	return status;
}

static int by_pair(const void *a, const void *b)
{
	const struct lag_transfer *x = a, *y = b;

	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static const struct lag_launch *launch_of(const struct lag_trace *trace, uint32_t op)
{
	int32_t launch = trace->ops[op].launch;

	return launch < 0 ? NULL : &trace->launches[launch];
}

/* From the moment both sides had begun to the end of the receive. */
static enum lag_status find_transfers(struct lag_ladder *l)
{
	const struct lag_trace *trace = l->trace;
	struct lag_vec all = LAG_VEC_INIT(struct lag_transfer);
	size_t kept = 0;

	for (size_t i = 0; i < trace->n_instances; i++) {
		const struct lag_instance *in = &trace->instances[i];
		const struct lag_launch *send = NULL, *recv = NULL;
		struct lag_transfer *t;
		int64_t from;

		if (in->src < 0 || in->dst < 0)
			continue;
		for (uint32_t k = 0; k < in->n; k++) {
			uint32_t op = trace->instance_ops[in->first + k];

			if (trace->ops[op].func == LAG_FUNC_SEND) {
				send = launch_of(trace, op);
			} else {
				recv = launch_of(trace, op);
			}
		}
		if (!send || !recv || send->start_ns == LAG_NONE || recv->start_ns == LAG_NONE ||
		    recv->end_ns == LAG_NONE)
			continue;
		from = send->start_ns > recv->start_ns ? send->start_ns : recv->start_ns;
		t = lag_vec_push(&all);
		if (!t) {
			lag_vec_release(&all);
			return LAG_ERR_SYSTEM;
		}
		*t = (struct lag_transfer){ in->src, in->dst,
					    recv->end_ns > from ? recv->end_ns - from : 0 };
	}
	if (all.n)
		qsort(all.items, all.n, sizeof(struct lag_transfer), by_pair);
	l->transfers = all.items;
	for (size_t i = 0; i < all.n;) {
		size_t end = i;

		while (end < all.n && l->transfers[end].src == l->transfers[i].src &&
		       l->transfers[end].dst == l->transfers[i].dst)
			end++;
		l->transfers[kept++] = l->transfers[i + (end - i) / 2];
		i = end;
	}
	l->n_transfers = kept;
	return LAG_OK;
}

int64_t lag_bubble_transfer(const struct lag_ladder *l, int32_t src, int32_t dst)
{
	size_t lo = 0, hi = l->n_transfers;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct lag_transfer *t = &l->transfers[mid];

		if (t->src < src || (t->src == src && t->dst < dst)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo < l->n_transfers && l->transfers[lo].src == src && l->transfers[lo].dst == dst)
		return l->transfers[lo].ns;
	return 0;
}

enum lag_status lag_bubble_work_find(struct lag_ladder *l, const struct lag_roles *roles)
{
	enum lag_status status = find_cuts(l);

	if (!lag_failed(status))
		status = find_longer(l);
	for (size_t r = 0; r < l->trace->n_ranks && !lag_failed(status); r++)
		status = measure_rank(l, roles, r);
	if (!lag_failed(status))
		status = find_usual(l);
	return lag_failed(status) ? status : find_transfers(l);
}

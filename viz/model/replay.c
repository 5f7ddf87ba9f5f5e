/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the graph and replays it: one pass over the tasks in a fixed order. */
#include "viz/model/replay.h"

#include <stdlib.h>

#include "viz/model/interval.h"
#include "viz/model/replay_internal.h"

/* Members of a communication that are on record, and the latest start among them. */
struct gathering {
	int64_t arrival_ns;
	uint32_t n;
};

static struct gathering *gather(const struct lag_trace *trace)
{
	struct gathering *out = lag_calloc(trace->n_instances, sizeof(*out));

	for (size_t i = 0; out && i < trace->n_instances; i++) {
		const struct lag_instance *in = &trace->instances[i];

		out[i].arrival_ns = LAG_NONE;
		for (uint32_t m = 0; m < in->n; m++) {
			int32_t node = lag_replay_node_of(
				trace, &trace->ops[trace->instance_ops[in->first + m]]);

			if (node < 0 || trace->gpu[node].end_ns == LAG_NONE)
				continue;
			out[i].n++;
			if (trace->gpu[node].start_ns > out[i].arrival_ns)
				out[i].arrival_ns = trace->gpu[node].start_ns;
		}
	}
	return out;
}

/* Latest start over the partners of everything that node i executes, and whether its own end depends on
 * any of them. A send that ended before its receive began ran on credits. */
static void partners(const struct lag_trace *trace, const struct gathering *gathered, size_t i,
		     int64_t *arrival, bool *alone)
{
	const struct lag_gpu_event *g = &trace->gpu[i];
	const struct lag_launch *launch = &trace->launches[g->launch];

	*arrival = g->start_ns;
	*alone = true;
	for (uint32_t k = 0; k < launch->n_ops; k++) {
		const struct lag_op *op = &trace->ops[launch->first_op + k];
		const struct gathering *in;

		if (op->instance < 0)
			continue;
		in = &gathered[op->instance];
		if (in->n < 2 || (op->func == LAG_FUNC_SEND && in->arrival_ns >= g->end_ns))
			continue;
		*alone = false;
		if (in->arrival_ns > *arrival)
			*arrival = in->arrival_ns;
	}
}

static enum lag_status prepare_communication(struct lag_replay *rp)
{
	const struct lag_trace *trace = rp->trace;
	struct gathering *gathered = gather(trace);

	for (size_t i = 0; gathered && i < trace->n_gpu; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];
		struct lag_replay_node *node = &rp->nodes[i];
		int64_t arrival;

		if (g->launch < 0 || g->end_ns == LAG_NONE ||
		    trace->launches[g->launch].gpu != (int32_t)i)
			continue;
		node->comm = true;
		partners(trace, gathered, i, &arrival, &node->alone);
		if (node->alone)
			continue;
		node->duration_ns = lag_ns_add(g->end_ns, -arrival);
		/* When an operation table's receive was posted is no duration of anything: it waited for
		 * its partner anyway, and must not begin to hold it up once that comes earlier. */
		if (rp->by_type && arrival > g->start_ns && node->delay_ns > 0)
			node->delay_ns = 0;
	}
	free(gathered);
	return gathered ? LAG_OK : LAG_ERR_SYSTEM;
}

enum lag_status lag_replay_new(const struct lag_trace *trace, const struct lag_steps *steps,
			       const struct lag_roles *roles, struct lag_replay **out,
			       struct lag_err *err)
{
	struct lag_replay *rp = lag_calloc(1, sizeof(*rp));
	enum lag_status status = rp ? LAG_OK : LAG_ERR_SYSTEM;

	*out = rp;
	if (rp) {
		rp->trace = trace;
		rp->steps = steps;
		rp->roles = roles;
		rp->deps = (struct lag_vec)LAG_VEC_INIT(int32_t);
		rp->gates = (struct lag_vec)LAG_VEC_INIT(struct lag_replay_gate);
		rp->order = (struct lag_vec)LAG_VEC_INIT(int64_t);
		rp->stalls = (struct lag_vec)LAG_VEC_INIT(struct lag_replay_stall);
		rp->nodes = lag_calloc(trace->n_gpu, sizeof(*rp->nodes));
		status = rp->nodes && trace->n_gpu < INT32_MAX ? LAG_OK : LAG_ERR_SYSTEM;
	}
	if (!lag_failed(status))
		status = lag_replay_find_operations(rp);
	for (size_t r = 0; !lag_failed(status) && r < trace->n_ranks; r++)
		status = lag_replay_connect(rp, r);
	if (!lag_failed(status)) {
		status = prepare_communication(rp);
		if (!lag_failed(status))
			status = lag_replay_sort(rp);
	}
	if (lag_failed(status)) {
		lag_replay_free(rp);
		*out = NULL;
		return lag_err_set(err, status, "no memory to replay %zu GPU events", trace->n_gpu);
	}
	return LAG_OK;
}

void lag_replay_free(struct lag_replay *replay)
{
	if (!replay)
		return;
	lag_vec_release(&replay->deps);
	lag_vec_release(&replay->gates);
	lag_vec_release(&replay->order);
	lag_vec_release(&replay->stalls);
	free(replay->by_type_first);
	free(replay->by_type);
	free(replay->nodes);
	free(replay);
}

const struct lag_replay_facts *lag_replay_facts(const struct lag_replay *replay)
{
	return &replay->facts;
}

/* One scenario's state. */
struct pass {
	const struct lag_replay *rp;
	const struct lag_replay_change *change;
	int64_t *end;     /* by node */
	int64_t *arrival; /* by instance */
	int64_t *opened;  /* by gate */
	int64_t *waiting; /* by rank */
};

static bool stall_free(const struct pass *p, size_t r)
{
	return p->change->stall_free && p->change->stall_free[r];
}

static int64_t start_of(const struct pass *p, size_t i)
{
	const struct lag_replay_node *node = &p->rp->nodes[i];
	int64_t at = LAG_NONE;

	if (node->launched && !p->change->host_free) {
		at = lag_ns_add(node->launch_ns, node->gate >= 0 ? p->opened[node->gate] : 0);
		if (stall_free(p, p->rp->trace->gpu[i].r))
			at = lag_ns_add(at, -node->stall_ns);
	} else if (node->launched && node->gate >= 0) {
		/* Even a host that is never late cannot launch before what it waited for. */
		at = p->opened[node->gate];
	}
	if (node->before >= 0 && p->end[node->before] > at)
		at = p->end[node->before];
	for (uint32_t d = 0; d < node->n_deps; d++) {
		int64_t end = p->end[LAG_VEC_AT(&p->rp->deps, int32_t, node->first_dep + d)];

		at = end > at ? end : at;
	}
	/* Without anything before it, it starts when it did. */
	if (at == LAG_NONE)
		return p->rp->trace->gpu[i].start_ns;
	return lag_ns_add(at, node->delay_ns);
}

static void start(struct pass *p, size_t i)
{
	const struct lag_trace *trace = p->rp->trace;
	const struct lag_replay_node *node = &p->rp->nodes[i];
	int64_t at = start_of(p, i);

	if (!node->comm) {
		p->end[i] = lag_ns_add(at, p->change->duration_ns ? p->change->duration_ns[i]
								  : node->duration_ns);
		return;
	}
	p->end[i] = at;
	const struct lag_launch *launch = &trace->launches[trace->gpu[i].launch];

	for (uint32_t k = 0; k < launch->n_ops; k++) {
		int32_t inst = trace->ops[launch->first_op + k].instance;

		if (inst >= 0 && p->arrival[inst] < at)
			p->arrival[inst] = at;
	}
}

static void finish(struct pass *p, size_t i)
{
	const struct lag_trace *trace = p->rp->trace;
	const struct lag_replay_node *node = &p->rp->nodes[i];
	const struct lag_launch *launch = &trace->launches[trace->gpu[i].launch];
	int64_t from = p->end[i], transfer = node->duration_ns;

	for (uint32_t k = 0; !node->alone && k < launch->n_ops; k++) {
		int32_t inst = trace->ops[launch->first_op + k].instance;

		if (inst >= 0 && p->arrival[inst] > from)
			from = p->arrival[inst];
	}
	p->waiting[trace->gpu[i].r] =
		lag_ns_add(p->waiting[trace->gpu[i].r], lag_ns_add(from, -p->end[i]));
	if (p->change->scale_transfer && transfer > 0) {
		transfer =
			(int64_t)((double)transfer *
				  p->change->transfer_scale[p->rp->roles->comm_role[launch->comm]]);
	}
	p->end[i] = lag_ns_add(from, transfer);
}

static void open_gate(struct pass *p, size_t i)
{
	const struct lag_replay_gate *g = &LAG_VEC_AT(&p->rp->gates, struct lag_replay_gate, i);
	int64_t at = lag_ns_add(g->offset_ns, g->before >= 0 ? p->opened[g->before] : 0);

	if (stall_free(p, g->r))
		at = lag_ns_add(at, -g->stall_ns);
	if (p->change->host_free && g->awaited >= 0)
		at = LAG_NONE;
	if (g->awaited >= 0 && p->end[g->awaited] > at)
		at = p->end[g->awaited];
	p->opened[i] = lag_ns_add(at, g->delay_ns);
}

/* Time of the whole steps: each from the end of the one before to its own end, over all ranks. A pause
 * between two (steps that were not recorded, evaluation) is part of neither and stays as it was. */
static void measure(const struct lag_steps *steps, bool whole_only, struct lag_replay_result *out)
{
	int64_t end_ns = LAG_NONE, measured_ns = LAG_NONE;

	for (size_t s = 0; s < steps->n_steps; s++) {
		const struct lag_step *step = &steps->steps[s];
		int64_t from_ns = step->start_ns;

		if (out->step_end_ns[s] == LAG_NONE)
			continue;
		if (measured_ns != LAG_NONE) {
			int64_t pause = lag_ns_add(step->start_ns, -measured_ns);

			from_ns = lag_ns_add(end_ns, pause > 0 ? pause : 0);
		}
		/* Numbers that run against time: a loop was begun anew. */
		if ((step->complete || !whole_only) &&
		    (measured_ns == LAG_NONE || step->end_ns > measured_ns)) {
			out->steps_ns = lag_ns_add(out->steps_ns,
						   lag_ns_add(out->step_end_ns[s], -from_ns));
			out->n_measured++;
		}
		end_ns = out->step_end_ns[s];
		measured_ns = step->end_ns;
	}
}

static enum lag_status collect(const struct pass *p, struct lag_replay_result *out)
{
	const struct lag_trace *trace = p->rp->trace;
	const struct lag_steps *steps = p->rp->steps;

	out->n_steps = steps->n_steps;
	out->step_end_ns = lag_calloc(steps->n_steps, sizeof(*out->step_end_ns));
	if (!out->step_end_ns)
		return LAG_ERR_SYSTEM;
	out->start_ns = out->end_ns = LAG_NONE;
	for (size_t s = 0; s < steps->n_steps; s++)
		out->step_end_ns[s] = LAG_NONE;
	for (size_t i = 0; i < trace->n_gpu; i++) {
		int32_t s = steps->of_gpu[i];

		if (s >= 0 && trace->gpu[i].end_ns != LAG_NONE && p->end[i] > out->step_end_ns[s])
			out->step_end_ns[s] = p->end[i];
	}
	for (size_t s = 0; s < steps->n_steps; s++) {
		if (out->step_end_ns[s] == LAG_NONE)
			continue;
		if (out->start_ns == LAG_NONE)
			out->start_ns = steps->steps[s].start_ns;
		if (out->step_end_ns[s] > out->end_ns)
			out->end_ns = out->step_end_ns[s];
	}
	measure(steps, true, out);
	/* A step cut off is better than none. */
	if (out->n_measured == 0)
		measure(steps, false, out);
	return LAG_OK;
}

enum lag_status lag_replay_run(const struct lag_replay *replay,
			       const struct lag_replay_change *change,
			       struct lag_replay_result *out, struct lag_err *err)
{
	const struct lag_trace *trace = replay->trace;
	struct pass p = { .rp = replay, .change = change };
	enum lag_status status = LAG_ERR_SYSTEM;

	*out = (struct lag_replay_result){ 0 };
	p.end = lag_calloc(trace->n_gpu, sizeof(*p.end));
	p.arrival = lag_calloc(trace->n_instances, sizeof(*p.arrival));
	p.opened = lag_calloc(replay->gates.n, sizeof(*p.opened));
	p.waiting = out->waiting_ns = lag_calloc(trace->n_ranks, sizeof(*p.waiting));
	for (size_t i = 0; p.arrival && i < trace->n_instances; i++)
		p.arrival[i] = LAG_NONE;
	if (p.end && p.arrival && p.opened && p.waiting) {
		for (size_t k = 0; k < replay->order.n; k++) {
			int64_t code = LAG_VEC_AT(&replay->order, int64_t, k);
			size_t i = (size_t)(code / 4);

			if (code % 4 == LAG_TASK_START) {
				start(&p, i);
			} else if (code % 4 == LAG_TASK_END) {
				finish(&p, i);
			} else {
				open_gate(&p, i);
			}
		}
		status = collect(&p, out);
	}
	free(p.end);
	free(p.arrival);
	free(p.opened);
	if (lag_failed(status)) {
		lag_replay_result_release(out);
		return lag_err_set(err, status, "no memory to replay %zu GPU events", trace->n_gpu);
	}
	return LAG_OK;
}

void lag_replay_result_release(struct lag_replay_result *result)
{
	free(result->step_end_ns);
	free(result->waiting_ns);
	*result = (struct lag_replay_result){ 0 };
}

int64_t lag_replay_step_ns(const struct lag_replay_result *result)
{
	return result->n_measured ? result->steps_ns / result->n_measured : LAG_NONE;
}

int64_t lag_replay_stall(const struct lag_replay *replay, size_t r, size_t step)
{
	int64_t longest = 0;

	for (size_t i = 0; i < replay->stalls.n; i++) {
		const struct lag_replay_stall *s =
			&LAG_VEC_AT(&replay->stalls, struct lag_replay_stall, i);

		if (s->r == r && s->step == (int32_t)step && s->ns > longest)
			longest = s->ns;
	}
	return longest;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Waits from matched instances. Each launch takes the latest arrival among the instances it executes,
 * so that a fused or grouped kernel is judged once. */
#include "viz/model/waits.h"

#include <stdlib.h>

#include "viz/model/clock_error.h"

#define WAIT_MAX_NS INT64_C(2592000000000000) /* 30 days */

/* The launch `self` could not go on before `arrival` of rank `by`. */
static void arrive(const struct lag_trace *trace, struct lag_waits *out, int32_t self,
		   int64_t arrival, uint32_t by)
{
	struct lag_wait *w = &out->launch[self];
	uint32_t r = trace->launches[self].r;
	int64_t error =
		lag_trace_error_between(trace, r, trace->launches[self].start_ns, by, arrival);

	if (w->arrival_ns != LAG_NONE && w->arrival_ns >= arrival)
		return;
	w->arrival_ns = arrival;
	w->uncertainty_ns = error > UINT32_MAX ? UINT32_MAX : (uint32_t)error;
	w->last = by == r ? -1 : (int32_t)by;
}

static const struct lag_launch *launch_of(const struct lag_trace *trace,
					  const struct lag_instance *inst, uint32_t i)
{
	int32_t launch = trace->ops[trace->instance_ops[inst->first + i]].launch;

	return launch < 0 ? NULL : &trace->launches[launch];
}

static void mark_incomplete(const struct lag_trace *trace, const struct lag_instance *inst,
			    struct lag_waits *out)
{
	for (uint32_t i = 0; i < inst->n; i++) {
		const struct lag_launch *l = launch_of(trace, inst, i);

		if (l)
			out->launch[l - trace->launches].lower_bound = true;
	}
}

/* Who waits for a member that did not record yet, waits for its profiler as like as not. */
static void mark_outside(const struct lag_trace *trace, const struct lag_instance *inst,
			 struct lag_waits *out)
{
	if (inst->first_start_ns == LAG_NONE ||
	    lag_window_holds(trace, &trace->comms[inst->comm], inst->first_start_ns))
		return;
	for (uint32_t i = 0; i < inst->n; i++) {
		const struct lag_launch *l = launch_of(trace, inst, i);

		if (l)
			out->launch[l - trace->launches].outside = true;
	}
	mark_incomplete(trace, inst, out);
}

static void take_collective(const struct lag_trace *trace, const struct lag_instance *inst,
			    struct lag_waits *out)
{
	const struct lag_launch *latest = NULL;

	for (uint32_t i = 0; i < inst->n; i++) {
		const struct lag_launch *l = launch_of(trace, inst, i);

		if (l && l->start_ns != LAG_NONE && (!latest || l->start_ns > latest->start_ns))
			latest = l;
	}
	for (uint32_t i = 0; latest && i < inst->n; i++) {
		const struct lag_launch *l = launch_of(trace, inst, i);

		if (l && l->start_ns != LAG_NONE) {
			arrive(trace, out, (int32_t)(l - trace->launches), latest->start_ns,
			       latest->r);
		}
	}
	if (!inst->complete)
		mark_incomplete(trace, inst, out);
}

/* A sender runs ahead by its credits: it waited only when it was still busy as the receive began. */
static void take_pair(const struct lag_trace *trace, const struct lag_instance *inst,
		      struct lag_waits *out)
{
	const struct lag_launch *send = NULL, *recv = NULL;

	for (uint32_t i = 0; i < inst->n; i++) {
		const struct lag_op *op = &trace->ops[trace->instance_ops[inst->first + i]];

		if (op->func == LAG_FUNC_SEND) {
			send = launch_of(trace, inst, i);
		} else {
			recv = launch_of(trace, inst, i);
		}
	}
	if (!send || !recv || send->start_ns == LAG_NONE || recv->start_ns == LAG_NONE) {
		mark_incomplete(trace, inst, out);
		return;
	}
	arrive(trace, out, (int32_t)(recv - trace->launches),
	       send->start_ns > recv->start_ns ? send->start_ns : recv->start_ns,
	       send->start_ns > recv->start_ns ? send->r : recv->r);
	if (recv->start_ns > send->start_ns &&
	    (send->end_ns == LAG_NONE || send->end_ns > recv->start_ns)) {
		arrive(trace, out, (int32_t)(send - trace->launches), recv->start_ns, recv->r);
	} else {
		arrive(trace, out, (int32_t)(send - trace->launches), send->start_ns, send->r);
	}
}

static bool within(const struct lag_launch *l, int64_t ns)
{
	return l->end_ns == LAG_NONE || l->end_ns > ns;
}

/* Two ranks with messages of which only the kernels' names are on record. Whoever still ran as the other
 * began waited for it, as a receiver, in an exchange, or as a sender without credits; who had ended was
 * a sender that ran ahead. */
static void take_exchange(const struct lag_trace *trace, const struct lag_instance *inst,
			  struct lag_waits *out)
{
	const struct lag_launch *one = launch_of(trace, inst, 0), *two = launch_of(trace, inst, 1);
	const struct lag_launch *first, *last;

	if (!one || !two || one->start_ns == LAG_NONE || two->start_ns == LAG_NONE) {
		mark_incomplete(trace, inst, out);
		return;
	}
	first = one->start_ns <= two->start_ns ? one : two;
	last = first == one ? two : one;
	if (within(first, last->start_ns)) {
		arrive(trace, out, (int32_t)(first - trace->launches), last->start_ns, last->r);
	} else {
		arrive(trace, out, (int32_t)(first - trace->launches), first->start_ns, first->r);
	}
	arrive(trace, out, (int32_t)(last - trace->launches), last->start_ns, last->r);
}

/* Messages among more ranks: any of them may be anyone's partner. */
static void mark_undirected(const struct lag_trace *trace, const struct lag_instance *inst,
			    struct lag_waits *out)
{
	mark_incomplete(trace, inst, out);
	for (uint32_t i = 0; i < inst->n; i++) {
		const struct lag_launch *l = launch_of(trace, inst, i);

		if (l)
			out->launch[l - trace->launches].undirected = true;
	}
}

static void take_instance(const struct lag_trace *trace, const struct lag_instance *inst,
			  struct lag_waits *out)
{
	if (inst->src >= 0 || inst->dst >= 0) {
		take_pair(trace, inst, out);
	} else if (inst->func != LAG_FUNC_SEND_RECV) {
		take_collective(trace, inst, out);
	} else if (!inst->complete) {
		mark_incomplete(trace, inst, out);
	} else if (inst->n == 2) {
		take_exchange(trace, inst, out);
	} else {
		mark_undirected(trace, inst, out);
	}
}

/* Whether the last one came, on the common clock, after this one had ended by more than the clocks may
 * be off: communication that waits for all cannot end before all came. */
static bool contradicts(const struct lag_launch *l, const struct lag_wait *w)
{
	int64_t error = w->uncertainty_ns == UINT32_MAX ? 0 : (int64_t)w->uncertainty_ns;

	return l->end_ns != LAG_NONE && w->arrival_ns > l->end_ns &&
	       w->arrival_ns - l->end_ns > error;
}

static void finish(const struct lag_trace *trace, struct lag_waits *out, size_t i)
{
	const struct lag_launch *l = &trace->launches[i];
	struct lag_wait *w = &out->launch[i];

	out->n_incomplete += w->lower_bound && !w->outside && !w->undirected;
	out->n_undirected += w->undirected && !w->outside;
	out->n_outside += w->outside;
	if (w->arrival_ns == LAG_NONE || l->start_ns == LAG_NONE)
		return;
	w->wait_ns = w->arrival_ns > l->start_ns ? w->arrival_ns - l->start_ns : 0;
	/* Nobody waits for months, nor beyond its own end: these clocks cannot be compared. */
	if (w->wait_ns > WAIT_MAX_NS || contradicts(l, w)) {
		out->n_contradicted++;
		w->wait_ns = LAG_NONE;
		w->last = -1;
		return;
	}
	if (w->lower_bound) {
		w->last = -1;
		return;
	}
	if (l->end_ns != LAG_NONE) {
		int64_t from = w->arrival_ns > l->start_ns ? w->arrival_ns : l->start_ns;

		w->transfer_ns = l->end_ns > from ? l->end_ns - from : 0;
	}
	if (w->last >= 0 &&
	    (w->uncertainty_ns == UINT32_MAX || w->wait_ns <= (int64_t)w->uncertainty_ns)) {
		out->n_within_error++;
		w->last = -1;
	}
}

enum lag_status lag_waits_compute(const struct lag_trace *trace, struct lag_waits *out,
				  struct lag_err *err)
{
	*out = (struct lag_waits){ .n = trace->n_launches };
	out->launch = lag_calloc(trace->n_launches, sizeof(*out->launch));
	if (!out->launch) {
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the waits of %zu launches",
				   trace->n_launches);
	}
	for (size_t i = 0; i < out->n; i++) {
		out->launch[i] = (struct lag_wait){ .wait_ns = LAG_NONE,
						    .transfer_ns = LAG_NONE,
						    .arrival_ns = LAG_NONE,
						    .last = -1 };
	}
	for (size_t i = 0; i < trace->n_instances; i++) {
		const struct lag_instance *inst = &trace->instances[i];

		take_instance(trace, inst, out);
		mark_outside(trace, inst, out);
	}
	for (size_t i = 0; i < out->n; i++)
		finish(trace, out, i);
	return LAG_OK;
}

void lag_waits_release(struct lag_waits *waits)
{
	free(waits->launch);
	*waits = (struct lag_waits){ 0 };
}

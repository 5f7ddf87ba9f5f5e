/* SPDX-License-Identifier: Apache-2.0 */
/* Compares starts with the moments at which the replay's edges had let them go. */
#include "viz/model/ready.h"

#include <stdlib.h>

#include "viz/model/interval.h"
#include "viz/model/peers.h"
#include "viz/model/replay_internal.h"

/* Without any event on record, waiting for other streams cannot be told from contention; nor can waiting
 * for work whose record is lost. */
static bool is_known(const struct lag_trace *trace, const struct lag_rank *rank)
{
	for (size_t i = rank->sync_begin; rank->lost == 0 && i < rank->sync_end; i++) {
		if (trace->syncs[i].kind == LAG_SYNC_EVENT_RECORD ||
		    trace->syncs[i].kind == LAG_SYNC_STREAM_WAIT)
			return true;
	}
	return false;
}

/* The launch of each instance that came last. */
static void find_latest(const struct lag_trace *trace, int32_t *latest)
{
	for (size_t i = 0; i < trace->n_instances; i++) {
		const struct lag_instance *in = &trace->instances[i];

		latest[i] = -1;
		for (uint32_t m = 0; m < in->n; m++) {
			int32_t l = trace->ops[trace->instance_ops[in->first + m]].launch;

			if (l >= 0 &&
			    (latest[i] < 0 ||
			     trace->launches[l].start_ns > trace->launches[latest[i]].start_ns))
				latest[i] = l;
		}
	}
}

/* Median from launch to start of the kernels that had nothing else to wait for. */
static enum lag_status usual_latency(const struct lag_trace *trace, const struct lag_replay *replay,
				     const bool *known, int64_t *out)
{
	double *times = lag_calloc(trace->n_gpu, sizeof(*times));
	size_t n = 0;

	*out = LAG_REPLAY_LATENCY_NS;
	if (!times)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < trace->n_gpu; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];
		struct lag_replay_release from;

		if (g->kind != LAG_GPU_KERNEL || g->end_ns == LAG_NONE || !known[g->r] ||
		    !lag_replay_released(replay, i, &from) || from.work_ns > from.launched_ns)
			continue;
		/* A call may return after what it launched began. */
		times[n++] = g->start_ns > from.launched_ns
				     ? (double)(g->start_ns - from.launched_ns)
				     : 0;
	}
	if (n)
		*out = (int64_t)lag_median(times, n);
	free(times);
	return LAG_OK;
}

/* What it waited for may have been in a time of which there is no record. */
static bool spans_gap(const struct lag_trace *trace, uint32_t r, int64_t from, int64_t until)
{
	for (size_t i = 0; i < trace->n_gaps; i++) {
		const struct lag_gap_row *gap = &trace->gaps[i];

		if (gap->rank == trace->ranks[r].rank && gap->from_ns != LAG_NONE &&
		    gap->from_ns < until && (gap->until_ns == LAG_NONE || gap->until_ns > from))
			return true;
	}
	return false;
}

static struct lag_ready_launch judge(const struct lag_trace *trace, const struct lag_replay *replay,
				     int64_t latency, size_t gpu)
{
	const struct lag_gpu_event *g = &trace->gpu[gpu];
	int64_t error = trace->ranks[g->r].uncertainty_ns, after_launch, late;
	int64_t usual = latency > LAG_REPLAY_LATENCY_NS ? latency : LAG_REPLAY_LATENCY_NS;
	struct lag_ready_launch out = { LAG_NONE, LAG_NONE };
	struct lag_replay_release from;

	if (g->end_ns == LAG_NONE || error == INT64_MAX || !lag_replay_released(replay, gpu, &from))
		return out;
	out.ready_ns = from.work_ns > from.launched_ns ? from.work_ns : from.launched_ns;
	out.contention_ns = 0;
	/* The host's clock may be off against the device's, the device's not against itself; what is
	 * less than one more launch is how launches differ. */
	after_launch = lag_ns_add(lag_ns_add(g->start_ns, -from.launched_ns), -latency);
	late = lag_ns_add(lag_ns_add(g->start_ns, -out.ready_ns), -latency);
	if (after_launch <= error || late <= usual)
		return out;
	out.contention_ns = late;
	if (spans_gap(trace, g->r, out.ready_ns, g->start_ns))
		out.ready_ns = out.contention_ns = LAG_NONE;
	return out;
}

enum lag_status lag_ready_compute(const struct lag_trace *trace, const struct lag_replay *replay,
				  struct lag_ready *out, struct lag_err *err)
{
	bool *known = lag_calloc(trace->n_ranks, sizeof(*known));
	enum lag_status status = LAG_ERR_SYSTEM;

	*out = (struct lag_ready){ .n = trace->n_launches };
	out->launch = lag_calloc(out->n, sizeof(*out->launch));
	out->latest = lag_calloc(trace->n_instances, sizeof(*out->latest));
	for (size_t r = 0; known && r < trace->n_ranks; r++)
		known[r] = is_known(trace, &trace->ranks[r]);
	if (known && out->launch && out->latest) {
		find_latest(trace, out->latest);
		status = usual_latency(trace, replay, known, &out->latency_ns);
	}
	for (size_t i = 0; !lag_failed(status) && i < out->n; i++) {
		const struct lag_launch *launch = &trace->launches[i];

		out->launch[i] = (struct lag_ready_launch){ LAG_NONE, LAG_NONE };
		if (launch->gpu >= 0 && known[launch->r])
			out->launch[i] = judge(trace, replay, out->latency_ns, (size_t)launch->gpu);
		out->n_unknown += out->launch[i].ready_ns == LAG_NONE;
	}
	free(known);
	if (lag_failed(status)) {
		lag_ready_release(out);
		return lag_err_set(err, status, "no memory for the starts of %zu launches",
				   trace->n_launches);
	}
	return LAG_OK;
}

void lag_ready_release(struct lag_ready *ready)
{
	free(ready->launch);
	free(ready->latest);
	*ready = (struct lag_ready){ 0 };
}

int64_t lag_ready_of_last(const struct lag_trace *trace, const struct lag_waits *waits,
			  const struct lag_ready *ready, size_t launch)
{
	const struct lag_launch *self = &trace->launches[launch];
	const struct lag_wait *wait = &waits->launch[launch];

	for (uint32_t k = 0; wait->last >= 0 && k < self->n_ops; k++) {
		int32_t inst = trace->ops[self->first_op + k].instance;
		int32_t other = inst < 0 ? -1 : ready->latest[inst];

		if (other >= 0 && trace->launches[other].r == (uint32_t)wait->last &&
		    trace->launches[other].start_ns == wait->arrival_ns)
			return ready->launch[other].contention_ns;
	}
	return LAG_NONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of one rank: its stalls, and the calls that blocked it until GPU work ended. */
#include <string.h>

#include "viz/model/replay_internal.h"

/* Number of entries at or before ns in a vector sorted by time. */
size_t lag_replay_until(const struct lag_vec *v, int64_t ns)
{
	size_t lo = 0, hi = v->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (LAG_VEC_AT(v, struct lag_replay_moment, mid).at_ns <= ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* Gaps between host calls that are stalls, with their running sum. */
enum lag_status lag_replay_find_stalls(struct lag_replay_walk *w)
{
	const struct lag_trace *trace = w->rp->trace;
	const struct lag_rank *rank = &trace->ranks[w->r];
	int64_t last = LAG_NONE, sum = 0;

	for (size_t i = rank->api_begin; i < rank->api_end; i++) {
		const struct lag_api *call = &trace->api[i];

		if (last != LAG_NONE && call->start_ns - last > LAG_REPLAY_STALL_NS) {
			struct lag_replay_moment *gap = lag_vec_push(&w->gaps);
			int64_t *total = lag_vec_push(&w->stall_sum);

			if (!gap || !total)
				return LAG_ERR_SYSTEM;
			sum += call->start_ns - last;
			*gap = (struct lag_replay_moment){ call->start_ns, 0 };
			*total = sum;
		}
		if (last == LAG_NONE || call->end_ns > last)
			last = call->end_ns != LAG_NONE ? call->end_ns : call->start_ns;
	}
	return LAG_OK;
}

/* Stalls of the host before ns. */
int64_t lag_replay_stalled(const struct lag_replay_walk *w, int64_t ns)
{
	size_t n = lag_replay_until(&w->gaps, ns);

	return n ? LAG_VEC_AT(&w->stall_sum, int64_t, n - 1) : 0;
}

enum lag_status lag_replay_add_gate(struct lag_replay_walk *w, int64_t at, int64_t back,
				    int32_t node)
{
	struct lag_replay_gate *g = lag_vec_push(&w->rp->gates);
	int64_t stall = lag_replay_stalled(w, at), base = 0, ready = at;

	if (!g)
		return LAG_ERR_SYSTEM;
	if (w->gate >= 0) {
		base = LAG_VEC_AT(&w->rp->gates, struct lag_replay_gate, w->gate).return_ns;
		stall -= lag_replay_stalled(w, base);
	}
	if (node >= 0 && w->rp->trace->gpu[node].end_ns > at)
		ready = w->rp->trace->gpu[node].end_ns;
	*g = (struct lag_replay_gate){ .offset_ns = at - base,
				       .stall_ns = stall,
				       .delay_ns = back - ready,
				       .at_ns = at,
				       .return_ns = back,
				       .before = w->gate,
				       .awaited = node,
				       .r = (uint32_t)w->r };
	w->gate = (int32_t)w->rp->gates.n - 1;
	w->rp->facts.n_host_syncs++;
	return LAG_OK;
}

/* What ended last before a blocking call returned. */
int32_t lag_replay_last_ended(const struct lag_replay_walk *w, int64_t ns)
{
	size_t n = lag_replay_until(&w->ended, ns);

	return n ? LAG_VEC_AT(&w->ended, struct lag_replay_moment, n - 1).node : -1;
}

static bool blocks_host(const char *name)
{
	return strstr(name, "DeviceSynchronize") || strstr(name, "StreamSynchronize") ||
	       strstr(name, "EventSynchronize") || strstr(name, "CtxSynchronize") ||
	       strcmp(name, "cudaMemcpy") == 0;
}

/* Gates from API calls, for sources that keep no synchronisation records. */
enum lag_status lag_replay_api_gates(struct lag_replay_walk *w, int64_t before_ns, size_t *at)
{
	const struct lag_trace *trace = w->rp->trace;
	const struct lag_rank *rank = &trace->ranks[w->r];

	for (; *at < rank->api_end && trace->api[*at].start_ns < before_ns; (*at)++) {
		const struct lag_api *call = &trace->api[*at];
		enum lag_status status;

		if (call->end_ns == LAG_NONE ||
		    call->end_ns - call->start_ns < LAG_REPLAY_LATENCY_NS ||
		    !blocks_host(lag_trace_text(trace, call->name)))
			continue;
		status = lag_replay_add_gate(w, call->start_ns, call->end_ns,
					     lag_replay_last_ended(w, call->end_ns));
		if (lag_failed(status))
			return status;
	}
	return LAG_OK;
}

enum lag_status lag_replay_keep_stalls(struct lag_replay_walk *w)
{
	const struct lag_steps *steps = w->rp->steps;

	for (size_t i = 0; i < w->gaps.n; i++) {
		int64_t at = LAG_VEC_AT(&w->gaps, struct lag_replay_moment, i).at_ns;
		size_t k = lag_replay_until(&w->launched, at - 1);
		struct lag_replay_stall *stall;

		if (k == w->launched.n)
			continue;
		stall = lag_vec_push(&w->rp->stalls);
		if (!stall)
			return LAG_ERR_SYSTEM;
		*stall = (struct lag_replay_stall){
			(uint32_t)w->r,
			steps->of_gpu[LAG_VEC_AT(&w->launched, struct lag_replay_moment, k).node],
			LAG_VEC_AT(&w->stall_sum, int64_t, i) -
				(i ? LAG_VEC_AT(&w->stall_sum, int64_t, i - 1) : 0)
		};
	}
	return LAG_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whose fault a gap without GPU work is. The next work's launch call tells: made before the gap, the
 * gap is none of the host's; made inside it, the host's part begins once nothing held it back. */
#include <stdlib.h>
#include <string.h>

#include "viz/model/ledger_internal.h"

#define RETURNS_BACK 64 /* calls of other threads looked past */

/* Names of host calls that return only when GPU work is done, in CUDA and HIP. */
static bool is_blocking_name(const char *name)
{
	return strstr(name, "Synchronize") || !strcmp(name, "cudaMemcpy") ||
	       !strcmp(name, "hipMemcpy") || !strncmp(name, "cuMemcpyDtoH_v2", 15);
}

static int by_return(const void *a, const void *b)
{
	const struct lag_ledger_return *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static enum lag_status add(struct lag_vec *out, int64_t at_ns, uint64_t tid)
{
	struct lag_ledger_return *item = lag_vec_push(out);

	if (!item)
		return LAG_ERR_SYSTEM;
	*item = (struct lag_ledger_return){ at_ns, tid };
	return LAG_OK;
}

enum lag_status lag_ledger_returns(const struct lag_trace *trace, size_t r, struct lag_vec *out)
{
	const struct lag_rank *rank = &trace->ranks[r];
	enum lag_status status = LAG_OK;

	for (size_t i = rank->api_begin; i < rank->api_end && !lag_failed(status); i++) {
		const struct lag_api *api = &trace->api[i];

		if (api->end_ns != LAG_NONE && is_blocking_name(lag_trace_text(trace, api->name)))
			status = add(out, api->end_ns, api->tid);
	}
	/* Sources without host calls may still tell of synchronisation. */
	for (size_t i = rank->sync_begin;
	     i < rank->sync_end && rank->api_begin == rank->api_end && !lag_failed(status); i++) {
		if (trace->syncs[i].kind >= LAG_SYNC_EVENT && trace->syncs[i].end_ns != LAG_NONE)
			status = add(out, trace->syncs[i].end_ns, 0);
	}
	/* A copy whose call returned after the copy had ended was a blocking one. */
	for (size_t i = rank->gpu_begin; i < rank->gpu_end && !lag_failed(status); i++) {
		const struct lag_gpu_event *ev = &trace->gpu[i];

		if (ev->kind == LAG_GPU_COPY && ev->end_ns != LAG_NONE &&
		    ev->launch_end_ns != LAG_NONE && ev->launch_end_ns >= ev->end_ns)
			status = add(out, ev->launch_end_ns, ev->launch_tid);
	}
	if (out->n)
		qsort(out->items, out->n, out->item_size, by_return);
	return status;
}

/* Latest return before ns of a blocking call of that thread. */
static int64_t last_return(const struct lag_vec *returns, int64_t ns, uint64_t tid)
{
	const struct lag_ledger_return *at = returns->items;
	size_t lo = 0, hi = returns->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (at[mid].at_ns <= ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (size_t back = 0; lo > 0 && back < RETURNS_BACK; back++) {
		lo--;
		if (!tid || !at[lo].tid || at[lo].tid == tid)
			return at[lo].at_ns;
	}
	return LAG_NONE;
}

int64_t lag_ledger_host_part(const struct lag_trace *trace, size_t r, const struct lag_vec *returns,
			     size_t *next, int64_t from_ns, int64_t to_ns)
{
	const struct lag_rank *rank = &trace->ranks[r];
	const struct lag_gpu_event *ev;
	int64_t begin = from_ns, returned;

	while (*next < rank->gpu_end && trace->gpu[*next].start_ns < from_ns)
		(*next)++;
	if (*next >= rank->gpu_end)
		return to_ns;
	ev = &trace->gpu[*next];
	if (ev->launch_start_ns == LAG_NONE)
		return to_ns;
	/* All earlier work has ended where the gap begins, so that what the next work depends on is
	 * met there; what is left is a host that was held in a blocking call. */
	returned = last_return(returns, ev->launch_start_ns, ev->launch_tid);
	if (returned != LAG_NONE && returned > begin)
		begin = returned;
	if (ev->launch_start_ns <= from_ns || begin > to_ns)
		return to_ns;
	return begin;
}

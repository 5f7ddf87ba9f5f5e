/* SPDX-License-Identifier: Apache-2.0 */
/* Looks rows of the clock map up by time. */
#include "viz/model/clock_error.h"

#include <math.h>

#include "viz/model/interval.h"

/* The row of a rank's device in force at a moment; before its first row, that one. NULL without rows. */
static const struct lag_clock_row *clock_row(const struct lag_trace *trace, size_t r, int64_t ns)
{
	const struct lag_rank *rank = &trace->ranks[r];
	size_t lo = rank->clock_begin, hi = rank->clock_end;

	if (lo == hi)
		return NULL;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (trace->clock[mid].at_ns <= ns) {
			lo = mid;
		} else {
			hi = mid;
		}
	}
	return &trace->clock[lo];
}

int64_t lag_trace_error_at(const struct lag_trace *trace, size_t r, int64_t ns)
{
	const struct lag_clock_row *row = clock_row(trace, r, ns);

	if (!row)
		return trace->ranks[r].uncertainty_ns;
	return row->uncertainty_ns == LAG_NONE ? INT64_MAX : row->uncertainty_ns;
}

int64_t lag_trace_own_error_at(const struct lag_trace *trace, size_t r, int64_t ns)
{
	const struct lag_clock_row *row = clock_row(trace, r, ns);

	return row && row->own_ns != LAG_NONE ? row->own_ns : lag_trace_error_at(trace, r, ns);
}

int64_t lag_trace_error_between(const struct lag_trace *trace, size_t a, int64_t a_ns, size_t b,
				int64_t b_ns)
{
	int64_t ua, ub;

	if (a == b)
		return 0;
	/* Ranks of one host share its map: only their devices' conversions differ, and if one is early
	 * among them another is late. Between hosts the two errors are independent. */
	if (trace->ranks[a].host == trace->ranks[b].host) {
		ua = lag_trace_own_error_at(trace, a, a_ns);
		ub = lag_trace_own_error_at(trace, b, b_ns);
		return ua == INT64_MAX || ub == INT64_MAX ? INT64_MAX : lag_ns_add(ua, ub);
	}
	ua = lag_trace_error_at(trace, a, a_ns);
	ub = lag_trace_error_at(trace, b, b_ns);
	if (ua == INT64_MAX || ub == INT64_MAX)
		return INT64_MAX;
	return (int64_t)fmin(hypot((double)ua, (double)ub), 9e18);
}

/* Moves a recorded moment as the host's row says; what cannot be told from nonsense stays. */
static int64_t moved(const struct lag_clock_row *by, int64_t ns)
{
	double add =
		(double)by->offset_ns + by->drift_ppm * 1e-6 * ((double)ns - (double)by->ref_ns);

	return fabs(add) < 9e18 ? lag_ns_add(ns, (int64_t)add) : ns;
}

void lag_clock_place_rows(struct lag_trace *t)
{
	size_t hosts = 0, n_hosts = 0;

	for (size_t i = 0; i < t->n_clock; i++) {
		struct lag_clock_row *row = &t->clock[i];
		const struct lag_clock_row *by = NULL;
		struct lag_rank *rank;

		if (row->device_rank < 0) {
			hosts = n_hosts && t->clock[i - 1].device_rank < 0 &&
						t->clock[i - 1].host == row->host
					? hosts
					: i;
			n_hosts = i + 1 - hosts;
			row->at_ns = moved(row, row->from_ns);
			continue;
		}
		for (size_t k = hosts; k < hosts + n_hosts; k++) {
			if (t->clock[k].host == row->host &&
			    (!by || t->clock[k].from_ns <= row->from_ns))
				by = &t->clock[k];
		}
		row->at_ns = by ? moved(by, row->from_ns) : row->from_ns;
		rank = &t->ranks[row->device_rank];
		rank->clock_begin = rank->clock_end == i && i ? rank->clock_begin : i;
		rank->clock_end = i + 1;
	}
}

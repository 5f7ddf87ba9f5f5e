/* SPDX-License-Identifier: Apache-2.0 */
/* The common window: the latest beginning to the earliest end of all recordings. */
#include "viz/model/window.h"

#include "schema/base/fmt.h"
#include "viz/model/trace.h"

#define TELLS_SHARE 0.05

static int64_t began(const struct lag_rank *rank)
{
	if (rank->started_ns != LAG_NONE && rank->started_ns < rank->first_ns)
		return rank->started_ns;
	return rank->first_ns;
}

struct lag_window lag_window_of(const struct lag_trace *trace)
{
	struct lag_window w = { 0, trace->span_ns, -1, -1, false };
	int32_t n = 0, late = -1, early = -1;

	for (size_t r = 0; r < trace->n_ranks; r++) {
		const struct lag_rank *rank = &trace->ranks[r];

		if (!rank->recorded || rank->first_ns == LAG_NONE)
			continue;
		n++;
		if (late < 0 || began(rank) > began(&trace->ranks[late]))
			late = (int32_t)r;
		if (early < 0 || rank->last_ns < trace->ranks[early].last_ns)
			early = (int32_t)r;
	}
	if (n < 2)
		return w;
	w.late = late;
	w.early = early;
	w.from_ns = began(&trace->ranks[late]);
	w.until_ns = trace->ranks[early].last_ns;
	return w;
}

void lag_window_widen(struct lag_trace *trace)
{
	trace->window = (struct lag_window){ 0, trace->span_ns, -1, -1, true };
}

bool lag_window_tells(const struct lag_trace *trace)
{
	const struct lag_window *w = &trace->window;
	int64_t from = w->from_ns > 0 ? w->from_ns : 0;

	return w->late >= 0 &&
	       (double)(w->until_ns - from) < (1 - TELLS_SHARE) * (double)trace->span_ns;
}

void lag_window_text(const struct lag_trace *trace, struct lag_buf *out)
{
	const struct lag_window *w = &trace->window;
	int64_t from = w->from_ns > 0 ? w->from_ns : 0, until = w->until_ns;
	double least = TELLS_SHARE / 5 * (double)trace->span_ns;

	if (until < from) {
		lag_buf_printf(out,
			       "no time in which all ranks recorded: rank %lld begins when rank "
			       "%lld has ended",
			       (long long)trace->ranks[w->late].rank,
			       (long long)trace->ranks[w->early].rank);
		return;
	}
	lag_buf_puts(out, "common window ");
	lag_fmt_ns(out, until - from);
	lag_buf_puts(out, " of ");
	lag_fmt_ns(out, trace->span_ns);
	if (w->late >= 0 && (double)from > least) {
		lag_buf_printf(out, ": rank %lld begins ", (long long)trace->ranks[w->late].rank);
		lag_fmt_ns(out, from);
		lag_buf_puts(out, " late");
	}
	if (w->early >= 0 && (double)(trace->span_ns - until) > least) {
		lag_buf_printf(out, "%s rank %lld ends ", (double)from > least ? "," : ":",
			       (long long)trace->ranks[w->early].rank);
		lag_fmt_ns(out, trace->span_ns - until);
		lag_buf_puts(out, " early");
	}
}

bool lag_window_holds(const struct lag_trace *trace, const struct lag_comm *comm, int64_t ns)
{
	if (trace->window.all || ns >= trace->window.from_ns)
		return true;
	for (uint32_t m = 0; m < comm->n_members; m++) {
		int32_t r = trace->members[comm->first_member + m].r;

		if (r >= 0 && trace->ranks[r].recorded && trace->ranks[r].first_ns != LAG_NONE &&
		    began(&trace->ranks[r]) > ns)
			return false;
	}
	return true;
}

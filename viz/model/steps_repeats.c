/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without annotations: the sequence of communication calls (or, where that does not tell, of the
 * busiest stream's kernels) repeats once a step. All ranks must find steps of one length. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "schema/base/map.h"
#include "viz/model/steps_internal.h"

#define OPS_MIN     3     /* fewer calls than that are no sequence */
#define SYMBOLS_MAX 20000 /* enough for any period; the search is quadratic in the lag only */
#define SMALL_BYTES 4096  /* messages about messages: a norm, a loss that is logged now and then */
#define ALIKE       1.25  /* ranks of one job take steps of one length */

static uint64_t log2_of(int64_t bytes)
{
	return bytes > 0 ? (uint64_t)(64 - __builtin_clzll((unsigned long long)bytes)) : 0;
}

static bool is_small(const struct lag_op *op)
{
	return op->bytes != LAG_NONE && op->bytes <= SMALL_BYTES;
}

/* Returns how many small ones there are, taken or not. */
static size_t take_ops(const struct lag_trace *trace, const struct lag_rank *rank, bool small,
		       struct lag_step_symbols *s)
{
	size_t n_small = 0;

	s->n = 0;
	for (size_t i = rank->op_begin; i < rank->op_end && s->n < SYMBOLS_MAX; i++) {
		const struct lag_op *op = &trace->ops[i];

		n_small += is_small(op);
		if (is_small(op) && !small)
			continue;
		s->what[s->n] =
			lag_hash_pair(lag_hash_pair(op->func, op->comm),
				      lag_hash_pair(log2_of(op->bytes), (uint64_t)op->peer));
		s->from_ns[s->n] = op->enter_ns;
		s->until_ns[s->n++] = op->leave_ns != LAG_NONE ? op->leave_ns : op->enter_ns;
	}
	return n_small;
}

/* The lane that most kernels of the rank run on: only within a lane their order is the program's. */
static uint32_t busiest_lane(const struct lag_trace *trace, const struct lag_rank *rank)
{
	struct lag_map counts = { 0 };
	uint64_t most = 0;
	uint32_t lane = 0;

	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];
		uint64_t n = 0;

		(void)lag_map_find(&counts, g->lane, &n);
		if (lag_failed(lag_map_set(&counts, g->lane, n + 1)))
			break;
		if (n + 1 > most) {
			most = n + 1;
			lane = g->lane;
		}
	}
	lag_map_release(&counts);
	return lane;
}

static void take_kernels(const struct lag_trace *trace, const struct lag_rank *rank,
			 struct lag_step_symbols *s)
{
	uint32_t lane = busiest_lane(trace, rank);

	s->n = 0;
	for (size_t i = rank->gpu_begin; i < rank->gpu_end && s->n < SYMBOLS_MAX; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];

		if (g->kind != LAG_GPU_KERNEL || g->end_ns == LAG_NONE || g->lane != lane)
			continue;
		s->what[s->n] = g->full;
		s->from_ns[s->n] =
			g->launch_start_ns != LAG_NONE ? g->launch_start_ns : g->start_ns;
		s->until_ns[s->n++] = g->launch_end_ns != LAG_NONE ? g->launch_end_ns : g->end_ns;
	}
}

/* The calls' period, where it is the same with small messages and without them: those may come once a
 * step or once in ten, and which, nothing tells. */
static bool period_of_ops(const struct lag_trace *trace, const struct lag_rank *rank,
			  struct lag_step_symbols *s, void *scratch, struct lag_step_period *out)
{
	struct lag_step_period large;
	double n_large;
	size_t n_small = take_ops(trace, rank, true, s);

	if (s->n < OPS_MIN)
		return false;
	if (n_small > 0 && s->n - n_small >= OPS_MIN) {
		(void)take_ops(trace, rank, false, s);
		if (!lag_steps_find_period(s, scratch, &large))
			return false;
		n_large = (double)s->n / (double)large.symbols;
		(void)take_ops(trace, rank, true, s);
		return lag_steps_find_period(s, scratch, out) &&
		       fabs((double)s->n / (double)out->symbols - n_large) < 1;
	}
	return lag_steps_find_period(s, scratch, out);
}

/* The number of the step that begins at op `first`: the sequence number of its first operation on the
 * widest communicator, in steps. Ranks that began recording at different moments thus agree. */
static int64_t first_number(const struct lag_trace *trace, size_t first, size_t period)
{
	const struct lag_op *anchor = NULL;
	int64_t per_step = 0;

	for (size_t i = first; i < first + period; i++) {
		const struct lag_op *op = &trace->ops[i];

		if (op->seq == LAG_NONE || op->peer >= 0)
			continue;
		if (!anchor || trace->comms[op->comm].n_ranks > trace->comms[anchor->comm].n_ranks)
			anchor = op;
	}
	for (size_t i = first; anchor && i < first + period; i++)
		per_step += trace->ops[i].comm == anchor->comm && trace->ops[i].peer < 0;
	return anchor ? anchor->seq / per_step : 0;
}

/* The step begins with the host's first call after its longest pause between the last communication of
 * one period and the first of the next: a forward may be launched before any communication. */
static int64_t step_start(const struct lag_trace *trace, uint32_t r, int64_t after_ns,
			  int64_t first_ns)
{
	const struct lag_rank *rank = &trace->ranks[r];
	size_t lo = rank->api_begin, hi = rank->api_end;
	int64_t previous = after_ns, longest = -1, start = first_ns;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (trace->api[mid].start_ns < after_ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (; lo < rank->api_end && trace->api[lo].start_ns <= first_ns; lo++) {
		int64_t at = trace->api[lo].start_ns;

		if (at - previous > longest) {
			longest = at - previous;
			start = at;
		}
		previous = at;
	}
	return start;
}

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Starts of the periods that begin at symbols phase, phase + period, ...; n of them. */
static int64_t *step_starts(const struct lag_trace *trace, const struct lag_step_symbols *s,
			    size_t period, size_t phase, uint32_t r, size_t n)
{
	int64_t *starts = lag_calloc(n, 2 * sizeof(*starts)), *ahead = starts + n;
	size_t n_ahead = 0;

	for (size_t k = 0; starts && k < n; k++) {
		size_t i = phase + k * period;

		starts[k] = s->from_ns[i];
		if (i == 0)
			continue;
		starts[k] = step_start(trace, r, s->until_ns[i - 1], s->from_ns[i]);
		ahead[n_ahead++] = s->from_ns[i] - starts[k];
	}
	/* Nothing comes before the first: it begins as far ahead as the others do. */
	if (starts && phase == 0 && n_ahead > 0) {
		qsort(ahead, n_ahead, sizeof(*ahead), by_time);
		starts[0] -= ahead[n_ahead / 2];
	}
	return starts;
}

/* The mean length of what is marked goes to *length_ns. */
static enum lag_status mark_rank(const struct lag_trace *trace, const struct lag_step_symbols *s,
				 const struct lag_step_period *p, int64_t number, uint32_t r,
				 struct lag_vec *marks, double *length_ns)
{
	/* One more start than steps where the last period is followed by a part of one. */
	size_t n = (s->n - p->phase) / p->symbols;
	size_t n_starts = (s->n - p->phase + p->symbols - 1) / p->symbols;
	int64_t *starts = step_starts(trace, s, p->symbols, p->phase, r, n_starts);
	enum lag_status status = starts ? LAG_OK : LAG_ERR_SYSTEM;

	for (size_t k = 0; k < n && !lag_failed(status); k++) {
		struct lag_step_mark *mark = lag_vec_push(marks);
		int64_t until = k + 1 < n_starts ? starts[k + 1] : INT64_MAX;

		if (mark) {
			*mark = (struct lag_step_mark){ number + (int64_t)k, starts[k], until, r };
		} else {
			status = LAG_ERR_SYSTEM;
		}
	}
	if (starts)
		*length_ns = (double)(starts[n_starts - 1] - starts[0]) / (double)(n_starts - 1);
	free(starts);
	return status;
}

/* What was found over all ranks. */
struct found {
	size_t n, n_by_ops, n_sure;
	double shortest_ns, longest_ns;
};

static enum lag_status mark_by_repeats(const struct lag_trace *trace, size_t r,
				       struct lag_step_symbols *s, void *scratch,
				       struct lag_vec *marks, struct found *found)
{
	const struct lag_rank *rank = &trace->ranks[r];
	struct lag_step_period period;
	double length_ns = 0;
	bool by_ops = period_of_ops(trace, rank, s, scratch, &period);
	enum lag_status status;

	if (!by_ops) {
		take_kernels(trace, rank, s);
		if (!lag_steps_find_period(s, scratch, &period))
			return LAG_OK;
	}
	status = mark_rank(
		trace, s, &period,
		by_ops ? first_number(trace, rank->op_begin + period.phase, period.symbols) : 0,
		(uint32_t)r, marks, &length_ns);
	if (found->n == 0 || length_ns < found->shortest_ns)
		found->shortest_ns = length_ns;
	if (length_ns > found->longest_ns)
		found->longest_ns = length_ns;
	found->n++;
	found->n_by_ops += by_ops;
	/* Layers have kernels that repeat within them; a call once in many is a step's, or a job's. */
	found->n_sure += period.marked || (by_ops && period.nested);
	return status;
}

enum lag_status lag_steps_from_repeats(const struct lag_trace *trace, struct lag_vec *marks,
				       char *label, size_t room)
{
	struct lag_step_symbols s = { 0 };
	struct found found = { 0 };
	uint64_t *scratch = lag_calloc(SYMBOLS_MAX, sizeof(*scratch));
	enum lag_status status = LAG_OK;

	s.what = lag_calloc(SYMBOLS_MAX, sizeof(*s.what));
	s.from_ns = lag_calloc(SYMBOLS_MAX, 2 * sizeof(*s.from_ns));
	if (!s.what || !s.from_ns || !scratch) {
		status = LAG_ERR_SYSTEM;
	} else {
		s.until_ns = s.from_ns + SYMBOLS_MAX;
	}
	for (size_t r = 0; r < trace->n_ranks && !lag_failed(status); r++)
		status = mark_by_repeats(trace, r, &s, scratch, marks, &found);
	if (found.longest_ns > ALIKE * found.shortest_ns)
		marks->n = 0;
	if (marks->n) {
		(void)snprintf(label, room, "repetition of the %s sequence, found on %zu rank%s%s",
			       found.n_by_ops == found.n ? "communication"
			       : found.n_by_ops          ? "communication or kernel"
							 : "kernel",
			       found.n, LAG_PLURAL(found.n, "", "s"),
			       found.n_sure == found.n
				       ? ""
				       : "; unsure: it may be a part of a step that repeats");
	}
	free(s.what);
	free(s.from_ns);
	free(scratch);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without annotations: the sequence of communication calls (or, without any, of kernels) repeats
 * once a step. The period is the smallest lag at which 95 % of the symbols equal themselves; the cut
 * between steps is where the rank is silent longest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/base/map.h"
#include "viz/model/steps_internal.h"

#define AGREE       0.95
#define PERIODS_MIN 3     /* fewer is no repetition */
#define SYMBOLS_MAX 20000 /* enough for any period; the search is quadratic in the lag only */
#define LAG_MAX     5000

struct symbols {
	uint64_t *what;
	int64_t *from_ns, *until_ns; /* the call's time on the host, or the kernel's launch */
	size_t n;
};

static uint64_t log2_of(int64_t bytes)
{
	return bytes > 0 ? (uint64_t)(64 - __builtin_clzll((unsigned long long)bytes)) : 0;
}

static void take_ops(const struct lag_trace *trace, const struct lag_rank *rank, struct symbols *s)
{
	for (size_t i = rank->op_begin; i < rank->op_end && s->n < SYMBOLS_MAX; i++) {
		const struct lag_op *op = &trace->ops[i];

		s->what[s->n] =
			lag_hash_pair(lag_hash_pair(op->func, op->comm),
				      lag_hash_pair(log2_of(op->bytes), (uint64_t)op->peer));
		s->from_ns[s->n] = op->enter_ns;
		s->until_ns[s->n++] = op->leave_ns != LAG_NONE ? op->leave_ns : op->enter_ns;
	}
}

static void take_kernels(const struct lag_trace *trace, const struct lag_rank *rank,
			 struct symbols *s)
{
	for (size_t i = rank->gpu_begin; i < rank->gpu_end && s->n < SYMBOLS_MAX; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];

		if (g->kind != LAG_GPU_KERNEL || g->end_ns == LAG_NONE)
			continue;
		s->what[s->n] = lag_hash_pair(g->full, g->lane);
		s->from_ns[s->n] =
			g->launch_start_ns != LAG_NONE ? g->launch_start_ns : g->start_ns;
		s->until_ns[s->n++] = g->launch_end_ns != LAG_NONE ? g->launch_end_ns : g->end_ns;
	}
}

/* Smallest lag with enough agreement, 0 = none. */
static size_t find_period(const struct symbols *s)
{
	for (size_t lag = 1; lag <= LAG_MAX && lag * PERIODS_MIN <= s->n; lag++) {
		size_t same = 0, n = s->n - lag;

		for (size_t i = 0; i < n; i++)
			same += s->what[i] == s->what[i + lag];
		if ((double)same >= AGREE * (double)n)
			return lag;
	}
	return 0;
}

/* Position in the period before which the rank is silent longest, summed over periods. */
static size_t find_phase(const struct symbols *s, size_t period)
{
	size_t best = 0;
	double longest = -1;

	for (size_t phase = 0; phase < period; phase++) {
		double silent = 0;

		for (size_t i = phase ? phase : period; i < s->n; i += period)
			silent += (double)(s->from_ns[i] - s->until_ns[i - 1]);
		if (silent > longest) {
			longest = silent;
			best = phase;
		}
	}
	return best;
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
static int64_t *step_starts(const struct lag_trace *trace, const struct symbols *s, size_t period,
			    size_t phase, uint32_t r, size_t n)
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

static enum lag_status mark_rank(const struct lag_trace *trace, const struct symbols *s,
				 size_t period, size_t phase, int64_t number, uint32_t r,
				 struct lag_vec *marks)
{
	/* One more start than steps where the last period is followed by a part of one. */
	size_t n = (s->n - phase) / period, n_starts = (s->n - phase + period - 1) / period;
	int64_t *starts = step_starts(trace, s, period, phase, r, n_starts);
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
	free(starts);
	return status;
}

enum lag_status lag_steps_from_repeats(const struct lag_trace *trace, struct lag_vec *marks,
				       char *label, size_t room)
{
	struct symbols s = { 0 };
	enum lag_status status = LAG_OK;
	size_t n_found = 0, n_by_ops = 0;

	s.what = lag_calloc(SYMBOLS_MAX, sizeof(*s.what));
	s.from_ns = lag_calloc(SYMBOLS_MAX, 2 * sizeof(*s.from_ns));
	if (!s.what || !s.from_ns) {
		status = LAG_ERR_SYSTEM;
	} else {
		s.until_ns = s.from_ns + SYMBOLS_MAX;
	}
	for (size_t r = 0; r < trace->n_ranks && !lag_failed(status); r++) {
		const struct lag_rank *rank = &trace->ranks[r];
		bool from_ops = rank->op_end - rank->op_begin >= PERIODS_MIN;
		size_t period, phase;

		s.n = 0;
		if (from_ops) {
			take_ops(trace, rank, &s);
		} else {
			take_kernels(trace, rank, &s);
		}
		period = find_period(&s);
		if (!period)
			continue;
		n_found++;
		n_by_ops += from_ops;
		phase = find_phase(&s, period);
		status = mark_rank(trace, &s, period, phase,
				   from_ops ? first_number(trace, rank->op_begin + phase, period)
					    : 0,
				   (uint32_t)r, marks);
	}
	if (n_found) {
		(void)snprintf(label, room, "repetition of the %s sequence, found on %zu rank%s",
			       n_by_ops == n_found ? "communication"
			       : n_by_ops          ? "communication or kernel"
						   : "kernel",
			       n_found, n_found == 1 ? "" : "s");
	}
	free(s.what);
	free(s.from_ns);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the marks of all ranks together: one list of step numbers, each rank's GPU span per step, and
 * the step of every GPU event. */
#include "viz/model/steps.h"
#include "schema/base/fmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/model/interval.h"
#include "viz/model/steps_internal.h"

#define GAP_OF_GPU     "CUPTI" /* the source whose silence means: no GPU work on record */
#define N_WINDOWS      10
#define WINDOW_FROM_NS INT64_C(1000000000) /* shorter traces are not cut into windows */

static int by_number(const void *a, const void *b)
{
	const struct lag_step_mark *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->r != y->r ? (x->r < y->r ? -1 : 1)
			    : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* No annotation and no repetition: equal windows of the time that all ranks recorded, or
 * that time as one step. */
static enum lag_status mark_windows(const struct lag_trace *trace, struct lag_vec *marks,
				    struct lag_steps *out)
{
	const struct lag_window *w = &trace->window;
	bool common = w->until_ns > w->from_ns;
	int64_t from = common && w->from_ns > 0 ? w->from_ns : 0;
	int64_t span = (common ? w->until_ns : trace->span_ns) - from;
	int64_t n = span >= WINDOW_FROM_NS ? N_WINDOWS : 1;
	int64_t width = span / n + 1;

	out->source = n > 1 ? LAG_STEPS_WINDOW : LAG_STEPS_WHOLE;
	if (n > 1) {
		(void)snprintf(out->label, sizeof(out->label), "no step found: %lld %s of %.1f ms",
			       (long long)n, LAG_PLURAL(n, "window", "windows"),
			       (double)width / 1e6);
	} else {
		(void)snprintf(out->label, sizeof(out->label), "no step found: the whole trace");
	}
	for (size_t r = 0; r < trace->n_ranks; r++) {
		for (int64_t k = 0; k < n && trace->ranks[r].recorded; k++) {
			struct lag_step_mark *mark = lag_vec_push(marks);

			if (!mark)
				return LAG_ERR_SYSTEM;
			*mark = (struct lag_step_mark){ k, from + k * width, from + (k + 1) * width,
							(uint32_t)r };
		}
	}
	return LAG_OK;
}

static enum lag_status allocate(const struct lag_trace *trace, const struct lag_vec *marks,
				struct lag_steps *out)
{
	const struct lag_step_mark *m = marks->items;
	size_t n = 0;

	for (size_t i = 0; i < marks->n; i++)
		n += i == 0 || m[i].number != m[i - 1].number;
	out->n_ranks = trace->n_ranks;
	out->steps = lag_calloc(n, sizeof(*out->steps));
	out->spans = lag_calloc(n * trace->n_ranks, sizeof(*out->spans));
	out->of_gpu = lag_calloc(trace->n_gpu, sizeof(*out->of_gpu));
	if (!out->steps || !out->spans || !out->of_gpu)
		return LAG_ERR_SYSTEM;
	out->n_steps = n;
	for (size_t i = 0; i < n * trace->n_ranks; i++) {
		out->spans[i] = (struct lag_step_span){ LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE,
							0,        0,        false };
	}
	for (size_t i = 0; i < trace->n_gpu; i++)
		out->of_gpu[i] = -1;
	return LAG_OK;
}

static void place_marks(const struct lag_vec *marks, struct lag_steps *out)
{
	const struct lag_step_mark *m = marks->items;
	size_t step = 0;

	for (size_t i = 0; i < marks->n; i++) {
		struct lag_step_span *span;

		step += i > 0 && m[i].number != m[i - 1].number;
		out->steps[step].number = m[i].number;
		span = &out->spans[step * out->n_ranks + m[i].r];
		/* A number that occurs twice on a rank (a restarted loop) keeps its first occurrence. */
		if (span->host_start_ns != LAG_NONE)
			continue;
		span->host_start_ns = m[i].from_ns;
		span->host_end_ns = m[i].until_ns;
	}
}

/* Step whose host interval of rank r holds ns; steps of a rank are in time order. */
static int32_t step_at(const struct lag_steps *steps, const int32_t *order, size_t n, size_t r,
		       int64_t ns)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (lag_steps_span(steps, (size_t)order[mid], r)->host_start_ns <= ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo == 0 || ns >= lag_steps_span(steps, (size_t)order[lo - 1], r)->host_end_ns)
		return -1;
	return order[lo - 1];
}

static size_t steps_of_rank(const struct lag_steps *steps, size_t r, int32_t *order)
{
	size_t n = 0;

	for (size_t s = 0; s < steps->n_steps; s++) {
		if (lag_steps_span(steps, s, r)->host_start_ns == LAG_NONE)
			continue;
		/* Numbers may run against time where a loop restarted: keep time order. */
		if (n && lag_steps_span(steps, s, r)->host_start_ns <
				 lag_steps_span(steps, (size_t)order[n - 1], r)->host_end_ns)
			continue;
		order[n++] = (int32_t)s;
	}
	return n;
}

static void note_event(struct lag_step_span *span, size_t i, int64_t end_ns)
{
	if (span->end_ns == LAG_NONE) {
		span->gpu_first = i;
		span->end_ns = end_ns;
	}
	span->gpu_last = i;
	if (end_ns > span->end_ns)
		span->end_ns = end_ns;
}

/* Work whose launch is not on record runs where it runs: it is placed by its own start. */
static void place_events(const struct lag_trace *trace, struct lag_steps *out, size_t r,
			 const int32_t *order, size_t n)
{
	const struct lag_rank *rank = &trace->ranks[r];
	bool any_launch = false;

	for (size_t i = rank->gpu_begin; i < rank->gpu_end && !any_launch; i++)
		any_launch = trace->gpu[i].launch_start_ns != LAG_NONE;
	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		const struct lag_gpu_event *g = &trace->gpu[i];
		struct lag_step_span *span;
		int64_t at = g->launch_start_ns;

		if (at == LAG_NONE && any_launch && out->source != LAG_STEPS_WHOLE)
			continue;
		if (at == LAG_NONE || out->source >= LAG_STEPS_WINDOW)
			at = g->start_ns;
		out->of_gpu[i] = step_at(out, order, n, r, at);
		if (out->of_gpu[i] < 0)
			continue;
		span = &out->spans[(size_t)out->of_gpu[i] * out->n_ranks + r];
		if (g->end_ns != LAG_NONE) {
			note_event(span, i, g->end_ns);
		} else {
			span->cut = true;
		}
	}
}

/* Times in which no GPU work of rank r was recorded though there may have been some. */
static enum lag_status silences(const struct lag_trace *trace, size_t r, struct lag_intervals *out)
{
	enum lag_status status = LAG_OK;

	for (size_t i = 0; i < trace->n_gaps && !lag_failed(status); i++) {
		const struct lag_gap_row *gap = &trace->gaps[i];

		if (gap->rank != trace->ranks[r].rank || gap->from_ns == LAG_NONE ||
		    strcmp(gap->what, GAP_OF_GPU) != 0)
			continue;
		status = lag_intervals_add(out, gap->from_ns,
					   gap->until_ns == LAG_NONE ? INT64_MAX : gap->until_ns);
	}
	lag_intervals_normalize(out);
	return status;
}

/* Steps that are not on record as a whole: what is there of them says too little. The last step of a
 * rank that was ended from outside may lack what its buffers still held. */
static enum lag_status mark_cut(const struct lag_trace *trace, struct lag_steps *out, size_t r)
{
	struct lag_step_span *last = NULL;
	struct lag_intervals silent = { 0 };
	enum lag_status status = silences(trace, r, &silent);

	for (size_t s = 0; s < out->n_steps && out->source < LAG_STEPS_WINDOW; s++) {
		struct lag_step_span *span = &out->spans[s * out->n_ranks + r];

		if (span->start_ns == LAG_NONE)
			continue;
		if (!last || span->end_ns > last->end_ns)
			last = span;
		if (silent.n && lag_intervals_length_in(&silent, span->start_ns, span->end_ns) > 0)
			span->cut = true;
	}
	if (last && trace->ranks[r].clean_exit == 0)
		last->cut = true;
	lag_intervals_release(&silent);
	return status;
}

/* Steps tile the rank's time: each begins where the previous one's last GPU work ended; the first, and
 * one whose predecessor by number is not on record, with its host range (or, launched ahead, with its
 * first GPU work). */
static void tile(const struct lag_trace *trace, struct lag_steps *out, size_t r,
		 const int32_t *order, size_t n)
{
	int64_t previous = LAG_NONE;
	int32_t previous_step = -2;

	for (size_t k = 0; k < n; k++) {
		struct lag_step_span *span = &out->spans[(size_t)order[k] * out->n_ranks + r];

		if (span->end_ns == LAG_NONE)
			continue;
		if (previous != LAG_NONE && previous_step == order[k] - 1 &&
		    out->steps[order[k]].number == out->steps[previous_step].number + 1) {
			span->start_ns = previous;
		} else {
			span->start_ns = trace->gpu[span->gpu_first].start_ns;
			if (out->source < LAG_STEPS_WINDOW && span->host_start_ns < span->start_ns)
				span->start_ns = span->host_start_ns;
		}
		if (span->end_ns < span->start_ns)
			span->end_ns = span->start_ns;
		previous = span->end_ns;
		previous_step = order[k];
	}
}

static void sum_up(const struct lag_trace *trace, struct lag_steps *out)
{
	for (size_t s = 0; s < out->n_steps; s++) {
		struct lag_step *step = &out->steps[s];

		step->start_ns = step->end_ns = LAG_NONE;
		step->complete = true;
		for (size_t r = 0; r < out->n_ranks; r++) {
			const struct lag_step_span *span = lag_steps_span(out, s, r);

			if (span->end_ns == LAG_NONE) {
				step->complete = step->complete && !trace->ranks[r].recorded;
				continue;
			}
			step->complete = step->complete && !span->cut;
			if (step->start_ns == LAG_NONE || span->start_ns < step->start_ns)
				step->start_ns = span->start_ns;
			if (step->end_ns == LAG_NONE || span->end_ns > step->end_ns)
				step->end_ns = span->end_ns;
		}
	}
}

/* A step that no rank has finished GPU work in is none, and what still ran in it is in no step. `place`
 * has room for an index a step. */
static void drop_empty(struct lag_steps *out, const struct lag_trace *trace, int32_t *place)
{
	size_t kept = 0;

	for (size_t s = 0; s < out->n_steps; s++) {
		place[s] = -1;
		if (out->steps[s].start_ns == LAG_NONE)
			continue;
		if (kept != s) {
			out->steps[kept] = out->steps[s];
			memcpy(&out->spans[kept * out->n_ranks], &out->spans[s * out->n_ranks],
			       out->n_ranks * sizeof(*out->spans));
		}
		place[s] = (int32_t)kept++;
	}
	for (size_t i = 0; i < trace->n_gpu && kept < out->n_steps; i++) {
		if (out->of_gpu[i] >= 0)
			out->of_gpu[i] = place[out->of_gpu[i]];
	}
	out->n_steps = kept;
}

/* The user's annotation marks nothing: whatever stands for steps now is not what was asked for. */
static void say_missed(const char *step_by, struct lag_steps *out)
{
	char found[sizeof(out->label)];

	out->given_missed = true;
	(void)snprintf(found, sizeof(found), "%s", out->label);
	(void)snprintf(out->label, sizeof(out->label),
		       "no annotation begins with \"%.60s\"; %.150s", step_by, found);
}

static enum lag_status find_marks(const struct lag_trace *trace, const char *step_by,
				  struct lag_vec *marks, struct lag_steps *out)
{
	enum lag_status status;

	out->source = LAG_STEPS_RANGE;
	status = lag_steps_from_ranges(trace, step_by, marks, out->label, sizeof(out->label));
	if (!lag_failed(status) && marks->n == 0) {
		out->source = LAG_STEPS_REPEAT;
		status = lag_steps_from_repeats(trace, marks, out->label, sizeof(out->label));
	}
	if (!lag_failed(status) && marks->n == 0)
		status = mark_windows(trace, marks, out);
	if (step_by && out->source != LAG_STEPS_RANGE)
		say_missed(step_by, out);
	return status;
}

enum lag_status lag_steps_find(const struct lag_trace *trace, const char *step_by,
			       struct lag_steps *out, struct lag_err *err)
{
	struct lag_vec marks = LAG_VEC_INIT(struct lag_step_mark);
	int32_t *order = NULL;
	enum lag_status status;

	*out = (struct lag_steps){ 0 };
	status = find_marks(trace, step_by, &marks, out);
	if (!lag_failed(status)) {
		if (marks.n)
			qsort(marks.items, marks.n, sizeof(struct lag_step_mark), by_number);
		status = allocate(trace, &marks, out);
	}
	if (!lag_failed(status))
		order = lag_calloc(out->n_steps, sizeof(*order));
	if (lag_failed(status) || !order) {
		lag_vec_release(&marks);
		lag_steps_release(out);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the steps");
	}
	place_marks(&marks, out);
	lag_vec_release(&marks);
	for (size_t r = 0; r < trace->n_ranks && !lag_failed(status); r++) {
		size_t n = steps_of_rank(out, r, order);

		place_events(trace, out, r, order, n);
		tile(trace, out, r, order, n);
		status = mark_cut(trace, out, r);
	}
	if (!lag_failed(status))
		status = lag_steps_cut_edges(trace, out);
	if (!lag_failed(status)) {
		sum_up(trace, out);
		drop_empty(out, trace, order);
	}
	free(order);
	if (lag_failed(status)) {
		lag_steps_release(out);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the steps");
	}
	return LAG_OK;
}

void lag_steps_release(struct lag_steps *steps)
{
	free(steps->steps);
	free(steps->spans);
	free(steps->of_gpu);
	*steps = (struct lag_steps){ 0 };
}

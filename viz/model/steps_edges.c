/* SPDX-License-Identifier: Apache-2.0 */
/* The first and last step of a rank whose recording began late or ended early hold a part of it only: a
 * rank must not look fast because less of it is on record. */
#include <stdlib.h>

#include "viz/model/steps_internal.h"

#define FEWER_SHARE 0.95 /* of the events that the rank's other steps have */
#define APART_SHARE \
	0.05 /* of the step: how much earlier (later) than all others it ends (begins) */
#define OTHERS_MIN 2

static int by_count(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Median number of GPU events of rank r's steps but for `step`; 0: too few to tell. */
static size_t usual_count(const struct lag_steps *steps, const size_t *counts, size_t r,
			  size_t step, size_t *scratch)
{
	size_t n = 0;

	for (size_t s = 0; s < steps->n_steps; s++) {
		size_t count = counts[s * steps->n_ranks + r];

		if (s != step && count)
			scratch[n++] = count;
	}
	if (n < OTHERS_MIN)
		return 0;
	qsort(scratch, n, sizeof(*scratch), by_count);
	return scratch[n / 2];
}

/* How much earlier rank r ends the step than the one that ends it last (first: begins it later than the
 * one that begins first). */
static int64_t apart(const struct lag_steps *steps, size_t step, size_t r, bool first,
		     int64_t *length)
{
	const struct lag_step_span *own = lag_steps_span(steps, step, r);
	int64_t from = own->start_ns, until = own->end_ns;

	for (size_t k = 0; k < steps->n_ranks; k++) {
		const struct lag_step_span *span = lag_steps_span(steps, step, k);

		if (span->end_ns == LAG_NONE)
			continue;
		from = span->start_ns < from ? span->start_ns : from;
		until = span->end_ns > until ? span->end_ns : until;
	}
	*length = until - from;
	return first ? own->start_ns - from : until - own->end_ns;
}

static void check(struct lag_steps *steps, const size_t *counts, size_t r, size_t step, bool first,
		  size_t *scratch)
{
	size_t usual = usual_count(steps, counts, r, step, scratch);
	int64_t length, by = apart(steps, step, r, first, &length);

	if (usual && (double)counts[step * steps->n_ranks + r] < FEWER_SHARE * (double)usual &&
	    (double)by > APART_SHARE * (double)length)
		steps->spans[step * steps->n_ranks + r].cut = true;
}

static void check_rank(struct lag_steps *steps, const size_t *counts, size_t r, size_t *scratch)
{
	size_t first = steps->n_steps, last = steps->n_steps;

	for (size_t s = 0; s < steps->n_steps; s++) {
		const struct lag_step_span *span = lag_steps_span(steps, s, r);

		if (span->end_ns == LAG_NONE)
			continue;
		if (first == steps->n_steps ||
		    span->start_ns < lag_steps_span(steps, first, r)->start_ns)
			first = s;
		if (last == steps->n_steps || span->end_ns > lag_steps_span(steps, last, r)->end_ns)
			last = s;
	}
	if (first == steps->n_steps || first == last)
		return;
	check(steps, counts, r, first, true, scratch);
	check(steps, counts, r, last, false, scratch);
}

enum lag_status lag_steps_cut_edges(const struct lag_trace *trace, struct lag_steps *steps)
{
	size_t n = steps->n_steps * steps->n_ranks;
	size_t *counts, *scratch;

	if (trace->window.all || steps->n_ranks < 2 || steps->source >= LAG_STEPS_WINDOW)
		return LAG_OK;
	counts = lag_calloc(n, sizeof(*counts));
	scratch = lag_calloc(steps->n_steps, sizeof(*scratch));
	if (counts && scratch) {
		for (size_t i = 0; i < trace->n_gpu; i++) {
			if (steps->of_gpu[i] >= 0) {
				counts[(size_t)steps->of_gpu[i] * steps->n_ranks +
				       trace->gpu[i].r]++;
			}
		}
		for (size_t r = 0; r < steps->n_ranks; r++)
			check_rank(steps, counts, r, scratch);
	}
	free(scratch);
	free(counts);
	return counts && scratch ? LAG_OK : LAG_ERR_SYSTEM;
}

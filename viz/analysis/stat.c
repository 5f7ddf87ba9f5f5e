/* SPDX-License-Identifier: Apache-2.0 */
/* Samples are sorted once, when a quantile is first asked for. */
#include "viz/analysis/stat.h"

#include <math.h>
#include <stdlib.h>

enum lag_status lag_sample_add(struct lag_sample *sample, int64_t value)
{
	if (sample->n == sample->cap) {
		size_t cap = sample->cap + sample->cap / 2 + 16;
		int64_t *at = realloc(sample->at, cap * sizeof(*at));

		if (!at)
			return LAG_ERR_SYSTEM;
		sample->at = at;
		sample->cap = cap;
	}
	sample->at[sample->n++] = value;
	sample->sorted = false;
	return LAG_OK;
}

void lag_sample_release(struct lag_sample *sample)
{
	free(sample->at);
	*sample = (struct lag_sample){ 0 };
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int64_t lag_sample_quantile(struct lag_sample *sample, double q)
{
	size_t at;

	if (!sample->n)
		return LAG_NONE;
	if (!sample->sorted)
		qsort(sample->at, sample->n, sizeof(*sample->at), by_value);
	sample->sorted = true;
	at = (size_t)fmax(0, ceil(q * (double)sample->n) - 1);
	return sample->at[at < sample->n ? at : sample->n - 1];
}

int64_t lag_sample_mean(const struct lag_sample *sample)
{
	double sum = 0;

	if (!sample->n)
		return LAG_NONE;
	for (size_t i = 0; i < sample->n; i++)
		sum += (double)sample->at[i];
	return (int64_t)llround(sum / (double)sample->n);
}

static int by_real(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double lag_median_real(double *at, size_t n)
{
	if (!n)
		return NAN;
	qsort(at, n, sizeof(*at), by_real);
	return n % 2 ? at[n / 2] : (at[n / 2 - 1] + at[n / 2]) / 2;
}

/* ctx NULL: of all steps. */
static enum lag_status choose(const struct lag_context *ctx, const struct lag_steps *steps,
			      bool **counts, size_t *n, struct lag_err *err)
{
	*n = 0;
	*counts = lag_calloc(steps->n_steps, sizeof(**counts));
	if (!*counts)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	for (size_t s = 0; s < steps->n_steps; s++) {
		(*counts)[s] = steps->steps[s].complete &&
			       (!ctx || lag_context_has_step(ctx, steps->steps[s].number));
		*n += (*counts)[s];
	}
	for (size_t s = 0, whole = *n; !whole && s < steps->n_steps; s++) {
		(*counts)[s] = !ctx || lag_context_has_step(ctx, steps->steps[s].number);
		*n += (*counts)[s];
	}
	return LAG_OK;
}

enum lag_status lag_steps_chosen(const struct lag_context *ctx, const struct lag_steps *steps,
				 bool **counts, size_t *n, struct lag_err *err)
{
	return choose(ctx, steps, counts, n, err);
}

enum lag_status lag_steps_whole(const struct lag_steps *steps, bool **counts, size_t *n,
				struct lag_err *err)
{
	return choose(NULL, steps, counts, n, err);
}

bool lag_covers_gpu(const struct lag_context *ctx, const struct lag_steps *steps, size_t gpu)
{
	int32_t step;

	if (lag_context_has_all_steps(ctx))
		return true;
	step = steps->of_gpu[gpu];
	return step >= 0 && lag_context_has_step(ctx, steps->steps[step].number);
}

bool lag_covers_launch(const struct lag_context *ctx, const struct lag_steps *steps, size_t launch)
{
	int32_t gpu = lag_context_trace(ctx)->launches[launch].gpu;

	return lag_context_has_all_steps(ctx) ||
	       (gpu >= 0 && lag_covers_gpu(ctx, steps, (size_t)gpu));
}

int64_t lag_step_length(const struct lag_steps *steps, size_t step)
{
	double sum = 0;
	size_t n = 0;

	for (size_t r = 0; r < steps->n_ranks; r++) {
		const struct lag_step_span *span = lag_steps_span(steps, step, r);

		if (span->start_ns == LAG_NONE)
			continue;
		sum += (double)(span->end_ns - span->start_ns);
		n++;
	}
	return n ? (int64_t)llround(sum / (double)n) : LAG_NONE;
}

void lag_note_losses(const struct lag_context *ctx, struct lag_table *out)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	uint64_t n_records = 0;
	size_t n_ranks = 0;

	for (size_t r = 0; r < t->n_ranks; r++) {
		n_records += t->ranks[r].lost;
		n_ranks += t->ranks[r].lost > 0;
	}
	if (n_ranks) {
		lag_table_note(out,
			       "%zu ranks lost %llu records: their work is more than what is shown",
			       n_ranks, (unsigned long long)n_records);
	}
}

int64_t lag_unsplit_ns(const struct lag_steps *steps, const struct lag_waits *waits,
		       const struct lag_ledger *ledger, const bool *counts, size_t r)
{
	int64_t sum = 0;

	for (size_t step = 0; step < steps->n_steps; step++) {
		const struct lag_step_span *span = lag_steps_span(steps, step, r);

		if (!counts[step] || span->start_ns == LAG_NONE)
			continue;
		for (size_t i = lag_ledger_find(ledger, r, span->start_ns);
		     i < ledger->first[r + 1] && ledger->slices[i].start_ns < span->end_ns; i++) {
			const struct lag_time_slice *s = &ledger->slices[i];

			if (s->class == LAG_TIME_EXPOSED_TRANSFER &&
			    (s->launch < 0 || waits->launch[s->launch].transfer_ns == LAG_NONE))
				sum += lag_time_slice_in(s, span->start_ns, span->end_ns);
		}
	}
	return sum;
}

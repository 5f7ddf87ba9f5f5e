/* SPDX-License-Identifier: Apache-2.0 */
/* The period of a sequence of symbols that repeats once a step, where it is cut, and whether anything
 * tells a step from a smaller thing that repeats as well: a layer, a microbatch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/model/peers.h"
#include "viz/model/steps_internal.h"

#define AGREE       0.95
#define PERIODS_MIN 3 /* fewer is no repetition */
#define LAG_MAX     5000
#define LONGER      3 /* a silence this many times the usual one is another kind of silence */
#define WITHIN_MIN  4 /* what occurs so often in a period repeats within it */
#define MARKED      0.75

static size_t differ(const struct lag_step_symbols *s, size_t lag)
{
	size_t n = 0;

	for (size_t i = lag; i < s->n; i++)
		n += s->what[i] != s->what[i - lag];
	return n;
}

/* Layers repeat inside a step and agree with themselves nearly everywhere but at its ends. So a longer
 * lag is the period when it explains at least one difference in each of its periods, and more than
 * chance would. */
static size_t find_lag(const struct lag_step_symbols *s)
{
	size_t best = 0;
	double left = 0; /* differences per comparison at the best lag */

	for (size_t lag = 1; lag <= LAG_MAX && lag * PERIODS_MIN <= s->n; lag++) {
		double n = (double)(s->n - lag), bad = (double)differ(s, lag);
		double periods = (double)s->n / (double)lag, gain = left * n - bad;

		if (bad > (1 - AGREE) * n)
			continue;
		if (best && gain < fmax(periods - 1, 3 * sqrt(bad + 1)))
			continue;
		best = lag;
		left = bad / n;
	}
	return best;
}

static double silence_before(const struct lag_step_symbols *s, size_t i)
{
	return (double)(s->from_ns[i] - s->until_ns[i - 1]);
}

/* Position in the period before which the rank is silent longest, summed over periods. */
static size_t find_phase(const struct lag_step_symbols *s, size_t period)
{
	size_t best = 0;
	double longest = -INFINITY;

	for (size_t phase = 0; phase < period; phase++) {
		double silent = 0;

		for (size_t i = phase ? phase : period; i < s->n; i += period)
			silent += silence_before(s, i);
		if (silent > longest) {
			longest = silent;
			best = phase;
		}
	}
	return best;
}

/* Where every m-th silence between periods is of another kind than the rest, m periods are a step.
 * Silences: scratch for one a period. */
static void group_by_silence(const struct lag_step_symbols *s, struct lag_step_period *p,
			     double *silences)
{
	size_t n = 0, first = 0, previous = 0, every = 0;
	double usual;

	for (size_t i = p->phase ? p->phase : p->symbols; i < s->n; i += p->symbols)
		silences[n++] = silence_before(s, i);
	if (n < (size_t)2 * PERIODS_MIN)
		return;
	usual = fmax(lag_median(silences, n), 1);
	for (size_t i = p->phase ? p->phase : p->symbols; i < s->n; i += p->symbols) {
		if (silence_before(s, i) < LONGER * usual)
			continue;
		if (!previous) {
			first = i;
		} else if (!every) {
			every = i - previous;
		} else if (i - previous != every) {
			return;
		}
		previous = i;
	}
	if (every <= p->symbols || first > every || s->n - previous > every ||
	    every * PERIODS_MIN > s->n)
		return;
	p->symbols = every;
	p->phase = first % every;
}

static int by_symbol(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How often the rarest and the commonest symbol occur in a period. False when some recur, but not in
 * every period: then it is not the whole cycle. */
static bool count_within(const struct lag_step_symbols *s, size_t period, uint64_t *sorted,
			 double *fewest, double *most)
{
	double periods = (double)s->n / (double)period;

	memcpy(sorted, s->what, s->n * sizeof(*sorted));
	qsort(sorted, s->n, sizeof(*sorted), by_symbol);
	*fewest = INFINITY;
	*most = 0;
	for (size_t i = 0, end; i < s->n; i = end) {
		double each;

		for (end = i + 1; end < s->n && sorted[end] == sorted[i];)
			end++;
		each = (double)(end - i) / periods;
		if (end - i >= 2 && each < 0.5)
			return false;
		if (each < 0.5)
			continue; /* once, as at the start of a job */
		*fewest = fmin(*fewest, each);
		*most = fmax(*most, each);
	}
	return true;
}

/* Is the silence at the cut longer than any other in its period, nearly always? */
static bool cut_is_marked(const struct lag_step_symbols *s, const struct lag_step_period *p)
{
	size_t n = 0, marked = 0;

	for (size_t i = p->phase ? p->phase : p->symbols; i + p->symbols <= s->n; i += p->symbols) {
		double longest = 1;

		for (size_t k = i + 1; k < i + p->symbols; k++)
			longest = fmax(longest, silence_before(s, k));
		marked += p->symbols > 1 && silence_before(s, i) > 1.5 * longest;
		n++;
	}
	return n > 0 && (double)marked >= MARKED * (double)n;
}

bool lag_steps_find_period(const struct lag_step_symbols *s, void *scratch,
			   struct lag_step_period *out)
{
	double fewest, most;

	*out = (struct lag_step_period){ .symbols = find_lag(s) };
	if (!out->symbols)
		return false;
	out->phase = find_phase(s, out->symbols);
	group_by_silence(s, out, scratch);
	if (!count_within(s, out->symbols, scratch, &fewest, &most))
		return false;
	out->marked = cut_is_marked(s, out);
	out->nested = fewest < 1.5 && most >= WITHIN_MIN;
	/* One symbol over and over says nothing of steps. */
	return out->symbols > 1;
}

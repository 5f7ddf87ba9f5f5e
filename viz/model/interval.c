/* SPDX-License-Identifier: Apache-2.0 */
/* Interval sets: sorting is skipped where the input already is in order, which is the usual case for
 * events read by start, so that building a set stays linear. */
#include "viz/model/interval.h"

#include <stdlib.h>

enum lag_status lag_intervals_add(struct lag_intervals *set, int64_t start_ns, int64_t end_ns)
{
	struct lag_interval *at;
	size_t cap;

	if (end_ns <= start_ns)
		return LAG_OK;
	if (set->n && start_ns >= set->at[set->n - 1].start_ns &&
	    start_ns <= set->at[set->n - 1].end_ns) {
		if (end_ns > set->at[set->n - 1].end_ns)
			set->at[set->n - 1].end_ns = end_ns;
		return LAG_OK;
	}
	if (set->n == set->cap) {
		cap = set->cap + set->cap / 2 + 16;
		if (cap > SIZE_MAX / sizeof(*at))
			return LAG_ERR_LIMIT;
		at = realloc(set->at, cap * sizeof(*at));
		if (!at)
			return LAG_ERR_SYSTEM;
		set->at = at;
		set->cap = cap;
	}
	set->at[set->n++] = (struct lag_interval){ start_ns, end_ns };
	return LAG_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct lag_interval *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void lag_intervals_normalize(struct lag_intervals *set)
{
	size_t i, n = 0;

	for (i = 1; i < set->n; i++) {
		if (set->at[i].start_ns < set->at[i - 1].start_ns)
			break;
	}
	if (i < set->n)
		qsort(set->at, set->n, sizeof(*set->at), by_start);
	for (i = 0; i < set->n; i++) {
		if (n && set->at[i].start_ns <= set->at[n - 1].end_ns) {
			if (set->at[i].end_ns > set->at[n - 1].end_ns)
				set->at[n - 1].end_ns = set->at[i].end_ns;
		} else {
			set->at[n++] = set->at[i];
		}
	}
	set->n = n;
}

void lag_intervals_release(struct lag_intervals *set)
{
	free(set->at);
	*set = (struct lag_intervals){ 0 };
}

int64_t lag_intervals_length(const struct lag_intervals *set)
{
	int64_t sum = 0;

	for (size_t i = 0; i < set->n; i++)
		sum += set->at[i].end_ns - set->at[i].start_ns;
	return sum;
}

/* First interval that ends after ns. */
static size_t first_after(const struct lag_intervals *set, int64_t ns)
{
	size_t lo = 0, hi = set->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (set->at[mid].end_ns <= ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

int64_t lag_intervals_length_in(const struct lag_intervals *set, int64_t from, int64_t to)
{
	int64_t sum = 0;

	for (size_t i = first_after(set, from); i < set->n && set->at[i].start_ns < to; i++) {
		int64_t a = set->at[i].start_ns > from ? set->at[i].start_ns : from;
		int64_t b = set->at[i].end_ns < to ? set->at[i].end_ns : to;

		if (b > a)
			sum += b - a;
	}
	return sum;
}

enum lag_status lag_intervals_subtract(const struct lag_intervals *a, const struct lag_intervals *b,
				       struct lag_intervals *out)
{
	enum lag_status status = LAG_OK;
	size_t j = 0;

	out->n = 0;
	for (size_t i = 0; i < a->n; i++) {
		int64_t at = a->at[i].start_ns;

		while (j < b->n && b->at[j].end_ns <= at)
			j++;
		for (size_t k = j; k < b->n && b->at[k].start_ns < a->at[i].end_ns; k++) {
			status = lag_intervals_add(out, at, b->at[k].start_ns);
			if (lag_failed(status))
				return status;
			at = b->at[k].end_ns;
		}
		status = lag_intervals_add(out, at, a->at[i].end_ns);
		if (lag_failed(status))
			return status;
	}
	return status;
}

enum lag_status lag_intervals_intersect(const struct lag_intervals *a,
					const struct lag_intervals *b, struct lag_intervals *out)
{
	size_t i = 0, j = 0;

	out->n = 0;
	while (i < a->n && j < b->n) {
		int64_t from = a->at[i].start_ns > b->at[j].start_ns ? a->at[i].start_ns
								     : b->at[j].start_ns;
		int64_t to = a->at[i].end_ns < b->at[j].end_ns ? a->at[i].end_ns : b->at[j].end_ns;
		enum lag_status status = lag_intervals_add(out, from, to);

		if (lag_failed(status))
			return status;
		if (a->at[i].end_ns < b->at[j].end_ns) {
			i++;
		} else {
			j++;
		}
	}
	return LAG_OK;
}

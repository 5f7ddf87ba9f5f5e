/* SPDX-License-Identifier: Apache-2.0 */
/* Insertion while few items are out of place by little; then merges of the runs that are there. */
#include "schema/base/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Places by which insertion may move what is in its way, for each item, before merging is cheaper. */
#define MOVES_PER_ITEM 8
#define MOVES_MIN      1024
/* Shorter runs are made this long by insertion. */
#define RUN_MIN    32
#define ITEM_BYTES 256

struct sorter {
	char *at, *other; /* items, and as much scratch */
	size_t n, size;
	lag_compare *compare;
	void *state;
	struct lag_vec runs; /* size_t: where each begins */
};

static char *item(const struct sorter *s, size_t i)
{
	return s->at + i * s->size;
}

static int compare(const struct sorter *s, size_t i, size_t k)
{
	return s->compare(item(s, i), item(s, k), s->state);
}

/* Moves item i down among the sorted [from, i); returns by how many places. */
static size_t insert(struct sorter *s, size_t from, size_t i)
{
	char held[ITEM_BYTES];
	size_t step = 1, lo, hi = i - 1;

	/* It belongs before hi; most often not far. */
	while (hi >= from + step && compare(s, hi - step, i) > 0) {
		hi -= step;
		step *= 2;
	}
	lo = hi >= from + step ? hi - step + 1 : from;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare(s, mid, i) > 0) {
			hi = mid;
		} else {
			lo = mid + 1;
		}
	}
	memcpy(held, item(s, i), s->size);
	memmove(item(s, hi + 1), item(s, hi), (i - hi) * s->size);
	memcpy(item(s, hi), held, s->size);
	return i - hi;
}

/* True when all is sorted. */
static bool fix_up(struct sorter *s)
{
	size_t budget = s->n * MOVES_PER_ITEM + MOVES_MIN;

	for (size_t i = 1; i < s->n; i++) {
		size_t moved;

		if (compare(s, i - 1, i) <= 0)
			continue;
		moved = insert(s, 0, i);
		if (moved > budget)
			return false;
		budget -= moved;
	}
	return true;
}

static enum lag_status find_runs(struct sorter *s)
{
	for (size_t i = 0, end; i < s->n; i = end) {
		size_t *start = lag_vec_push(&s->runs);

		if (!start)
			return LAG_ERR_SYSTEM;
		*start = i;
		for (end = i + 1; end < s->n; end++) {
			if (compare(s, end - 1, end) <= 0)
				continue;
			if (end - i >= RUN_MIN)
				break;
			(void)insert(s, i, end);
		}
	}
	return LAG_OK;
}

/* [a, b) and [b, c) of at become [a, c) of other. */
static void merge_two(struct sorter *s, size_t a, size_t b, size_t c)
{
	char *out = s->other + a * s->size;
	size_t i = a, k = b;

	while (i < b && k < c) {
		size_t from = compare(s, i, k) <= 0 ? i++ : k++;

		memcpy(out, item(s, from), s->size);
		out += s->size;
	}
	memcpy(out, item(s, i), (b - i) * s->size);
	memcpy(out + (b - i) * s->size, item(s, k), (c - k) * s->size);
}

static size_t run_end(const struct sorter *s, size_t run)
{
	return run + 1 < s->runs.n ? LAG_VEC_AT(&s->runs, size_t, run + 1) : s->n;
}

static void merge_all(struct sorter *s)
{
	while (s->runs.n > 1) {
		size_t kept = 0;
		char *swap = s->at;

		for (size_t r = 0; r < s->runs.n; r += 2) {
			size_t a = LAG_VEC_AT(&s->runs, size_t, r), b = run_end(s, r);
			size_t c = r + 1 < s->runs.n ? run_end(s, r + 1) : b;

			merge_two(s, a, b, c);
			LAG_VEC_AT(&s->runs, size_t, kept++) = a;
		}
		s->runs.n = kept;
		s->at = s->other;
		s->other = swap;
	}
}

enum lag_status lag_sort(void *items, size_t n, size_t size, lag_compare *order, void *state,
			 struct lag_vec *scratch)
{
	struct sorter s = { .at = items, .n = n, .size = size, .compare = order, .state = state };
	struct lag_vec own = { .item_size = 1, .max = SIZE_MAX };
	struct lag_vec *room = scratch ? scratch : &own;
	enum lag_status st;

	if (size > ITEM_BYTES)
		return LAG_ERR_USAGE;
	if (n < 2 || fix_up(&s))
		return LAG_OK;
	s.runs = (struct lag_vec)LAG_VEC_INIT(size_t);
	room->n = 0;
	st = lag_vec_reserve(room, (n * size + room->item_size - 1) / room->item_size);
	if (st == LAG_OK)
		st = find_runs(&s);
	if (st == LAG_OK) {
		s.other = room->items;
		merge_all(&s);
		if (s.at != items)
			memcpy(items, s.at, n * size);
	}
	lag_vec_release(&s.runs);
	lag_vec_release(&own);
	return st == LAG_OK ? st : LAG_ERR_SYSTEM;
}

enum lag_status lag_vec_sort(struct lag_vec *vec, lag_compare *order, void *state)
{
	struct lag_vec scratch = { .item_size = 1, .max = SIZE_MAX, .spill = vec->spill };
	enum lag_status st = lag_sort(vec->items, vec->n, vec->item_size, order, state, &scratch);

	lag_vec_release(&scratch);
	return st;
}

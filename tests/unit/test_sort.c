/* SPDX-License-Identifier: Apache-2.0 */
/* The sort is stable and complete for every kind of order, and keeps to its item size. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/sort.h"

struct item {
	int64_t key;
	uint32_t place, check;
};

static int by_key(const void *left, const void *right, void *state)
{
	const struct item *a = left, *b = right;

	++*(size_t *)state;
	return a->key < b->key ? -1 : a->key > b->key;
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* The shape of disorder that a producer makes. */
static int64_t key_of(int shape, size_t i, size_t n, uint64_t *seed)
{
	switch (shape) {
	case 0:
		return (int64_t)i;
	case 1:
		return (int64_t)(n - i);
	case 2:
		return (int64_t)(next(seed) % (n + 1));
	case 3: /* a few late by little */
		return (int64_t)i - (next(seed) % 50 ? 0 : (int64_t)(next(seed) % 9));
	case 4: /* three runs */
		return (int64_t)(i % (n / 3 + 1));
	case 5:
		return (int64_t)(next(seed) % 3);
	default: /* sorted, and a late block */
		return i < n * 9 / 10 ? (int64_t)(2 * i) : (int64_t)i;
	}
}

static void every_order_is_sorted_stably(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 3, 31, 32, 33, 100, 1000, 5001 };
	struct lag_vec scratch = { .item_size = 1, .max = SIZE_MAX };
	uint64_t seed = 1;

	(void)state;
	for (int shape = 0; shape < 7; shape++) {
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			size_t n = counts[c], n_compared = 0;
			struct item *at = calloc(n + 1, sizeof(*at));

			assert_non_null(at);
			for (size_t i = 0; i < n; i++) {
				at[i].key = key_of(shape, i, n, &seed);
				at[i].place = (uint32_t)i;
				at[i].check = (uint32_t)at[i].key ^ (uint32_t)i;
			}
			at[n].check = 0xabcd;
			assert_int_equal(lag_sort(at, n, sizeof(*at), by_key, &n_compared,
						  c % 2 ? &scratch : NULL),
					 LAG_OK);
			for (size_t i = 0; i < n; i++) {
				assert_int_equal(at[i].check, (uint32_t)at[i].key ^ at[i].place);
				assert_true(!i || at[i - 1].key < at[i].key ||
					    (at[i - 1].key == at[i].key &&
					     at[i - 1].place < at[i].place));
			}
			assert_int_equal(at[n].check, 0xabcd);
			free(at);
		}
	}
	lag_vec_release(&scratch);
}

/* What comes nearly in order costs little more than looking at it. */
static void nearly_sorted_is_linear(void **state)
{
	size_t n = 100000, n_compared = 0;
	struct item *at = calloc(n, sizeof(*at));
	uint64_t seed = 2;

	(void)state;
	assert_non_null(at);
	for (size_t i = 0; i < n; i++)
		at[i].key = key_of(3, i, n, &seed);
	assert_int_equal(lag_sort(at, n, sizeof(*at), by_key, &n_compared, NULL), LAG_OK);
	assert_true(n_compared < n + n / 2);
	free(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_order_is_sorted_stably),
		cmocka_unit_test(nearly_sorted_is_linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

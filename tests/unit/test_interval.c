/* SPDX-License-Identifier: Apache-2.0 */
/* Interval sets against a bitmap of the same time, on random sets. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "viz/model/interval.h"

#define SPACE 200

static void paint(bool *map, struct lag_intervals *set, unsigned *seed)
{
	int n = rand_r(seed) % 12;

	memset(map, 0, SPACE);
	for (int i = 0; i < n; i++) {
		int a = rand_r(seed) % SPACE, b = a + rand_r(seed) % 40;

		b = b > SPACE ? SPACE : b;
		assert_int_equal(lag_intervals_add(set, a, b), LAG_OK);
		for (int k = a; k < b; k++)
			map[k] = true;
	}
	lag_intervals_normalize(set);
}

static void check(const struct lag_intervals *set, const bool *map)
{
	int64_t length = 0;

	for (size_t i = 0; i < set->n; i++) {
		assert_true(set->at[i].start_ns < set->at[i].end_ns);
		if (i)
			assert_true(set->at[i].start_ns > set->at[i - 1].end_ns);
		for (int64_t k = set->at[i].start_ns; k < set->at[i].end_ns; k++)
			assert_true(map[k]);
	}
	for (int k = 0; k < SPACE; k++)
		length += map[k];
	assert_int_equal(lag_intervals_length(set), length);
}

static void unions_differences_and_intersections_match_a_bitmap(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		struct lag_intervals a = { 0 }, b = { 0 }, minus = { 0 }, both = { 0 };
		bool ma[SPACE], mb[SPACE], m[SPACE];
		unsigned seed = round;
		int from, to;
		int64_t part = 0;

		paint(ma, &a, &seed);
		paint(mb, &b, &seed);
		check(&a, ma);
		assert_int_equal(lag_intervals_subtract(&a, &b, &minus), LAG_OK);
		for (int k = 0; k < SPACE; k++)
			m[k] = ma[k] && !mb[k];
		check(&minus, m);
		assert_int_equal(lag_intervals_intersect(&a, &b, &both), LAG_OK);
		for (int k = 0; k < SPACE; k++)
			m[k] = ma[k] && mb[k];
		check(&both, m);
		from = rand_r(&seed) % SPACE;
		to = rand_r(&seed) % SPACE;
		for (int k = from; k < to; k++)
			part += ma[k];
		assert_int_equal(lag_intervals_length_in(&a, from, to), part);
		lag_intervals_release(&a);
		lag_intervals_release(&b);
		lag_intervals_release(&minus);
		lag_intervals_release(&both);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unions_differences_and_intersections_match_a_bitmap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

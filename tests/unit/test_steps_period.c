/* SPDX-License-Identifier: Apache-2.0 */
/* The period of a sequence: layers inside steps are not taken for steps, pauses group periods, and what
 * cannot be told is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "viz/model/steps_internal.h"

#define ROOM 4096

static uint64_t what[ROOM], scratch[ROOM];
static int64_t from[ROOM], until[ROOM];
static struct lag_step_symbols s = { what, from, until, 0 };

static void clear(void)
{
	s.n = 0;
}

/* A symbol of 10 ns after a pause. */
static void add(uint64_t symbol, int64_t pause_ns)
{
	from[s.n] = (s.n ? until[s.n - 1] : 0) + pause_ns;
	until[s.n] = from[s.n] + 10;
	what[s.n++] = symbol;
}

static void layers_are_not_steps(void **state)
{
	struct lag_step_period p;

	(void)state;
	clear();
	for (int step = 0; step < 6; step++) {
		for (int layer = 0; layer < 64; layer++) {
			add(1, 5);
			add(2, 5);
		}
		add(3, 5);
	}
	assert_true(lag_steps_find_period(&s, scratch, &p));
	assert_int_equal(p.symbols, 129);
	assert_true(p.nested);
	assert_false(p.marked);
}

static void pauses_group(void **state)
{
	struct lag_step_period p;

	(void)state;
	clear();
	for (int i = 0; i < 48; i++)
		add(1, i % 8 == 3 ? 1000 : 5);
	assert_true(lag_steps_find_period(&s, scratch, &p));
	assert_int_equal(p.symbols, 8);
	assert_int_equal(p.phase, 3);
	assert_true(p.marked);
}

static void unknown(void **state)
{
	struct lag_step_period p;

	(void)state;
	clear();
	for (int i = 0; i < 48; i++)
		add(1, 5);
	assert_false(lag_steps_find_period(&s, scratch, &p));
	/* Two steps of forty layers: the layer repeats, and is not all that recurs. */
	clear();
	for (int step = 0; step < 2; step++) {
		for (int layer = 0; layer < 40; layer++) {
			add(1, 5);
			add(2, 5);
		}
		add(3, 5);
	}
	assert_false(lag_steps_find_period(&s, scratch, &p));
	/* A layer, and nothing else. */
	clear();
	for (int i = 0; i < 48; i++)
		add((uint64_t)i % 3, 5);
	assert_true(lag_steps_find_period(&s, scratch, &p));
	assert_false(p.marked || p.nested);
	clear();
	assert_false(lag_steps_find_period(&s, scratch, &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(layers_are_not_steps),
					    cmocka_unit_test(pauses_group),
					    cmocka_unit_test(unknown) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

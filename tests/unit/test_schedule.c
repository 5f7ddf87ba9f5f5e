/* SPDX-License-Identifier: Apache-2.0 */
/* Textbook schedules: each block once, dependencies obeyed, the warm-up lengths of the papers. */
#include <stdlib.h>

#include "tests/unit/unit.h"
#include "viz/model/schedule.h"

#define SLOTS_MAX 256

/* Runs all stages in their order, a block as soon as what it depends on is done; false = deadlock. */
static bool can_run(const struct lag_schedule_shape *shape)
{
	static struct lag_slot slots[8][SLOTS_MAX];
	static bool done[2][8][64][8]; /* kind, stage, microbatch, chunk */
	size_t at[8] = { 0 }, n = lag_schedule_length(shape);
	bool moved = true;

	for (size_t i = 0; i < sizeof(done); i++)
		((bool *)done)[i] = false;
	for (int32_t s = 0; s < shape->n_stages; s++)
		assert_true(lag_schedule_order(shape, s, slots[s]));
	while (moved) {
		moved = false;
		for (int32_t s = 0; s < shape->n_stages; s++) {
			const struct lag_slot *b = &slots[s][at[s]];
			int32_t p = shape->n_stages, v = shape->n_chunks;
			bool ready;

			if (at[s] == n)
				continue;
			if (b->kind == LAG_BLOCK_FORWARD)
				ready = s > 0 ? done[0][s - 1][b->microbatch][b->chunk]
					      : b->chunk == 0 ||
							done[0][p - 1][b->microbatch][b->chunk - 1];
			else
				ready = s < p - 1 ? done[1][s + 1][b->microbatch][b->chunk]
					: b->chunk == v - 1
						? done[0][s][b->microbatch][b->chunk]
						: done[1][0][b->microbatch][b->chunk + 1];
			if (!ready)
				continue;
			assert_false(done[b->kind][s][b->microbatch][b->chunk]);
			done[b->kind][s][b->microbatch][b->chunk] = true;
			at[s]++;
			moved = true;
		}
	}
	for (int32_t s = 0; s < shape->n_stages; s++) {
		if (at[s] != n)
			return false;
	}
	return true;
}

static void every_schedule_runs_to_its_end(void **state)
{
	(void)state;
	for (int32_t p = 1; p <= 4; p++) {
		for (int32_t m = 1; m <= 8; m++) {
			assert_true(can_run(
				&(struct lag_schedule_shape){ LAG_SCHEDULE_GPIPE, p, 1, m }));
			assert_true(can_run(
				&(struct lag_schedule_shape){ LAG_SCHEDULE_1F1B, p, 1, m }));
			for (int32_t v = 2; v <= 3 && m % p == 0; v++)
				assert_true(can_run(&(struct lag_schedule_shape){
					LAG_SCHEDULE_INTERLEAVED, p, v, m }));
		}
	}
}

static void one_f_one_b_warms_up_by_the_stages_behind(void **state)
{
	struct lag_schedule_shape shape = { LAG_SCHEDULE_1F1B, 4, 1, 8 };
	struct lag_slot slots[SLOTS_MAX];

	(void)state;
	for (int32_t s = 0; s < 4; s++) {
		int32_t n = 0;

		assert_true(lag_schedule_order(&shape, s, slots));
		while (slots[n].kind == LAG_BLOCK_FORWARD)
			n++;
		assert_int_equal(n, 4 - s); /* p - s - 1, and the forward of the first pair */
	}
}

static void shapes_that_a_schedule_does_not_allow_are_refused(void **state)
{
	struct lag_slot slots[SLOTS_MAX];

	(void)state;
	assert_false(lag_schedule_order(
		&(struct lag_schedule_shape){ LAG_SCHEDULE_INTERLEAVED, 4, 2, 6 }, 0, slots));
	assert_false(lag_schedule_order(&(struct lag_schedule_shape){ LAG_SCHEDULE_1F1B, 4, 2, 8 },
					0, slots));
	assert_false(lag_schedule_order(
		&(struct lag_schedule_shape){ LAG_SCHEDULE_UNKNOWN, 4, 1, 8 }, 0, slots));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_schedule_runs_to_its_end),
		cmocka_unit_test(one_f_one_b_warms_up_by_the_stages_behind),
		cmocka_unit_test(shapes_that_a_schedule_does_not_allow_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

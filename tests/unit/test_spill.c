/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays keep their content on the way from memory into the file, and a file that cannot grow is a
 * failed allocation that says why. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "schema/base/map.h"
#include "schema/base/mem.h"
#include "schema/base/spill.h"
#include "tests/unit/refuse.h"

static uint64_t mixed(uint64_t i)
{
	return lag_hash_u64(i + 1);
}

static void fill(struct lag_vec *vec, size_t n, uint64_t salt)
{
	for (size_t i = vec->n; i < n; i++) {
		uint64_t *slot = lag_vec_push(vec);

		assert_non_null(slot);
		assert_int_equal(*slot, 0);
		*slot = mixed(i ^ salt);
	}
}

static void check(const struct lag_vec *vec, size_t n, uint64_t salt)
{
	assert_int_equal(vec->n, n);
	for (size_t i = 0; i < n; i++) {
		if (LAG_VEC_AT(vec, uint64_t, i) != mixed(i ^ salt))
			fail_msg("item %zu of %zu is wrong", i, n);
	}
}

static struct lag_spill *spill_of(size_t budget)
{
	struct lag_spill *spill = NULL;

	assert_int_equal(lag_spill_new("/tmp", budget, &spill, NULL), LAG_OK);
	return spill;
}

static void within_the_budget_there_is_no_file(void **state)
{
	struct lag_spill *spill = spill_of(8 << 20);
	struct lag_vec vec = LAG_VEC_SPILLED(uint64_t, spill);

	(void)state;
	fill(&vec, 500000, 1);
	check(&vec, 500000, 1);
	assert_int_equal(lag_spill_bytes(spill), 0);
	lag_vec_release(&vec);
	/* What was given back counts no more. */
	fill(&vec, 900000, 2);
	assert_int_equal(lag_spill_bytes(spill), 0);
	lag_vec_release(&vec);
	assert_int_equal(lag_spill_failure(spill, NULL), LAG_OK);
	lag_spill_free(spill);
}

static void content_survives_the_way_into_the_file(void **state)
{
	struct lag_spill *spill = spill_of(1 << 20);
	struct lag_vec a = LAG_VEC_SPILLED(uint64_t, spill), b = LAG_VEC_SPILLED(uint64_t, spill);
	uint64_t bytes;

	(void)state;
	/* Side by side, so that extents interleave; far enough that ranges are widened. */
	for (size_t n = 100000; n <= 12000000; n += n / 2) {
		fill(&a, n, 1);
		fill(&b, n / 2, 2);
	}
	check(&a, a.n, 1);
	check(&b, b.n, 2);
	bytes = lag_spill_bytes(spill);
	assert_true(bytes >= (a.n + b.n) * sizeof(uint64_t));
	/* What is given back is used again. */
	lag_vec_release(&a);
	fill(&a, 3000000, 3);
	assert_int_equal(lag_spill_bytes(spill), bytes);
	check(&a, 3000000, 3);
	check(&b, b.n, 2);
	assert_int_equal(lag_vec_resize(&a, 10), LAG_OK);
	assert_int_equal(lag_vec_resize(&a, 20), LAG_OK);
	for (size_t i = 10; i < 20; i++)
		assert_int_equal(LAG_VEC_AT(&a, uint64_t, i), 0);
	lag_vec_release(&a);
	lag_vec_release(&b);
	lag_spill_free(spill);
}

/* Arrays come and go: memory that was touched serves again, and content survives the way into it. */
static void memory_given_back_serves_again(void **state)
{
	struct lag_spill *spill = spill_of(8 << 20);
	const void *first = NULL;

	(void)state;
	for (uint64_t round = 0; round < 20; round++) {
		struct lag_vec small = LAG_VEC_SPILLED(uint64_t, spill);
		struct lag_vec large = LAG_VEC_SPILLED(uint64_t, spill);

		fill(&small, 50000, round);
		assert_int_equal(lag_vec_reserve(&large, 400000), LAG_OK);
		assert_true(!first || large.items == first);
		first = large.items;
		fill(&large, 400000, ~round);
		check(&small, 50000, round);
		fill(&small, 200000, round);
		check(&small, 200000, round);
		check(&large, 400000, ~round);
		lag_vec_release(&small);
		lag_vec_release(&large);
	}
	assert_int_equal(lag_spill_bytes(spill), 0);
	lag_spill_free(spill);
}

static void maps_spill_too(void **state)
{
	struct lag_spill *spill = spill_of(1 << 16);
	struct lag_map map = { .spill = spill };
	uint64_t value;

	(void)state;
	for (uint64_t i = 0; i < 300000; i++)
		assert_int_equal(lag_map_set(&map, mixed(i), i), LAG_OK);
	for (uint64_t i = 0; i < 300000; i++) {
		assert_true(lag_map_find(&map, mixed(i), &value));
		assert_int_equal(value, i);
	}
	assert_false(lag_map_find(&map, 12345, &value));
	assert_true(lag_spill_bytes(spill) > 0);
	lag_map_release(&map);
	lag_spill_free(spill);
}

static void a_file_that_cannot_grow_is_an_error(void **state)
{
	struct lag_spill *spill = spill_of(1 << 16);
	struct lag_vec vec = LAG_VEC_SPILLED(uint64_t, spill);
	struct rlimit old, low = { 32 << 20, 32 << 20 };
	struct lag_err err = { 0 };

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	for (;;) {
		uint64_t *slot = lag_vec_push(&vec);

		if (!slot)
			break;
		*slot = mixed(vec.n - 1);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(vec.n > 1000000);
	check(&vec, vec.n, 0);
	assert_int_equal(lag_spill_failure(spill, &err), LAG_ERR_SYSTEM);
	assert_non_null(strstr(err.text, "/tmp"));
	assert_non_null(strstr(err.text, "temporary"));
	lag_vec_release(&vec);
	lag_spill_free(spill);
	assert_int_equal(lag_spill_new("/nowhere/at/all", 0, &spill, NULL), LAG_OK);
	vec.spill = spill;
	assert_int_equal(lag_vec_reserve(&vec, 1000000), LAG_ERR_SYSTEM);
	assert_int_equal(lag_spill_failure(spill, &err), LAG_ERR_SYSTEM);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	lag_vec_release(&vec);
	lag_spill_free(spill);
}

static void zeros_take_the_place_of_allocation(void **state)
{
	struct lag_spill *spill = spill_of(1 << 20);
	struct lag_vec a = LAG_VEC_SPILLED(uint64_t, spill), b = LAG_VEC_SPILLED(uint64_t, spill);

	(void)state;
	refuse_allocation(EOPNOTSUPP);
	fill(&a, 1000000, 1);
	fill(&b, 1000000, 2);
	fill(&a, 2000000, 1);
	assert_true(n_refused_allocations() > 2);
	refuse_allocation(0);
	check(&a, 2000000, 1);
	check(&b, 1000000, 2);
	assert_true(lag_spill_bytes(spill) >= (uint64_t)2000000 * sizeof(uint64_t));
	assert_int_equal(lag_spill_failure(spill, NULL), LAG_OK);
	lag_vec_release(&a);
	lag_vec_release(&b);
	lag_spill_free(spill);
}

/* Written zeros take the room at once: a disk that has none is a failed allocation there too, never a
 * fault of whoever uses the memory. */
static void zeros_find_a_disk_full(void **state)
{
	struct lag_spill *spill = spill_of(1 << 20);
	struct lag_vec vec = LAG_VEC_SPILLED(uint64_t, spill);
	struct rlimit old, low;
	struct lag_err err;

	(void)state;
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){ (6 << 20) + 12345, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	refuse_allocation(EOPNOTSUPP);
	for (uint64_t *slot; (slot = lag_vec_push(&vec)) != NULL;)
		*slot = mixed(vec.n - 1);
	refuse_allocation(0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(vec.n > 200000 && vec.n < 2000000);
	check(&vec, vec.n, 0);
	assert_int_equal(lag_spill_failure(spill, &err), LAG_ERR_SYSTEM);
	assert_non_null(strstr(err.text, strerror(EFBIG)));
	lag_vec_release(&vec);
	lag_spill_free(spill);
}

/* Another refusal is a failure, not a reason to write. */
static void other_refusals_are_failures(void **state)
{
	struct lag_spill *spill = spill_of(1 << 20);
	struct lag_vec vec = LAG_VEC_SPILLED(uint64_t, spill);
	struct lag_err err;

	(void)state;
	refuse_allocation(ENOSPC);
	assert_int_equal(lag_vec_reserve(&vec, 1000000), LAG_ERR_SYSTEM);
	refuse_allocation(0);
	assert_int_equal(lag_spill_bytes(spill), 0);
	assert_int_equal(lag_spill_failure(spill, &err), LAG_ERR_SYSTEM);
	assert_non_null(strstr(err.text, strerror(ENOSPC)));
	lag_vec_release(&vec);
	lag_spill_free(spill);
}

static void *churn(void *state)
{
	struct lag_spill *spill = state;

	for (uint64_t round = 0; round < 20; round++) {
		struct lag_vec vec = LAG_VEC_SPILLED(uint64_t, spill);

		fill(&vec, 50000 + 40000 * (size_t)round, round);
		check(&vec, 50000 + 40000 * (size_t)round, round);
		lag_vec_release(&vec);
	}
	return NULL;
}

static void threads_share_it(void **state)
{
	struct lag_spill *spill = spill_of(1 << 20);
	pthread_t threads[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, spill), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(lag_spill_bytes(spill) < (uint64_t)64 << 20);
	lag_spill_free(spill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_the_budget_there_is_no_file),
		cmocka_unit_test(content_survives_the_way_into_the_file),
		cmocka_unit_test(memory_given_back_serves_again),
		cmocka_unit_test(maps_spill_too),
		cmocka_unit_test(a_file_that_cannot_grow_is_an_error),
		cmocka_unit_test(zeros_take_the_place_of_allocation),
		cmocka_unit_test(zeros_find_a_disk_full),
		cmocka_unit_test(other_refusals_are_failures),
		cmocka_unit_test(threads_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* An append that is told to end, at whatever moment, leaves the trace as it was, byte by byte, and nothing
 * beside it. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/lag_builder.h"
#include "tests/unit/merged.h"

#define T0    INT64_C(1700000000000000000)
#define US    INT64_C(1000)
#define CALLS 50

static void record(int rank)
{
	struct lag_builder lb;
	char name[16];

	(void)snprintf(name, sizeof(name), "r%d", rank);
	lb_open(&lb, lb_dir(), name, LB_WHO(rank, 2, "node"), T0);
	lb_comm(&lb, 1, 4242, 2, rank);
	for (int i = 0; i < CALLS; i++) {
		lb_op(&lb, LB_CALL(i + 1, 1, LAG_FUNC_ALL_REDUCE, i, LAG_NONE),
		      T0 + i * (10000 * US) + rank * (700 * US), T0 + (i * 10000 + 3000) * US);
	}
	lb_close(&lb);
}

struct patience {
	unsigned left;
};

static bool go_on(void *state, const struct lag_merge_progress *at)
{
	struct patience *p = state;

	(void)at;
	return p->left && p->left--;
}

/* Merges rank 0, or adds rank 1 to that. */
static enum lag_status merge_rank(int rank, const char *db, struct patience *p, struct lag_err *err)
{
	struct lag_merge_receipt receipt;
	char path[128];
	const char *input = path;
	struct lag_merge_opts opts = { .inputs = &input,
				       .n_inputs = 1,
				       .output = rank ? NULL : db,
				       .append = rank ? db : NULL,
				       .progress = p ? go_on : NULL,
				       .progress_state = p };

	(void)snprintf(path, sizeof(path), "%s/r%d.lag", lb_dir(), rank);
	return lag_merge_run(&opts, &receipt, err);
}

static unsigned n_files(void)
{
	DIR *dir = opendir(lb_dir());
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void cancelled_at_any_moment_it_changes_nothing(void **state)
{
	struct lag_err err = { 0 };
	struct merged mg = { 0 };
	unsigned patience = 0, before;
	uint8_t *kept;
	size_t n;

	(void)state;
	(void)snprintf(mg.db_path, sizeof(mg.db_path), "%s/out.db", lb_dir());
	record(0);
	record(1);
	assert_false(lag_failed(merge_rank(0, mg.db_path, NULL, &err)));
	kept = lb_read(mg.db_path, &n);
	before = n_files();
	/* The merge asks at least once behind each of its stages. */
	for (;; patience++) {
		struct patience p = { .left = patience };
		enum lag_status st = merge_rank(1, mg.db_path, &p, &err);
		uint8_t *now;
		size_t n_now;

		if (!lag_failed(st))
			break;
		assert_int_equal(st, LAG_ERR_LIMIT);
		assert_string_equal(err.text, "interrupted, nothing was written");
		assert_int_equal(n_files(), before);
		now = lb_read(mg.db_path, &n_now);
		assert_int_equal(n_now, n);
		assert_memory_equal(now, kept, n);
		free(now);
	}
	assert_true(patience > 10);
	free(kept);
	assert_int_equal(n_files(), before);
	assert_int_equal(lag_db_open(mg.db_path, &mg.db, &err), LAG_OK);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM instance WHERE n_recorded = 2"), CALLS);
	merged_close(&mg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cancelled_at_any_moment_it_changes_nothing,
						lb_setup, lb_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

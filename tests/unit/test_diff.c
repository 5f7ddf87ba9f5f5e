/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of two tables matched by their keys: repeated keys, nulls, order, tolerance, what is kept. */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "schema/record/record.h"
#include "viz/model/diff.h"

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },         { "name", "name", LAG_UNIT_TEXT, NULL },
	{ "time_ns", "time", LAG_UNIT_NS, NULL },      { "share", "share", LAG_UNIT_SHARE, "time" },
	{ "verdict", "verdict", LAG_UNIT_TEXT, NULL },
};

static void add(struct lag_table *t, int64_t rank, const char *name, int64_t time_ns, double share,
		const char *verdict)
{
	lag_table_row(t);
	lag_table_int(t, rank);
	lag_table_text(t, name);
	lag_table_int(t, time_ns);
	lag_table_real(t, share);
	lag_table_text(t, verdict);
}

struct pair {
	struct lag_table a, b;
	struct lag_diff diff;
};

static void begin(struct pair *p, const struct lag_diff_opts *opts)
{
	lag_table_init(&p->a, "test", columns, sizeof(columns) / sizeof(columns[0]));
	lag_table_init(&p->b, "test", columns, sizeof(columns) / sizeof(columns[0]));
	lag_diff_init(&p->diff, opts);
	assert_int_equal(lag_diff_begin(&p->diff, "test"), 0);
}

static const struct lag_diff_view *compare(struct pair *p, const char *keys)
{
	struct lag_diff_keys by = { keys, "" };
	struct lag_err err;

	assert_int_equal(lag_diff_tables(&p->diff, &p->a, &p->b, &by, &err), LAG_OK);
	assert_int_equal(lag_diff_finish(&p->diff, &err), LAG_OK);
	return p->diff.views.items;
}

static const struct lag_diff_change *change(const struct pair *p, size_t i)
{
	assert_true(i < p->diff.changes.n);
	return &LAG_VEC_AT(&p->diff.changes, struct lag_diff_change, i);
}

static void end(struct pair *p)
{
	lag_table_release(&p->a);
	lag_table_release(&p->b);
	lag_diff_release(&p->diff);
}

static void expect_counts(const struct lag_diff_view *v, uint64_t same, uint64_t changed,
			  uint64_t removed, uint64_t added)
{
	assert_int_equal(v->n_same, same);
	assert_int_equal(v->n_changed, changed);
	assert_int_equal(v->n_removed, removed);
	assert_int_equal(v->n_added, added);
}

static void order_does_not_matter(void **state)
{
	struct lag_diff_opts opts = { 0 };
	struct pair p;

	(void)state;
	begin(&p, &opts);
	add(&p.a, 0, "x", 10, 0.5, NULL);
	add(&p.a, 1, "x", LAG_NONE, NAN, "slow");
	add(&p.b, 1, "x", LAG_NONE, NAN, "slow");
	add(&p.b, 0, "x", 10, 0.5, NULL);
	expect_counts(compare(&p, "rank name"), 2, 0, 0, 0);
	assert_int_equal(p.diff.changes.n, 0);
	end(&p);
}

static void changes_come_by_size(void **state)
{
	struct lag_diff_opts opts = { 0 };
	struct pair p;

	(void)state;
	begin(&p, &opts);
	add(&p.a, 0, "x", 100, 0.5, "a");
	add(&p.a, 1, "x", 1000, 0.5, "a");
	add(&p.a, 2, "x", 10, 0.5, "a");
	add(&p.b, 0, "x", 110, 0.5, "b");
	add(&p.b, 1, "x", 1900, 0.5, "a");
	add(&p.b, 3, "y", 10, 0.5, "a");
	expect_counts(compare(&p, "rank"), 0, 2, 1, 1);
	assert_int_equal(p.diff.n_found, 5);
	/* The verdict; 900 of 3130; a row that has a sixth of the shares; 10 of 3130. */
	assert_string_equal(change(&p, 0)->column, "verdict");
	assert_string_equal(change(&p, 0)->row, "rank 0");
	assert_string_equal(change(&p, 1)->row, "rank 1");
	assert_string_equal(change(&p, 1)->column, "time_ns");
	assert_true(change(&p, 1)->b.i - change(&p, 1)->a.i == 900);
	assert_int_equal(change(&p, 2)->kind, LAG_DIFF_REMOVED);
	assert_string_equal(change(&p, 2)->row, "rank 2");
	assert_int_equal(change(&p, 3)->kind, LAG_DIFF_ADDED);
	assert_string_equal(change(&p, 4)->column, "time_ns");
	end(&p);
}

static void repeated_keys_go_by_order(void **state)
{
	struct lag_diff_opts opts = { 0 };
	struct pair p;

	(void)state;
	begin(&p, &opts);
	add(&p.a, 0, "x", 1, 0, NULL);
	add(&p.a, 0, "x", 2, 0, NULL);
	add(&p.a, 0, "x", 3, 0, NULL);
	add(&p.b, 0, "x", 1, 0, NULL);
	add(&p.b, 0, "x", 5, 0, NULL);
	/* Not the same key as "x" of rank 0, whatever the two look like side by side. */
	add(&p.b, 0, "x, 0", 3, 0, NULL);
	expect_counts(compare(&p, "rank name"), 1, 1, 1, 1);
	end(&p);
}

static void unknown_is_not_zero(void **state)
{
	struct lag_diff_opts opts = { .tolerance = 0.5 };
	struct pair p;

	(void)state;
	begin(&p, &opts);
	add(&p.a, 0, "x", 0, 0, NULL);
	add(&p.b, 0, "x", LAG_NONE, 0, "");
	expect_counts(compare(&p, "rank name"), 0, 1, 0, 0);
	assert_int_equal(p.diff.n_found, 2);
	end(&p);
}

static void tolerance_is_of_the_larger(void **state)
{
	struct lag_diff_opts opts = { .tolerance = 0.1 };
	struct pair p;

	(void)state;
	begin(&p, &opts);
	add(&p.a, 0, "x", 90, 0.5, NULL);
	add(&p.b, 0, "x", 100, 0.5, NULL);
	add(&p.a, 1, "x", 100, 0.5, NULL);
	add(&p.b, 1, "x", 89, 0.5, NULL);
	/* Ids have no tolerance. */
	add(&p.a, 100, "y", 1, 0.5, NULL);
	add(&p.b, 101, "y", 1, 0.5, NULL);
	expect_counts(compare(&p, "rank name"), 1, 1, 1, 1);
	end(&p);
	opts.ignore = "verdict,other.time_ns,test.time_ns";
	begin(&p, &opts);
	add(&p.a, 0, "x", 1, 0.5, "p");
	add(&p.b, 0, "x", 100, 0.5, "q");
	expect_counts(compare(&p, "rank name"), 1, 0, 0, 0);
	end(&p);
}

static void only_the_biggest_are_kept(void **state)
{
	struct lag_diff_opts opts = { .n_top = 3 };
	struct pair p;

	(void)state;
	begin(&p, &opts);
	for (int64_t i = 0; i < 5000; i++) {
		add(&p.a, i, "x", 1000000, 0.5, NULL);
		add(&p.b, i, "x", 1000000 + 1 + i * 7919 % 5000, 0.5, NULL);
	}
	expect_counts(compare(&p, "rank"), 0, 5000, 0, 0);
	assert_int_equal(p.diff.n_found, 5000);
	assert_int_equal(p.diff.changes.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(change(&p, i)->b.i, 1000000 + 5000 - (int64_t)i);
	end(&p);
}

static void a_key_must_be_a_column(void **state)
{
	struct lag_diff_opts opts = { 0 };
	struct lag_diff_keys keys = { "rank nonsense", "" };
	struct lag_err err = { 0 };
	struct pair p;

	(void)state;
	begin(&p, &opts);
	assert_int_equal(lag_diff_tables(&p.diff, &p.a, &p.b, &keys, &err), LAG_ERR_USAGE);
	assert_non_null(strstr(err.text, "nonsense"));
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(changes_come_by_size),
		cmocka_unit_test(repeated_keys_go_by_order),
		cmocka_unit_test(unknown_is_not_zero),
		cmocka_unit_test(tolerance_is_of_the_larger),
		cmocka_unit_test(only_the_biggest_are_kept),
		cmocka_unit_test(a_key_must_be_a_column),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of other tools: real tables only, values as what they are, and what is left of a damaged one. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/db/db.h"
#include "schema/db/foreign.h"

static char path[64];

static void make(const char *sql)
{
	struct lag_err err = { 0 };
	struct lag_db *db;
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/lag-foreign-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(lag_db_create(path, &db, &err), LAG_OK);
	assert_int_equal(lag_db_exec(db, sql, &err), LAG_OK);
	lag_db_close(db);
}

static struct lag_foreign *open_made(enum lag_status want)
{
	struct lag_err err = { 0 };
	struct lag_foreign *f = NULL;

	assert_int_equal(lag_foreign_open(path, &f, &err), want);
	return f;
}

static void values_are_taken_as_what_they_are(void **state)
{
	static const char *const columns[] = { "id", "v", "missing", "name" };
	static const int64_t want[] = { 7, 12, LAG_NONE, LAG_NONE, LAG_NONE, INT64_MIN + 1, -3 };
	struct lag_err err = { 0 };
	struct lag_foreign_rows *rows;
	struct lag_foreign *f;
	size_t n;

	(void)state;
	make("CREATE TABLE t (id INTEGER PRIMARY KEY, v, name TEXT);"
	     "INSERT INTO t VALUES (1, 7, 'a'), (2, '12', NULL), (3, '12x', 'b'), (4, 1.5, 'c'),"
	     " (5, NULL, 'd'), (6, -9223372036854775807, 'e'), (9, -3.0, x'00ff');");
	f = open_made(LAG_OK);
	assert_int_equal(lag_foreign_rows_open(f, "t", columns, 4, &rows, &err), LAG_OK);
	assert_true(lag_foreign_rows_have(rows, 1) && !lag_foreign_rows_have(rows, 2));
	assert_true(lag_foreign_rows_keyed(rows, 0) && !lag_foreign_rows_keyed(rows, 1));
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(lag_foreign_rows_next(rows, &err), LAG_OK);
		assert_int_equal(lag_foreign_int(rows, 1), want[i]);
		assert_int_equal(lag_foreign_int(rows, 2), LAG_NONE);
	}
	assert_memory_equal(lag_foreign_text(rows, 3, &n), "\0\xff", 2);
	assert_int_equal(n, 2);
	assert_int_equal(lag_foreign_rows_next(rows, &err), LAG_END);
	assert_int_equal(lag_foreign_rows_next(rows, &err), LAG_END);
	assert_int_equal(lag_foreign_rows_find(rows, 6, &err), LAG_OK);
	assert_string_equal(lag_foreign_text(rows, 3, &n), "e");
	assert_int_equal(lag_foreign_rows_find(rows, 7, &err), LAG_END);
	assert_false(lag_foreign_rows_damaged(rows));
	lag_foreign_rows_close(rows);
	lag_foreign_close(f);
	(void)unlink(path);
}

static void only_real_tables_are_read(void **state)
{
	static const char *const columns[] = { "a", "b" };
	struct lag_err err = { 0 };
	struct lag_foreign_rows *rows;
	struct lag_foreign *f;

	(void)state;
	make("CREATE TABLE real (a INTEGER, b INTEGER AS (a * 2)); INSERT INTO real (a) VALUES (5);"
	     "CREATE VIEW v AS SELECT a FROM real; CREATE TABLE keyed (a INTEGER PRIMARY KEY) "
	     "WITHOUT ROWID;"
	     "INSERT INTO keyed VALUES (1);");
	f = open_made(LAG_OK);
	assert_true(lag_foreign_has(f, "real") && !lag_foreign_has(f, "v"));
	assert_string_equal(lag_foreign_refused(f, "v"), "a view");
	assert_null(lag_foreign_refused(f, "real"));
	assert_null(lag_foreign_refused(f, "none"));
	assert_int_equal(lag_foreign_rows_open(f, "v", columns, 2, &rows, &err), LAG_END);
	assert_null(rows);
	assert_int_equal(lag_foreign_rows_open(f, "real", columns, 2, &rows, &err), LAG_OK);
	assert_int_equal(lag_foreign_rows_next(rows, &err), LAG_OK);
	assert_int_equal(lag_foreign_int(rows, 0), 5);
	/* What would have to be computed is not there. */
	assert_false(lag_foreign_rows_have(rows, 1));
	assert_int_equal(lag_foreign_int(rows, 1), LAG_NONE);
	lag_foreign_rows_close(rows);
	assert_int_equal(lag_foreign_rows_open(f, "keyed", columns, 2, &rows, &err), LAG_OK);
	assert_int_equal(lag_foreign_rows_next(rows, &err), LAG_END);
	assert_true(lag_foreign_rows_damaged(rows));
	lag_foreign_rows_close(rows);
	lag_foreign_close(f);
	(void)unlink(path);
}

/* Twenty thousand rows over many pages. */
static const char many[] =
	"CREATE TABLE t (a INTEGER, b TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + "
	"1 FROM n"
	" LIMIT 20000) INSERT INTO t SELECT i, 'some text that takes room ' || i FROM n;";

static size_t count_rows(struct lag_foreign *f, bool *damaged)
{
	static const char *const columns[] = { "a" };
	struct lag_err err = { 0 };
	struct lag_foreign_rows *rows;
	size_t n = 0;
	uint64_t sum = 0; /* damaged cells may hold anything */

	assert_int_equal(lag_foreign_rows_open(f, "t", columns, 1, &rows, &err), LAG_OK);
	while (lag_foreign_rows_next(rows, &err) == LAG_OK) {
		sum += (uint64_t)lag_foreign_int(rows, 0);
		n++;
	}
	*damaged = lag_foreign_rows_damaged(rows);
	lag_foreign_rows_close(rows);
	assert_true(sum != 0);
	return n;
}

static void damage_in_the_middle_costs_what_it_hits(void **state)
{
	char zeros[4096] = { 0 };
	struct lag_foreign *f;
	bool damaged;
	FILE *file;
	size_t n;

	(void)state;
	make(many);
	f = open_made(LAG_OK);
	assert_int_equal(count_rows(f, &damaged), 20000);
	assert_false(damaged);
	lag_foreign_close(f);
	file = fopen(path, "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, 20L * 16384, SEEK_SET), 0);
	assert_int_equal(fwrite(zeros, 1, sizeof(zeros), file), sizeof(zeros));
	(void)fclose(file);
	f = open_made(LAG_OK);
	n = count_rows(f, &damaged);
	assert_true(damaged && n < 20000 && n > 18000);
	lag_foreign_close(f);
	(void)unlink(path);
}

static void a_cut_file_is_read_as_far_as_it_goes(void **state)
{
	struct lag_foreign *f;
	bool damaged;
	size_t n;

	(void)state;
	make(many);
	assert_int_equal(truncate(path, 30L * 16384 + 5000), 0);
	f = open_made(LAG_WARN);
	n = count_rows(f, &damaged);
	assert_true(damaged && n > 5000 && n < 20000);
	lag_foreign_close(f);
	assert_int_equal(truncate(path, 50), 0);
	assert_null(open_made(LAG_ERR_INPUT));
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_taken_as_what_they_are),
		cmocka_unit_test(only_real_tables_are_read),
		cmocka_unit_test(damage_in_the_middle_costs_what_it_hits),
		cmocka_unit_test(a_cut_file_is_read_as_far_as_it_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

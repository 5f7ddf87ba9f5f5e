/* SPDX-License-Identifier: Apache-2.0 */
/* The two writers of a trace leave the same rows, whoever gives them in how many runs and threads, and
 * fail on the same input. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/db/db_run.h"
#include "tests/unit/db_check.h"
#include "tests/unit/lag_builder.h"

#define N_THREADS 4
#define N_RUNS    40 /* of each table */

static char dir[64], pages_path[96], sql_path[96];

static int make_dir(void **state)
{
	(void)state;
	lb_make_dir(dir, sizeof(dir));
	(void)snprintf(pages_path, sizeof(pages_path), "%s/pages.db", dir);
	(void)snprintf(sql_path, sizeof(sql_path), "%s/sql.db", dir);
	return 0;
}

static int drop_dir(void **state)
{
	(void)state;
	lb_remove_dir(dir);
	return 0;
}

static struct lag_db_writer *open_writer(enum lag_db_writer_kind kind)
{
	struct lag_db_writer_opts opts = { .writer = kind };
	const char *path = kind == LAG_DB_WRITER_SQL ? sql_path : pages_path;
	struct lag_db_writer *w;
	struct lag_err err;

	(void)remove(path);
	dbc_ok(lag_db_writer_open(path, &opts, &w, &err), &err);
	return w;
}

static void close_writer(struct lag_db_writer *w)
{
	struct lag_err err;

	dbc_ok(lag_db_writer_finish(w, &err), &err);
	lag_db_writer_close(w);
}

static int64_t compare_table(struct lag_db *a, struct lag_db *b, const char *name)
{
	struct lag_stmt *x, *y;
	enum lag_status st;
	struct lag_err err;
	int64_t n = 0;
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "SELECT * FROM %s NOT INDEXED", name);
	dbc_ok(lag_stmt_prepare(a, sql, NULL, &x, &err), &err);
	dbc_ok(lag_stmt_prepare(b, sql, NULL, &y, &err), &err);
	for (; (st = lag_stmt_step(x, &err)) == LAG_OK; n++) {
		dbc_ok(lag_stmt_step(y, &err), &err);
		for (int i = 0; i < lag_stmt_columns(x); i++) {
			assert_int_equal(lag_stmt_is_null(x, i), lag_stmt_is_null(y, i));
			assert_int_equal(lag_stmt_is_int(x, i), lag_stmt_is_int(y, i));
			assert_string_equal(lag_stmt_text(x, i), lag_stmt_text(y, i));
		}
	}
	assert_int_equal(st, LAG_END);
	assert_int_equal(lag_stmt_step(y, &err), LAG_END);
	lag_stmt_free(x);
	lag_stmt_free(y);
	return n;
}

/* Returns the rows in all tables. */
static int64_t compare(void)
{
	struct lag_db *a, *b;
	struct lag_err err;
	int64_t n = 0;

	dbc_ok(lag_db_open(pages_path, &a, &err), &err);
	dbc_ok(lag_db_open(sql_path, &b, &err), &err);
	dbc_sound(a);
#define LAG_TABLE(name, columns) n += compare_table(a, b, #name);
#include "schema/db/tables.def"
	lag_db_close(a);
	lag_db_close(b);
	return n;
}

/* Run `run` of a table of n columns, of which 16 and 17 may be NULL; some runs are empty or of
 * one row. `rank` and times ascend, as the third and others, which no index is about, do not. */
static size_t run_length(int run)
{
	static const size_t lengths[] = { 0, 1, 2, 700, 3000 };

	return lengths[run % 5];
}

static void row_of(int run, size_t i, size_t n, int64_t *row)
{
	int64_t id = (int64_t)run * 10000 + (int64_t)i;

	row[0] = id + 1;
	row[1] = run;
	for (size_t k = 2; k < n; k++) {
		row[k] = id % 5 == 0 && (k == 16 || k == 17) ? LAG_NONE
							     : id * 7 % (int64_t)(k * k) - 3;
	}
	/* Start columns of api_call and gpu_event, nvtx_range, nccl_op. */
	row[5] = row[6] = row[7] = INT64_C(1700000000000000000) + id * 100;
	if (n == 20)
		row[11] = row[7];
}

struct job {
	struct lag_db_writer *w;
	int first;
};

static void write_run(struct lag_db_writer *w, enum lag_table table, size_t n, int run)
{
	int64_t rows[7 * LAG_TABLE_COLUMNS_MAX];
	struct lag_db_run *out;
	struct lag_err err;
	size_t length = run_length(run);

	dbc_ok(lag_db_run_open(w, table, &out, &err), &err);
	for (size_t i = 0; i < length;) {
		size_t some = 0;

		for (; some < 7 && i < length; some++)
			row_of(run, i++, n, rows + some * n);
		dbc_ok(lag_db_run_add(out, rows, n, some, &err), &err);
	}
	dbc_ok(lag_db_run_end(out, &err), &err);
}

static void *write_runs(void *arg)
{
	const struct job *job = arg;

	/* Backwards: runs come in any order. */
	for (int run = N_RUNS - 1 - job->first; run >= 0; run -= N_THREADS) {
		write_run(job->w, LAG_TABLE_gpu_event, 21, run);
		write_run(job->w, LAG_TABLE_api_call, 11, run);
		write_run(job->w, LAG_TABLE_nvtx_range, 15, run);
		write_run(job->w, LAG_TABLE_nccl_op, 20, run);
		write_run(job->w, LAG_TABLE_instance, 19, run);
	}
	return NULL;
}

static void fill(struct lag_db_writer *w)
{
	pthread_t threads[N_THREADS];
	struct job jobs[N_THREADS];
	struct lag_err err;
	char text[4096];

	for (int i = 0; i < N_THREADS; i++) {
		jobs[i] = (struct job){ w, i };
		assert_int_equal(pthread_create(&threads[i], NULL, write_runs, &jobs[i]), 0);
	}
	/* Meanwhile rows for SQLite: more text than waits in memory, and none. */
	for (int64_t i = 0; i < 3000; i++) {
		struct lag_value row[] = { LAG_INT(i), LAG_TEXT(text) };

		memset(text, 'a' + (int)(i % 26), sizeof(text));
		text[i % 100 == 7 ? 5000 % sizeof(text) : sizeof(text) - 1] = '\0';
		text[i * 37 % 4000] = '\0';
		if (i % 50 == 0)
			memcpy(text, "\xff", 2);
		dbc_ok(lag_db_insert(w, LAG_TABLE_string, row, 2, &err), &err);
	}
	for (int64_t i = 0; i < 100; i++) {
		struct lag_value map[] = {
			LAG_INT(i),   LAG_INT(LAG_NONE),       LAG_INT(1), LAG_INT(2),
			LAG_INT(3),   LAG_REAL((double)i / 7), LAG_INT(4), LAG_INT(5),
			LAG_INT(6),   LAG_TEXT("m"),           LAG_INT(7), LAG_INT(LAG_NONE),
			LAG_TEXT("b")
		};
		struct lag_value host[] = { LAG_INT(i), LAG_TEXT("h"), LAG_TEXT(NULL) };
		int64_t sync[13] = { i + 1, 0, 1, i, i + 1, i, i + 1 };

		dbc_ok(lag_db_insert(w, LAG_TABLE_clock_map, map, 13, &err), &err);
		dbc_ok(lag_db_insert(w, LAG_TABLE_host, host, 3, &err), &err);
		dbc_ok(lag_db_insert_ints(w, LAG_TABLE_gpu_sync, sync, 13, &err), &err);
	}
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void test_runs_of_many_threads(void **state)
{
	(void)state;
	for (int kind = LAG_DB_WRITER_PAGES; kind <= LAG_DB_WRITER_SQL; kind++) {
		struct lag_db_writer *w = open_writer((enum lag_db_writer_kind)kind);

		fill(w);
		close_writer(w);
	}
	/* Per five runs of five tables 3703 rows, then strings, clock maps, hosts and synchronisations. */
	assert_int_equal(compare(), 5 * N_RUNS / 5 * 3703 + 3000 + 3 * 100);
}

/* Three runs of four calls; in case 0 and 1 times go back within a run and between runs, in case 2 ranks
 * descend. */
static void write_out_of_order(struct lag_db_writer *w, int how)
{
	static const int64_t times[3][4] = { { 5, 4, 3, 9 }, { 1, 2, 3, 4 }, { 7, 8, 9, 10 } };

	for (int run = 0; run < 3; run++) {
		int64_t rows[4][11] = { 0 };
		struct lag_db_run *out;
		struct lag_err err;

		for (int i = 0; i < 4; i++) {
			rows[i][0] = 4 * run + i;
			rows[i][1] = how == 2 ? 3 - run : 0;
			rows[i][5] = times[(run + how) % 3][i];
		}
		dbc_ok(lag_db_run_open(w, LAG_TABLE_api_call, &out, &err), &err);
		dbc_ok(lag_db_run_add(out, rows[0], 11, 4, &err), &err);
		dbc_ok(lag_db_run_end(out, &err), &err);
	}
}

/* SQLite has to make the index, and does. */
static void test_out_of_order(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		for (int kind = LAG_DB_WRITER_PAGES; kind <= LAG_DB_WRITER_SQL; kind++) {
			struct lag_db_writer *w = open_writer((enum lag_db_writer_kind)kind);

			write_out_of_order(w, how);
			close_writer(w);
		}
		assert_int_equal(compare(), 12);
	}
}

/* What neither writes. */
static void test_refused(void **state)
{
	(void)state;
	for (int kind = LAG_DB_WRITER_PAGES; kind <= LAG_DB_WRITER_SQL; kind++) {
		struct lag_db_writer *w = open_writer((enum lag_db_writer_kind)kind);
		struct lag_value text[] = { LAG_INT(1), LAG_TEXT("one") };
		int64_t row[21] = { 1, 0 };
		struct lag_db_run *run;
		struct lag_err err;

		assert_int_equal(lag_db_run_open(w, LAG_TABLE_string, &run, &err), LAG_ERR_USAGE);
		assert_null(run);
		assert_int_equal(lag_db_insert(w, LAG_TABLE_string, text, 1, &err), LAG_ERR_USAGE);
		assert_int_equal(lag_db_insert_ints(w, LAG_TABLE_gpu_event, row, 20, &err),
				 LAG_ERR_USAGE);
		dbc_ok(lag_db_run_open(w, LAG_TABLE_gpu_event, &run, &err), &err);
		assert_int_equal(lag_db_run_add(run, row, 20, 1, &err), LAG_ERR_USAGE);
		dbc_ok(lag_db_run_add(run, row, 21, 1, &err), &err);
		row[0] = 2;
		row[6] = LAG_NONE; /* start_ns */
		assert_true(lag_failed(lag_db_run_add(run, row, 21, 1, &err)));
		assert_non_null(strstr(err.text, "NULL"));
		lag_db_run_drop(run);
		lag_db_writer_close(w);

		/* One id twice in a table of SQLite's own: told at the insert or at the end. */
		w = open_writer((enum lag_db_writer_kind)kind);
		dbc_ok(lag_db_insert(w, LAG_TABLE_string, text, 2, &err), &err);
		assert_true(lag_failed(lag_db_insert(w, LAG_TABLE_string, text, 2, &err)) ||
			    lag_failed(lag_db_writer_finish(w, &err)));
		assert_non_null(strstr(err.text, "UNIQUE"));
		lag_db_writer_close(w);
	}
}

/* A writer that is closed without an end, in the middle of runs. */
static void test_given_up(void **state)
{
	struct lag_db_writer *w = open_writer(LAG_DB_WRITER_PAGES);
	int64_t row[11] = { 0 };
	struct lag_db_run *run;
	struct lag_err err;

	(void)state;
	dbc_ok(lag_db_run_open(w, LAG_TABLE_api_call, &run, &err), &err);
	for (; row[0] < 100000; row[0]++) {
		dbc_ok(lag_db_run_add(run, row, 11, 1, &err), &err);
		dbc_ok(lag_db_insert_ints(w, LAG_TABLE_nccl_launch, row, 11, &err), &err);
	}
	lag_db_run_drop(run);
	lag_db_writer_close(w);
	assert_int_equal(lag_db_writer_open("/nowhere/at/all.db", NULL, &w, &err), LAG_ERR_SYSTEM);
	assert_null(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_of_many_threads),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}

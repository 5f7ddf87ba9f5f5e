/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a table: pages written directly against SQLite at its best, an INSERT ... SELECT from a virtual
 * table that makes the rows as they are asked for, with every setting in its favour. The same rows, in
 * one run, one thread each. Prints "name ours reference unit target of" lines.
 *
 *   bench_load DIR [ROWS]       the comparison
 *   bench_load DIR check ROWS   only ours, then SQLite's integrity check and sums over all columns */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "schema/db/page_rows.h"
#include "schema/record/record.h"
#include "tests/bench/stream.h"

#define N_ROWS 2000000
#define BATCH  64

static int64_t n_rows = N_ROWS;
static char path[512];

static const char pragmas[] = "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF;"
			      "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
			      "PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;";

struct shape {
	const char *name, *create, *index;
	int n_columns;
	void (*row)(int64_t i, int64_t *row);
};

static void small_row(int64_t i, int64_t *row)
{
	row[0] = i + 1;
	row[1] = i * 8 / n_rows;
	row[2] = INT64_C(1700000000000000000) + i * 21000;
	row[3] = 12000 + (i * 7919) % 80000;
	row[4] = 1 + i % 60;
	row[5] = 7 + i % 3;
	row[6] = 1000 + i;
	row[7] = i % 63;
	row[8] = i * 8 / n_rows % 8;
	row[9] = 0;
	row[10] = i % 40 ? LAG_NONE : i / 40;
}

/* As the merge makes them: mostly kernels, a few of which are communication. */
static void event_row(int64_t i, int64_t *row)
{
	int64_t start = INT64_C(1700000000000000000) + i * 21000;
	int64_t took = 12000 + (i * 7919) % 80000;
	bool copy = i % 23 == 0;

	row[0] = i + 1;
	row[1] = i * 8 / n_rows;
	row[2] = copy;
	row[3] = row[1];
	row[4] = 1;
	row[5] = 7 + i % 3;
	row[6] = start + 3517;
	row[7] = start + 3517 + took;
	row[8] = start;
	row[9] = start + took;
	row[10] = 1 + i % 600;
	row[11] = 1000 + i;
	row[12] = i % 50 ? i + 1 : LAG_NONE;
	row[13] = copy ? LAG_NONE : i % 63;
	row[14] = copy ? 1 << i % 24 : LAG_NONE;
	row[15] = copy ? 1 : LAG_NONE;
	row[16] = row[17] = row[18] = LAG_NONE;
	row[19] = i % 40 ? LAG_NONE : i / 40;
	row[20] = i % 50 == 0;
}

static const struct shape shapes[] = {
	{ "11 columns",
	  "CREATE TABLE t (id INTEGER PRIMARY KEY, rank INTEGER NOT NULL, start_ns INTEGER NOT "
	  "NULL, "
	  "c3 INTEGER, c4 INTEGER, c5 INTEGER, c6 INTEGER, c7 INTEGER, c8 INTEGER, c9 INTEGER, "
	  "c10 INTEGER)",
	  "CREATE INDEX i ON t (rank, start_ns)", 11, small_row },
	{ "gpu_event",
	  "CREATE TABLE t (id INTEGER PRIMARY KEY, rank INTEGER NOT NULL, kind INTEGER NOT NULL, "
	  "device INTEGER NOT NULL, context INTEGER, stream INTEGER NOT NULL, start_ns INTEGER NOT "
	  "NULL, end_ns INTEGER, raw_start_ns INTEGER NOT NULL, raw_end_ns INTEGER, name_id "
	  "INTEGER "
	  "NOT NULL, correlation INTEGER, api_id INTEGER, config_id INTEGER, bytes INTEGER, "
	  "copy_kind INTEGER, peer_device INTEGER, graph_id INTEGER, graph_node_id INTEGER, "
	  "launch_id INTEGER, flags INTEGER NOT NULL)",
	  "CREATE INDEX i ON t (rank, start_ns)", 21, event_row },
};

static double now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *text)
{
	(void)fprintf(stderr, "bench_load: %s\n", text);
	(void)unlink(path);
	exit(1);
}

static void ok(enum lag_status st, const struct lag_err *err)
{
	if (st != LAG_OK)
		die(err->text);
}

/* --- SQLite's best -------------------------------------------------------------------------------- */

static void sql(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
}

static sqlite3 *open_new(void)
{
	sqlite3 *db;

	(void)unlink(path);
	if (sqlite3_open_v2(path, &db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	sql(db, pragmas);
	return db;
}

static void stream_row(const void *state, int64_t i, int64_t *row)
{
	((const struct shape *)state)->row(i, row);
}

static double sqlite_seconds(const struct shape *shape, bool index)
{
	sqlite3 *db = open_new();
	double start = now();
	struct stream stream = {
		.row = stream_row, .state = shape, .n_rows = n_rows, .n_columns = shape->n_columns
	};

	if (stream_register(db, "stream", &stream) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	sql(db, "BEGIN");
	sql(db, shape->create);
	sql(db, "INSERT INTO t SELECT * FROM stream");
	/* Afterwards: loading into an index costs SQLite far more. */
	if (index)
		sql(db, shape->index);
	sql(db, "COMMIT");
	(void)sqlite3_close(db);
	return now() - start;
}

/* --- ours ----------------------------------------------------------------------------------------- */

static void add_all(struct lag_page_rows *rows, const struct shape *shape)
{
	int64_t values[BATCH * STREAM_COLUMNS_MAX];
	struct lag_err err;

	for (int64_t i = 0; i < n_rows;) {
		size_t n = 0;

		for (; n < BATCH && i < n_rows; n++)
			shape->row(i++, values + n * (size_t)shape->n_columns);
		ok(lag_page_rows_add(rows, values, n, &err), &err);
	}
}

static double pages_seconds(const struct shape *shape, bool index)
{
	sqlite3 *db = open_new();
	double start = now();
	struct lag_page_file file;
	struct lag_page_set set;
	struct lag_page_rows *rows;
	struct lag_db *described;
	struct lag_err err;
	uint32_t broken;

	sql(db, shape->create);
	if (index)
		sql(db, shape->index);
	(void)sqlite3_close(db);
	ok(lag_db_create(path, &described, &err), &err);
	ok(lag_page_table_describe(described, "t", &set.table, &err), &err);
	lag_db_close(described);
	ok(lag_page_file_open(&file, path, &err), &err);
	ok(lag_page_set_init(&set, &file, path, &err), &err);
	rows = lag_page_rows_begin(&set);
	if (!rows)
		die("no memory");
	add_all(rows, shape);
	ok(lag_page_rows_seal(rows, &err), &err);
	ok(lag_page_set_finish(&set, &broken, &err), &err);
	ok(lag_page_file_finish(&file, &err), &err);
	lag_page_set_release(&set);
	if (broken)
		die("the index is not in order");
	return now() - start;
}

/* --- what it prints ------------------------------------------------------------------------------- */

static void compare(const struct shape *shape, bool index)
{
	double best[2] = { 1e9, 1e9 };

	/* In turn, so that both meet the same machine. */
	for (int round = 0; round < 3; round++) {
		double ours = pages_seconds(shape, index), theirs = sqlite_seconds(shape, index);

		best[0] = ours < best[0] ? ours : best[0];
		best[1] = theirs < best[1] ? theirs : best[1];
	}
	printf("load %s%s\t%.3f\t%.3f\tM rows/s\t8\tINSERT..SELECT of a streaming virtual "
	       "table%s\n",
	       shape->name, index ? " + index" : "", (double)n_rows / best[0] / 1e6,
	       (double)n_rows / best[1] / 1e6, index ? ", CREATE INDEX" : "");
	(void)fflush(stdout);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *text)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	return stmt;
}

static int64_t count_differing(sqlite3 *db, const struct shape *shape)
{
	sqlite3_stmt *stmt = prepare(db, "SELECT * FROM t NOT INDEXED");
	int64_t row[STREAM_COLUMNS_MAX], i = 0, differ = 0;

	for (; sqlite3_step(stmt) == SQLITE_ROW; i++) {
		bool same = true;

		shape->row(i, row);
		for (int c = 0; c < shape->n_columns; c++) {
			same = same &&
			       (row[c] == LAG_NONE ? sqlite3_column_type(stmt, c) == SQLITE_NULL
						   : sqlite3_column_int64(stmt, c) == row[c]);
		}
		differ += !same;
	}
	(void)sqlite3_finalize(stmt);
	return differ + llabs(i - n_rows);
}

static void check(const struct shape *shape)
{
	double seconds = pages_seconds(shape, true);
	sqlite3_stmt *stmt;
	int64_t indexed, differ;
	bool sound;
	sqlite3 *db;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	stmt = prepare(db, "PRAGMA integrity_check");
	sound = sqlite3_step(stmt) == SQLITE_ROW &&
		strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") == 0;
	(void)sqlite3_finalize(stmt);
	stmt = prepare(db, "SELECT count(*) FROM t INDEXED BY i WHERE rank >= 0");
	indexed = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
	(void)sqlite3_finalize(stmt);
	differ = count_differing(db, shape);
	(void)sqlite3_close(db);
	printf("%s: %lld rows in %.1f s; integrity_check %s; %lld in the index; %lld rows differ\n",
	       shape->name, (long long)n_rows, seconds, sound ? "ok" : "FAILED", (long long)indexed,
	       (long long)differ);
	if (!sound || indexed != n_rows || differ)
		die("the file is not what was written");
}

int main(int argc, char **argv)
{
	bool only_check = argc > 3 && strcmp(argv[2], "check") == 0;

	(void)snprintf(path, sizeof(path), "%s/bench-load.db", argc > 1 ? argv[1] : "/tmp");
	if (argc > 2)
		n_rows = strtoll(argv[only_check ? 3 : 2], NULL, 10);
	if (n_rows < 1)
		die("how many rows?");
	if (sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK ||
	    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK)
		die("SQLite refuses its settings");
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (only_check) {
			check(&shapes[i]);
		} else {
			compare(&shapes[i], false);
			compare(&shapes[i], true);
		}
	}
	(void)unlink(path);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* bench_merge TRACE.db OUT.db: loads the rows of a trace's event tables into a new file, the way SQLite does it
 * fastest, then makes the indexes; prints rows, seconds, and
 * seconds of the processor. The rows are in memory before the clock starts, so
 * that this is what a merge would at least take if it left its tables to SQLite. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/mem.h"
#include "schema/record/record.h"
#include "schema/sql/index.sql.h"
#include "schema/sql/schema.sql.h"
#include "tests/bench/stream.h"

static const char pragmas[] = "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF;"
			      "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
			      "PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;";

static const char *const tables[] = {
#define LAG_TABLE(name, columns)
#define LAG_EVENT_TABLE(name, columns) #name,
#include "schema/db/tables.def"
};

#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

struct rows {
	struct stream stream;
	struct lag_vec values; /* int64_t */
};

static void die(const char *text)
{
	(void)fprintf(stderr, "bench_merge: %s\n", text);
	exit(1);
}

static void copy_row(const void *state, int64_t i, int64_t *row)
{
	const struct rows *rows = state;
	size_t n = (size_t)rows->stream.n_columns;

	memcpy(row, &LAG_VEC_AT(&rows->values, int64_t, (size_t)i * n), n * sizeof(*row));
}

static void read_rows(sqlite3 *db, const char *table, struct rows *rows)
{
	sqlite3_stmt *stmt;
	char sql[128];

	*rows = (struct rows){ .stream = { .row = copy_row, .state = rows },
			       .values = LAG_VEC_INIT(int64_t) };
	(void)snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	rows->stream.n_columns = sqlite3_column_count(stmt);
	for (; sqlite3_step(stmt) == SQLITE_ROW; rows->stream.n_rows++) {
		if (lag_failed(lag_vec_reserve(&rows->values, (size_t)rows->stream.n_columns)))
			die("no memory");
		for (int c = 0; c < rows->stream.n_columns; c++) {
			LAG_VEC_AT(&rows->values, int64_t, rows->values.n++) =
				sqlite3_column_type(stmt, c) == SQLITE_NULL
					? LAG_NONE
					: sqlite3_column_int64(stmt, c);
		}
	}
	(void)sqlite3_finalize(stmt);
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
}

static double now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Seconds; *cpu: of the processor. */
static double load(const char *path, const struct rows *rows, double *cpu)
{
	double start = now();
	clock_t spent = clock();
	char sql[128], name[64];
	sqlite3 *db;

	(void)unlink(path);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	run(db, pragmas);
	run(db, lag_sql_schema);
	run(db, "BEGIN");
	for (size_t t = 0; t < N_TABLES; t++) {
		(void)snprintf(name, sizeof(name), "stream_%s", tables[t]);
		if (stream_register(db, name, &rows[t].stream) != SQLITE_OK)
			die(sqlite3_errmsg(db));
		(void)snprintf(sql, sizeof(sql), "INSERT INTO %s SELECT * FROM %s", tables[t],
			       name);
		run(db, sql);
	}
	run(db, lag_sql_index);
	run(db, "COMMIT");
	(void)sqlite3_close(db);
	*cpu = (double)(clock() - spent) / CLOCKS_PER_SEC;
	return now() - start;
}

int main(int argc, char **argv)
{
	struct rows rows[N_TABLES];
	double wall, cpu = 0;
	long long n = 0;
	sqlite3 *db;

	if (argc != 3)
		die("usage: bench_merge TRACE.db OUT.db");
	/* Without its mutexes, as the merge uses it. */
	(void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	for (size_t t = 0; t < N_TABLES; t++) {
		read_rows(db, tables[t], &rows[t]);
		n += rows[t].stream.n_rows;
	}
	(void)sqlite3_close(db);
	wall = load(argv[2], rows, &cpu);
	printf("%lld %.3f %.3f\n", n, wall, cpu);
	for (size_t t = 0; t < N_TABLES; t++)
		lag_vec_release(&rows[t].values);
	return 0;
}

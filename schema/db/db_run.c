/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: a share of a table's pages, or SQLite's inserts one thread after the other. */
#include "schema/db/db_run.h"

#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/db/db_writer.h"

struct lag_db_run {
	struct lag_db_writer *w;
	enum lag_table table;
	struct lag_page_rows *rows; /* NULL = by SQL */
};

static bool is_event(enum lag_table table)
{
	static const bool events[LAG_TABLE_LIMIT] = {
#define LAG_TABLE(name, columns)
#define LAG_EVENT_TABLE(name, columns) [LAG_TABLE_##name] = true,
#include "schema/db/tables.def"
	};

	return events[table];
}

enum lag_status lag_db_run_open(struct lag_db_writer *w, enum lag_table table,
				struct lag_db_run **out, struct lag_err *err)
{
	struct lag_db_run *run = lag_calloc(1, sizeof(*run));

	*out = NULL;
	if (!is_event(table)) {
		free(run);
		return lag_err_set(err, LAG_ERR_USAGE, "table %d is written by inserts only",
				   (int)table);
	}
	if (run && w->kind == LAG_DB_WRITER_PAGES)
		run->rows = lag_page_rows_begin(w->set[table]);
	if (!run || (w->kind == LAG_DB_WRITER_PAGES && !run->rows)) {
		free(run);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to write the trace");
	}
	run->w = w;
	run->table = table;
	*out = run;
	return LAG_OK;
}

enum lag_status lag_db_run_add(struct lag_db_run *run, const int64_t *values, size_t n_columns,
			       size_t n_rows, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (n_columns != lag_table_columns[run->table]) {
		return lag_err_set(err, LAG_ERR_USAGE, "table %d has %u columns, not %zu",
				   (int)run->table, lag_table_columns[run->table], n_columns);
	}
	if (run->rows)
		return lag_page_rows_add(run->rows, values, n_rows, err);
	for (size_t i = 0; i < n_rows && st == LAG_OK; i++) {
		st = lag_db_insert_ints_sql(run->w, run->table, values + i * n_columns, n_columns,
					    err);
	}
	return st;
}

enum lag_status lag_db_run_end(struct lag_db_run *run, struct lag_err *err)
{
	enum lag_status st = run->rows ? lag_page_rows_seal(run->rows, err) : LAG_OK;

	free(run);
	return st;
}

void lag_db_run_drop(struct lag_db_run *run)
{
	if (!run)
		return;
	lag_page_rows_drop(run->rows);
	free(run);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* EVENT tables as pages: the file goes from SQLite, which made the schema, to page_rows.c and back. */
#include <stdio.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/db/db_writer.h"
#include "schema/sql/begin.sql.h"
#include "schema/sql/finish.sql.h"
#include "schema/sql/index.sql.h"
#include "schema/sql/schema.sql.h"

static const char *const event_names[LAG_TABLE_LIMIT] = {
#define LAG_TABLE(name, columns)
#define LAG_EVENT_TABLE(name, columns) [LAG_TABLE_##name] = #name,
#include "schema/db/tables.def"
};

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to write the trace");
}

static enum lag_status open_set(struct lag_db_writer *w, int table, struct lag_err *err)
{
	struct lag_page_set *set = lag_calloc(1, sizeof(*set));
	enum lag_status st;

	if (!set)
		return no_memory(err);
	st = lag_page_table_describe(w->db, event_names[table], &set->table, err);
	if (st == LAG_OK && set->table.n_columns != lag_table_columns[table]) {
		st = lag_err_set(err, LAG_ERR_USAGE, "table %s has %u columns in the schema",
				 event_names[table], set->table.n_columns);
	}
	if (st == LAG_OK)
		st = lag_page_set_init(set, &w->file, w->path, err);
	if (st == LAG_OK) {
		w->set[table] = set;
	} else {
		free(set);
	}
	return st;
}

enum lag_status lag_db_pages_open(struct lag_db_writer *w, struct lag_err *err)
{
	static const char *const steps[] = { lag_sql_begin, lag_sql_schema, lag_sql_index,
					     lag_sql_finish };
	enum lag_status st = lag_db_create(w->path, &w->db, err);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && st == LAG_OK; i++)
		st = lag_db_exec(w->db, steps[i], err);
	for (int i = 0; i < LAG_TABLE_LIMIT && st == LAG_OK; i++)
		st = event_names[i] ? open_set(w, i, err) : LAG_OK;
	lag_db_close(w->db);
	w->db = NULL;
	return st == LAG_OK ? lag_page_file_open(&w->file, w->path, err) : st;
}

enum lag_status lag_db_pages_insert(struct lag_db_writer *w, enum lag_table table,
				    const int64_t *values, struct lag_err *err)
{
	if (!w->rows[table])
		w->rows[table] = lag_page_rows_begin(w->set[table]);
	return w->rows[table] ? lag_page_rows_add(w->rows[table], values, 1, err) : no_memory(err);
}

static enum lag_status end_pages(struct lag_db_writer *w, uint32_t *broken, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (int i = 0; i < LAG_TABLE_LIMIT && st == LAG_OK; i++) {
		if (w->rows[i])
			st = lag_page_rows_seal(w->rows[i], err);
		w->rows[i] = NULL;
		if (w->set[i] && st == LAG_OK)
			st = lag_page_set_finish(w->set[i], &broken[i], err);
	}
	return st == LAG_OK ? lag_page_file_finish(&w->file, err) : st;
}

static enum lag_status insert_logged(void *state, enum lag_table table,
				     const struct lag_value *values, size_t n, struct lag_err *err)
{
	return lag_db_insert_sql(state, table, values, n, err);
}

/* Indexes whose entries came in another order than theirs: SQLite sorts them, within its own bounds. */
static enum lag_status reindex(struct lag_db_writer *w, const uint32_t *broken, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (int i = 0; i < LAG_TABLE_LIMIT; i++) {
		for (uint32_t k = 0; broken[i] >> k && st == LAG_OK; k++) {
			char sql[128];

			if (!(broken[i] >> k & 1))
				continue;
			(void)snprintf(sql, sizeof(sql), "REINDEX \"%s\"",
				       w->set[i]->table.index[k].name);
			st = lag_db_exec(w->db, sql, err);
		}
	}
	return st;
}

enum lag_status lag_db_pages_finish(struct lag_db_writer *w, struct lag_err *err)
{
	uint32_t broken[LAG_TABLE_LIMIT] = { 0 };
	enum lag_status st = end_pages(w, broken, err);

	if (st == LAG_OK)
		st = lag_db_create(w->path, &w->db, err);
	if (st == LAG_OK)
		st = lag_db_writer_begin(w, err);
	if (st == LAG_OK)
		st = lag_row_log_each(&w->log, insert_logged, w, err);
	return st == LAG_OK ? reindex(w, broken, err) : st;
}

void lag_db_pages_close(struct lag_db_writer *w)
{
	for (int i = 0; i < LAG_TABLE_LIMIT; i++) {
		lag_page_rows_drop(w->rows[i]);
		if (w->set[i])
			lag_page_set_release(w->set[i]);
		free(w->set[i]);
	}
	lag_page_file_close(&w->file);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Root pages, columns and indexes of a table, asked of SQLite. */
#include "schema/db/page_table.h"

#include <stdio.h>
#include <string.h>

#include "schema/db/page_row.h"
#include "schema/sql/describe.sql.h"

/* Statements of describe.sql. */
enum question {
	ASK_ROOT,
	ASK_COLUMNS,
	ASK_INDEXES,
	ASK_KEYS,
	N_QUESTIONS
};

struct answers {
	struct lag_stmt *ask[N_QUESTIONS];
	struct lag_page_table *table;
};

static enum lag_status not_so(const char *name, const char *why, struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_USAGE, "table %s cannot be written as pages: %s", name,
			   why);
}

static enum lag_status ask_root(struct answers *a, struct lag_err *err)
{
	enum lag_status st = lag_stmt_step(a->ask[ASK_ROOT], err);

	if (st == LAG_END)
		return not_so(a->table->name, "it is not there", err);
	a->table->root = (uint32_t)lag_stmt_int(a->ask[ASK_ROOT], 0);
	return st;
}

static enum lag_status ask_columns(struct answers *a, struct lag_err *err)
{
	struct lag_page_table *t = a->table;
	struct lag_stmt *stmt = a->ask[ASK_COLUMNS];
	enum lag_status st;

	while ((st = lag_stmt_step(stmt, err)) == LAG_OK) {
		if (t->n_columns == LAG_ROW_COLUMNS_MAX)
			return not_so(t->name, "too many columns", err);
		if (!lag_stmt_int(stmt, 0))
			return not_so(t->name, "a column is no integer", err);
		if (lag_stmt_int(stmt, 1) != (t->n_columns == 0))
			return not_so(t->name, "its first column is not its key", err);
		t->not_null |= (uint64_t)(lag_stmt_int(stmt, 2) != 0) << t->n_columns++;
	}
	if (st == LAG_END && t->n_columns < 2)
		return not_so(t->name, "too few columns", err);
	return st == LAG_END ? LAG_OK : st;
}

static enum lag_status ask_keys(struct answers *a, struct lag_page_index *index,
				struct lag_err *err)
{
	struct lag_stmt *stmt = a->ask[ASK_KEYS];
	enum lag_status st = lag_stmt_bind_text(stmt, 1, index->name, err);

	if (st != LAG_OK)
		return st;
	while ((st = lag_stmt_step(stmt, err)) == LAG_OK) {
		if (index->n_keys == LAG_PAGE_KEYS_MAX)
			return not_so(a->table->name, "an index of too many columns", err);
		index->column[index->n_keys++] = (uint8_t)lag_stmt_int(stmt, 0);
	}
	return st == LAG_END ? LAG_OK : st;
}

static enum lag_status ask_indexes(struct answers *a, struct lag_err *err)
{
	struct lag_page_table *t = a->table;
	struct lag_stmt *stmt = a->ask[ASK_INDEXES];
	enum lag_status st;

	while ((st = lag_stmt_step(stmt, err)) == LAG_OK) {
		struct lag_page_index *index = &t->index[t->n_indexes];

		if (t->n_indexes++ == LAG_PAGE_INDEXES_MAX)
			return not_so(t->name, "too many indexes", err);
		if (lag_stmt_int(stmt, 2))
			return not_so(t->name, "an index is no plain one", err);
		(void)snprintf(index->name, sizeof(index->name), "%s", lag_stmt_text(stmt, 0));
		index->root = (uint32_t)lag_stmt_int(stmt, 1);
		st = ask_keys(a, index, err);
		if (st != LAG_OK)
			return st;
	}
	return st == LAG_END ? LAG_OK : st;
}

/* Ids ascend by (rank, time): docs of the schema, and what the merge gives. */
static enum lag_status find_order(struct answers *a, struct lag_err *err)
{
	struct lag_stmt *stmt = a->ask[ASK_COLUMNS];
	enum lag_status st;

	for (uint8_t column = 0; (st = lag_stmt_step(stmt, err)) == LAG_OK; column++) {
		bool rank = strcmp(lag_stmt_text(stmt, 3), "rank") == 0;

		for (uint32_t i = 0; i < a->table->n_indexes; i++) {
			struct lag_page_index *index = &a->table->index[i];

			index->in_order = index->in_order || (rank && index->column[0] == column);
		}
	}
	return st == LAG_END ? LAG_OK : st;
}

enum lag_status lag_page_table_describe(struct lag_db *db, const char *name,
					struct lag_page_table *table, struct lag_err *err)
{
	struct answers a = { .table = table };
	const char *sql = lag_sql_describe;
	enum lag_status st = LAG_OK;

	*table = (struct lag_page_table){ 0 };
	(void)snprintf(table->name, sizeof(table->name), "%s", name);
	for (int i = 0; i < N_QUESTIONS && st == LAG_OK; i++) {
		st = lag_stmt_prepare(db, sql, &sql, &a.ask[i], err);
		if (st == LAG_OK)
			st = lag_stmt_bind_text(a.ask[i], 1, name, err);
	}
	if (st == LAG_OK)
		st = ask_root(&a, err);
	if (st == LAG_OK)
		st = ask_columns(&a, err);
	if (st == LAG_OK)
		st = ask_indexes(&a, err);
	if (st == LAG_OK)
		st = find_order(&a, err);
	for (int i = 0; i < N_QUESTIONS; i++)
		lag_stmt_free(a.ask[i]);
	return st;
}

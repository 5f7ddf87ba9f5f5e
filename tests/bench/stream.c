/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's own best way to load a table: INSERT ... SELECT from a virtual table that makes each row when it
 * is asked for. */
#include "tests/bench/stream.h"

#include <stdio.h>

#include "schema/record/record.h"

struct table {
	sqlite3_vtab base;
	const struct stream *stream;
};

struct cursor {
	sqlite3_vtab_cursor base;
	const struct stream *stream;
	int64_t i, row[STREAM_COLUMNS_MAX];
};

static int stream_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			  sqlite3_vtab **out, char **error)
{
	const struct stream *stream = aux;
	struct table *table = sqlite3_malloc(sizeof(*table));
	char sql[512];
	int n;

	(void)argc, (void)argv, (void)error;
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct table){ .stream = stream };
	n = snprintf(sql, sizeof(sql), "CREATE TABLE x (c0");
	for (int i = 1; i < stream->n_columns; i++)
		n += snprintf(sql + n, sizeof(sql) - (size_t)n, ", c%d", i);
	(void)snprintf(sql + n, sizeof(sql) - (size_t)n, ")");
	*out = &table->base;
	return sqlite3_declare_vtab(db, sql);
}

static int stream_disconnect(sqlite3_vtab *vtab)
{
	sqlite3_free(vtab);
	return SQLITE_OK;
}

static int stream_plan(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	info->estimatedCost = (double)((struct table *)(void *)vtab)->stream->n_rows;
	return SQLITE_OK;
}

static int stream_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
	struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));

	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct cursor){ .stream = ((struct table *)(void *)vtab)->stream };
	*out = &cursor->base;
	return SQLITE_OK;
}

static int stream_close(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int stream_next(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)(void *)base;

	if (++cursor->i < cursor->stream->n_rows)
		cursor->stream->row(cursor->stream->state, cursor->i, cursor->row);
	return SQLITE_OK;
}

static int stream_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
			 sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)(void *)base;

	(void)number, (void)text, (void)argc, (void)argv;
	cursor->i = -1;
	return stream_next(base);
}

static int stream_end(sqlite3_vtab_cursor *base)
{
	const struct cursor *cursor = (const struct cursor *)(void *)base;

	return cursor->i >= cursor->stream->n_rows;
}

static int stream_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	int64_t value = ((struct cursor *)(void *)base)->row[column];

	if (value != LAG_NONE)
		sqlite3_result_int64(context, value);
	return SQLITE_OK;
}

static int stream_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
	*rowid = ((struct cursor *)(void *)base)->i;
	return SQLITE_OK;
}

static const sqlite3_module stream_module = {
	.xConnect = stream_connect,
	.xBestIndex = stream_plan,
	.xDisconnect = stream_disconnect,
	.xOpen = stream_open,
	.xClose = stream_close,
	.xFilter = stream_filter,
	.xNext = stream_next,
	.xEof = stream_end,
	.xColumn = stream_column,
	.xRowid = stream_rowid,
};

int stream_register(sqlite3 *db, const char *name, const struct stream *stream)
{
	/* A module of this name is a table of this name. */
	return sqlite3_create_module(db, name, &stream_module, (void *)(uintptr_t)stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared statements: bind, step, read columns. */
#include <math.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/db/db_internal.h"

static enum lag_status fail(struct lag_stmt *stmt, const char *what, struct lag_err *err)
{
	return lag_db_fail(sqlite3_db_handle(stmt->sqlite), what, err);
}

enum lag_status lag_stmt_prepare(struct lag_db *db, const char *sql, const char **tail,
				 struct lag_stmt **out, struct lag_err *err)
{
	sqlite3_stmt *sqlite = NULL;
	const char *rest = sql;

	*out = NULL;
	/* Comments alone prepare to nothing: go on to the first real statement. */
	while (!sqlite && *rest) {
		if (sqlite3_prepare_v2(db->sqlite, rest, -1, &sqlite, &rest) != SQLITE_OK)
			return lag_db_fail(db->sqlite, "statement", err);
	}
	if (tail)
		*tail = rest;
	if (!sqlite)
		return LAG_END;
	*out = lag_calloc(1, sizeof(**out));
	if (!*out) {
		(void)sqlite3_finalize(sqlite);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	}
	(*out)->sqlite = sqlite;
	return LAG_OK;
}

void lag_stmt_free(struct lag_stmt *stmt)
{
	if (!stmt)
		return;
	(void)sqlite3_finalize(stmt->sqlite);
	free(stmt);
}

enum lag_status lag_stmt_bind_int(struct lag_stmt *stmt, int param, int64_t value,
				  struct lag_err *err)
{
	int rc = value == LAG_NONE ? sqlite3_bind_null(stmt->sqlite, param)
				   : sqlite3_bind_int64(stmt->sqlite, param, value);

	return rc == SQLITE_OK ? LAG_OK : fail(stmt, "bind", err);
}

enum lag_status lag_stmt_bind_real(struct lag_stmt *stmt, int param, double value,
				   struct lag_err *err)
{
	if (sqlite3_bind_double(stmt->sqlite, param, value) != SQLITE_OK)
		return fail(stmt, "bind", err);
	return LAG_OK;
}

enum lag_status lag_stmt_bind_text(struct lag_stmt *stmt, int param, const char *text,
				   struct lag_err *err)
{
	if (sqlite3_bind_text(stmt->sqlite, param, text, -1, SQLITE_TRANSIENT) != SQLITE_OK)
		return fail(stmt, "bind", err);
	return LAG_OK;
}

enum lag_status lag_stmt_bind_blob(struct lag_stmt *stmt, int param, const void *bytes, size_t n,
				   struct lag_err *err)
{
	if (sqlite3_bind_blob64(stmt->sqlite, param, bytes, n, SQLITE_TRANSIENT) != SQLITE_OK)
		return fail(stmt, "bind", err);
	return LAG_OK;
}

enum lag_status lag_stmt_step(struct lag_stmt *stmt, struct lag_err *err)
{
	switch (sqlite3_step(stmt->sqlite)) {
	case SQLITE_ROW:
		return LAG_OK;
	case SQLITE_DONE:
		(void)sqlite3_reset(stmt->sqlite);
		return LAG_END;
	default:
		return fail(stmt, "database", err);
	}
}

void lag_stmt_reset(struct lag_stmt *stmt)
{
	(void)sqlite3_reset(stmt->sqlite);
}

int lag_stmt_columns(const struct lag_stmt *stmt)
{
	return sqlite3_column_count(stmt->sqlite);
}

const char *lag_stmt_column_name(const struct lag_stmt *stmt, int column)
{
	const char *name = sqlite3_column_name(stmt->sqlite, column);

	return name ? name : "";
}

bool lag_stmt_is_null(const struct lag_stmt *stmt, int column)
{
	return sqlite3_column_type(stmt->sqlite, column) == SQLITE_NULL;
}

bool lag_stmt_is_int(const struct lag_stmt *stmt, int column)
{
	return sqlite3_column_type(stmt->sqlite, column) == SQLITE_INTEGER;
}

bool lag_stmt_is_real(const struct lag_stmt *stmt, int column)
{
	return sqlite3_column_type(stmt->sqlite, column) == SQLITE_FLOAT;
}

int64_t lag_stmt_int(const struct lag_stmt *stmt, int column)
{
	return lag_stmt_is_null(stmt, column) ? LAG_NONE
					      : sqlite3_column_int64(stmt->sqlite, column);
}

double lag_stmt_real(const struct lag_stmt *stmt, int column)
{
	return lag_stmt_is_null(stmt, column) ? (double)NAN
					      : sqlite3_column_double(stmt->sqlite, column);
}

const char *lag_stmt_text(const struct lag_stmt *stmt, int column)
{
	const unsigned char *text = sqlite3_column_text(stmt->sqlite, column);

	return text ? (const char *)text : "";
}

const void *lag_stmt_blob(const struct lag_stmt *stmt, int column, size_t *n)
{
	*n = 0;
	if (sqlite3_column_type(stmt->sqlite, column) != SQLITE_BLOB)
		return NULL;
	const void *bytes = sqlite3_column_blob(stmt->sqlite, column);

	*n = bytes ? (size_t)sqlite3_column_bytes(stmt->sqlite, column) : 0;
	return bytes;
}

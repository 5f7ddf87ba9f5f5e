/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of one value, and SQLite's integrity check. */
#include "tests/unit/db_check.h"

#include "tests/unit/unit.h"

void dbc_ok(enum lag_status st, const struct lag_err *err)
{
	if (st != LAG_OK)
		fail_msg("%s", err->text);
}

static struct lag_stmt *first_row(struct lag_db *db, const char *sql)
{
	struct lag_stmt *stmt;
	struct lag_err err;

	dbc_ok(lag_stmt_prepare(db, sql, NULL, &stmt, &err), &err);
	dbc_ok(lag_stmt_step(stmt, &err), &err);
	return stmt;
}

void dbc_sound(struct lag_db *db)
{
	struct lag_stmt *stmt = first_row(db, "PRAGMA integrity_check(5)");

	assert_string_equal(lag_stmt_text(stmt, 0), "ok");
	lag_stmt_free(stmt);
}

int64_t dbc_int(struct lag_db *db, const char *sql)
{
	struct lag_stmt *stmt = first_row(db, sql);
	int64_t value = lag_stmt_int(stmt, 0);

	lag_stmt_free(stmt);
	return value;
}

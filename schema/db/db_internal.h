/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of schema/db share: the structs, and SQLite's message as a lag_err. */
#ifndef SCHEMA_DB_DB_INTERNAL_H
#define SCHEMA_DB_DB_INTERNAL_H

#include <sqlite3.h>

#include "schema/db/db.h"

struct lag_db {
	sqlite3 *sqlite;
};

struct lag_stmt {
	sqlite3_stmt *sqlite;
};

/* Sets err from the connection's last error: corrupt or foreign files are LAG_ERR_INPUT, all else is
 * LAG_ERR_SYSTEM. */
enum lag_status lag_db_fail(sqlite3 *sqlite, const char *what, struct lag_err *err);

/* A connection that reads the file at path as it lies there: read-only, immutable, nothing else set. */
enum lag_status lag_db_connect_readonly(const char *path, struct lag_db **out,
					struct lag_err *err) LAG_MUST_USE;

#endif

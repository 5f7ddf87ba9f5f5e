/* SPDX-License-Identifier: Apache-2.0 */
/* The merged trace's file, and the only caller of SQLite. A connection and its statements belong to
 * one thread at a time. SQL texts come from .sql files ("<folder>/<file>.sql.h" at build time, constant lag_sql_<file>). */
#ifndef SCHEMA_DB_DB_H
#define SCHEMA_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/record/record.h" /* LAG_NONE */

#define LAG_DB_APPLICATION_ID 0x4c616747 /* "LagG": PRAGMA application_id of every merged trace */
#define LAG_DB_VERSION        2          /* PRAGMA user_version */

struct lag_db;   /* owned by the caller between open/create and close */
struct lag_stmt; /* owned by the caller between prepare and free; not longer than its lag_db */

/* Opens a merged trace for reading (read-only, immutable: no lock, no journal, any file system).
 * LAG_ERR_INPUT: not a file that laggard wrote, or of a newer version; LAG_ERR_SYSTEM: not readable. */
enum lag_status lag_db_open(const char *path, struct lag_db **out,
			    struct lag_err *err) LAG_MUST_USE;

/* The same for changing it: the caller's own copy, which is removed when anything fails, since there is
 * no journal to roll back. */
enum lag_status lag_db_open_rw(const char *path, struct lag_db **out,
			       struct lag_err *err) LAG_MUST_USE;

/* Makes an empty database at path, which must not exist or be empty, tuned for one bulk load. */
enum lag_status lag_db_create(const char *path, struct lag_db **out,
			      struct lag_err *err) LAG_MUST_USE;

void lag_db_close(struct lag_db *db); /* NULL is allowed */

/* Runs every statement of sql. */
enum lag_status lag_db_exec(struct lag_db *db, const char *sql, struct lag_err *err) LAG_MUST_USE;

/* Prepares the first statement of sql. `tail`, where not NULL, gets the text after it, so that a file
 * of several statements is walked with sql = tail; LAG_END when only blanks and comments are left. */
enum lag_status lag_stmt_prepare(struct lag_db *db, const char *sql, const char **tail,
				 struct lag_stmt **out, struct lag_err *err) LAG_MUST_USE;
void lag_stmt_free(struct lag_stmt *stmt); /* NULL is allowed */

/* Parameters count from 1. LAG_NONE binds NULL. Text is copied; NULL text binds NULL. */
enum lag_status lag_stmt_bind_int(struct lag_stmt *stmt, int param, int64_t value,
				  struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_stmt_bind_real(struct lag_stmt *stmt, int param, double value,
				   struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_stmt_bind_text(struct lag_stmt *stmt, int param, const char *text,
				   struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_stmt_bind_blob(struct lag_stmt *stmt, int param, const void *bytes, size_t n,
				   struct lag_err *err) LAG_MUST_USE;

/* LAG_OK: a row is there; LAG_END: no more (the statement is then reset and may run again). */
enum lag_status lag_stmt_step(struct lag_stmt *stmt, struct lag_err *err) LAG_MUST_USE;

/* Back to before the first row; bindings stay. */
void lag_stmt_reset(struct lag_stmt *stmt);

/* Columns of the current row count from 0. */
int lag_stmt_columns(const struct lag_stmt *stmt);
const char *lag_stmt_column_name(const struct lag_stmt *stmt, int column); /* until free */
bool lag_stmt_is_null(const struct lag_stmt *stmt, int column);
bool lag_stmt_is_int(const struct lag_stmt *stmt, int column);
bool lag_stmt_is_real(const struct lag_stmt *stmt, int column);
int64_t lag_stmt_int(const struct lag_stmt *stmt, int column); /* NULL gives LAG_NONE */
double lag_stmt_real(const struct lag_stmt *stmt, int column); /* NULL gives NaN */

/* Never NULL (SQL NULL gives ""). Borrowed until the next step, reset or free. */
const char *lag_stmt_text(const struct lag_stmt *stmt, int column);

/* The bytes of a blob, *n of them; NULL with *n = 0 for all else. Borrowed likewise. */
const void *lag_stmt_blob(const struct lag_stmt *stmt, int column, size_t *n);

#endif

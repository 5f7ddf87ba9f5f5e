/* SPDX-License-Identifier: Apache-2.0 */
/* Databases that somebody else wrote, hostile ones included, read table by table. Nothing is written, no
 * lock is taken, journals beside the file are not looked at, and nothing that the file defines is ever
 * executed: no view, no trigger, no virtual table, no generated column. What a damaged file still holds
 * is read. One connection belongs to one thread at a time. */
#ifndef SCHEMA_DB_FOREIGN_H
#define SCHEMA_DB_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/record/record.h" /* LAG_NONE */

#define LAG_FOREIGN_COLUMNS_MAX 48
#define LAG_FOREIGN_VALUE_MAX   (1 << 20) /* bytes of one value; a row with a longer one is damage */

struct lag_foreign;      /* owned by the caller between open and close */
struct lag_foreign_rows; /* owned by the caller; not longer than its lag_foreign */

/* True when the beginning of a file is a SQLite database's. */
bool lag_foreign_probe(const uint8_t *head, size_t n);

/* True when it is, and laggard wrote it (head of at least 72 bytes). */
bool lag_foreign_is_ours(const uint8_t *head, size_t n);

/* Opens the file at path. LAG_WARN: damaged (cut off, a broken schema); what can be read is there.
 * LAG_ERR_INPUT: nothing can be read. */
enum lag_status lag_foreign_open(const char *path, struct lag_foreign **out,
				 struct lag_err *err) LAG_MUST_USE;
void lag_foreign_close(struct lag_foreign *f); /* NULL is allowed */

bool lag_foreign_has(const struct lag_foreign *f, const char *table);

/* What stands in the place of `table` and is not read, "a view"; NULL: nothing does. */
const char *lag_foreign_refused(const struct lag_foreign *f, const char *table);

/* Reads `table` row by row; columns (at most LAG_FOREIGN_COLUMNS_MAX, names as constants of the program)
 * that it lacks read as not recorded. LAG_END: there is no such table, *out is NULL. */
enum lag_status lag_foreign_rows_open(struct lag_foreign *f, const char *table,
				      const char *const *columns, size_t n,
				      struct lag_foreign_rows **out,
				      struct lag_err *err) LAG_MUST_USE;
void lag_foreign_rows_close(struct lag_foreign_rows *rows); /* NULL is allowed */

/* Whether the table has that column. */
bool lag_foreign_rows_have(const struct lag_foreign_rows *rows, size_t column);

/* Whether that column is the row's number, by which lag_foreign_rows_find looks. */
bool lag_foreign_rows_keyed(const struct lag_foreign_rows *rows, size_t column);

/* LAG_OK: a row is there. LAG_END: no more. Past damage, reading goes on from the table's end. */
enum lag_status lag_foreign_rows_next(struct lag_foreign_rows *rows,
				      struct lag_err *err) LAG_MUST_USE;

/* The row of that number; LAG_END when there is none or it cannot be read. */
enum lag_status lag_foreign_rows_find(struct lag_foreign_rows *rows, int64_t number,
				      struct lag_err *err) LAG_MUST_USE;

/* Whether a part of the table could not be read so far. */
bool lag_foreign_rows_damaged(const struct lag_foreign_rows *rows);

/* Values of the current row. An integer: also a whole real, or text of digits; LAG_NONE otherwise. */
int64_t lag_foreign_int(const struct lag_foreign_rows *rows, size_t column);

/* Text (NUL-terminated) or bytes, n of them; NULL when there are none. Borrowed until the next row. */
const char *lag_foreign_text(const struct lag_foreign_rows *rows, size_t column, size_t *n);

#endif

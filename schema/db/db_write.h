/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a new merged trace. Rows of EVENT tables (tables.def) become pages of the file without SQLite
 * having a hand in it; it makes the schema before, and inserts all other rows when these are there. Or
 * SQLite does it all, which takes many times as long: the oracle, and the way out.
 *
 * A failure may leave a file that is of no use: the caller removes it. */
#ifndef SCHEMA_DB_DB_WRITE_H
#define SCHEMA_DB_DB_WRITE_H

#include "schema/db/db.h"

enum lag_table {
#define LAG_TABLE(name, columns) LAG_TABLE_##name,
#include "schema/db/tables.def"
	LAG_TABLE_LIMIT
};

#define LAG_TABLE_COLUMNS_MAX 32

enum lag_value_type {
	LAG_V_INT, /* LAG_NONE = NULL */
	LAG_V_REAL,
	LAG_V_TEXT, /* NULL = NULL; bytes that are not UTF-8 are replaced */
	LAG_V_BLOB
};

struct lag_value {
	enum lag_value_type type;
	uint32_t n; /* bytes of a blob */

	union {
		int64_t i;
		double r;
		const char *s;
		const void *b;
	};
};

#define LAG_INT(x)        ((struct lag_value){ .type = LAG_V_INT, .i = (x) })
#define LAG_REAL(x)       ((struct lag_value){ .type = LAG_V_REAL, .r = (x) })
#define LAG_TEXT(x)       ((struct lag_value){ .type = LAG_V_TEXT, .s = (x) })
#define LAG_BLOB(x, size) ((struct lag_value){ .type = LAG_V_BLOB, .n = (size), .b = (x) })

struct lag_db_writer; /* owned by the caller */

enum lag_db_writer_kind {
	LAG_DB_WRITER_PAGES = 0,
	LAG_DB_WRITER_SQL,
};

struct lag_db_writer_opts {
	enum lag_db_writer_kind writer;
};

/* Makes the tables in the empty file at path and begins. opts: NULL = all zero. */
enum lag_status lag_db_writer_open(const char *path, const struct lag_db_writer_opts *opts,
				   struct lag_db_writer **out, struct lag_err *err) LAG_MUST_USE;

/* Begins to add to the trace at path, which has all tables and indexes already. New ids lie behind those
 * that are there; all rows are inserted by SQLite. LAG_ERR_INPUT: no trace of this schema. */
enum lag_status lag_db_writer_reopen(const char *path, struct lag_db_writer **out,
				     struct lag_err *err) LAG_MUST_USE;

/* What a trace that is added to needs besides: a statement that changes rows (freed by the caller before
 * the writer is closed). For the thread that inserts. */
enum lag_status lag_db_writer_prepare(struct lag_db_writer *w, const char *sql, const char **tail,
				      struct lag_stmt **out, struct lag_err *err) LAG_MUST_USE;

/* One row; n is the table's number of columns. Ids of an EVENT table ascend from row to row (and lie
 * before or after those of a run, db_run.h). For one thread at a time. What SQLite refuses may come to
 * light at the end only. */
enum lag_status lag_db_insert(struct lag_db_writer *w, enum lag_table table,
			      const struct lag_value *values, size_t n,
			      struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_db_insert_ints(struct lag_db_writer *w, enum lag_table table,
				   const int64_t *values, size_t n,
				   struct lag_err *err) LAG_MUST_USE;

/* Indexes, views, statistics; ends the transaction. */
enum lag_status lag_db_writer_finish(struct lag_db_writer *w, struct lag_err *err) LAG_MUST_USE;

void lag_db_writer_close(struct lag_db_writer *w); /* NULL is allowed */

#endif

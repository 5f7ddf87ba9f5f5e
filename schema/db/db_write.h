/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a new merged trace: tables first, then rows, then indexes and views, all in one transaction. */
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
	LAG_V_TEXT /* NULL = NULL; bytes that are not UTF-8 are replaced */
};

struct lag_value {
	enum lag_value_type type;

	union {
		int64_t i;
		double r;
		const char *s;
	};
};

#define LAG_INT(x)  ((struct lag_value){ .type = LAG_V_INT, .i = (x) })
#define LAG_REAL(x) ((struct lag_value){ .type = LAG_V_REAL, .r = (x) })
#define LAG_TEXT(x) ((struct lag_value){ .type = LAG_V_TEXT, .s = (x) })

struct lag_db_writer; /* owned by the caller */

/* Makes the tables in the empty file at path and begins. */
enum lag_status lag_db_writer_open(const char *path, struct lag_db_writer **out,
				   struct lag_err *err) LAG_MUST_USE;

/* One row; n is the table's number of columns. */
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

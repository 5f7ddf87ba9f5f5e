/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write a trace share. */
#ifndef SCHEMA_DB_DB_WRITER_H
#define SCHEMA_DB_DB_WRITER_H

#include <pthread.h>

#include "schema/base/buf.h"
#include "schema/db/db_run.h"
#include "schema/db/page_rows.h"
#include "schema/db/row_log.h"

struct lag_db_writer {
	enum lag_db_writer_kind kind;
	char *path;
	bool reopened;     /* tables, indexes and views were there before */
	struct lag_db *db; /* pages: only before and after they are written */
	struct lag_stmt *insert[LAG_TABLE_LIMIT];
	struct lag_buf text;  /* cleaned copy of a value */
	pthread_mutex_t lock; /* of what SQLite does for several threads */
	/* Pages only. */
	struct lag_page_file file;
	struct lag_page_set *set[LAG_TABLE_LIMIT];   /* NULL = no EVENT table */
	struct lag_page_rows *rows[LAG_TABLE_LIMIT]; /* the share of lag_db_insert */
	struct lag_row_log log;
};

extern const uint8_t lag_table_columns[LAG_TABLE_LIMIT];

/* Prepares all inserts and begins the transaction. */
enum lag_status lag_db_writer_begin(struct lag_db_writer *w, struct lag_err *err) LAG_MUST_USE;

/* One row by its prepared insert. */
enum lag_status lag_db_insert_sql(struct lag_db_writer *w, enum lag_table table,
				  const struct lag_value *values, size_t n,
				  struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_db_insert_ints_sql(struct lag_db_writer *w, enum lag_table table,
				       const int64_t *values, size_t n,
				       struct lag_err *err) LAG_MUST_USE;

/* Pages: makes schema and empty indexes, and hands the file over from SQLite. */
enum lag_status lag_db_pages_open(struct lag_db_writer *w, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_db_pages_insert(struct lag_db_writer *w, enum lag_table table,
				    const int64_t *values, struct lag_err *err) LAG_MUST_USE;

/* Ends the pages, hands the file back to SQLite, and inserts all rows that waited for it. */
enum lag_status lag_db_pages_finish(struct lag_db_writer *w, struct lag_err *err) LAG_MUST_USE;
void lag_db_pages_close(struct lag_db_writer *w);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that wait for SQLite while it has the file not open, in their order; on disk where they are many. */
#ifndef SCHEMA_DB_ROW_LOG_H
#define SCHEMA_DB_ROW_LOG_H

#include "schema/base/buf.h"
#include "schema/db/db_write.h"
#include "schema/db/temp_file.h"

struct lag_row_log {
	const char *path; /* beside which to write; the caller's */
	struct lag_buf rows;
	struct lag_temp_file file;
};

void lag_row_log_init(struct lag_row_log *log, const char *path);
void lag_row_log_release(struct lag_row_log *log);

/* At most LAG_TABLE_COLUMNS_MAX values, which are copied. */
enum lag_status lag_row_log_add(struct lag_row_log *log, enum lag_table table,
				const struct lag_value *values, size_t n,
				struct lag_err *err) LAG_MUST_USE;

/* Calls each with every row, until one fails; text is borrowed for the call. */
enum lag_status lag_row_log_each(struct lag_row_log *log,
				 enum lag_status (*each)(void *state, enum lag_table table,
							 const struct lag_value *values, size_t n,
							 struct lag_err *err),
				 void *state, struct lag_err *err) LAG_MUST_USE;

#endif

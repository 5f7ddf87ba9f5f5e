/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: rows of one EVENT table written by many threads at once. A run is rows with ascending ids, by one
 * thread; the ids of different runs of a table do not interleave, but runs come in any order. Indexes that
 * begin with the rank take rows as fast as they come while these ascend by the index's columns, within a
 * run and from run to run; otherwise the index is made anew at the end, which is slow but right. */
#ifndef SCHEMA_DB_DB_RUN_H
#define SCHEMA_DB_DB_RUN_H

#include "schema/db/db_write.h"

struct lag_db_run; /* owned by the caller between open and end or drop */

/* Any thread may open, end and drop runs at any time between lag_db_writer_open and _finish, and beside
 * lag_db_insert on one other. A run in use takes about 1.5 MiB, which the next one reuses; one that has
 * ended keeps a few KiB until finish. LAG_ERR_USAGE: no EVENT table. */
enum lag_status lag_db_run_open(struct lag_db_writer *w, enum lag_table table,
				struct lag_db_run **out, struct lag_err *err) LAG_MUST_USE;

/* n_rows rows, one behind the other, of the table's columns: values[0] is the id, LAG_NONE is NULL.
 * After a failure the run can only be dropped, and the writer only closed. */
enum lag_status lag_db_run_add(struct lag_db_run *run, const int64_t *values, size_t n_columns,
			       size_t n_rows, struct lag_err *err) LAG_MUST_USE;

/* The run is whole, and gone for the caller, also on failure. All runs end before the writer does. */
enum lag_status lag_db_run_end(struct lag_db_run *run, struct lag_err *err) LAG_MUST_USE;

/* Gives up: the writer can then only be closed, after all runs. NULL is allowed. */
void lag_db_run_drop(struct lag_db_run *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for SQLite as a table that needs no memory: the reference of what loads tables. */
#ifndef TESTS_BENCH_STREAM_H
#define TESTS_BENCH_STREAM_H

#include <sqlite3.h>
#include <stdint.h>

#define STREAM_COLUMNS_MAX 21

struct stream {
	void (*row)(const void *state, int64_t i, int64_t *row); /* LAG_NONE = NULL */
	const void *state;
	int64_t n_rows;
	int n_columns;
};

/* stream is borrowed while the connection lives. SQLITE_OK or SQLite's error. */
int stream_register(sqlite3 *db, const char *name, const struct stream *stream);

#endif

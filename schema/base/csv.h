/* SPDX-License-Identifier: Apache-2.0 */
/* A pull reader for comma-separated values (RFC 4180, and what people make of it) of any size in bounded
 * memory: quotes, CR LF, a byte order mark, blank lines; rows may be shorter or longer than the header. */
#ifndef SCHEMA_BASE_CSV_H
#define SCHEMA_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/buf.h"
#include "schema/base/err.h"

#define LAG_CSV_FIELDS_MAX 256
#define LAG_CSV_FIELD_MAX  ((size_t)1 << 16) /* bytes; the rest of a longer field is dropped */

/* Fills buf with up to `room` bytes: their number, 0 at the end, -1 on error (err is set). */
typedef long (*lag_csv_fill)(void *state, void *buf, size_t room, struct lag_err *err);

struct lag_csv {
	/* The row of the last call: fields are NUL-terminated, borrowed until the next. */
	const char *field[LAG_CSV_FIELDS_MAX];
	size_t n_fields;
	uint64_t at; /* offset of the row in the input */

	uint64_t n_cut; /* fields longer, or more of them, than is kept */
	bool unclosed;  /* the input ends inside quotes */

	/* Private. */
	lag_csv_fill fill;
	void *fill_state;
	char *window; /* owned */
	size_t pos, end;
	uint64_t base; /* offset of window[0] */
	struct lag_buf row;
	size_t starts[LAG_CSV_FIELDS_MAX];
	char separator;
	bool begun, eof;
};

enum lag_status lag_csv_init(struct lag_csv *r, lag_csv_fill fill, void *state,
			     char separator) LAG_MUST_USE;
void lag_csv_release(struct lag_csv *r);

/* Reads the next row that is not blank. LAG_END after the last. */
enum lag_status lag_csv_next(struct lag_csv *r, struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One field of all records of a kind in a block: a byte says how the values are predicted, and varints
 * say how far off that was. Between lagz_write.c and lagz_read.c. */
#ifndef MERGE_LAGZ_COLUMN_H
#define MERGE_LAGZ_COLUMN_H

#include "schema/base/buf.h"
#include "schema/record/record.h"

enum lag_column_code {
	LAG_COLUMN_CONST = 0, /* one value for all */
	LAG_COLUMN_PLAIN,     /* from 0 */
	LAG_COLUMN_DELTA,     /* from the value before */
	LAG_COLUMN_AFTER,     /* from the record's first field */
	LAG_COLUMN_WHOLE,     /* 8 bytes each, not predicted */
	LAG_COLUMN_LIMIT,
};

/* first: the records' first field, for columns after it (NULL: AFTER is not possible). LAG_NONE is a
 * value like others. */
struct lag_column_of {
	const int64_t *first;
	uint32_t n; /* values, > 0 */
};

/* Appends the best code and its bytes. */
void lag_column_put(struct lag_buf *out, const int64_t *v, const struct lag_column_of *of);

/* Reads a column from p; what follows it, or NULL when it is none. */
const uint8_t *lag_column_get(const uint8_t *p, const uint8_t *end, int64_t *v,
			      const struct lag_column_of *of);

#endif

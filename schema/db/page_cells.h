/* SPDX-License-Identifier: Apache-2.0 */
/* Cells kept in memory one behind the other, each behind its length. A cell is here what is common to
 * leaves and nodes: a node puts a child's page number before it. */
#ifndef SCHEMA_DB_PAGE_CELLS_H
#define SCHEMA_DB_PAGE_CELLS_H

#include <stdint.h>
#include <string.h>

#include "schema/base/buf.h"

#define LAG_CELL_MAX 512 /* bytes; with 32 integer columns it has at most 307 */

/* A failure stays in cells->failed. */
static inline void lag_cells_add(struct lag_buf *cells, const uint8_t *cell, uint32_t n)
{
	uint16_t length = (uint16_t)n;

	lag_buf_add(cells, (const char *)&length, sizeof(length));
	lag_buf_add(cells, (const char *)cell, n);
}

/* The cell at an offset, borrowed; returns its length. */
static inline uint32_t lag_cells_at(const struct lag_buf *cells, size_t at, const uint8_t **cell)
{
	uint16_t length;

	memcpy(&length, cells->text + at, sizeof(length));
	*cell = (const uint8_t *)cells->text + at + sizeof(length);
	return length;
}

/* The same, and *at moves to the next; 0 behind the last. */
static inline uint32_t lag_cells_next(const struct lag_buf *cells, size_t *at, const uint8_t **cell)
{
	uint32_t n;

	if (*at >= cells->n)
		return 0;
	n = lag_cells_at(cells, *at, cell);
	*at += sizeof(uint16_t) + n;
	return n;
}

/* Length of SQLite's variable-length integer at p. */
static inline uint32_t lag_varint_length(const uint8_t *p)
{
	uint32_t n = 1;

	while (n < 9 && *p++ & 0x80)
		n++;
	return n;
}

/* The rowid of a table's cell, as it stands there: behind the record's length. */
static inline const uint8_t *lag_cell_rowid(const uint8_t *cell, uint32_t *n)
{
	cell += lag_varint_length(cell);
	*n = lag_varint_length(cell);
	return cell;
}

#endif

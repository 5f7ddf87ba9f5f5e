/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of integers as cells of SQLite's record format: a header with one serial type a column, then the
 * values in the fewest bytes of 0 (NULL, 0, 1), 1, 2, 3, 4, 6 and 8. All is written backwards, from the
 * row's last column to the first, so that a value is one unaligned store whose spare bytes the next store
 * covers; 40 bytes before a cell are overwritten so. LAG_NONE is NULL. */
#ifndef SCHEMA_DB_PAGE_ROW_H
#define SCHEMA_DB_PAGE_ROW_H

#include <stdint.h>
#include <string.h>

#include "schema/record/record.h" /* LAG_NONE */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are swapped, types are not");

#define LAG_ROW_COLUMNS_MAX 32
/* Where a cell is made: it ends at the end of this buffer, and what lies before it is overwritten. */
#define LAG_ROW_SCRATCH (9 + 9 + 64 + 8 * LAG_ROW_COLUMNS_MAX + 46)

/* A value before `end`; returns where it begins. */
static inline uint8_t *lag_row_value(uint8_t *end, int64_t value, uint64_t *type)
{
	/* By the highest significant bit but the sign: serial types of 1, 2, 3, 4, 6, 8 bytes. */
	static const uint8_t type_of_bit[64] = {
		1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3,
		3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
		5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
	};
	static const uint8_t size_of_type[10] = { 0, 1, 2, 3, 4, 6, 8, 0, 0, 0 };
	uint64_t bits = (uint64_t)value ^ (uint64_t)(value >> 63), swapped;

	*type = 0;
	if (value == LAG_NONE)
		return end;
	*type = 8 + (uint64_t)value;
	if ((uint64_t)value <= 1)
		return end;
	*type = type_of_bit[63 ^ __builtin_clzll(bits | 1)];
	swapped = __builtin_bswap64((uint64_t)value);
	memcpy(end - 8, &swapped, 8);
	return end - size_of_type[*type];
}

/* SQLite's variable-length integer before `end`: seven bits a byte, the ninth byte whole. */
static inline uint8_t *lag_row_varint(uint8_t *end, uint64_t value)
{
	uint8_t more = 0;

	if (value >> 56) {
		*--end = (uint8_t)value;
		value >>= 8;
		for (int i = 0; i < 8; i++, value >>= 7)
			*--end = (uint8_t)((value & 0x7f) | 0x80);
		return end;
	}
	do {
		*--end = (uint8_t)((value & 0x7f) | more);
		more = 0x80;
		value >>= 7;
	} while (value);
	return end;
}

/* The cell of a table's row before `end`; values[0] is the rowid, whose column a record leaves NULL.
 * Bit j of *nulls says that values[j] is NULL. Returns where the cell begins. */
static inline uint8_t *lag_row_cell(uint8_t *end, const int64_t *values, uint32_t n_columns,
				    uint64_t *nulls)
{
	/* Types, eight in a word, the last columns' first: bytes that were just stored one by one
	 * would be slow to load together. */
	uint64_t types[LAG_ROW_COLUMNS_MAX / 8], mask = 0;
	uint32_t left = n_columns, n_words = 0;
	uint8_t *at = end;

	while (left) {
		uint32_t n = left < 8 ? left : 8, first = left - n;
		uint64_t word = 0, type;

		for (uint32_t j = left - 1; j > first; j--) {
			at = lag_row_value(at, values[j], &type);
			word = word << 8 | type;
			mask |= (uint64_t)(type == 0) << j;
		}
		/* The rowid's column is NULL in the record. */
		type = 0;
		if (first)
			at = lag_row_value(at, values[first], &type);
		word = word << 8 | type;
		mask |= (uint64_t)(first && type == 0) << first;
		types[n_words++] = n < 8 ? word << (8 * (8 - n)) : word;
		left = first;
	}
	for (uint32_t w = 0; w < n_words; w++)
		memcpy(at - 8 * (size_t)(w + 1), &types[w], 8);
	at -= n_columns;
	*--at = (uint8_t)(n_columns + 1); /* with itself; below 128, hence one byte */
	*nulls = mask;
	mask = (uint64_t)(end - at);
	at = lag_row_varint(at, (uint64_t)values[0]);
	return lag_row_varint(at, mask);
}

/* The cell of an index's entry before `end`: its at most seven columns, then the rowid. */
static inline uint8_t *lag_row_entry(uint8_t *end, const int64_t *values, uint32_t n_values)
{
	uint64_t word = 0, type;
	uint8_t *at = end;

	for (uint32_t j = n_values; j--;) {
		at = lag_row_value(at, values[j], &type);
		word = word << 8 | type;
	}
	word <<= (64 - 8 * n_values) & 63;
	memcpy(at - 8, &word, 8);
	at -= n_values;
	*--at = (uint8_t)(n_values + 1);
	return lag_row_varint(at, (uint64_t)(end - at));
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One page of an SQLite b-tree as the documented file format lays it out: a header, two bytes of
 * pointer a cell, a gap, and the cells from the page's end downwards in the order they came. Numbers are
 * big-endian. Page numbers count from 1. */
#ifndef SCHEMA_DB_PAGE_H
#define SCHEMA_DB_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum lag_page_kind {
	LAG_PAGE_INDEX_NODE = 2,
	LAG_PAGE_TABLE_NODE = 5,
	LAG_PAGE_INDEX_LEAF = 10,
	LAG_PAGE_TABLE_LEAF = 13,
};

#define LAG_PAGE_SIZE_MIN  512
#define LAG_PAGE_SIZE_MAX  32768 /* 65536 has a notation of its own that nobody needs here */
#define LAG_PAGE_LEAF_HEAD 8
#define LAG_PAGE_NODE_HEAD 12 /* leaf's, and the rightmost child */

struct lag_page {
	uint8_t *image; /* size bytes of the caller */
	uint32_t size, head, n_cells;
	uint32_t content; /* where the last cell begins */
};

static inline void lag_page_put_u16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t lag_page_u16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline void lag_page_put_u32(uint8_t *at, uint32_t value)
{
	lag_page_put_u16(at, value >> 16);
	lag_page_put_u16(at + 2, value & 0xffff);
}

static inline uint32_t lag_page_u32(const uint8_t *at)
{
	return lag_page_u16(at) << 16 | lag_page_u16(at + 2);
}

/* Is there room for a cell of n bytes and its pointer? */
static inline bool lag_page_fits(const struct lag_page *page, uint32_t n)
{
	return page->content - page->head - 2 * page->n_cells >= n + 2;
}

/* Where the pointer to cell i is. */
static inline uint8_t *lag_page_pointer(const struct lag_page *page, uint32_t i)
{
	return page->image + page->head + 2 * (size_t)i;
}

/* A cell of n bytes stands before the content already. */
static inline void lag_page_placed(struct lag_page *page, uint32_t n)
{
	page->content -= n;
	lag_page_put_u16(lag_page_pointer(page, page->n_cells++), page->content);
}

/* Appends a cell that fits. */
static inline void lag_page_put(struct lag_page *page, const uint8_t *cell, uint32_t n)
{
	memcpy(page->image + page->content - n, cell, n);
	lag_page_placed(page, n);
}

/* An empty page in image. */
void lag_page_begin(struct lag_page *page, uint8_t *image, uint32_t size, enum lag_page_kind kind);

/* Header and gap; the image is then what the file holds. `right` is a node's rightmost child. The page
 * may be ended again after further changes. */
void lag_page_end(struct lag_page *page, uint32_t right);

/* The page whose ended image this is. */
void lag_page_resume(struct lag_page *page, uint8_t *image, uint32_t size);

/* Cell i, borrowed; *n is its length. */
const uint8_t *lag_page_cell(const struct lag_page *page, uint32_t i, uint32_t *n);

/* Takes the last cell off; its bytes stay where they are until the next put or end. */
void lag_page_pop(struct lag_page *page);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Page images: begin, end, resume, cells. */
#include "schema/db/page.h"

/* Offsets of the page header. */
#define AT_KIND    0
#define AT_N_CELLS 3
#define AT_CONTENT 5
#define AT_RIGHT   8

static uint32_t head_of(uint8_t kind)
{
	return kind == LAG_PAGE_INDEX_NODE || kind == LAG_PAGE_TABLE_NODE ? LAG_PAGE_NODE_HEAD
									  : LAG_PAGE_LEAF_HEAD;
}

void lag_page_begin(struct lag_page *page, uint8_t *image, uint32_t size, enum lag_page_kind kind)
{
	*page = (struct lag_page){
		.image = image, .size = size, .head = head_of((uint8_t)kind), .content = size
	};
	memset(image, 0, page->head);
	image[AT_KIND] = (uint8_t)kind;
}

void lag_page_end(struct lag_page *page, uint32_t right)
{
	uint32_t gap = page->head + 2 * page->n_cells;

	lag_page_put_u16(page->image + AT_N_CELLS, page->n_cells);
	lag_page_put_u16(page->image + AT_CONTENT, page->content);
	if (page->head == LAG_PAGE_NODE_HEAD)
		lag_page_put_u32(page->image + AT_RIGHT, right);
	/* What lay in the buffer before is nobody's business. */
	memset(page->image + gap, 0, page->content - gap);
}

void lag_page_resume(struct lag_page *page, uint8_t *image, uint32_t size)
{
	*page = (struct lag_page){
		.image = image,
		.size = size,
		.head = head_of(image[AT_KIND]),
		.n_cells = lag_page_u16(image + AT_N_CELLS),
		.content = lag_page_u16(image + AT_CONTENT),
	};
}

static uint32_t start_of(const struct lag_page *page, uint32_t i)
{
	return lag_page_u16(lag_page_pointer(page, i));
}

const uint8_t *lag_page_cell(const struct lag_page *page, uint32_t i, uint32_t *n)
{
	uint32_t start = start_of(page, i), end = i ? start_of(page, i - 1) : page->size;

	*n = end - start;
	return page->image + start;
}

void lag_page_pop(struct lag_page *page)
{
	page->n_cells--;
	page->content = page->n_cells ? start_of(page, page->n_cells - 1) : page->size;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One level after the other, each about a thousandth of the one below. */
#include "schema/db/page_nodes.h"

#include "schema/db/page_cells.h"

struct level {
	struct lag_page_file *file;
	enum lag_page_kind kind;
	uint8_t *chunk;
	uint32_t room, n_full; /* pages in chunk, and finished ones in front */
	struct lag_vec *pages; /* the level that is made */
	struct lag_buf *keys;
	uint32_t root;
};

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the nodes of the trace");
}

static enum lag_status flush(struct level *lv, struct lag_err *err)
{
	enum lag_status st;

	if (lag_failed(lag_vec_reserve(lv->pages, lv->n_full)))
		return no_memory(err);
	st = lag_page_file_append(lv->file, lv->chunk, lv->n_full,
				  &LAG_VEC_AT(lv->pages, uint32_t, lv->pages->n), err);
	lv->pages->n += lv->n_full;
	lv->n_full = 0;
	return st;
}

static void begin_node(struct level *lv, struct lag_page *node)
{
	lag_page_begin(node, lv->chunk + (size_t)lv->n_full * lv->file->page_size,
		       lv->file->page_size, lv->kind);
}

static enum lag_status end_node(struct level *lv, struct lag_page *node, uint32_t right,
				const uint8_t *key, uint32_t n, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	lag_cells_add(lv->keys, key, n); /* first: it may lie in the node's gap */
	lag_page_end(node, right);
	if (++lv->n_full == lv->room)
		st = flush(lv, err);
	begin_node(lv, node);
	return st;
}

/* The node is full and child `right` would be its rightmost one, but then the level's last child would be
 * alone in the last node: so the one before becomes it, and `cell` the next node's first. */
static enum lag_status leave_one_more(struct level *lv, struct lag_page *node, const uint8_t *cell,
				      uint32_t n, struct lag_err *err)
{
	uint32_t n_before;
	const uint8_t *before = lag_page_cell(node, node->n_cells - 1, &n_before);
	enum lag_status st;

	lag_page_pop(node);
	st = end_node(lv, node, lag_page_u32(before), before + 4, n_before - 4, err);
	if (st == LAG_OK)
		lag_page_put(node, cell, n);
	return st;
}

/* The level above `list`. */
static enum lag_status build_level(struct level *lv, const struct lag_page_list *list,
				   struct lag_err *err)
{
	size_t n_children = list->pages->n, at = 0;
	enum lag_status st = LAG_OK;
	struct lag_page node;

	begin_node(lv, &node);
	for (size_t i = 0; i + 1 < n_children && st == LAG_OK; i++) {
		uint32_t child = LAG_VEC_AT(list->pages, uint32_t, i);
		uint8_t cell[4 + LAG_CELL_MAX];
		const uint8_t *key = NULL;
		uint32_t n = lag_cells_next(list->keys, &at, &key);

		if (!key) /* a list shorter than its pages */
			return lag_err_set(err, LAG_ERR_USAGE, "a page without its last key");
		lag_page_put_u32(cell, child);
		memcpy(cell + 4, key, n);
		if (lag_page_fits(&node, n + 4)) {
			lag_page_put(&node, cell, n + 4);
		} else if (i + 2 < n_children) {
			st = end_node(lv, &node, child, key, n, err);
		} else {
			st = leave_one_more(lv, &node, cell, n + 4, err);
		}
	}
	if (st == LAG_OK) {
		lag_page_end(&node, LAG_VEC_AT(list->pages, uint32_t, n_children - 1));
		lv->n_full++;
	}
	return st;
}

enum lag_status lag_page_nodes_build(struct lag_page_file *file, enum lag_page_kind kind,
				     uint8_t *chunk, uint32_t room,
				     const struct lag_page_list *leaves, uint32_t root,
				     struct lag_err *err)
{
	struct lag_vec pages = LAG_VEC_INIT(uint32_t), done;
	struct lag_buf keys = { 0 }, done_keys;
	struct level lv = {
		.file = file, .chunk = chunk, .room = room, .pages = &pages, .keys = &keys
	};
	enum lag_status st = LAG_OK;

	lv.kind = kind == LAG_PAGE_INDEX_LEAF ? LAG_PAGE_INDEX_NODE : LAG_PAGE_TABLE_NODE;
	for (;;) {
		st = build_level(&lv, leaves, err);
		if (st == LAG_OK && keys.failed)
			st = no_memory(err);
		if (st != LAG_OK || (lv.n_full == 1 && !pages.n))
			break;
		st = flush(&lv, err);
		if (st != LAG_OK)
			break;
		/* What was made is what the next level stands on; the old lists' memory serves again. */
		done = *leaves->pages;
		*leaves->pages = pages;
		pages = done;
		pages.n = 0;
		done_keys = *leaves->keys;
		*leaves->keys = keys;
		keys = done_keys;
		lag_buf_clear(&keys);
	}
	if (st == LAG_OK)
		st = lag_page_file_put(file, root, chunk, err);
	lag_vec_release(&pages);
	lag_buf_release(&keys);
	return st;
}

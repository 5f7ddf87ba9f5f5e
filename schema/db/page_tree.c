/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves of a b-tree, and shares of it joined. page_nodes.c builds what stands on them. */
#include "schema/db/page_tree.h"

#include <stdlib.h>

#include "schema/db/page_cells.h"
#include "schema/db/page_nodes.h"

/* So many cells of an index share stand before its first full leaf. With at least two after its last,
 * whatever is joined has a cell to separate two leaves and others for the leaf between. */
#define N_FRONT 2

void lag_page_tree_init(struct lag_page_tree *tree, struct lag_page_file *file,
			enum lag_page_kind kind, uint8_t *chunk, uint32_t room)
{
	*tree = (struct lag_page_tree){ .file = file,
					.kind = kind,
					.chunk = chunk,
					.room = room,
					.pages = LAG_VEC_INIT(uint32_t) };
}

void lag_page_tree_release(struct lag_page_tree *tree)
{
	lag_vec_release(&tree->pages);
	lag_buf_release(&tree->keys);
	lag_buf_release(&tree->front);
	lag_buf_release(&tree->back);
}

static bool is_index(const struct lag_page_tree *tree)
{
	return tree->kind == LAG_PAGE_INDEX_LEAF;
}

static uint8_t *chunk_at(const struct lag_page_tree *tree, uint32_t i)
{
	return tree->chunk + (size_t)i * tree->file->page_size;
}

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the pages of the trace");
}

static enum lag_status add_key(struct lag_page_tree *tree, const uint8_t *key, uint32_t n,
			       struct lag_err *err)
{
	tree->last_key = tree->keys.n;
	lag_cells_add(&tree->keys, key, n);
	return tree->keys.failed ? no_memory(err) : LAG_OK;
}

/* Writes all full leaves but `keep` (0 or 1), which moves to the front. */
static enum lag_status flush(struct lag_page_tree *tree, uint32_t keep, struct lag_err *err)
{
	uint32_t n = tree->n_full - keep, *numbers;
	enum lag_status st;

	if (!n)
		return LAG_OK;
	if (lag_failed(lag_vec_reserve(&tree->pages, n)))
		return no_memory(err);
	numbers = &LAG_VEC_AT(&tree->pages, uint32_t, tree->pages.n);
	st = lag_page_file_append(tree->file, tree->chunk, n, numbers, err);
	tree->pages.n += n;
	if (keep)
		memcpy(tree->chunk, chunk_at(tree, n), tree->file->page_size);
	tree->n_full = keep;
	return st;
}

/* An empty leaf to fill. The one before it stays in memory: it may have to give a cell. */
static enum lag_status open_leaf(struct lag_page_tree *tree, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (tree->n_full == tree->room - 1)
		st = flush(tree, 1, err);
	lag_page_begin(&tree->leaf, chunk_at(tree, tree->n_full), tree->file->page_size,
		       tree->kind);
	tree->open = true;
	return st;
}

static enum lag_status close_leaf(struct lag_page_tree *tree, const uint8_t *key, uint32_t n,
				  struct lag_err *err)
{
	/* The key first: it may lie in the leaf's gap. */
	enum lag_status st = add_key(tree, key, n, err);

	lag_page_end(&tree->leaf, 0);
	tree->n_full++;
	tree->n_leaves++;
	tree->open = false;
	return st;
}

/* A table's nodes say up to which rowid a leaf goes. */
static enum lag_status close_table_leaf(struct lag_page_tree *tree, struct lag_err *err)
{
	uint32_t n, n_rowid;
	const uint8_t *cell = lag_page_cell(&tree->leaf, tree->leaf.n_cells - 1, &n);
	const uint8_t *rowid = lag_cell_rowid(cell, &n_rowid);

	return close_leaf(tree, rowid, n_rowid, err);
}

enum lag_status lag_page_tree_put(struct lag_page_tree *tree, const uint8_t *cell, uint32_t n,
				  struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (__builtin_expect(tree->open && lag_page_fits(&tree->leaf, n), 1)) {
		lag_page_put(&tree->leaf, cell, n);
		return LAG_OK;
	}
	if (tree->separate) {
		tree->separate = false;
		return add_key(tree, cell, n, err);
	}
	if (tree->open && is_index(tree))
		return close_leaf(tree, cell, n, err);
	if (tree->open)
		st = close_table_leaf(tree, err);
	if (st == LAG_OK)
		st = open_leaf(tree, err);
	if (st == LAG_OK)
		lag_page_put(&tree->leaf, cell, n);
	return st;
}

enum lag_status lag_page_tree_put_share(struct lag_page_tree *share, const uint8_t *cell,
					uint32_t n, struct lag_err *err)
{
	if (__builtin_expect(share->n_front == N_FRONT || !is_index(share), 1))
		return lag_page_tree_put(share, cell, n, err);
	share->n_front++;
	lag_cells_add(&share->front, cell, n);
	return LAG_OK;
}

/* The last separator goes off the list; its bytes are copied to cell. Returns its length. */
static uint32_t take_key(struct lag_page_tree *tree, uint8_t *cell)
{
	const uint8_t *key;
	uint32_t n = lag_cells_at(&tree->keys, tree->last_key, &key);

	memcpy(cell, key, n);
	tree->keys.n = tree->last_key;
	return n;
}

/* The same with the last cell of the last full leaf, which is in the chunk and has at least four. */
static uint32_t take_cell(struct lag_page_tree *tree, uint8_t *cell)
{
	struct lag_page leaf;
	const uint8_t *last;
	uint32_t n;

	lag_page_resume(&leaf, chunk_at(tree, tree->n_full - 1), tree->file->page_size);
	last = lag_page_cell(&leaf, leaf.n_cells - 1, &n);
	memcpy(cell, last, n);
	lag_page_pop(&leaf);
	lag_page_end(&leaf, 0);
	return n;
}

enum lag_status lag_page_tree_seal(struct lag_page_tree *share, struct lag_err *err)
{
	uint8_t key[LAG_CELL_MAX], cell[LAG_CELL_MAX];
	const uint8_t *at;
	uint32_t n_key, n;

	if (share->front.failed)
		return no_memory(err);
	if (is_index(share) && share->n_leaves) {
		n_key = take_key(share, key);
		if (!share->open) {
			n = take_cell(share, cell);
			lag_cells_add(&share->back, cell, n);
		}
		lag_cells_add(&share->back, key, n_key);
	}
	for (uint32_t i = 0; share->open && i < share->leaf.n_cells; i++) {
		at = lag_page_cell(&share->leaf, i, &n);
		lag_cells_add(&share->back, at, n);
	}
	share->open = false;
	return share->back.failed ? no_memory(err) : flush(share, 0, err);
}

/* Gives the open leaf, which has one cell or is yet to be opened, one more at its front: the separator
 * before it, in whose place comes the last cell of the leaf before that. */
static enum lag_status widen(struct lag_page_tree *tree, struct lag_err *err)
{
	uint8_t key[LAG_CELL_MAX], cell[LAG_CELL_MAX];
	uint32_t n_key = take_key(tree, key), n = take_cell(tree, cell);
	enum lag_status st = add_key(tree, cell, n, err);
	const uint8_t *only;

	n = 0;
	if (st != LAG_OK)
		return st;
	if (tree->open) {
		only = lag_page_cell(&tree->leaf, 0, &n);
		memcpy(cell, only, n);
		lag_page_pop(&tree->leaf);
	} else {
		st = open_leaf(tree, err);
	}
	lag_page_put(&tree->leaf, key, n_key);
	if (n)
		lag_page_put(&tree->leaf, cell, n);
	return st;
}

/* The leaf being filled is followed by leaves of another share: its last cell separates them. */
static enum lag_status end_before_share(struct lag_page_tree *tree, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	const uint8_t *last;
	uint32_t n;

	/* Without an open leaf, the last separator stands between full leaves already. */
	if (!tree->open)
		return LAG_OK;
	if (!is_index(tree))
		return close_table_leaf(tree, err);
	if (tree->leaf.n_cells < 2)
		st = widen(tree, err);
	if (st != LAG_OK)
		return st;
	last = lag_page_cell(&tree->leaf, tree->leaf.n_cells - 1, &n);
	lag_page_pop(&tree->leaf);
	return close_leaf(tree, last, n, err);
}

static enum lag_status put_all(struct lag_page_tree *tree, const struct lag_buf *cells,
			       struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	const uint8_t *cell;
	uint32_t n;

	for (size_t at = 0; st == LAG_OK && (n = lag_cells_next(cells, &at, &cell)) > 0;)
		st = lag_page_tree_put(tree, cell, n, err);
	return st;
}

enum lag_status lag_page_tree_join(struct lag_page_tree *tree, const struct lag_page_tree *share,
				   struct lag_err *err)
{
	enum lag_status st = put_all(tree, &share->front, err);

	if (st == LAG_OK && share->n_leaves) {
		st = end_before_share(tree, err);
		if (st == LAG_OK)
			st = flush(tree, 0, err);
		if (st == LAG_OK && lag_failed(lag_vec_reserve(&tree->pages, share->pages.n)))
			st = no_memory(err);
		if (st != LAG_OK)
			return st;
		memcpy(&LAG_VEC_AT(&tree->pages, uint32_t, tree->pages.n), share->pages.items,
		       share->pages.n * sizeof(uint32_t));
		tree->pages.n += share->pages.n;
		tree->n_leaves += share->n_leaves;
		lag_buf_add(&tree->keys, lag_buf_text(&share->keys), share->keys.n);
		tree->separate = is_index(tree);
	}
	return st == LAG_OK ? put_all(tree, &share->back, err) : st;
}

enum lag_status lag_page_tree_finish(struct lag_page_tree *tree, uint32_t root, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (!tree->open && !tree->n_leaves)
		return LAG_OK; /* SQLite's own empty root is right */
	if (!tree->open && is_index(tree))
		st = widen(tree, err);
	if (st != LAG_OK)
		return st;
	if (!tree->n_leaves) {
		lag_page_end(&tree->leaf, 0);
		return lag_page_file_put(tree->file, root, tree->leaf.image, err);
	}
	/* The last leaf has nothing behind it that its key could be. */
	if (tree->open)
		st = close_leaf(tree, NULL, 0, err);
	if (st == LAG_OK)
		st = flush(tree, 0, err);
	if (st != LAG_OK)
		return st;
	return lag_page_nodes_build(tree->file, tree->kind, tree->chunk, tree->room,
				    &(struct lag_page_list){ &tree->pages, &tree->keys }, root,
				    err);
}

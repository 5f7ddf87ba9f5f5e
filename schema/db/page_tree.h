/* SPDX-License-Identifier: Apache-2.0 */
/* A b-tree built from cells in their order: leaves first, in large writes, and nodes when all leaves are
 * there. A tree may be built in shares by several threads: each share writes the leaves that it fills,
 * and keeps in memory the few cells at its ends, which find their leaf when the shares are joined.
 *
 * An index's cells are on leaves or between them, never both, so that a leaf is always followed by one
 * cell that separates it from the next. A table's are all on leaves, and nodes repeat the last rowid. */
#ifndef SCHEMA_DB_PAGE_TREE_H
#define SCHEMA_DB_PAGE_TREE_H

#include "schema/base/buf.h"
#include "schema/base/mem.h"
#include "schema/db/page.h"
#include "schema/db/page_file.h"

struct lag_page_tree {
	struct lag_page_file *file;
	enum lag_page_kind kind; /* of the leaves */
	uint8_t *chunk;          /* pages to write together; the caller's */
	uint32_t room;           /* pages in chunk, at least 3 */
	uint32_t n_full;         /* full leaves in chunk, in front */
	uint64_t n_leaves;       /* full leaves in all */
	struct lag_page leaf;    /* being filled, behind them */
	bool open;               /* is there such a leaf? */
	bool separate;           /* the next cell separates leaves that are joined */
	struct lag_vec pages;    /* uint32_t, numbers of the leaves written */
	struct lag_buf keys;     /* what nodes say of each full leaf: length (u16), bytes */
	size_t last_key;         /* offset of the last */
	/* A share's cells (length, bytes) before its first full leaf and after its last. */
	struct lag_buf front, back;
	unsigned n_front;
};

/* kind: of the leaves. chunk: `room` pages, needed until the tree is sealed or finished. */
void lag_page_tree_init(struct lag_page_tree *tree, struct lag_page_file *file,
			enum lag_page_kind kind, uint8_t *chunk, uint32_t room);
void lag_page_tree_release(struct lag_page_tree *tree);

/* A place to make the next cell in, which then needs no copy: the returned pointer is where it is to end,
 * with `room` bytes before it. NULL = make it elsewhere and put it. */
static inline uint8_t *lag_page_tree_place(const struct lag_page_tree *tree, uint32_t room)
{
	bool fits = tree->open && lag_page_fits(&tree->leaf, room);

	return fits ? tree->leaf.image + tree->leaf.content : NULL;
}

/* The cell of n bytes is there. */
static inline void lag_page_tree_placed(struct lag_page_tree *tree, uint32_t n)
{
	lag_page_placed(&tree->leaf, n);
}

/* The next cell: at most a quarter of a page. */
enum lag_status lag_page_tree_put(struct lag_page_tree *tree, const uint8_t *cell, uint32_t n,
				  struct lag_err *err) LAG_MUST_USE;

/* A share: the same, for a tree that will be joined. */
enum lag_status lag_page_tree_put_share(struct lag_page_tree *share, const uint8_t *cell,
					uint32_t n, struct lag_err *err) LAG_MUST_USE;

/* The share has all its cells; it needs no chunk any more. */
enum lag_status lag_page_tree_seal(struct lag_page_tree *share, struct lag_err *err) LAG_MUST_USE;

/* Appends a sealed share, whose cells follow those in tree. */
enum lag_status lag_page_tree_join(struct lag_page_tree *tree, const struct lag_page_tree *share,
				   struct lag_err *err) LAG_MUST_USE;

/* Writes what is left of the leaves and all nodes; the root comes to the page SQLite gave it. */
enum lag_status lag_page_tree_finish(struct lag_page_tree *tree, uint32_t root,
				     struct lag_err *err) LAG_MUST_USE;

#endif

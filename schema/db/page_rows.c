/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to cells, cells to the trees of a share, shares to a table. */
#include "schema/db/page_rows.h"

#include <stdlib.h>
#include <string.h>

#include "schema/db/page_row.h"

#define TABLE_CHUNK_BYTES ((size_t)1 << 20) /* one write */
#define INDEX_CHUNK_BYTES ((size_t)1 << 18)
#define UNSORTED_ROOM     1024 /* entries given to the sorter at a time */

struct share_index {
	struct lag_page_tree tree;
	int64_t first[LAG_ENTRY_MAX], last[LAG_ENTRY_MAX];
	size_t n_unsorted;
	bool broken;
};

struct lag_page_rows {
	struct lag_page_rows *next;
	struct lag_page_set *set;
	struct lag_page_chunk *chunk; /* until sealed */
	struct lag_page_tree tree;
	struct share_index index[LAG_PAGE_INDEXES_MAX];
	uint64_t n;
	int64_t first_id, last_id;
};

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to write the trace");
}

/* Pages of a chunk, whatever the page size. */
static uint32_t room_of(const struct lag_page_set *set, size_t bytes)
{
	size_t n = bytes / set->file->page_size;

	return n < 3 ? 3 : n > 64 ? 64 : (uint32_t)n;
}

static void free_chunk(struct lag_page_chunk *chunk)
{
	for (int i = 0; i < LAG_PAGE_INDEXES_MAX; i++) {
		free(chunk->index[i]);
		free(chunk->unsorted[i]);
	}
	free(chunk->table);
	free(chunk);
}

static struct lag_page_chunk *make_chunk(const struct lag_page_set *set)
{
	struct lag_page_chunk *chunk = lag_calloc(1, sizeof(*chunk));
	size_t size = set->file->page_size;
	bool ok;

	if (!chunk)
		return NULL;
	chunk->table = malloc(room_of(set, TABLE_CHUNK_BYTES) * size);
	ok = chunk->table != NULL;
	for (uint32_t i = 0; i < set->table.n_indexes; i++) {
		const struct lag_page_index *index = &set->table.index[i];

		chunk->index[i] = malloc(room_of(set, INDEX_CHUNK_BYTES) * size);
		if (!index->in_order) {
			chunk->unsorted[i] =
				lag_calloc(UNSORTED_ROOM, (index->n_keys + 1) * sizeof(int64_t));
		}
		ok = ok && chunk->index[i] && (index->in_order || chunk->unsorted[i]);
	}
	if (ok)
		return chunk;
	free_chunk(chunk);
	return NULL;
}

static struct lag_page_chunk *take_chunk(struct lag_page_set *set)
{
	struct lag_page_chunk *chunk;

	(void)pthread_mutex_lock(&set->lock);
	chunk = set->chunks;
	if (chunk)
		set->chunks = chunk->next;
	(void)pthread_mutex_unlock(&set->lock);
	return chunk ? chunk : make_chunk(set);
}

static void give_chunk(struct lag_page_set *set, struct lag_page_chunk *chunk)
{
	(void)pthread_mutex_lock(&set->lock);
	chunk->next = set->chunks;
	set->chunks = chunk;
	(void)pthread_mutex_unlock(&set->lock);
}

enum lag_status lag_page_set_init(struct lag_page_set *set, struct lag_page_file *file,
				  const char *path, struct lag_err *err)
{
	set->file = file;
	set->chunks = NULL;
	set->shares = NULL;
	set->n_shares = 0;
	for (uint32_t i = 0; i < set->table.n_indexes; i++) {
		lag_index_sort_init(&set->sort[i], path, set->table.index[i].n_keys + 1,
				    LAG_SORT_ROOM);
	}
	if (pthread_mutex_init(&set->lock, NULL) != 0)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no lock for the pages");
	return LAG_OK;
}

void lag_page_set_release(struct lag_page_set *set)
{
	while (set->shares) {
		struct lag_page_rows *share = set->shares;

		set->shares = share->next;
		lag_page_rows_drop(share);
	}
	while (set->chunks) {
		struct lag_page_chunk *chunk = set->chunks;

		set->chunks = chunk->next;
		free_chunk(chunk);
	}
	for (uint32_t i = 0; i < set->table.n_indexes; i++)
		lag_index_sort_release(&set->sort[i]);
	(void)pthread_mutex_destroy(&set->lock);
}

struct lag_page_rows *lag_page_rows_begin(struct lag_page_set *set)
{
	struct lag_page_rows *share = lag_calloc(1, sizeof(*share));

	if (!share)
		return NULL;
	share->set = set;
	share->chunk = take_chunk(set);
	if (!share->chunk) {
		free(share);
		return NULL;
	}
	lag_page_tree_init(&share->tree, set->file, LAG_PAGE_TABLE_LEAF, share->chunk->table,
			   room_of(set, TABLE_CHUNK_BYTES));
	for (uint32_t i = 0; i < set->table.n_indexes; i++) {
		lag_page_tree_init(&share->index[i].tree, set->file, LAG_PAGE_INDEX_LEAF,
				   share->chunk->index[i], room_of(set, INDEX_CHUNK_BYTES));
	}
	return share;
}

void lag_page_rows_drop(struct lag_page_rows *share)
{
	if (!share)
		return;
	if (share->chunk)
		give_chunk(share->set, share->chunk);
	lag_page_tree_release(&share->tree);
	for (uint32_t i = 0; i < share->set->table.n_indexes; i++)
		lag_page_tree_release(&share->index[i].tree);
	free(share);
}

/* Entries end with the rowid, so that no two are equal. NULL is the least integer, as in SQLite. */
static bool ascends(const int64_t *before, const int64_t *after, uint32_t n)
{
	uint32_t i = 0;

	while (i + 1 < n && before[i] == after[i])
		i++;
	return before[i] < after[i];
}

static enum lag_status flush_unsorted(struct lag_page_rows *share, uint32_t i, struct lag_err *err)
{
	struct lag_page_set *set = share->set;
	enum lag_status st;

	(void)pthread_mutex_lock(&set->lock);
	st = lag_index_sort_add(&set->sort[i], share->chunk->unsorted[i],
				share->index[i].n_unsorted, err);
	(void)pthread_mutex_unlock(&set->lock);
	share->index[i].n_unsorted = 0;
	return st;
}

static enum lag_status put_entry(struct lag_page_tree *tree, const int64_t *entry, uint32_t n,
				 struct lag_err *err)
{
	uint8_t scratch[LAG_ROW_SCRATCH], *place = lag_page_tree_place(tree, sizeof(scratch));
	uint8_t *end = place ? place : scratch + sizeof(scratch);
	const uint8_t *cell = lag_row_entry(end, entry, n);

	if (!place)
		return lag_page_tree_put_share(tree, cell, (uint32_t)(end - cell), err);
	lag_page_tree_placed(tree, (uint32_t)(end - cell));
	return LAG_OK;
}

static enum lag_status index_row(struct lag_page_rows *share, uint32_t i, const int64_t *row,
				 struct lag_err *err)
{
	const struct lag_page_index *index = &share->set->table.index[i];
	struct share_index *at = &share->index[i];
	uint32_t n = index->n_keys + 1;
	int64_t entry[LAG_ENTRY_MAX];

	for (uint32_t k = 0; k < index->n_keys; k++)
		entry[k] = row[index->column[k]];
	entry[n - 1] = row[0];
	if (!index->in_order) {
		memcpy(share->chunk->unsorted[i] + at->n_unsorted * n, entry, n * sizeof(*entry));
		return ++at->n_unsorted == UNSORTED_ROOM ? flush_unsorted(share, i, err) : LAG_OK;
	}
	if (share->n && !ascends(at->last, entry, n))
		at->broken = true;
	/* Word by word: a copy in larger pieces would wait for what was just stored. */
	for (uint32_t k = 0; k < n; k++)
		at->last[k] = entry[k];
	if (share->n == 0)
		memcpy(at->first, at->last, sizeof(at->first));
	return put_entry(&at->tree, entry, n, err);
}

static enum lag_status refuse(const struct lag_page_rows *share, const int64_t *row,
			      const char *why, struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_USAGE, "table %s, row %lld: %s", share->set->table.name,
			   (long long)row[0], why);
}

static enum lag_status add_row(struct lag_page_rows *share, const int64_t *row, struct lag_err *err)
{
	const struct lag_page_table *table = &share->set->table;
	struct lag_page_tree *tree = &share->tree;
	uint8_t scratch[LAG_ROW_SCRATCH], *place = lag_page_tree_place(tree, sizeof(scratch));
	uint8_t *end = place ? place : scratch + sizeof(scratch);
	uint64_t nulls;
	const uint8_t *cell = lag_row_cell(end, row, table->n_columns, &nulls);

	if (row[0] == LAG_NONE)
		return refuse(share, row, "no id", err);
	if (share->n && row[0] <= share->last_id)
		return refuse(share, row, "ids must ascend", err);
	if (nulls & table->not_null)
		return refuse(share, row, "NULL in a column that allows none", err);
	if (!place)
		return lag_page_tree_put_share(tree, cell, (uint32_t)(end - cell), err);
	lag_page_tree_placed(tree, (uint32_t)(end - cell));
	return LAG_OK;
}

enum lag_status lag_page_rows_add(struct lag_page_rows *share, const int64_t *values, size_t n_rows,
				  struct lag_err *err)
{
	const struct lag_page_table *table = &share->set->table;
	enum lag_status st = LAG_OK;

	for (const int64_t *row = values; n_rows-- && st == LAG_OK; row += table->n_columns) {
		st = add_row(share, row, err);
		for (uint32_t i = 0; i < table->n_indexes && st == LAG_OK; i++)
			st = index_row(share, i, row, err);
		if (share->n++ == 0)
			share->first_id = row[0];
		share->last_id = row[0];
	}
	return st;
}

enum lag_status lag_page_rows_seal(struct lag_page_rows *share, struct lag_err *err)
{
	struct lag_page_set *set = share->set;
	enum lag_status st = lag_page_tree_seal(&share->tree, err);

	for (uint32_t i = 0; i < set->table.n_indexes && st == LAG_OK; i++) {
		st = set->table.index[i].in_order ? lag_page_tree_seal(&share->index[i].tree, err)
						  : flush_unsorted(share, i, err);
	}
	if (st != LAG_OK || !share->n) {
		lag_page_rows_drop(share);
		return st;
	}
	give_chunk(set, share->chunk);
	share->chunk = NULL;
	(void)pthread_mutex_lock(&set->lock);
	share->next = set->shares;
	set->shares = share;
	set->n_shares++;
	(void)pthread_mutex_unlock(&set->lock);
	return LAG_OK;
}

static int by_id(const void *left, const void *right)
{
	const struct lag_page_rows *const *a = left, *const *b = right;

	return (*a)->first_id < (*b)->first_id ? -1 : (*a)->first_id > (*b)->first_id;
}

/* The shares in the order of their ids; NULL without memory. */
static struct lag_page_rows **order_shares(const struct lag_page_set *set)
{
	struct lag_page_rows **order = lag_calloc(set->n_shares, sizeof(struct lag_page_rows *));
	size_t n = 0;

	for (struct lag_page_rows *at = set->shares; order && at; at = at->next)
		order[n++] = at;
	if (n)
		qsort(order, n, sizeof(struct lag_page_rows *), by_id);
	return order;
}

struct sorted {
	struct lag_page_tree *tree;
	uint32_t n_values;
};

static enum lag_status add_sorted(void *state, const int64_t *entry, struct lag_err *err)
{
	const struct sorted *to = state;
	uint8_t scratch[LAG_ROW_SCRATCH], *end = scratch + sizeof(scratch);
	const uint8_t *cell = lag_row_entry(end, entry, to->n_values);

	return lag_page_tree_put(to->tree, cell, (uint32_t)(end - cell), err);
}

/* Index i of the joined shares; i == n_indexes is the table. */
static enum lag_status finish_tree(struct lag_page_set *set, struct lag_page_rows **order,
				   uint32_t i, struct lag_page_chunk *chunk, struct lag_err *err)
{
	bool table = i == set->table.n_indexes;
	struct lag_page_tree tree;
	enum lag_status st = LAG_OK;

	lag_page_tree_init(&tree, set->file, table ? LAG_PAGE_TABLE_LEAF : LAG_PAGE_INDEX_LEAF,
			   table ? chunk->table : chunk->index[i],
			   room_of(set, table ? TABLE_CHUNK_BYTES : INDEX_CHUNK_BYTES));
	if (table || set->table.index[i].in_order) {
		for (size_t k = 0; k < set->n_shares && st == LAG_OK; k++) {
			st = lag_page_tree_join(
				&tree, table ? &order[k]->tree : &order[k]->index[i].tree, err);
		}
	} else {
		struct sorted to = { &tree, set->table.index[i].n_keys + 1 };

		st = lag_index_sort_each(&set->sort[i], add_sorted, &to, err);
	}
	if (st == LAG_OK) {
		st = lag_page_tree_finish(&tree, table ? set->table.root : set->table.index[i].root,
					  err);
	}
	lag_page_tree_release(&tree);
	return st;
}

static uint32_t find_broken(const struct lag_page_set *set, struct lag_page_rows *const *order)
{
	uint32_t broken = 0;

	for (size_t k = 0; k < set->n_shares; k++) {
		for (uint32_t i = 0; i < set->table.n_indexes; i++) {
			const struct lag_page_index *index = &set->table.index[i];
			const struct share_index *at = &order[k]->index[i];
			bool bad = at->broken || (k && !ascends(order[k - 1]->index[i].last,
								at->first, index->n_keys + 1));

			broken |= (uint32_t)(index->in_order && bad) << i;
		}
	}
	return broken;
}

enum lag_status lag_page_set_finish(struct lag_page_set *set, uint32_t *broken, struct lag_err *err)
{
	struct lag_page_rows **order = order_shares(set);
	struct lag_page_chunk *chunk = take_chunk(set);
	enum lag_status st = LAG_OK;

	*broken = 0;
	if (!order || !chunk) {
		if (chunk)
			give_chunk(set, chunk);
		free(order);
		return no_memory(err);
	}
	for (size_t k = 1; k < set->n_shares && st == LAG_OK; k++) {
		if (order[k]->first_id <= order[k - 1]->last_id) {
			st = lag_err_set(err, LAG_ERR_USAGE,
					 "table %s: two runs of rows overlap at id %lld",
					 set->table.name, (long long)order[k]->first_id);
		}
	}
	if (st == LAG_OK)
		*broken = find_broken(set, order);
	for (uint32_t i = 0; i <= set->table.n_indexes && st == LAG_OK; i++)
		st = finish_tree(set, order, i, chunk, err);
	give_chunk(set, chunk);
	free(order);
	return st;
}

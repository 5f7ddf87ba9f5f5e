/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table as pages of it and of its indexes. A share is a run of rows with ascending ids; any
 * number of threads fill shares at once, each its own. Joined in the order of their ids, they are the
 * table. */
#ifndef SCHEMA_DB_PAGE_ROWS_H
#define SCHEMA_DB_PAGE_ROWS_H

#include <pthread.h>

#include "schema/db/index_sort.h"
#include "schema/db/page_table.h"
#include "schema/db/page_tree.h"

#define LAG_ENTRY_MAX (LAG_PAGE_KEYS_MAX + 1) /* values of an index entry: its keys and the rowid */

/* Work space of a share while it is filled. Reused: new memory costs more than what is done with it. */
struct lag_page_chunk {
	struct lag_page_chunk *next;
	uint8_t *table, *index[LAG_PAGE_INDEXES_MAX];
	int64_t *unsorted[LAG_PAGE_INDEXES_MAX]; /* entries on their way to the sorter */
};

struct lag_page_rows;

/* One table of a file, and all its shares. */
struct lag_page_set {
	struct lag_page_table table;
	struct lag_page_file *file;
	pthread_mutex_t lock; /* of all below */
	struct lag_page_chunk *chunks;
	struct lag_page_rows *shares; /* sealed; a list */
	size_t n_shares;
	struct lag_index_sort sort[LAG_PAGE_INDEXES_MAX]; /* of those that are not in order */
};

/* set->table is described already; path: beside which to write what does not fit into memory. */
enum lag_status lag_page_set_init(struct lag_page_set *set, struct lag_page_file *file,
				  const char *path, struct lag_err *err) LAG_MUST_USE;
void lag_page_set_release(struct lag_page_set *set);

/* A share to fill; the caller's until it is sealed or dropped. NULL without memory. */
struct lag_page_rows *lag_page_rows_begin(struct lag_page_set *set) LAG_MUST_USE;

/* n_rows rows of all columns, one behind the other; values[0] is the id. LAG_ERR_USAGE: ids do not
 * ascend, or NULL where the table allows none; the share is then of no use. */
enum lag_status lag_page_rows_add(struct lag_page_rows *share, const int64_t *values, size_t n_rows,
				  struct lag_err *err) LAG_MUST_USE;

/* The share is whole and the set's; it is dropped when that fails. */
enum lag_status lag_page_rows_seal(struct lag_page_rows *share, struct lag_err *err) LAG_MUST_USE;
void lag_page_rows_drop(struct lag_page_rows *share); /* NULL is allowed */

/* Joins all shares and writes the rest of the table and its indexes. Bit i of *broken: entries of index
 * i came out of order; it must be made anew. */
enum lag_status lag_page_set_finish(struct lag_page_set *set, uint32_t *broken,
				    struct lag_err *err) LAG_MUST_USE;

#endif

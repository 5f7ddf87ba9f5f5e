/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts index entries (n_values integers each, signed, first one first) of any number in bounded
 * memory: blocks that fit are sorted by radix, blocks that do not are written out and merged. */
#ifndef SCHEMA_DB_INDEX_SORT_H
#define SCHEMA_DB_INDEX_SORT_H

#include "schema/base/mem.h"
#include "schema/db/temp_file.h"

#define LAG_SORT_ROOM ((size_t)1 << 20) /* entries of a block by default */

struct lag_index_sort {
	const char *path; /* beside which to write; the caller's */
	size_t n_values, room;
	struct lag_vec entries; /* the block being filled */
	int64_t *spare;         /* as large, to sort through */
	size_t n_spare;
	struct lag_temp_file file;
	struct lag_vec blocks; /* struct block, written */
};

void lag_index_sort_init(struct lag_index_sort *sort, const char *path, size_t n_values,
			 size_t room);
void lag_index_sort_release(struct lag_index_sort *sort);

enum lag_status lag_index_sort_add(struct lag_index_sort *sort, const int64_t *entries, size_t n,
				   struct lag_err *err) LAG_MUST_USE;

/* Calls each with every entry in order, until one fails. */
enum lag_status lag_index_sort_each(struct lag_index_sort *sort,
				    enum lag_status (*each)(void *state, const int64_t *entry,
							    struct lag_err *err),
				    void *state, struct lag_err *err) LAG_MUST_USE;

#endif

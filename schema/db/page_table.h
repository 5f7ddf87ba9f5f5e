/* SPDX-License-Identifier: Apache-2.0 */
/* A table of integer columns, as far as its pages are concerned; all of it is read from the schema that
 * SQLite wrote, so that SQL stays the only place that says which columns and indexes there are. */
#ifndef SCHEMA_DB_PAGE_TABLE_H
#define SCHEMA_DB_PAGE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/db/db.h"

#define LAG_PAGE_INDEXES_MAX 4
#define LAG_PAGE_KEYS_MAX    4 /* columns of an index */

struct lag_page_index {
	char name[64];
	uint32_t root;
	uint32_t n_keys;
	uint8_t column[LAG_PAGE_KEYS_MAX];
	/* Begins with the column "rank": rows come in its order, because ids ascend by rank and time.
	 * Entries of other indexes are sorted. */
	bool in_order;
};

struct lag_page_table {
	char name[64];
	uint32_t root;
	uint32_t n_columns;
	uint64_t not_null; /* bit j: column j may not be NULL */
	uint32_t n_indexes;
	struct lag_page_index index[LAG_PAGE_INDEXES_MAX];
};

/* LAG_ERR_USAGE: the table is not there, or not one whose pages can be written so. */
enum lag_status lag_page_table_describe(struct lag_db *db, const char *name,
					struct lag_page_table *table,
					struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The inner levels of a b-tree, from the leaves' page numbers up to the root. */
#ifndef SCHEMA_DB_PAGE_NODES_H
#define SCHEMA_DB_PAGE_NODES_H

#include "schema/base/buf.h"
#include "schema/base/mem.h"
#include "schema/db/page.h"
#include "schema/db/page_file.h"

/* Pages of one level in their order, and the cell that follows each (page_cells.h). The last page's is
 * never looked at. */
struct lag_page_list {
	struct lag_vec *pages; /* uint32_t */
	struct lag_buf *keys;
};

/* leaves: at least two. kind: of the leaves. chunk: `room` pages to work in. Consumes the lists. */
enum lag_status lag_page_nodes_build(struct lag_page_file *file, enum lag_page_kind kind,
				     uint8_t *chunk, uint32_t room,
				     const struct lag_page_list *leaves, uint32_t root,
				     struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for more data than memory may hold: up to a budget plain memory, beyond it extents of one
 * temporary file that has no name, mapped. The file's room is allocated before it is mapped, so that a
 * full disk is a failed allocation. Every function may be called from any thread; a block belongs to
 * one at a time. */
#ifndef SCHEMA_BASE_SPILL_H
#define SCHEMA_BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct lag_spill; /* owned by the caller; outlives its blocks */

struct lag_spill_block; /* owned by the caller between the first grow and drop */

/* folder is where the file is made, should it be needed (borrowed). budget_bytes counts blocks only. */
enum lag_status lag_spill_new(const char *folder, size_t budget_bytes, struct lag_spill **out,
			      struct lag_err *err) LAG_MUST_USE;
void lag_spill_free(struct lag_spill *spill); /* NULL is allowed */

/* Makes *block (NULL: a new one) hold at least `bytes`; what it held stays, what is new is undefined.
 * *at is its address, which changes, for an older block also by a failure; it is aligned like malloc's.
 * Failures leave what it holds as it was:
 * LAG_ERR_SYSTEM (no memory, or lag_spill_failure says what is wrong with the file). */
enum lag_status lag_spill_grow(struct lag_spill *spill, struct lag_spill_block **block,
			       size_t bytes, void **at) LAG_MUST_USE;

size_t lag_spill_capacity(const struct lag_spill_block *block);

void lag_spill_drop(struct lag_spill *spill, struct lag_spill_block *block); /* NULL is allowed */

/* Size of the file; 0 when none was needed. */
uint64_t lag_spill_bytes(struct lag_spill *spill);

/* LAG_OK, or why the file could not grow. */
enum lag_status lag_spill_failure(struct lag_spill *spill, struct lag_err *err) LAG_MUST_USE;

#endif

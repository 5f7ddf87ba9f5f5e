/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays with a stated maximum, in plain memory or where a spill puts them. Sizes are checked
 * for overflow. */
#ifndef SCHEMA_BASE_MEM_H
#define SCHEMA_BASE_MEM_H

#include <stddef.h>

#include "schema/base/err.h"

struct lag_spill;
struct lag_spill_block;

/* An array of equally sized items. Initialise with LAG_VEC_INIT, release when done. */
struct lag_vec {
	void *items;
	size_t n, cap, item_size;
	size_t max; /* 0 = LAG_VEC_MAX items */
	/* Set before the first item, where memory is to come from a spill (spill.h); it outlives the
	 * array. */
	struct lag_spill *spill;
	struct lag_spill_block *block;
};

#define LAG_VEC_MAX ((size_t)1 << 32)
#define LAG_VEC_INIT(type)                \
	{                                 \
		.item_size = sizeof(type) \
	}
#define LAG_VEC_SPILLED(type, where)                        \
	{                                                   \
		.item_size = sizeof(type), .spill = (where) \
	}
#define LAG_VEC_AT(vec, type, i) (((type *)(vec)->items)[i])

/* Appends one zeroed item and returns it, or NULL when memory or the maximum is exhausted.
 * The pointer is valid until the next push. */
void *lag_vec_push(struct lag_vec *vec) LAG_MUST_USE;

/* Makes room for n more items. */
enum lag_status lag_vec_reserve(struct lag_vec *vec, size_t n) LAG_MUST_USE;

/* The same as lag_vec_push, but what is in the item is undefined. */
LAG_MUST_USE static inline void *lag_vec_add(struct lag_vec *vec)
{
	if (vec->n >= vec->cap && lag_failed(lag_vec_reserve(vec, 1)))
		return NULL;
	return (char *)vec->items + vec->n++ * vec->item_size;
}

/* Makes it n items, new ones zeroed. */
enum lag_status lag_vec_resize(struct lag_vec *vec, size_t n) LAG_MUST_USE;

void lag_vec_release(struct lag_vec *vec);

/* calloc(n, size); n == 0 gives a valid, freeable pointer. NULL on overflow or no memory. */
void *lag_calloc(size_t n, size_t size) LAG_MUST_USE;

#endif

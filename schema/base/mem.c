/* SPDX-License-Identifier: Apache-2.0 */
/* Growth by half again: at most a third of the memory is spare. */
#include "schema/base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/spill.h"

#define BIG_ITEM ((size_t)1024) /* of such, often one is all there will be */

static enum lag_status reserve_spilled(struct lag_vec *vec, size_t n, size_t max)
{
	enum lag_status st =
		lag_spill_grow(vec->spill, &vec->block, n * vec->item_size, &vec->items);
	size_t room = lag_spill_capacity(vec->block) / vec->item_size;

	if (st == LAG_OK)
		vec->cap = room < max ? room : max;
	return st;
}

enum lag_status lag_vec_reserve(struct lag_vec *vec, size_t n)
{
	size_t max = vec->max ? vec->max : LAG_VEC_MAX;
	size_t cap = vec->cap;
	void *items;

	if (n > max || vec->n > max - n)
		return LAG_ERR_LIMIT;
	if (vec->n + n <= cap)
		return LAG_OK;
	if (vec->n + n > SIZE_MAX / vec->item_size)
		return LAG_ERR_LIMIT;
	if (vec->spill)
		return reserve_spilled(vec, vec->n + n, max);
	cap = cap + cap / 2 + (vec->item_size < BIG_ITEM ? 16 : 1);
	cap = cap < max ? cap : max;
	if (cap < vec->n + n)
		cap = vec->n + n;
	if (cap > SIZE_MAX / vec->item_size)
		return LAG_ERR_LIMIT;
	items = realloc(vec->items, cap * vec->item_size);
	if (!items)
		return LAG_ERR_SYSTEM;
	vec->items = items;
	vec->cap = cap;
	return LAG_OK;
}

void *lag_vec_push(struct lag_vec *vec)
{
	void *item = lag_vec_add(vec);

	if (item)
		memset(item, 0, vec->item_size);
	return item;
}

enum lag_status lag_vec_resize(struct lag_vec *vec, size_t n)
{
	if (n > vec->n) {
		size_t more = n - vec->n;
		enum lag_status st = lag_vec_reserve(vec, more);

		if (st != LAG_OK)
			return st;
		memset((char *)vec->items + vec->n * vec->item_size, 0, more * vec->item_size);
	}
	vec->n = n;
	return LAG_OK;
}

void lag_vec_release(struct lag_vec *vec)
{
	if (vec->spill) {
		lag_spill_drop(vec->spill, vec->block);
	} else {
		free(vec->items);
	}
	vec->block = NULL;
	vec->items = NULL;
	vec->n = vec->cap = 0;
}

void *lag_calloc(size_t n, size_t size)
{
	return calloc(n ? n : 1, size ? size : 1);
}

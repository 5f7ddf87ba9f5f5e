/* SPDX-License-Identifier: Apache-2.0 */
/* An id is dense while the array stays within a small multiple of what it holds: a hostile file must
 * not turn one large id into a large allocation. */
#include "viz/model/ids.h"

#include <stdlib.h>

static enum lag_status grow(struct lag_ids *ids, size_t need)
{
	size_t cap = ids->cap + ids->cap / 2 + 1024;
	int32_t *dense;

	if (cap < need)
		cap = need;
	dense = realloc(ids->dense, cap * sizeof(*dense));
	if (!dense)
		return LAG_ERR_SYSTEM;
	for (size_t i = ids->cap; i < cap; i++)
		dense[i] = -1;
	ids->dense = dense;
	ids->cap = cap;
	return LAG_OK;
}

enum lag_status lag_ids_set(struct lag_ids *ids, int64_t id, int32_t position)
{
	ids->n++;
	if (id < 0 || (uint64_t)id > 4 * (uint64_t)ids->n + 65536)
		return lag_map_set(&ids->sparse, (uint64_t)id, (uint64_t)position);
	if ((size_t)id >= ids->cap && lag_failed(grow(ids, (size_t)id + 1)))
		return LAG_ERR_SYSTEM;
	ids->dense[id] = position;
	return LAG_OK;
}

int32_t lag_ids_find(const struct lag_ids *ids, int64_t id)
{
	uint64_t position;

	if (id >= 0 && (uint64_t)id < ids->cap && ids->dense[id] >= 0)
		return ids->dense[id];
	return lag_map_find(&ids->sparse, (uint64_t)id, &position) ? (int32_t)position : -1;
}

void lag_ids_release(struct lag_ids *ids)
{
	free(ids->dense);
	lag_map_release(&ids->sparse);
	*ids = (struct lag_ids){ 0 };
}

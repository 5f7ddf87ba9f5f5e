/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing at load <= 1/2; bytes are hashed by words of 8: names of kernels are long, and the tracer looks each of them up. */
#include "schema/base/map.h"

#include <string.h>

#include "schema/base/mem.h"

uint64_t lag_hash_pair(uint64_t a, uint64_t b)
{
	return lag_hash_u64(lag_hash_u64(a + 0x9e3779b97f4a7c15u) ^ b);
}

uint64_t lag_hash_bytes(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325u ^ n, word = 0;

	for (size_t at = 0; at < n; at += sizeof(word)) {
		if (n >= sizeof(word)) {
			/* The last one overlaps what was before it. */
			memcpy(&word, p + (n - at < sizeof(word) ? n - sizeof(word) : at),
			       sizeof(word));
		} else {
			for (size_t i = 0; i < n; i++)
				word = word << 8 | p[i];
		}
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	return lag_hash_u64(h);
}

static struct lag_map_slot *probe(struct lag_map_slot *slots, size_t cap, uint64_t key)
{
	size_t i = (size_t)lag_hash_u64(key) & (cap - 1);

	while (slots[i].used && slots[i].key != key)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static void drop_slots(struct lag_map *map)
{
	struct lag_vec room = { .items = map->slots, .spill = map->spill, .block = map->block };

	lag_vec_release(&room);
}

static enum lag_status grow(struct lag_map *map)
{
	size_t cap = map->cap ? map->cap * 2 : 64;
	struct lag_vec room = { .item_size = sizeof(struct lag_map_slot), .spill = map->spill };
	struct lag_map_slot *slots;

	if (lag_failed(lag_vec_resize(&room, cap)))
		return LAG_ERR_SYSTEM;
	slots = room.items;
	for (size_t i = 0; i < map->cap; i++) {
		if (map->slots[i].used)
			*probe(slots, cap, map->slots[i].key) = map->slots[i];
	}
	drop_slots(map);
	map->slots = slots;
	map->block = room.block;
	map->cap = cap;
	return LAG_OK;
}

enum lag_status lag_map_set(struct lag_map *map, uint64_t key, uint64_t value)
{
	struct lag_map_slot *slot;

	if (2 * (map->n + 1) > map->cap && lag_failed(grow(map)))
		return LAG_ERR_SYSTEM;
	slot = probe(map->slots, map->cap, key);
	map->n += !slot->used;
	*slot = (struct lag_map_slot){ .key = key, .value = value, .used = true };
	return LAG_OK;
}

bool lag_map_find(const struct lag_map *map, uint64_t key, uint64_t *value)
{
	const struct lag_map_slot *slot;

	if (!map->cap)
		return false;
	slot = probe(map->slots, map->cap, key);
	if (slot->used)
		*value = slot->value;
	return slot->used;
}

void lag_map_release(struct lag_map *map)
{
	drop_slots(map);
	*map = (struct lag_map){ .spill = map->spill };
}

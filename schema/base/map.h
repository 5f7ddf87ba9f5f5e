/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from a 64-bit key to a 64-bit value. Keys may be any value; open addressing. */
#ifndef SCHEMA_BASE_MAP_H
#define SCHEMA_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct lag_spill;
struct lag_spill_block;

/* Zero-initialise (or set spill, see mem.h); release when done. */
struct lag_map {
	struct lag_map_slot *slots;
	size_t n, cap;
	struct lag_spill *spill;
	struct lag_spill_block *block;
};

struct lag_map_slot {
	uint64_t key, value;
	bool used;
};

/* Sets (or replaces) the value of key. */
enum lag_status lag_map_set(struct lag_map *map, uint64_t key, uint64_t value) LAG_MUST_USE;

/* False when absent; *value is then untouched. */
bool lag_map_find(const struct lag_map *map, uint64_t key, uint64_t *value);

void lag_map_release(struct lag_map *map);

/* A good 64-bit mixer (splitmix64's finaliser), and what combines two keys, or any bytes, into one. */
static inline uint64_t lag_hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t lag_hash_pair(uint64_t a, uint64_t b);
uint64_t lag_hash_bytes(const void *bytes, size_t n);

#endif

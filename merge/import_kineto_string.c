/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and launch configurations to ids of the pool. A trace repeats few of them millions of times,
 * so small caches stand before the pool's tables. */
#include <string.h>
#include <strings.h>

#include "merge/kineto.h"

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static uint64_t hash_of(struct lag_span s)
{
	uint64_t h = s.n, x;

	for (; s.n >= 8; s.n -= 8, s.text += 8) {
		memcpy(&x, s.text, 8);
		h = mix(h, x);
	}
	x = 0;
	memcpy(&x, s.text, s.n);
	return mix(h, x);
}

static bool names_nccl(const char *text)
{
	return strcasestr(text, "nccl") != NULL;
}

enum lag_status lag_kineto_name(struct lag_kineto *k, struct lag_span text,
				struct lag_kineto_known *known, struct lag_err *err)
{
	uint64_t hash = hash_of(text);
	struct lag_kineto_known *slot = &k->known[hash >> (64 - LAG_KINETO_KNOWN_BITS)];
	uint32_t id;

	if (slot->id && slot->hash == hash && slot->n == text.n &&
	    memcmp(lag_strtab_get(&k->pool->strings, slot->id), text.text, text.n) == 0) {
		*known = *slot;
		return LAG_OK;
	}
	id = lag_strtab_add(&k->pool->strings, text.text, text.n);
	if (id == LAG_STR_NONE)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more names");
	*known = (struct lag_kineto_known){ hash, id, (uint32_t)text.n,
					    names_nccl(lag_strtab_get(&k->pool->strings, id)) };
	*slot = *known;
	return LAG_OK;
}

enum lag_status lag_kineto_string(struct lag_kineto *k, struct lag_span text, uint32_t *id,
				  struct lag_err *err)
{
	struct lag_kineto_known known = { 0 };
	enum lag_status st = lag_kineto_name(k, text, &known, err);

	*id = known.id;
	return st;
}

/* Kineto adds static and dynamic shared memory up; the sum stands as dynamic, static is unknown. */
int64_t lag_kineto_config(struct lag_kineto *k)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_rec_launch_config cfg = { .grid_x = e->grid[0],
					     .grid_y = e->grid[1],
					     .grid_z = e->grid[2],
					     .block_x = e->block[0],
					     .block_y = e->block[1],
					     .block_z = e->block[2],
					     .static_smem_bytes = LAG_NONE,
					     .dynamic_smem_bytes = e->i[LAG_KI_SHARED],
					     .registers = e->i[LAG_KI_REGISTERS] };
	struct lag_rec_launch_config *slot;
	uint64_t h;

	if (cfg.grid_x == LAG_NONE)
		return LAG_NONE;
	h = mix((uint64_t)cfg.grid_x << 32 ^ (uint64_t)cfg.grid_y,
		(uint64_t)cfg.block_x << 32 ^ (uint64_t)cfg.block_y << 16 ^ (uint64_t)cfg.grid_z);
	h = mix(h, (uint64_t)cfg.dynamic_smem_bytes << 16 ^ (uint64_t)cfg.registers);
	slot = &k->configs[h >> (64 - LAG_KINETO_CONFIG_BITS)];
	cfg.id = slot->id;
	if (slot->id && memcmp(slot, &cfg, sizeof(cfg)) == 0)
		return slot->id - 1;
	*slot = cfg;
	cfg.id = lag_pool_config(k->pool, &cfg);
	slot->id = cfg.id == LAG_NONE ? 0 : cfg.id + 1;
	return cfg.id;
}

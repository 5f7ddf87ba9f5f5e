/* SPDX-License-Identifier: Apache-2.0 */
/* Packs records into slots and shapes, and back. Which fields have slots is this file's one table. */
#include "merge/compact.h"

#include <string.h>

#define AT(kind, name) (offsetof(struct lag_rec_##kind, name) / sizeof(int64_t))

const struct lag_compact_info lag_compact_infos[LAG_REC_LIMIT] = {
	[LAG_REC_kernel] = { 5,
			     { AT(kernel, end_ns), AT(kernel, correlation), AT(kernel, name),
			       AT(kernel, config), AT(kernel, op_id) } },
	[LAG_REC_memcpy] = { 3,
			     { AT(memcpy, end_ns), AT(memcpy, correlation), AT(memcpy, bytes) } },
	[LAG_REC_memset] = { 3,
			     { AT(memset, end_ns), AT(memset, correlation), AT(memset, bytes) } },
	[LAG_REC_api] = { 3, { AT(api, end_ns), AT(api, correlation), AT(api, name) } },
	[LAG_REC_sync] = { 5,
			   { AT(sync, end_ns), AT(sync, correlation), AT(sync, event_id),
			     AT(sync, sync_id), AT(sync, record_correlation) } },
	[LAG_REC_range] = { 3, { AT(range, end_ns), AT(range, id), AT(range, name) } },
};

size_t lag_compact_size(const struct lag_compact_info *info)
{
	return offsetof(struct lag_compact, slot) + info->n_slots * sizeof(uint32_t);
}

void lag_shapes_init(struct lag_shapes *shapes, size_t record_size, struct lag_spill *spill)
{
	*shapes = (struct lag_shapes){ .records = { .item_size = record_size, .spill = spill },
				       .same = LAG_VEC_SPILLED(uint32_t, spill),
				       .by_hash = { .spill = spill } };
	shapes->records.max = UINT32_MAX - 1;
}

void lag_shapes_release(struct lag_shapes *shapes)
{
	lag_vec_release(&shapes->records);
	lag_vec_release(&shapes->same);
	lag_map_release(&shapes->by_hash);
}

#define INLINE static inline __attribute__((always_inline)) /* once for each kind given */

INLINE uint64_t hash_of(const int64_t *fields, size_t n)
{
	uint64_t h = 0;

	/* Odd factors that differ by place; the mix at the end spreads them. */
#pragma GCC unroll 24
	for (size_t i = 1; i < n; i++)
		h += (uint64_t)fields[i] * (0x9e3779b97f4a7c15u * (2 * i + 1));
	return lag_hash_u64(h);
}

/* Without a branch: most are what they are compared with. */
INLINE bool same_shape(const struct lag_shapes *shapes, uint64_t ref, const int64_t *fields,
		       size_t n)
{
	const int64_t *shape = (const int64_t *)shapes->records.items + (ref - 1) * n;
	int64_t differ = 0;

#pragma GCC unroll 24
	for (size_t i = 0; i < n; i++)
		differ |= shape[i] ^ fields[i];
	return differ == 0;
}

/* Index of the shape with these fields, made when new; LAG_SLOT_SHAPE without memory. */
static uint32_t find_shape(struct lag_shapes *shapes, const int64_t *fields, uint64_t hash,
			   uint32_t *recent)
{
	size_t size = shapes->records.item_size;
	uint64_t first = 0;
	uint32_t *same;
	void *record;

	(void)lag_map_find(&shapes->by_hash, hash, &first);
	for (uint64_t ref = first; ref; ref = LAG_VEC_AT(&shapes->same, uint32_t, ref - 1)) {
		if (same_shape(shapes, ref, fields, size / sizeof(*fields))) {
			*recent = (uint32_t)ref;
			return *recent - 1;
		}
	}
	record = lag_vec_push(&shapes->records);
	if (!record)
		return LAG_SLOT_SHAPE;
	same = lag_vec_push(&shapes->same);
	if (!same || lag_failed(lag_map_set(&shapes->by_hash, hash, shapes->records.n)))
		return LAG_SLOT_SHAPE;
	memcpy(record, fields, size);
	*same = (uint32_t)first;
	*recent = (uint32_t)shapes->records.n;
	return *recent - 1;
}

INLINE enum lag_status pack(const struct lag_compact_info *info, size_t n_fields,
			    struct lag_shapes *shapes, const struct lag_record *rec,
			    struct lag_compact *item)
{
	int64_t fields[LAG_RECORD_FIELDS_MAX];
	uint32_t *recent;
	uint64_t hash;

	memcpy(fields, rec->field, n_fields * sizeof(*fields));
	item->start_ns = fields[0];
	fields[0] = 0;
#pragma GCC unroll 5
	for (size_t s = 0; s < info->n_slots; s++) {
		int64_t *field = &fields[info->field[s]];

		item->slot[s] = s == LAG_SLOT_END ? lag_slot_of_end(item->start_ns, *field)
						  : lag_slot_of(*field);
		if (item->slot[s] != LAG_SLOT_SHAPE)
			*field = LAG_NONE;
	}
	hash = hash_of(fields, n_fields);
	recent = &shapes->recent[hash >> 58];
	item->shape = *recent && same_shape(shapes, *recent, fields, n_fields)
			      ? *recent - 1
			      : find_shape(shapes, fields, hash, recent);
	return item->shape == LAG_SLOT_SHAPE ? LAG_ERR_SYSTEM : LAG_OK;
}

#define FIELDS(kind) (sizeof(struct lag_rec_##kind) / sizeof(int64_t))

enum lag_status lag_compact_pack(const struct lag_compact_info *info, struct lag_shapes *shapes,
				 const struct lag_record *rec, struct lag_compact *item)
{
	/* The same code for all; for the many of a trace with their fields in a straight line. */
	if (info == &lag_compact_infos[LAG_REC_kernel])
		return pack(&lag_compact_infos[LAG_REC_kernel], FIELDS(kernel), shapes, rec, item);
	if (info == &lag_compact_infos[LAG_REC_api])
		return pack(&lag_compact_infos[LAG_REC_api], FIELDS(api), shapes, rec, item);
	return pack(info, shapes->records.item_size / sizeof(int64_t), shapes, rec, item);
}

void lag_compact_unpack(const struct lag_compact_info *info, const struct lag_shapes *shapes,
			const struct lag_compact *item, int64_t *fields)
{
	size_t size = shapes->records.item_size;

	memcpy(fields, (const char *)shapes->records.items + item->shape * size, size);
	fields[0] = item->start_ns;
	fields[1] = lag_slot_end(item->slot[LAG_SLOT_END], item->start_ns, fields[1]);
	for (size_t s = 1; s < info->n_slots; s++) {
		int64_t *field = &fields[info->field[s]];

		*field = lag_slot_value(item->slot[s], *field);
	}
}

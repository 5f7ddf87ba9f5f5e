/* SPDX-License-Identifier: Apache-2.0 */
/* Events in little memory. What every event of a kind has of its own (times, correlation, name) stands
 * in slots of 32 bits; all other fields together are its shape (device, stream, thread, ...), of which
 * a recording has few, kept once. A value that no slot can hold goes into a shape of its own, so that
 * what comes out is always what went in. */
#ifndef MERGE_COMPACT_H
#define MERGE_COMPACT_H

#include <stdbool.h>

#include "schema/base/map.h"
#include "schema/base/mem.h"
#include "schema/record/record.h"

#define LAG_SLOTS_MAX 5

/* The kinds of which recordings have most. */
#define LAG_IS_COMPACT(kind) \
	(((kind) >= LAG_REC_kernel && (kind) <= LAG_REC_sync) || (kind) == LAG_REC_range)

/* Slots of each kind; those that a kind does not list are in its shape. */
enum lag_slot {
	LAG_SLOT_END = 0,         /* all; relative to the start */
	LAG_SLOT_CORRELATION = 1, /* all but range */
	LAG_SLOT_ID = 1,          /* range */
	LAG_SLOT_NAME = 2,        /* kernel, api, range */
	LAG_SLOT_BYTES = 2,       /* memcpy, memset */
	LAG_SLOT_EVENT = 2,       /* sync, and the two that follow */
	LAG_SLOT_CONFIG = 3,      /* kernel */
	LAG_SLOT_SYNC = 3,
	LAG_SLOT_OP = 4, /* kernel */
	LAG_SLOT_RECORD = 4,
};

/* 0 is LAG_NONE, LAG_SLOT_SHAPE that the value stands in the shape, all else the value plus one. */
#define LAG_SLOT_SHAPE UINT32_MAX

struct lag_compact {
	int64_t start_ns;
	uint32_t shape;
	uint32_t slot[]; /* as many as lag_compact_info says */
};

struct lag_compact_info {
	uint8_t n_slots; /* odd, so that items stay aligned; 0 = this kind is not kept compact */
	uint8_t field[LAG_SLOTS_MAX];
};

/* Shapes of one kind: records whose slotted fields are LAG_NONE (unless they did not fit) and whose
 * start is 0. */
struct lag_shapes {
	struct lag_vec records; /* struct lag_rec_<kind> */
	struct lag_vec same;    /* uint32_t beside it: 1 + the next of equal hash */
	struct lag_map by_hash; /* hash -> 1 + last shape with it */
	uint32_t recent[64];    /* 1 + shape, by some bits of the hash */
};

extern const struct lag_compact_info lag_compact_infos[LAG_REC_LIMIT];

/* NULL for kinds that are kept as they are. */
static inline const struct lag_compact_info *lag_compact_info_get(unsigned kind)
{
	return LAG_IS_COMPACT(kind) ? &lag_compact_infos[kind] : NULL;
}

size_t lag_compact_size(const struct lag_compact_info *info);

void lag_shapes_init(struct lag_shapes *shapes, size_t record_size, struct lag_spill *spill);
void lag_shapes_release(struct lag_shapes *shapes);

/* Packs rec into item. LAG_ERR_SYSTEM without memory for a new shape. */
enum lag_status lag_compact_pack(const struct lag_compact_info *info, struct lag_shapes *shapes,
				 const struct lag_record *rec,
				 struct lag_compact *item) LAG_MUST_USE;

void lag_compact_unpack(const struct lag_compact_info *info, const struct lag_shapes *shapes,
			const struct lag_compact *item, int64_t *fields);

/* A shape's fields, in the record's order. */
static inline const void *lag_shape_at(const struct lag_shapes *shapes, uint32_t shape)
{
	return (const char *)shapes->records.items + shape * shapes->records.item_size;
}

static inline int64_t lag_shape_field(const struct lag_shapes *shapes, uint32_t shape, size_t field)
{
	return ((const int64_t *)lag_shape_at(shapes, shape))[field];
}

/* A slot's value, or what its shape says. */
static inline int64_t lag_slot_value(uint32_t slot, int64_t of_shape)
{
	if (slot == LAG_SLOT_SHAPE)
		return of_shape;
	return slot ? (int64_t)(slot - 1) : LAG_NONE;
}

static inline int64_t lag_slot_end(uint32_t slot, int64_t start_ns, int64_t of_shape)
{
	int64_t length = lag_slot_value(slot, of_shape);

	if (slot == LAG_SLOT_SHAPE || length == LAG_NONE)
		return length;
	return (int64_t)((uint64_t)start_ns + (uint64_t)length);
}

/* LAG_SLOT_SHAPE when v does not fit. */
static inline uint32_t lag_slot_of(int64_t v)
{
	if (v == LAG_NONE)
		return 0;
	return v >= 0 && v < (int64_t)LAG_SLOT_SHAPE - 1 ? (uint32_t)v + 1 : LAG_SLOT_SHAPE;
}

static inline uint32_t lag_slot_of_end(int64_t start_ns, int64_t end_ns)
{
	uint64_t length = (uint64_t)end_ns - (uint64_t)start_ns;

	if (end_ns == LAG_NONE)
		return 0;
	return end_ns >= start_ns && length < LAG_SLOT_SHAPE - 1 ? (uint32_t)length + 1
								 : LAG_SLOT_SHAPE;
}

static inline int64_t lag_compact_end(const struct lag_compact *item,
				      const struct lag_shapes *shapes)
{
	uint32_t slot = item->slot[LAG_SLOT_END];

	return lag_slot_end(slot, item->start_ns,
			    slot == LAG_SLOT_SHAPE ? lag_shape_field(shapes, item->shape, 1) : 0);
}

#endif

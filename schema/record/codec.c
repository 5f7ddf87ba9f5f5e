/* SPDX-License-Identifier: Apache-2.0 */
/* The record codec: driven by record.def, so that a new kind or field needs no code. Encoding runs in
 * the traced program's threads. */
#include "schema/record/codec.h"

#include <stdbool.h>
#include <string.h>

#include "schema/base/varint.h"

#define UNSEEN    UINT32_MAX /* no map has that many bits */
#define MAPS_SHL  6          /* of the head byte: the kind below, above it which map */
#define KIND_MASK (LAG_REC_LIMIT - 1)
#define MAP_GIVEN LAG_CODEC_MAPS
#define STEP_MAX  7 /* differences of fields that count on are expected again up to this one */

#define FIELD_BIT(record, name) (UINT32_C(1) << (offsetof(struct lag_rec_##record, name) / 8))

#define UNROLL LAG_CODEC_SLACK
#define INLINE static inline __attribute__((always_inline)) /* once for each kind given */

/* Bits of the fields of some types, by kind. */
static const uint32_t times[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number) [number] = 0
#define LAG_FIELD(record, name, type) \
	| (LAG_F_##type == LAG_F_TIME || LAG_F_##type == LAG_F_AFTER ? FIELD_BIT(record, name) : 0)
#define LAG_RECORD_END(name) ,
#include "schema/record/record.def"
};
static const uint32_t counts[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number)      [number] = 0
#define LAG_FIELD(record, name, type) | (LAG_F_##type == LAG_F_COUNT ? FIELD_BIT(record, name) : 0)
#define LAG_RECORD_END(name)          ,
#include "schema/record/record.def"
};
static const uint32_t strings[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number)      [number] = 0
#define LAG_FIELD(record, name, type) | (LAG_F_##type == LAG_F_STR ? FIELD_BIT(record, name) : 0)
#define LAG_RECORD_END(name)          ,
#include "schema/record/record.def"
};

/* Where the kind's fields are among all, and how many they are; 0 for a number that is no kind. */
static const struct shape {
	uint16_t at, n_fields;
} shapes[LAG_REC_LIMIT] = {

#define LAG_RECORD(name, number)                                  \
	[number] = { offsetof(struct lag_codec_fields, name) / 8, \
		     sizeof(struct lag_rec_##name) / 8 },
#include "schema/record/record.def"
};

_Static_assert(LAG_RECORD_FIELDS_MAX <= 24, "a map has four bytes at most");
_Static_assert(LAG_RECORD_FIELDS_MAX % UNROLL == 0 && UNROLL == 4, "no field beyond the last");
_Static_assert(LAG_REC_LIMIT <= 1 << MAPS_SHL, "kind and map fit the head byte");

void lag_codec_start(struct lag_codec *codec, int64_t base_ns)
{
	codec->time_ns = base_ns;
	memset(codec->maps, 0xff, sizeof(codec->maps));
}

static void start_kind(struct lag_codec *codec, unsigned kind)
{
	const struct shape *shape = &shapes[kind];

	for (unsigned i = 0; i < shape->n_fields; i++) {
		codec->expected[shape->at + i] = strings[kind] >> i & 1 ? 0 : LAG_NONE;
		codec->next[shape->at + i] = codec->last[shape->at + i] = 0;
	}
	if (times[kind] & 1)
		codec->expected[shape->at] = codec->time_ns;
}

static void put_first(uint32_t *maps, unsigned from, uint32_t map)
{
	for (unsigned i = from; i > 0; i--)
		maps[i] = maps[i - 1];
	maps[0] = map;
}

static uint8_t *put_head(uint8_t *p, struct lag_codec *codec, unsigned kind, uint32_t map)
{
	uint32_t *maps = codec->maps[kind];
	unsigned which = 0;

	if (maps[0] != map) {
		which = maps[1] == map ? 1 : maps[2] == map ? 2 : MAP_GIVEN;
		put_first(maps, which < MAP_GIVEN ? which : MAP_GIVEN - 1, map);
	}
	*p++ = (uint8_t)(kind | which << MAPS_SHL);
	return which == MAP_GIVEN ? lag_varint_put(p, map) : p;
}

/* One bit a field that is not as expected. Compares a few more than there are, to do
 * without a branch for each. */
INLINE uint32_t changed(const int64_t *field, const int64_t *expected, unsigned n_fields)
{
	uint32_t map = 0;

#pragma GCC unroll 6
	for (unsigned i = 0; i < n_fields; i += UNROLL) {
		uint32_t bits = (uint32_t)(field[i] != expected[i]);

		bits |= (uint32_t)(field[i + 1] != expected[i + 1]) << 1;
		bits |= (uint32_t)(field[i + 2] != expected[i + 2]) << 2;
		bits |= (uint32_t)(field[i + 3] != expected[i + 3]) << 3;
		map |= bits << i;
	}
	return map & ((UINT32_C(1) << n_fields) - 1);
}

/* What a recorded value lets expect next: fields that count on go on by as much as last time, when that
 * was a small step. */
INLINE int64_t expect_next(int64_t v, int64_t *last, bool counts_on)
{
	uint64_t step;

	if (!counts_on)
		return v;
	step = (uint64_t)lag_minus(v, *last);
	*last = v;
	return lag_plus(v, step <= STEP_MAX ? (int64_t)step : 1);
}

/* The fields of a record whose bits are set in map. */
INLINE uint8_t *put_fields(uint8_t *p, struct lag_codec *codec, const struct lag_record *rec,
			   unsigned kind, uint32_t map)
{
	const unsigned n_fields = shapes[kind].n_fields, at = shapes[kind].at;
	int64_t *expected = codec->expected + at, *next = codec->next + at,
		*last = codec->last + at;
	int64_t time = expected[0];

#pragma GCC unroll 24
	for (unsigned i = 0; i < n_fields; i++) {
		const bool timed = times[kind] >> i & 1, counts_on = counts[kind] >> i & 1;
		int64_t v = rec->field[i];

		if (!(map >> i & 1)) {
			if (counts_on && v != LAG_NONE)
				next[i] = expected[i] = expect_next(v, &last[i], true);
		} else if (timed) {
			int64_t diff = lag_minus(v, time);

			p = lag_varint_put(p, i ? (uint64_t)diff : lag_zigzag(diff));
			time = v;
		} else if (v == LAG_NONE) {
			/* No difference to what was expected has no bit: 0 is free to say this, or that
			 * the field is recorded again. */
			*p++ = 0;
			expected[i] = LAG_NONE;
		} else {
			p = lag_varint_put(p, lag_zigzag(lag_minus(v, next[i])));
			next[i] = expected[i] = expect_next(v, &last[i], counts_on);
		}
	}
	if (times[kind] & 1) {
		expected[0] = time;
		codec->time_ns = rec->field[0];
	}
	return p;
}

INLINE size_t encode(uint8_t *out, struct lag_codec *codec, const struct lag_record *rec,
		     unsigned kind)
{
	uint32_t map;
	uint8_t *p;

	if (codec->maps[kind][0] == UNSEEN)
		start_kind(codec, kind);
	map = changed(rec->field, codec->expected + shapes[kind].at, shapes[kind].n_fields);
	p = put_head(out, codec, kind, map | rec->newer);
	p = put_fields(p, codec, rec, kind, map);
	if (kind == LAG_REC_string)
		p = lag_varint_put(p, rec->n_bytes);
	if (rec->n_bytes)
		memcpy(p, rec->bytes, rec->n_bytes);
	return (size_t)(p - out) + rec->n_bytes;
}

size_t lag_record_bound(const struct lag_record *rec)
{
	return 1 + 4 + (size_t)LAG_VARINT_MAX * (shapes[rec->kind].n_fields + 1u) + rec->n_bytes;
}

size_t lag_record_encode(uint8_t *out, size_t room, struct lag_codec *codec,
			 const struct lag_record *rec)
{
	if (rec->n_bytes > LAG_RECORD_BYTES_MAX || room < lag_record_bound(rec))
		return 0;
	/* The same code for all; for the many of a trace with their fields in a straight line. */
	switch (rec->kind) {
	case LAG_REC_kernel:
		return encode(out, codec, rec, LAG_REC_kernel);
	case LAG_REC_api:
		return encode(out, codec, rec, LAG_REC_api);
	case LAG_REC_external:
		return encode(out, codec, rec, LAG_REC_external);
	case LAG_REC_range:
		return encode(out, codec, rec, LAG_REC_range);
	case LAG_REC_range_end:
		return encode(out, codec, rec, LAG_REC_range_end);
	default:
		return encode(out, codec, rec, rec->kind);
	}
}

/* What follows the head; NULL when it is none. */
static const uint8_t *get_head(const uint8_t *p, const uint8_t *end, struct lag_codec *codec,
			       unsigned *kind, uint32_t *map)
{
	unsigned which;
	uint32_t *maps;
	uint64_t given;

	if (p == end)
		return NULL;
	*kind = *p & KIND_MASK;
	which = *p++ >> MAPS_SHL;
	maps = codec->maps[*kind];
	if (which == MAP_GIVEN) {
		p = lag_varint_get(p, end, &given);
		if (!p || given >> LAG_RECORD_FIELDS_MAX)
			return NULL;
		*map = (uint32_t)given;
	} else {
		*map = maps[which];
	}
	if (*kind == 0 || *map == UNSEEN)
		return NULL;
	if (maps[0] == UNSEEN)
		start_kind(codec, *kind);
	put_first(maps, which < MAP_GIVEN ? which : MAP_GIVEN - 1, *map);
	return p;
}

/* Fields that this reader does not know are varints too, whatever they mean. */
static const uint8_t *skip_fields(const uint8_t *p, const uint8_t *end, uint32_t map)
{
	uint64_t u;

	for (; p && map; map &= map - 1)
		p = lag_varint_get(p, end, &u);
	return p;
}

INLINE const uint8_t *get_fields(const uint8_t *p, const uint8_t *end, struct lag_codec *codec,
				 int64_t *field, unsigned kind, uint32_t map)
{
	const unsigned n_fields = shapes[kind].n_fields, at = shapes[kind].at;
	int64_t *expected = codec->expected + at, *next = codec->next + at,
		*last = codec->last + at;
	int64_t time = expected[0];
	uint64_t u = 0;

#pragma GCC unroll 24
	for (unsigned i = 0; i < n_fields; i++) {
		const bool timed = times[kind] >> i & 1, counts_on = counts[kind] >> i & 1;
		int64_t v = expected[i];

		if (!(map >> i & 1)) {
			field[i] = v;
			if (counts_on && v != LAG_NONE)
				next[i] = expected[i] = expect_next(v, &last[i], true);
			continue;
		}
		p = lag_varint_get(p, end, &u);
		if (!p)
			return NULL;
		if (timed) {
			field[i] = time = lag_plus(time, i ? (int64_t)u : lag_unzigzag(u));
			continue;
		}
		v = u || v == LAG_NONE ? lag_plus(next[i], lag_unzigzag(u)) : LAG_NONE;
		field[i] = expected[i] = v;
		if (v != LAG_NONE)
			next[i] = expected[i] = expect_next(v, &last[i], counts_on);
	}
	if (times[kind] & 1) {
		expected[0] = time;
		codec->time_ns = field[0];
	}
	return p;
}

static const uint8_t *get_fields_of(const uint8_t *p, const uint8_t *end, struct lag_codec *codec,
				    int64_t *field, unsigned kind, uint32_t map)
{
	switch (kind) {
	case LAG_REC_kernel:
		return get_fields(p, end, codec, field, LAG_REC_kernel, map);
	case LAG_REC_api:
		return get_fields(p, end, codec, field, LAG_REC_api, map);
	default:
		return get_fields(p, end, codec, field, kind, map);
	}
}

enum lag_status lag_record_decode(const uint8_t *in, size_t n, size_t *used,
				  struct lag_codec *codec, struct lag_record *rec)
{
	const uint8_t *end = in + n, *p;
	unsigned kind;
	uint32_t map, known;
	uint64_t n_bytes = 0;

	p = get_head(in, end, codec, &kind, &map);
	if (!p)
		return LAG_ERR_INPUT;
	known = map & ((UINT32_C(1) << shapes[kind].n_fields) - 1);
	if (shapes[kind].n_fields)
		p = get_fields_of(p, end, codec, rec->field, kind, known);
	rec->kind = (enum lag_record_kind)kind;
	rec->newer = map & ~known;
	rec->bytes = (const char *)p;
	p = skip_fields(p, end, rec->newer);
	if (p && kind == LAG_REC_string) {
		p = lag_varint_get(p, end, &n_bytes);
		rec->bytes = (const char *)p;
	}
	if (!p || n_bytes > LAG_RECORD_BYTES_MAX || n_bytes > (uint64_t)(end - p))
		return LAG_ERR_INPUT;
	p += n_bytes;
	rec->n_bytes = (size_t)((const char *)p - rec->bytes);
	*used = (size_t)(p - in);
	return shapes[kind].n_fields ? LAG_OK : LAG_WARN;
}

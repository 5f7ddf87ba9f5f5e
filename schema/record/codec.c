/* SPDX-License-Identifier: Apache-2.0 */
/* The record codec: driven by record.def, so that a new kind or field needs no code. Encoding runs in
 * the traced program's threads. */
#include "schema/record/codec.h"

#include <string.h>

#include "schema/base/varint.h"

#define UNSEEN    UINT32_MAX /* no map has that many bits */
#define MAPS_SHL  6          /* of the head byte: the kind below, above it which map */
#define KIND_MASK (LAG_REC_LIMIT - 1)
#define MAP_GIVEN LAG_CODEC_MAPS
#define STEP_MAX  7 /* differences of fields that count on are expected again up to this one */

#define FIELD_BIT(record, name) (UINT32_C(1) << (offsetof(struct lag_rec_##record, name) / 8))

struct shape {
	uint16_t n_fields;
	uint16_t at; /* of the kind's fields in the codec's */
};

static const struct shape shapes[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number)                        \
	[number] = { sizeof(struct lag_rec_##name) / 8, \
		     offsetof(struct lag_codec_fields, name) / 8 },
#include "schema/record/record.def"
};

/* Bits of the fields of one type, by kind. */
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

_Static_assert(LAG_RECORD_FIELDS_MAX <= 24, "a map has four bytes at most");
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

/* Fields that count on go on by as much as last time, when that was a small step. */
static void count_on(struct lag_codec *codec, unsigned kind, const int64_t *field)
{
	unsigned at = shapes[kind].at;

	for (uint32_t left = counts[kind]; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint64_t step = (uint64_t)lag_minus(field[i], codec->last[at + i]);

		if (field[i] == LAG_NONE)
			continue;
		codec->last[at + i] = field[i];
		codec->next[at + i] = codec->expected[at + i] =
			lag_plus(field[i], step <= STEP_MAX ? (int64_t)step : 1);
	}
}

size_t lag_record_bound(const struct lag_record *rec)
{
	return 1 + 4 + (size_t)LAG_VARINT_MAX * (shapes[rec->kind].n_fields + 1u) + rec->n_bytes;
}

size_t lag_record_encode(uint8_t *out, size_t room, struct lag_codec *codec,
			 const struct lag_record *rec)
{
	const unsigned kind = rec->kind;
	const unsigned n_fields = shapes[kind].n_fields;
	int64_t *expected = codec->expected + shapes[kind].at,
		*next = codec->next + shapes[kind].at;
	uint32_t map = 0;
	int64_t time;
	uint8_t *p;

	if (rec->n_bytes > LAG_RECORD_BYTES_MAX || room < lag_record_bound(rec))
		return 0;
	if (codec->maps[kind][0] == UNSEEN)
		start_kind(codec, kind);
	for (unsigned i = 0; i < n_fields; i++)
		map |= (uint32_t)(rec->field[i] != expected[i]) << i;
	p = put_head(out, codec, kind, map | rec->newer);
	time = expected[0];
	for (uint32_t left = map; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		int64_t v = rec->field[i], diff;

		if (times[kind] >> i & 1) {
			diff = lag_minus(v, time);
			time = v;
			p = lag_varint_put(p, i ? (uint64_t)diff : lag_zigzag(diff));
			continue;
		}
		/* No difference to what was expected has no bit: a 0 is free to say that the field is,
		 * or again is, recorded. */
		diff = v == LAG_NONE ? 0 : lag_minus(v, next[i]);
		p = lag_varint_put(p, lag_zigzag(diff));
		expected[i] = v;
		if (v != LAG_NONE)
			next[i] = v;
	}
	if (times[kind] & 1) {
		expected[0] = time;
		codec->time_ns = rec->field[0];
	}
	count_on(codec, kind, rec->field);
	if (kind == LAG_REC_string)
		p = lag_varint_put(p, rec->n_bytes);
	if (rec->n_bytes)
		memcpy(p, rec->bytes, rec->n_bytes);
	return (size_t)(p - out) + rec->n_bytes;
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

static const uint8_t *get_fields(const uint8_t *p, const uint8_t *end, struct lag_codec *codec,
				 unsigned kind, uint32_t map, int64_t *field)
{
	const unsigned n_fields = shapes[kind].n_fields;
	int64_t *expected = codec->expected + shapes[kind].at,
		*next = codec->next + shapes[kind].at;
	int64_t time = expected[0];

	memcpy(field, expected, n_fields * sizeof(*field));
	for (uint32_t left = map; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint64_t u;

		p = lag_varint_get(p, end, &u);
		if (!p)
			return NULL;
		if (times[kind] >> i & 1) {
			time = lag_plus(time, i ? (int64_t)u : lag_unzigzag(u));
			field[i] = time;
			continue;
		}
		field[i] = u || expected[i] == LAG_NONE ? lag_plus(next[i], lag_unzigzag(u))
							: LAG_NONE;
		expected[i] = field[i];
		if (field[i] != LAG_NONE)
			next[i] = field[i];
	}
	if (times[kind] & 1) {
		expected[0] = time;
		codec->time_ns = field[0];
	}
	count_on(codec, kind, field);
	return p;
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
		p = get_fields(p, end, codec, kind, known, rec->field);
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

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
		codec->expected[shape->at + i] = lag_record_strings[kind] >> i & 1 ? 0 : LAG_NONE;
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

/* One bit a field that is not as expected; without a branch, and a carry is a bit. */
INLINE uint32_t changed(const int64_t *field, const int64_t *expected, unsigned n_fields)
{
	uint32_t same = 0;

#pragma GCC unroll 24
	for (unsigned i = n_fields; i-- > 0;)
		same += same + (((uint64_t)field[i] ^ (uint64_t)expected[i]) < 1);
	return ~same & ((UINT32_C(1) << n_fields) - 1);
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

/* What the codec holds of a kind. */
struct slots {
	int64_t *expected, *next, *last;
	int64_t time;
};

INLINE struct slots slots_of(struct lag_codec *codec, unsigned kind)
{
	const unsigned at = shapes[kind].at;

	return (struct slots){ codec->expected + at, codec->next + at, codec->last + at,
			       codec->expected[at] };
}

INLINE void leave_slots(struct lag_codec *codec, struct slots *s, unsigned kind,
			const int64_t *field)
{
	if (times[kind] & 1) {
		s->expected[0] = s->time;
		codec->time_ns = field[0];
	}
}

INLINE uint8_t *put_field(uint8_t *p, struct slots *s, unsigned kind, uint32_t map, unsigned i,
			  int64_t v)
{
	const bool timed = times[kind] >> i & 1, counts_on = counts[kind] >> i & 1;

	if (!(map & UINT32_C(1) << i)) {
		if (counts_on && v != LAG_NONE)
			s->next[i] = s->expected[i] = expect_next(v, &s->last[i], true);
	} else if (timed) {
		int64_t diff = lag_minus(v, s->time);

		p = lag_varint_put(p, i ? (uint64_t)diff : lag_zigzag(diff));
		s->time = v;
	} else if (v == LAG_NONE) {
		/* No difference to what was expected has no bit: 0 is free to say this, or that the
		 * field is recorded again. */
		*p++ = 0;
		s->expected[i] = LAG_NONE;
	} else {
		p = lag_varint_put(p, lag_zigzag(lag_minus(v, s->next[i])));
		s->next[i] = s->expected[i] = expect_next(v, &s->last[i], counts_on);
	}
	return p;
}

/* For a kind that the compiler knows: all fields in a straight line. */
INLINE uint8_t *put_line(uint8_t *p, struct lag_codec *codec, unsigned kind, uint32_t map,
			 const int64_t *field)
{
	const unsigned n_fields = shapes[kind].n_fields;
	struct slots s = slots_of(codec, kind);

#pragma GCC unroll 24
	for (unsigned i = 0; i < n_fields; i++)
		p = put_field(p, &s, kind, map, i, field[i]);
	leave_slots(codec, &s, kind, field);
	return p;
}

/* For any kind: the fields with something to do. */
static uint8_t *put_loop(uint8_t *p, struct lag_codec *codec, unsigned kind, uint32_t map,
			 const int64_t *field)
{
	struct slots s = slots_of(codec, kind);

	for (uint32_t left = map | counts[kind]; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		p = put_field(p, &s, kind, map, i, field[i]);
	}
	leave_slots(codec, &s, kind, field);
	return p;
}

INLINE size_t encode(uint8_t *out, struct lag_codec *codec, const struct lag_record *rec,
		     unsigned kind, bool usual)
{
	uint32_t map;
	uint8_t *p;

	if (codec->maps[kind][0] == UNSEEN)
		start_kind(codec, kind);
	map = changed(rec->field, codec->expected + shapes[kind].at, shapes[kind].n_fields);
	p = put_head(out, codec, kind, map | rec->newer);
	p = usual ? put_line(p, codec, kind, map, rec->field)
		  : put_loop(p, codec, kind, map, rec->field);
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
		return encode(out, codec, rec, LAG_REC_kernel, true);
	case LAG_REC_api:
		return encode(out, codec, rec, LAG_REC_api, true);
	case LAG_REC_external:
		return encode(out, codec, rec, LAG_REC_external, true);
	case LAG_REC_range:
		return encode(out, codec, rec, LAG_REC_range, true);
	case LAG_REC_range_end:
		return encode(out, codec, rec, LAG_REC_range_end, true);
	case LAG_REC_op:
		return encode(out, codec, rec, LAG_REC_op, true);
	case LAG_REC_op_end:
		return encode(out, codec, rec, LAG_REC_op_end, true);
	default:
		return encode(out, codec, rec, rec->kind, false);
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

/* Field i, whose *v is what was expected. */
INLINE const uint8_t *get_field(const uint8_t *p, const uint8_t *end, struct slots *s,
				unsigned kind, uint32_t map, unsigned i, int64_t *v)
{
	const bool timed = times[kind] >> i & 1, counts_on = counts[kind] >> i & 1;
	uint64_t u;

	if (!(map & UINT32_C(1) << i)) {
		if (counts_on && *v != LAG_NONE)
			s->next[i] = s->expected[i] = expect_next(*v, &s->last[i], true);
		return p;
	}
	p = lag_varint_get(p, end, &u);
	if (!p)
		return NULL;
	if (timed) {
		*v = s->time = lag_plus(s->time, i ? (int64_t)u : lag_unzigzag(u));
		return p;
	}
	*v = u || *v == LAG_NONE ? lag_plus(s->next[i], lag_unzigzag(u)) : LAG_NONE;
	s->expected[i] = *v;
	if (*v != LAG_NONE)
		s->next[i] = s->expected[i] = expect_next(*v, &s->last[i], counts_on);
	return p;
}

INLINE const uint8_t *get_line(const uint8_t *p, const uint8_t *end, struct lag_codec *codec,
			       unsigned kind, uint32_t map, int64_t *field)
{
	const unsigned n_fields = shapes[kind].n_fields;
	struct slots s = slots_of(codec, kind);

#pragma GCC unroll 24
	for (unsigned i = 0; i < n_fields; i++) {
		int64_t v = s.expected[i];

		p = get_field(p, end, &s, kind, map, i, &v);
		if (!p)
			return NULL;
		field[i] = v;
	}
	leave_slots(codec, &s, kind, field);
	return p;
}

static const uint8_t *get_loop(const uint8_t *p, const uint8_t *end, struct lag_codec *codec,
			       unsigned kind, uint32_t map, int64_t *field)
{
	struct slots s = slots_of(codec, kind);

	for (unsigned i = 0; i < shapes[kind].n_fields; i += UNROLL)
		memcpy(field + i, s.expected + i, UNROLL * sizeof(*field));
	for (uint32_t left = map | counts[kind]; left && p; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		p = get_field(p, end, &s, kind, map, i, &field[i]);
	}
	leave_slots(codec, &s, kind, field);
	return p;
}

static const uint8_t *get_fields(const uint8_t *p, const uint8_t *end, struct lag_codec *codec,
				 unsigned kind, uint32_t map, int64_t *field)
{
	switch (kind) {
	case LAG_REC_kernel:
		return get_line(p, end, codec, LAG_REC_kernel, map, field);
	case LAG_REC_api:
		return get_line(p, end, codec, LAG_REC_api, map, field);
	default:
		return get_loop(p, end, codec, kind, map, field);
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

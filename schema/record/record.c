/* SPDX-License-Identifier: Apache-2.0 */
/* The record codec: driven by record.def's tables, so that a new kind or field needs no code. */
#include "schema/record/record.h"

#include <string.h>

#define LAG_RECORD(name, number)      static const struct lag_field_info fields_##name[] = {
#define LAG_FIELD(record, name, type) { #name, LAG_F_##type },
#define LAG_RECORD_END(name) \
	}                    \
	;
#include "schema/record/record.def"

static const struct lag_record_info infos[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number)                                                              \
	[number] = { #name, LAG_REC_##name, sizeof(fields_##name) / sizeof(fields_##name[0]), \
		     fields_##name },
#include "schema/record/record.def"
};

#define LAG_RECORD(name, number)                                                                  \
	_Static_assert(sizeof(fields_##name) / sizeof(fields_##name[0]) <= LAG_RECORD_FIELDS_MAX, \
		       #name);
#include "schema/record/record.def"

const struct lag_record_info *lag_record_info_get(unsigned kind)
{
	return kind < LAG_REC_LIMIT && infos[kind].name ? &infos[kind] : NULL;
}

void lag_record_init(struct lag_record *rec, enum lag_record_kind kind)
{
	const struct lag_record_info *info = &infos[kind];

	rec->kind = kind;
	rec->bytes = NULL;
	rec->n_bytes = 0;
	for (size_t i = 0; i < info->n_fields; i++)
		rec->field[i] = info->fields[i].type == LAG_F_STR ? 0 : LAG_NONE;
}

static uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t u)
{
	return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* Differences wrap around: any two int64_t can be encoded. */
static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* AFTER has one more value than 64 bits: LAG_NONE is 0, others are shifted by one; the one difference
 * that this pushes out (INT64_MIN) is 292 years and is written as LAG_NONE. */
static uint64_t pack_after(int64_t v, int64_t time)
{
	return v == LAG_NONE || minus(v, time) == INT64_MIN ? 0 : zigzag(minus(v, time)) + 1;
}

static uint8_t *put_field(uint8_t *p, enum lag_field_type type, int64_t v, int64_t *last_time)
{
	switch (type) {
	case LAG_F_TIME:
		p = put_varint(p, zigzag(minus(v, *last_time)));
		*last_time = v;
		return p;
	case LAG_F_AFTER:
		return put_varint(p, pack_after(v, *last_time));
	case LAG_F_INT:
		return put_varint(p, zigzag(v));
	case LAG_F_OPT:
		return put_varint(p, v == LAG_NONE ? 0 : (uint64_t)v + 1);
	case LAG_F_HASH:
		memcpy(p, &v, sizeof(v));
		return p + sizeof(v);
	case LAG_F_UINT:
	case LAG_F_STR:
		break;
	}
	return put_varint(p, (uint64_t)v);
}

size_t lag_record_encode(uint8_t *out, size_t room, int64_t *last_time,
			 const struct lag_record *rec)
{
	const struct lag_record_info *info = &infos[rec->kind];
	uint8_t head[16], body[LAG_RECORD_FIELDS_MAX * 10];
	int64_t time = *last_time;
	uint8_t *h = head, *b = body;
	size_t n_head, n_body;

	for (size_t i = 0; i < info->n_fields; i++)
		b = put_field(b, info->fields[i].type, rec->field[i], &time);
	n_body = (size_t)(b - body);
	*h++ = (uint8_t)rec->kind;
	h = put_varint(h, n_body + rec->n_bytes);
	n_head = (size_t)(h - head);
	if (rec->n_bytes > LAG_RECORD_BYTES_MAX || n_head + n_body + rec->n_bytes > room)
		return 0;
	memcpy(out, head, n_head);
	memcpy(out + n_head, body, n_body);
	if (rec->n_bytes)
		memcpy(out + n_head + n_body, rec->bytes, rec->n_bytes);
	*last_time = time;
	return n_head + n_body + rec->n_bytes;
}

/* NULL when the varint does not end before `end` or has more than 64 bits. */
static const uint8_t *get_varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
		uint8_t byte = *p++;

		if (shift == 63 && byte > 1)
			return NULL;
		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return p;
	}
	return NULL;
}

static const uint8_t *get_field(const uint8_t *p, const uint8_t *end, enum lag_field_type type,
				int64_t *v, int64_t *last_time)
{
	uint64_t u;

	if (type == LAG_F_HASH) {
		if (end - p < (ptrdiff_t)sizeof(*v))
			return NULL;
		memcpy(v, p, sizeof(*v));
		return p + sizeof(*v);
	}
	p = get_varint(p, end, &u);
	if (!p)
		return NULL;
	if (type == LAG_F_TIME) {
		*v = *last_time = plus(*last_time, unzigzag(u));
	} else if (type == LAG_F_AFTER) {
		*v = u ? plus(*last_time, unzigzag(u - 1)) : LAG_NONE;
	} else if (type == LAG_F_INT) {
		*v = unzigzag(u);
	} else if (type == LAG_F_OPT) {
		*v = u ? (int64_t)(u - 1) : LAG_NONE;
	} else {
		*v = (int64_t)u;
	}
	return p;
}

enum lag_status lag_record_decode(const uint8_t *in, size_t n, size_t *used, int64_t *last_time,
				  struct lag_record *rec)
{
	const uint8_t *p = in, *end;
	const struct lag_record_info *info;
	int64_t time = *last_time;
	uint64_t n_body;

	if (n < 2)
		return LAG_ERR_INPUT;
	p = get_varint(in + 1, in + n, &n_body);
	if (!p || n_body > (uint64_t)(in + n - p) || n_body > LAG_RECORD_WIRE_MAX)
		return LAG_ERR_INPUT;
	end = p + n_body;
	*used = (size_t)(end - in);
	info = lag_record_info_get(in[0]);
	if (!info)
		return in[0] && in[0] < LAG_REC_LIMIT ? LAG_WARN : LAG_ERR_INPUT;
	lag_record_init(rec, info->kind);
	for (size_t i = 0; i < info->n_fields && p < end; i++) {
		p = get_field(p, end, info->fields[i].type, &rec->field[i], &time);
		if (!p)
			return LAG_ERR_INPUT;
	}
	if (info->kind == LAG_REC_string) {
		rec->bytes = (const char *)p;
		rec->n_bytes = (size_t)(end - p);
	}
	*last_time = time;
	return LAG_OK;
}

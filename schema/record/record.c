/* SPDX-License-Identifier: Apache-2.0 */
/* The record codec: driven by record.def's tables, so that a new kind or field needs no code. */
#include "schema/record/record.h"

#include <string.h>

#include "schema/base/varint.h"

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

/* AFTER has one more value than 64 bits: LAG_NONE is 0, others are shifted by one; the one difference
 * that this pushes out (INT64_MIN) is 292 years and is written as LAG_NONE. */
static uint64_t pack_after(int64_t v, int64_t time)
{
	return v == LAG_NONE || lag_minus(v, time) == INT64_MIN
		       ? 0
		       : lag_zigzag(lag_minus(v, time)) + 1;
}

static uint8_t *put_field(uint8_t *p, enum lag_field_type type, int64_t v, int64_t *last_time)
{
	switch (type) {
	case LAG_F_TIME:
		p = lag_varint_put(p, lag_zigzag(lag_minus(v, *last_time)));
		*last_time = v;
		return p;
	case LAG_F_AFTER:
		return lag_varint_put(p, pack_after(v, *last_time));
	case LAG_F_INT:
		return lag_varint_put(p, lag_zigzag(v));
	case LAG_F_OPT:
		return lag_varint_put(p, v == LAG_NONE ? 0 : (uint64_t)v + 1);
	case LAG_F_HASH:
		memcpy(p, &v, sizeof(v));
		return p + sizeof(v);
	case LAG_F_UINT:
	case LAG_F_STR:
		break;
	}
	return lag_varint_put(p, (uint64_t)v);
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
	h = lag_varint_put(h, n_body + rec->n_bytes);
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
	p = lag_varint_get(p, end, &u);
	if (!p)
		return NULL;
	if (type == LAG_F_TIME) {
		*v = *last_time = lag_plus(*last_time, lag_unzigzag(u));
	} else if (type == LAG_F_AFTER) {
		*v = u ? lag_plus(*last_time, lag_unzigzag(u - 1)) : LAG_NONE;
	} else if (type == LAG_F_INT) {
		*v = lag_unzigzag(u);
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
	p = lag_varint_get(in + 1, in + n, &n_body);
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
	rec->bytes = (const char *)p;
	rec->n_bytes = (size_t)(end - p);
	*last_time = time;
	return LAG_OK;
}

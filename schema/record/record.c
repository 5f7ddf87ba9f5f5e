/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of all record kinds, made from record.def. */
#include <string.h>

#include "schema/record/codec.h"

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

const uint32_t lag_record_strings[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number) [number] = 0
#define LAG_FIELD(record, name, type)           \
	| (uint32_t)(LAG_F_##type == LAG_F_STR) \
			<< (offsetof(struct lag_rec_##record, name) / sizeof(int64_t))
#define LAG_RECORD_END(name) ,
#include "schema/record/record.def"
};

/* What a record of each kind begins with, one after the other; and room for one that is read in fours. */
static const int64_t unset[LAG_CODEC_FIELDS] = {
#define LAG_FIELD(record, name, type) LAG_F_##type == LAG_F_STR ? 0 : LAG_NONE,
#include "schema/record/record.def"
};
static const uint16_t unset_at[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number) [number] = offsetof(struct lag_codec_fields, name) / 8,
#include "schema/record/record.def"
};

void lag_record_init(struct lag_record *rec, enum lag_record_kind kind)
{
	const int64_t *from = unset + unset_at[kind];
	const size_t n_fields = infos[kind].n_fields;

	rec->kind = kind;
	rec->newer = 0;
	rec->bytes = NULL;
	rec->n_bytes = 0;
	for (size_t i = 0; i < n_fields; i += LAG_CODEC_SLACK)
		memcpy(rec->field + i, from + i, LAG_CODEC_SLACK * sizeof(*from));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of all record kinds, made from record.def. */
#include "schema/record/record.h"

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
	rec->newer = 0;
	rec->bytes = NULL;
	rec->n_bytes = 0;
	for (size_t i = 0; i < info->n_fields; i++)
		rec->field[i] = info->fields[i].type == LAG_F_STR ? 0 : LAG_NONE;
}

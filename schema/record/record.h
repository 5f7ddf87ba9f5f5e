/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded records: what the tracer, the importers and the merge all speak. Made from record.def. */
#ifndef SCHEMA_RECORD_RECORD_H
#define SCHEMA_RECORD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/record/enums.h"

#define LAG_NONE INT64_MIN /* not recorded, which is never zero */

static inline int64_t lag_or(int64_t v, int64_t otherwise)
{
	return v != LAG_NONE ? v : otherwise;
}

/* For ids of which 0 is none. */
static inline int64_t lag_positive(int64_t v)
{
	return v > 0 ? v : LAG_NONE;
}

enum lag_record_kind {
#define LAG_RECORD(name, number) LAG_REC_##name = (number),
#include "schema/record/record.def"
	LAG_REC_LIMIT = 64, /* kinds are below this */
};

#define LAG_RECORD(name, number)      struct lag_rec_##name {
#define LAG_FIELD(record, name, type) int64_t name;
#define LAG_RECORD_END(name) \
	}                    \
	;
#include "schema/record/record.def"

#define LAG_RECORD_FIELDS_MAX 24
#define LAG_RECORD_BYTES_MAX  32768 /* longest string; longer ones are cut by the writer */

struct lag_record {
	enum lag_record_kind kind;
	uint32_t newer; /* bits of the fields that are newer than this reader */
	/* A string's text; else the wire form of those newer fields, which travel along unread: it means
	 * something only after the same records. Borrowed from the decoder's input. */
	const char *bytes;
	size_t n_bytes;

	union {
		int64_t field[LAG_RECORD_FIELDS_MAX];
#define LAG_RECORD(name, number) struct lag_rec_##name name;
#include "schema/record/record.def"
	};
};

enum lag_field_type {
	LAG_F_TIME,
	LAG_F_AFTER,
	LAG_F_COUNT,
	LAG_F_UINT,
	LAG_F_INT,
	LAG_F_OPT,
	LAG_F_STR,
	LAG_F_HASH
};

struct lag_field_info {
	const char *name;
	enum lag_field_type type;
};

struct lag_record_info {
	const char *name;
	enum lag_record_kind kind;
	size_t n_fields;
	const struct lag_field_info *fields;
};

/* Description of a kind, or NULL for a number that is none. */
const struct lag_record_info *lag_record_info_get(unsigned kind);

/* By kind: bit i says that field i is a string's id. */
extern const uint32_t lag_record_strings[LAG_REC_LIMIT];

/* A record of `kind` in which every field is LAG_NONE (STR fields 0). */
void lag_record_init(struct lag_record *rec, enum lag_record_kind kind);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded records: what the tracer, the importers and the merge all speak. Made from record.def. */
#ifndef SCHEMA_RECORD_RECORD_H
#define SCHEMA_RECORD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/record/enums.h"

#define LAG_NONE INT64_MIN /* not recorded, which is never zero */

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
#define LAG_RECORD_WIRE_MAX   (LAG_RECORD_BYTES_MAX + 256)

struct lag_record {
	enum lag_record_kind kind;
	/* What follows the fields: a string's text; else fields newer than this reader, which travel
	 * along unread. Borrowed from the decoder's input. */
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

/* A record of `kind` in which every field is LAG_NONE (STR fields 0). */
void lag_record_init(struct lag_record *rec, enum lag_record_kind kind);

/* Writes rec's wire form to out (room bytes there). *last_time is the chunk's running TIME base.
 * Returns the length, or 0 when room is too small. No allocation, no locks, no libc calls but memcpy.
 * Wire form: kind (1 byte), payload length (varint), payload. */
size_t lag_record_encode(uint8_t *out, size_t room, int64_t *last_time,
			 const struct lag_record *rec);

/* Reads one record at in. LAG_OK: rec is filled, *used is its wire length. LAG_WARN: a kind this
 * reader does not know, *used is set. LAG_ERR_INPUT: not a record (cut off or corrupt).
 * rec->bytes points into `in`. */
enum lag_status lag_record_decode(const uint8_t *in, size_t n, size_t *used, int64_t *last_time,
				  struct lag_record *rec) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The wire form of records: each is written as its difference to what the records of its kind before
 * it in the chunk let expect. man/laggard-trace.5 documents every byte. Writer and reader hold the same
 * state; it starts anew with every chunk, so that each chunk is read by itself. */
#ifndef SCHEMA_RECORD_CODEC_H
#define SCHEMA_RECORD_CODEC_H

#include "schema/record/record.h"

#define LAG_CODEC_MAPS 3 /* field maps that a record can repeat by number */

/* All fields of all kinds, side by side. */
struct lag_codec_fields {
#define LAG_RECORD(name, number) struct lag_rec_##name name;
#include "schema/record/record.def"
};

#define LAG_CODEC_SLACK  4 /* fields are handled by so many */
#define LAG_CODEC_FIELDS (sizeof(struct lag_codec_fields) / sizeof(int64_t) + LAG_CODEC_SLACK)

struct lag_codec {
	int64_t time_ns; /* the latest TIME of any kind, or where the chunk begins */
	/* The kind's latest field maps, newest first; kinds without one have not been seen. */
	uint32_t maps[LAG_REC_LIMIT][LAG_CODEC_MAPS];
	/* By field: what it has when its bit in the map is clear; what differences count from; the
	 * last value of fields that count on. */
	int64_t expected[LAG_CODEC_FIELDS], next[LAG_CODEC_FIELDS], last[LAG_CODEC_FIELDS];
};

/* Begins a chunk whose first times are near base_ns. */
void lag_codec_start(struct lag_codec *codec, int64_t base_ns);

/* Bytes that encoding needs at out at most (it may touch all of them). */
size_t lag_record_bound(const struct lag_record *rec);

/* Writes rec's wire form to out (room bytes there). Returns the length, or 0, with nothing changed,
 * when room is below the bound or rec->n_bytes above LAG_RECORD_BYTES_MAX. No allocation, no locks, no
 * libc calls but memcpy. */
size_t lag_record_encode(uint8_t *out, size_t room, struct lag_codec *codec,
			 const struct lag_record *rec);

/* Reads one record at in. LAG_OK: rec is filled, *used is its wire length. LAG_WARN: a kind this
 * reader does not know, *used is set. LAG_ERR_INPUT: not a record (cut off or corrupt), and the rest of
 * the chunk cannot be read either. rec->bytes points into `in`. */
enum lag_status lag_record_decode(const uint8_t *in, size_t n, size_t *used,
				  struct lag_codec *codec, struct lag_record *rec) LAG_MUST_USE;

#endif

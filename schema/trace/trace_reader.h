/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a .lag file that may be cut anywhere, still be written, or be hostile. The input is a byte
 * range or an open file; nothing outside it is touched. */
#ifndef SCHEMA_TRACE_TRACE_READER_H
#define SCHEMA_TRACE_TRACE_READER_H

#include <stdbool.h>

#include "schema/record/codec.h"
#include "schema/trace/trace_format.h"

/* What was wrong with the file; all counts. */
struct lag_trace_damage {
	uint64_t bad_chunks;      /* header or checksum wrong: skipped */
	uint64_t missing_chunks;  /* holes in producers' sequences */
	uint64_t bad_records;     /* undecodable: rest of that chunk skipped */
	uint64_t unknown_records; /* kinds newer than this reader */
	uint64_t first_offset;    /* lowest file offset that is damaged */
};

struct lag_trace_reader; /* owned by the caller between open and close */

/* Checks the header and indexes the chunks. `bytes` is borrowed until close. */
enum lag_status lag_trace_reader_open(const uint8_t *bytes, size_t n, struct lag_trace_reader **out,
				      struct lag_err *err) LAG_MUST_USE;

/* The same for a file, which is read chunk by chunk: one that shrinks meanwhile is a cut one, where a
 * map of it would kill the reader. fd is borrowed until close; its position does not matter. */
enum lag_status lag_trace_reader_open_file(int fd, struct lag_trace_reader **out,
					   struct lag_err *err) LAG_MUST_USE;
void lag_trace_reader_close(struct lag_trace_reader *rd);

const struct lag_trace_header *lag_trace_reader_header(const struct lag_trace_reader *rd);
const struct lag_trace_damage *lag_trace_reader_damage(const struct lag_trace_reader *rd);
const struct lag_trace_counters *lag_trace_reader_counters(const struct lag_trace_reader *rd);

/* Records of one producer in order, producers one after the other. String and launch_config records
 * are delivered too; ids in records are those of *producer. rec->bytes is good until the next call.
 * LAG_END at the end. */
enum lag_status lag_trace_reader_next(struct lag_trace_reader *rd, struct lag_record *rec,
				      uint32_t *producer, uint64_t *tid) LAG_MUST_USE;

/* Header of the chunk that the last record came from. */
void lag_trace_reader_chunk(const struct lag_trace_reader *rd, struct lag_chunk_header *chunk);

/* Chunks in the order in which reader_next goes through them. Each can be decoded by itself, in any
 * order and by several threads at once, with a cursor each. */
size_t lag_trace_reader_n_chunks(const struct lag_trace_reader *rd);

struct lag_trace_cursor {
	struct lag_chunk_header chunk;
	uint64_t offset; /* of the chunk in the file */
	const uint8_t *records;
	uint32_t at, n_bytes;
	struct lag_codec codec;
	struct lag_trace_damage damage; /* of all chunks entered so far */
	uint8_t *buffer;                /* owned; NULL while none was needed */
};

void lag_trace_cursor_init(struct lag_trace_cursor *cur);
void lag_trace_cursor_release(struct lag_trace_cursor *cur);

/* Goes to the beginning of chunk i. LAG_WARN: unreadable and counted, it has no records. */
enum lag_status lag_trace_cursor_enter(struct lag_trace_cursor *cur,
				       const struct lag_trace_reader *rd, size_t i) LAG_MUST_USE;

/* The chunk's next record; LAG_END after the last that can be read. */
enum lag_status lag_trace_cursor_next(struct lag_trace_cursor *cur,
				      struct lag_record *rec) LAG_MUST_USE;

#endif

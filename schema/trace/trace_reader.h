/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a .lag file that may be cut anywhere, still be written, or be hostile. The input is a byte
 * range (a map of the file, or a buffer from an archive); nothing outside it is touched. */
#ifndef SCHEMA_TRACE_TRACE_READER_H
#define SCHEMA_TRACE_TRACE_READER_H

#include <stdbool.h>

#include "schema/trace/trace_format.h"

/* What was wrong with the file; all counts. */
struct lag_trace_damage {
	uint64_t bad_chunks;      /* header or checksum wrong: skipped */
	uint64_t missing_chunks;  /* holes in producers' sequences */
	uint64_t bad_records;     /* undecodable: rest of that chunk skipped */
	uint64_t unknown_records; /* kinds newer than this reader */
	uint64_t first_offset;    /* file offset of the first damage */
};

struct lag_trace_reader; /* owned by the caller between open and close */

/* Checks the header and indexes the chunks. `bytes` is borrowed until close. */
enum lag_status lag_trace_reader_open(const uint8_t *bytes, size_t n, struct lag_trace_reader **out,
				      struct lag_err *err) LAG_MUST_USE;
void lag_trace_reader_close(struct lag_trace_reader *rd);

const struct lag_trace_header *lag_trace_reader_header(const struct lag_trace_reader *rd);
const struct lag_trace_damage *lag_trace_reader_damage(const struct lag_trace_reader *rd);
const struct lag_trace_counters *lag_trace_reader_counters(const struct lag_trace_reader *rd);

/* Records of one producer in order, producers one after the other. String and launch_config records
 * are delivered too; ids in records are those of *producer. LAG_END at the end. */
enum lag_status lag_trace_reader_next(struct lag_trace_reader *rd, struct lag_record *rec,
				      uint32_t *producer, uint64_t *tid) LAG_MUST_USE;

/* Header of the chunk that the last record came from. */
void lag_trace_reader_chunk(const struct lag_trace_reader *rd, struct lag_chunk_header *chunk);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A rank file packed for keeping and for the road (.lagz): the same records by kind and field, in
 * blocks that zstd compresses and that can be read each for itself. man/laggard-trace.5 says what
 * lies where. Built on decoded records, so that it knows nothing of a .lag file's own encoding. */
#ifndef MERGE_LAGZ_H
#define MERGE_LAGZ_H

#include "merge/importer.h"
#include "schema/trace/trace_reader.h"

#define LAG_PACKED_SUFFIX        ".lagz"
#define LAG_PACKED_MAGIC         UINT64_C(0x0a1a7a67616c2089) /* "\x89 lagz\x1a\n" little endian */
#define LAG_PACKED_VERSION       1u
#define LAG_PACKED_BLOCK_MAGIC   UINT32_C(0x4b4c425a) /* "ZBLK" */
#define LAG_PACKED_BLOCK_RECORDS 4096u
/* A block is closed when its texts reach this; one text more may follow. */
#define LAG_PACKED_TEXT_MAX ((size_t)1 << 20)
/* Bytes of a block before compression: every field at its longest, texts, chunks. */
#define LAG_PACKED_RAW_MAX                                                     \
	((size_t)LAG_PACKED_BLOCK_RECORDS * (LAG_RECORD_FIELDS_MAX + 8) * 10 + \
	 2 * LAG_PACKED_TEXT_MAX)

/* All integers in the writer's byte order, which the magic tells. */
struct lag_packed_header {
	uint64_t magic;
	uint32_t version, header_bytes;
	uint32_t crc; /* CRC-32C of this struct with crc = 0 */
	uint32_t n_chunks;
	uint64_t source_bytes; /* size of the .lag file, for people */
	uint8_t trace[sizeof(struct lag_trace_header)];
	uint8_t counters[sizeof(struct lag_trace_counters)];
};

/* n_records 0 ends the file: then raw_bytes is 0 and a file without it was cut. */
struct lag_packed_block {
	uint32_t magic, index;
	uint32_t n_records;
	uint32_t raw_bytes, packed_bytes;
	uint32_t crc; /* CRC-32C of this struct with crc = 0, then of the packed bytes */
};

struct lag_packed_tally {
	uint64_t n_records, n_blocks;
	uint64_t bytes_in, bytes_out;
};

/* Writes the .lag file `in` (open, read from its beginning) to `out` as a .lagz file, at its current
 * position. LAG_WARN: the file is damaged, or holds what is newer than this laggard, so that packing
 * would lose what somebody may still want from it; what was written is of no use then, and *why says
 * what is wrong. */
enum lag_status lag_packed_write(int in, int out, struct lag_packed_tally *tally,
				 struct lag_err *why) LAG_MUST_USE;

struct lag_packed_reader; /* owned by the caller between open and close */

/* Reads the header. in is borrowed until close, and read in order. */
enum lag_status lag_packed_open(struct lag_input *in, struct lag_packed_reader **out,
				struct lag_err *err) LAG_MUST_USE;
void lag_packed_close(struct lag_packed_reader *rd);

/* The next record, as lag_trace_reader_next would give it; *chunk is the header of the chunk it was
 * in (crc, n_records and committed unset), borrowed until the next call. LAG_END at the end, also of a
 * cut file: damage tells. Unreadable blocks are counted and skipped. Failures are in's. */
enum lag_status lag_packed_next(struct lag_packed_reader *rd, struct lag_record *rec,
				const struct lag_chunk_header **chunk,
				struct lag_err *err) LAG_MUST_USE;

const struct lag_trace_header *lag_packed_trace_header(const struct lag_packed_reader *rd);
const struct lag_trace_counters *lag_packed_counters(const struct lag_packed_reader *rd);
uint32_t lag_packed_n_chunks(const struct lag_packed_reader *rd); /* that the .lag file had */
/* Records in the blocks read so far, at most: no id that they define is larger. */
uint64_t lag_packed_n_seen(const struct lag_packed_reader *rd);
/* bad_chunks: unreadable blocks; bad_records: the file is cut; offsets are into the packed file. */
const struct lag_trace_damage *lag_packed_damage(const struct lag_packed_reader *rd);

/* Allows a restored file this many bytes more, or fails; called before they are written. */
struct lag_packed_budget {
	enum lag_status (*take)(struct lag_packed_budget *budget, uint64_t n_bytes,
				struct lag_err *err);
	void *state;
};

/* Makes path (must not exist) the .lag file that in was packed from: every record in the same order,
 * chunk and state, and the same bytes where this laggard writes records as the one did that wrote
 * the file (but for the headers of chunks that nobody had claimed). LAG_WARN: in is damaged, *err says
 * how; what is whole was restored. Other failures leave no file. */
enum lag_status lag_packed_restore(struct lag_input *in, const char *path, unsigned mode,
				   struct lag_packed_budget *budget,
				   struct lag_err *err) LAG_MUST_USE;

/* True when the beginning of a file is a packed rank file's. */
bool lag_packed_probe(const uint8_t *head, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The per-process .lag file: what lies where. man/laggard-trace.5 says the same in prose.
 *
 *   page 0       struct lag_trace_header
 *   page 1       struct lag_trace_counters (updated in place, atomically)
 *   from 8192    chunks of LAG_CHUNK_BYTES, each a struct lag_chunk_header and records
 *
 * The file is mapped MAP_SHARED: what a producer stored survives the death of the process at any
 * instant. A chunk belongs to one producer; its records are valid up to `committed` (release-stored
 * after each record). Sealed chunks carry a checksum; open ones are read up to `committed` and
 * validated record by record. Each chunk is decoded by itself. Prepared but unclaimed chunks and a short tail are normal.
 * All integers are in the writer's byte order, which the magic tells. */
#ifndef SCHEMA_TRACE_TRACE_FORMAT_H
#define SCHEMA_TRACE_TRACE_FORMAT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/record/record.h"

#define LAG_TRACE_MAGIC   UINT64_C(0x0a1a476c2067616c) /* "lag l\x47\x1a\n" little endian */
#define LAG_TRACE_VERSION 2u
#define LAG_CHUNK_MAGIC   UINT32_C(0x4b4e4843) /* "CHNK" */
#define LAG_CHUNK_BYTES   65536u
#define LAG_PAGE_BYTES    4096u
#define LAG_CHUNKS_AT     8192u /* two pages: the header and the counters */
#define LAG_TRACE_SUFFIX  ".lag"
#define LAG_LOSS_SLOTS    32 /* more than there are reasons: new ones must not move what follows */

struct lag_trace_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* LAG_CHUNKS_AT */
	uint32_t chunk_bytes;  /* LAG_CHUNK_BYTES */
	uint32_t crc;          /* CRC-32C of this struct with crc = 0 */
	uint64_t pid, pid_namespace;
	int64_t start_ns;
	uint8_t boot_id[16];
	char host[64]; /* NUL-terminated, cut */
};

struct lag_trace_counters {
	_Atomic uint64_t lost[LAG_REC_LIMIT];         /* by record kind; 0 = unknown kind */
	_Atomic uint64_t lost_reason[LAG_LOSS_SLOTS]; /* by reason */
	_Atomic uint64_t
		written[LAG_REC_LIMIT];      /* by record kind, updated when a chunk is sealed */
	_Atomic uint64_t hook_ns, thread_ns; /* the tracer's own time */
	_Atomic uint64_t clean_exit;
};

enum lag_chunk_state {
	LAG_CHUNK_FREE = 0, /* prepared, not owned; zeroes are a valid prepared chunk */
	LAG_CHUNK_CLAIMED = 1,
	LAG_CHUNK_SEALED = 2,
};

struct lag_chunk_header {
	uint32_t magic;
	uint32_t index; /* position in the file */
	uint32_t producer;
	uint32_t producer_seq; /* 0, 1, ... per producer, no holes */
	uint64_t tid;
	int64_t base_ns;            /* what the first times count from */
	uint64_t lost_before;       /* records this producer lost before this chunk */
	uint32_t n_records;         /* set before SEALED */
	_Atomic uint32_t committed; /* bytes of records after this header */
	_Atomic uint32_t state;     /* enum lag_chunk_state, release-stored */
	uint32_t crc;               /* lag_chunk_crc, set before SEALED */
	uint64_t reserved;
};

#define LAG_CHUNK_CRC_BYTES 48 /* of the header: all before state */

_Static_assert(sizeof(struct lag_chunk_header) == 64, "a chunk header is one cache line");
_Static_assert(offsetof(struct lag_chunk_header, state) == LAG_CHUNK_CRC_BYTES, "what is checked");
_Static_assert(LAG_LOSS_LIMIT <= LAG_LOSS_SLOTS, "reasons fit their slots");
_Static_assert(sizeof(struct lag_trace_counters) <= LAG_PAGE_BYTES, "counters fit one page");

#define LAG_CHUNK_ROOM (LAG_CHUNK_BYTES - (uint32_t)sizeof(struct lag_chunk_header))

/* CRC-32C (Castagnoli), bitwise inverted in and out as usual; seed 0. */
uint32_t lag_crc32c(uint32_t seed, const void *bytes, size_t n);

/* What a sealed chunk carries: of its header up to and with `committed`, and then of its records. */
uint32_t lag_chunk_crc(const struct lag_chunk_header *chunk, const void *records, size_t n_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a .lag file chunk by chunk. Used inside traced processes and by test tools: no malloc, no
 * stdio, no locks on the append path; memory is the caller's. One lag_trace_producer per thread;
 * the file may be shared by all of them. */
#ifndef SCHEMA_TRACE_TRACE_WRITER_H
#define SCHEMA_TRACE_TRACE_WRITER_H

#include <stdbool.h>

#include "schema/record/codec.h"
#include "schema/trace/trace_format.h"

#define LAG_SPARES 8  /* chunks that are prepared at most */
#define LAG_HANDED 16 /* full chunks that wait for the helper at most; beyond, producers seal */

struct lag_trace_file {
	int fd;
	struct lag_trace_counters *counters; /* mapped */
	_Atomic uint32_t n_chunks;           /* given out or prepared */
	_Atomic uint64_t space; /* chunks that have their disk space: first << 32 | end */
	_Atomic uint32_t n_producers;
	uint64_t max_bytes; /* 0 = no cap; above it appends are counted as LAG_LOSS_SIZE_CAP */

	/* Between producers and the helper that calls lag_trace_file_prepare. */
	_Atomic(void *) spares[LAG_SPARES]; /* prepared, mapped chunks */
	_Atomic uint32_t n_rolls;
	uint32_t n_rolls_seen;
	_Atomic bool helped; /* the helper lives: full chunks may be left to it */

	struct lag_trace_handed {
		_Atomic(void *) chunk; /* NULL = slot is free */
		uint32_t written[LAG_REC_LIMIT];
	} handed[LAG_HANDED];

	_Atomic bool full;            /* cap or disk reached: nothing is allocated any more */
	_Atomic uint32_t full_reason; /* enum lag_loss_reason, set before full */
	uint64_t dev, ino; /* the file's own: an application may have closed and reused our fd */
	void *head;        /* the two header pages */
};

#define LAG_PRODUCER_STRINGS 4096u /* cached string ids; power of two */

struct lag_trace_producer {
	struct lag_trace_file *file;
	struct lag_chunk_header *chunk; /* current, mapped; NULL before the first append */
	uint32_t id, seq, used;
	int64_t last_time; /* where the next chunk begins */
	struct lag_codec codec;
	uint64_t tid;
	uint32_t n_strings, n_configs;       /* ids given so far */
	uint32_t strings_used, configs_used; /* slots taken; a full cache starts over */
	uint32_t n_records;                  /* in the current chunk */
	uint32_t written[LAG_REC_LIMIT];     /* in the current chunk, by kind */
	uint64_t n_lost;

	struct {
		uint64_t hash;
		uint32_t id; /* 0 = free */
	} strings[LAG_PRODUCER_STRINGS], configs[256];
};

/* Creates path (O_EXCL|O_NOFOLLOW, mode) and writes its header pages. host, pid, ... come from *head;
 * magic, version, sizes and crc are filled in. Uses raw fallocate; on file systems without it, writes
 * zeroes. LAG_ERR_SYSTEM with errno in err's text otherwise. */
enum lag_status lag_trace_file_create(struct lag_trace_file *file, const char *path, unsigned mode,
				      const struct lag_trace_header *head,
				      struct lag_err *err) LAG_MUST_USE;

/* To be called often, by a helper thread or not at all: prepares chunks, as many as went since the last
 * call, so that a roll is cheap, and seals those that producers have filled. */
void lag_trace_file_prepare(struct lag_trace_file *file);

/* The helper's last call: seals what was left to it; from then on producers seal. */
void lag_trace_file_settle(struct lag_trace_file *file);

/* Whether a file of this process may grow to `end`: one that outgrows the process's limit costs the
 * process its life (SIGXFSZ). */
bool lag_trace_may_grow(uint64_t end);

/* Unmaps, cuts off what lies behind the last chunk, and closes. Producers must have been closed. */
void lag_trace_file_close(struct lag_trace_file *file);

/* A producer starts with zeroed memory (calloc or mmap). */
void lag_trace_producer_init(struct lag_trace_producer *prod, struct lag_trace_file *file,
			     uint64_t tid);

/* Appends rec; rolls to a new chunk when the current one is full. False = lost (and counted).
 * Async-signal-safe on the thread that owns prod, but not re-entrant. errno is preserved. */
bool lag_trace_append(struct lag_trace_producer *prod, const struct lag_record *rec);

/* The producer-local id of a string (writes a string record on first sight); "" and failures give 0.
 * Texts longer than LAG_RECORD_BYTES_MAX are cut. */
int64_t lag_trace_string(struct lag_trace_producer *prod, const char *text, size_t n);

/* The producer-local id of a launch configuration; cfg->id is ignored. LAG_NONE when it was lost. */
int64_t lag_trace_config(struct lag_trace_producer *prod, const struct lag_rec_launch_config *cfg);

/* For restoring a file: begins chunk number `index`, wherever it lies. Fields of prod that a chunk's
 * header repeats (tid, seq, last_time, n_lost) are the caller's to set before. What does not fit into
 * the chunk goes on in a new one behind all others. One thread only. False = no room. */
bool lag_trace_producer_enter(struct lag_trace_producer *prod, uint32_t index);

/* Lets go of the current chunk as a process that dies does: not sealed. */
void lag_trace_producer_abandon(struct lag_trace_producer *prod);

/* Seals the current chunk (checksum) and unmaps it. */
void lag_trace_producer_close(struct lag_trace_producer *prod);

#endif

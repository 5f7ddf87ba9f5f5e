/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the chunks of a .lag file in producers' order. Every length and offset comes from the file and
 * is checked against what is there before it is used; the file may grow while it is read. */
#include "schema/trace/trace_reader.h"

#include <byteswap.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

struct chunk_ref {
	uint64_t offset; /* of the chunk header in the file */
	uint32_t producer, seq;
	uint32_t bytes; /* of records that are there */
	uint64_t tid;
	int64_t base_ns;
};

struct lag_trace_reader {
	const uint8_t *bytes; /* borrowed */
	size_t n;
	struct lag_trace_header header;
	struct lag_trace_counters counters;
	struct lag_trace_damage damage;
	struct lag_vec chunks; /* struct chunk_ref */
	size_t chunk;          /* the one being read */
	uint32_t at;           /* bytes of it already read */
	int64_t last_time;
};

static void note_damage(struct lag_trace_reader *rd, uint64_t *count, uint64_t offset)
{
	if (!rd->damage.bad_chunks && !rd->damage.bad_records && !rd->damage.missing_chunks)
		rd->damage.first_offset = offset;
	++*count;
}

static enum lag_status read_header(struct lag_trace_reader *rd, struct lag_err *err)
{
	struct lag_trace_header *h = &rd->header;
	uint32_t crc;

	if (rd->n == 0)
		return lag_err_set(err, LAG_ERR_INPUT, "empty file");
	if (rd->n < sizeof(*h))
		return lag_err_set(err, LAG_ERR_INPUT, "%zu bytes are too few for a header", rd->n);
	memcpy(h, rd->bytes, sizeof(*h));
	if (h->magic == bswap_64(LAG_TRACE_MAGIC)) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "written on a machine of the other byte order");
	}
	if (h->magic != LAG_TRACE_MAGIC)
		return lag_err_set(err, LAG_ERR_INPUT, "not a laggard trace");
	if (h->version != LAG_TRACE_VERSION) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "format version %u, this laggard reads version %u", h->version,
				   LAG_TRACE_VERSION);
	}
	if (h->header_bytes != LAG_CHUNKS_AT || h->chunk_bytes != LAG_CHUNK_BYTES) {
		return lag_err_set(err, LAG_ERR_INPUT, "header: impossible sizes %u and %u",
				   h->header_bytes, h->chunk_bytes);
	}
	crc = h->crc;
	h->crc = 0;
	/* The sizes are right, so the records can be found all the same. */
	if (lag_crc32c(0, h, sizeof(*h)) != crc)
		note_damage(rd, &rd->damage.bad_chunks, 0);
	h->host[sizeof(h->host) - 1] = '\0';
	if (rd->n >= LAG_PAGE_BYTES + sizeof(rd->counters))
		memcpy((void *)&rd->counters, rd->bytes + LAG_PAGE_BYTES, sizeof(rd->counters));
	return LAG_OK;
}

/* Notes what chunk number `index` holds; a prepared or unreadable one adds nothing. */
static enum lag_status index_chunk(struct lag_trace_reader *rd, uint32_t index, uint64_t offset)
{
	struct lag_chunk_header h;
	struct chunk_ref *ref;
	uint32_t committed, state;
	uint64_t room = rd->n - offset - sizeof(h);

	memcpy((void *)&h, rd->bytes + offset, sizeof(h));
	/* The writer stores the records before it releases their length. */
	atomic_thread_fence(memory_order_acquire);
	committed = atomic_load_explicit(&h.committed, memory_order_relaxed);
	state = atomic_load_explicit(&h.state, memory_order_relaxed);
	if (state == LAG_CHUNK_FREE && (h.magic == 0 || h.magic == LAG_CHUNK_MAGIC))
		return LAG_OK;
	if (h.magic != LAG_CHUNK_MAGIC || h.index != index || state > LAG_CHUNK_SEALED ||
	    committed > LAG_CHUNK_ROOM) {
		note_damage(rd, &rd->damage.bad_chunks, offset);
		return LAG_OK;
	}
	if (committed > room) {
		/* Cut off here: the records before the cut are still good. */
		note_damage(rd, &rd->damage.bad_records, rd->n);
		committed = (uint32_t)room;
	} else if (state == LAG_CHUNK_SEALED &&
		   lag_crc32c(0, rd->bytes + offset + sizeof(h), committed) != h.crc) {
		note_damage(rd, &rd->damage.bad_chunks, offset);
		return LAG_OK;
	}
	ref = lag_vec_push(&rd->chunks);
	if (!ref)
		return LAG_ERR_SYSTEM;
	*ref = (struct chunk_ref){ .offset = offset,
				   .producer = h.producer,
				   .seq = h.producer_seq,
				   .bytes = committed,
				   .tid = h.tid,
				   .base_ns = h.base_ns };
	return LAG_OK;
}

static int by_producer(const void *left, const void *right)
{
	const struct chunk_ref *a = left, *b = right;

	if (a->producer != b->producer)
		return a->producer < b->producer ? -1 : 1;
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Holes in a producer's numbers are lost chunks; a number seen twice is a damaged header. */
static void check_sequences(struct lag_trace_reader *rd)
{
	struct chunk_ref *refs = rd->chunks.items;
	size_t kept = 0;

	for (size_t i = 0; i < rd->chunks.n; i++) {
		bool same = kept && refs[kept - 1].producer == refs[i].producer;
		uint32_t expected = same ? refs[kept - 1].seq + 1 : 0;

		if (same && refs[i].seq == refs[kept - 1].seq) {
			note_damage(rd, &rd->damage.bad_chunks, refs[i].offset);
			continue;
		}
		if (refs[i].seq != expected) {
			note_damage(rd, &rd->damage.missing_chunks, refs[i].offset);
			rd->damage.missing_chunks += refs[i].seq - expected - 1;
		}
		refs[kept++] = refs[i];
	}
	rd->chunks.n = kept;
}

static enum lag_status index_chunks(struct lag_trace_reader *rd, struct lag_err *err)
{
	uint32_t index = 0;

	for (uint64_t at = (uint64_t)LAG_CHUNKS_AT;
	     at < rd->n && rd->n - at >= sizeof(struct lag_chunk_header) && index < UINT32_MAX;
	     at += LAG_CHUNK_BYTES, index++) {
		if (lag_failed(index_chunk(rd, index, at)))
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %u chunks", index);
	}
	if (rd->chunks.n)
		qsort(rd->chunks.items, rd->chunks.n, sizeof(struct chunk_ref), by_producer);
	check_sequences(rd);
	return LAG_OK;
}

static void enter_chunk(struct lag_trace_reader *rd)
{
	rd->at = 0;
	if (rd->chunk < rd->chunks.n)
		rd->last_time = LAG_VEC_AT(&rd->chunks, struct chunk_ref, rd->chunk).base_ns;
}

enum lag_status lag_trace_reader_open(const uint8_t *bytes, size_t n, struct lag_trace_reader **out,
				      struct lag_err *err)
{
	struct lag_trace_reader *rd = lag_calloc(1, sizeof(*rd));
	enum lag_status st;

	*out = NULL;
	if (!rd)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	rd->bytes = bytes;
	rd->n = n;
	rd->chunks.item_size = sizeof(struct chunk_ref);
	st = read_header(rd, err);
	if (st == LAG_OK)
		st = index_chunks(rd, err);
	if (st != LAG_OK) {
		lag_trace_reader_close(rd);
		return st;
	}
	enter_chunk(rd);
	*out = rd;
	return LAG_OK;
}

void lag_trace_reader_close(struct lag_trace_reader *rd)
{
	if (!rd)
		return;
	lag_vec_release(&rd->chunks);
	free(rd);
}

const struct lag_trace_header *lag_trace_reader_header(const struct lag_trace_reader *rd)
{
	return &rd->header;
}

const struct lag_trace_damage *lag_trace_reader_damage(const struct lag_trace_reader *rd)
{
	return &rd->damage;
}

const struct lag_trace_counters *lag_trace_reader_counters(const struct lag_trace_reader *rd)
{
	return &rd->counters;
}

enum lag_status lag_trace_reader_next(struct lag_trace_reader *rd, struct lag_record *rec,
				      uint32_t *producer, uint64_t *tid)
{
	while (rd->chunk < rd->chunks.n) {
		const struct chunk_ref *ref = &LAG_VEC_AT(&rd->chunks, struct chunk_ref, rd->chunk);
		uint64_t offset = ref->offset + sizeof(struct lag_chunk_header) + rd->at;
		enum lag_status st = LAG_END;
		size_t used = 0;

		if (rd->at < ref->bytes) {
			st = lag_record_decode(rd->bytes + offset, ref->bytes - rd->at, &used,
					       &rd->last_time, rec);
		}
		if (st == LAG_ERR_INPUT)
			note_damage(rd, &rd->damage.bad_records, offset);
		if (st == LAG_ERR_INPUT || st == LAG_END) {
			rd->chunk++;
			enter_chunk(rd);
			continue;
		}
		rd->at += (uint32_t)used;
		if (st == LAG_WARN) {
			rd->damage.unknown_records++;
			continue;
		}
		*producer = ref->producer;
		*tid = ref->tid;
		return LAG_OK;
	}
	return LAG_END;
}

void lag_trace_reader_chunk(const struct lag_trace_reader *rd, struct lag_chunk_header *chunk)
{
	memset((void *)chunk, 0, sizeof(*chunk));
	if (rd->chunk < rd->chunks.n) {
		uint64_t at = LAG_VEC_AT(&rd->chunks, struct chunk_ref, rd->chunk).offset;

		memcpy((void *)chunk, rd->bytes + at, sizeof(*chunk));
	}
}

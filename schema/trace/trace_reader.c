/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the chunks of a .lag file in producers' order. Every length and offset comes from the file and
 * is checked against what is there before it is used; the file may grow or shrink while it is read. */
#include "schema/trace/trace_reader.h"

#include <byteswap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/io.h"
#include "schema/base/mem.h"

struct chunk_ref {
	uint64_t offset; /* of the chunk in the file */
	struct lag_chunk_header head;
};

struct lag_trace_reader {
	const uint8_t *bytes; /* borrowed; NULL: read from fd */
	int fd;
	uint64_t n;
	struct lag_trace_header header;
	struct lag_trace_counters counters;
	struct lag_trace_damage damage;
	struct lag_vec chunks; /* struct chunk_ref */
	size_t chunk;          /* the one to enter next */
	struct lag_trace_cursor cursor;
};

static void note_damage(struct lag_trace_damage *damage, uint64_t *count, uint64_t offset)
{
	bool first = !damage->bad_chunks && !damage->bad_records && !damage->missing_chunks;

	if (first || offset < damage->first_offset)
		damage->first_offset = offset;
	++*count;
}

/* Bytes of the file at `at`: fewer than n at its end, or where it cannot be read. */
static size_t read_at(const struct lag_trace_reader *rd, void *out, size_t n, uint64_t at)
{
	ssize_t got;

	if (rd->bytes) {
		size_t there = at >= rd->n ? 0 : rd->n - at < n ? (size_t)(rd->n - at) : n;

		memcpy(out, rd->bytes + at, there);
		return there;
	}
	got = lag_io_read_at(rd->fd, out, n, at);
	return got > 0 ? (size_t)got : 0;
}

static enum lag_status read_header(struct lag_trace_reader *rd, struct lag_err *err)
{
	struct lag_trace_header *h = &rd->header;
	size_t got = read_at(rd, h, sizeof(*h), 0);
	uint32_t crc;

	if (got == 0)
		return lag_err_set(err, LAG_ERR_INPUT, "empty file");
	if (got < sizeof(*h))
		return lag_err_set(err, LAG_ERR_INPUT, "%zu bytes are too few for a header", got);
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
		note_damage(&rd->damage, &rd->damage.bad_chunks, 0);
	h->host[sizeof(h->host) - 1] = '\0';
	if (read_at(rd, (void *)&rd->counters, sizeof(rd->counters), LAG_PAGE_BYTES) <
	    sizeof(rd->counters))
		memset((void *)&rd->counters, 0, sizeof(rd->counters));
	return LAG_OK;
}

/* Notes what chunk number `index` holds; a prepared or unreadable one adds nothing. */
static enum lag_status index_chunk(struct lag_trace_reader *rd, uint32_t index, uint64_t offset)
{
	struct lag_chunk_header h;
	struct chunk_ref *ref;
	uint32_t committed, state;

	if (read_at(rd, (void *)&h, sizeof(h), offset) < sizeof(h))
		return LAG_OK;
	/* The writer stores the records before it releases their length. */
	atomic_thread_fence(memory_order_acquire);
	committed = atomic_load_explicit(&h.committed, memory_order_relaxed);
	state = atomic_load_explicit(&h.state, memory_order_relaxed);
	if (state == LAG_CHUNK_FREE && committed == 0 &&
	    (h.magic == 0 || h.magic == LAG_CHUNK_MAGIC))
		return LAG_OK;
	if (h.magic != LAG_CHUNK_MAGIC || h.index != index || state == LAG_CHUNK_FREE ||
	    state > LAG_CHUNK_SEALED || committed > LAG_CHUNK_ROOM) {
		note_damage(&rd->damage, &rd->damage.bad_chunks, offset);
		return LAG_OK;
	}
	ref = lag_vec_push(&rd->chunks);
	if (!ref)
		return LAG_ERR_SYSTEM;
	ref->offset = offset;
	memcpy((void *)&ref->head, (void *)&h, sizeof(h));
	return LAG_OK;
}

static int by_producer(const void *left, const void *right)
{
	const struct chunk_ref *a = left, *b = right;

	if (a->head.producer != b->head.producer)
		return a->head.producer < b->head.producer ? -1 : 1;
	if (a->head.producer_seq != b->head.producer_seq)
		return a->head.producer_seq < b->head.producer_seq ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Holes in a producer's numbers are lost chunks; a number seen twice is a damaged header. */
static void check_sequences(struct lag_trace_reader *rd)
{
	struct chunk_ref *refs = rd->chunks.items;
	size_t kept = 0;

	for (size_t i = 0; i < rd->chunks.n; i++) {
		const struct lag_chunk_header *h = &refs[i].head;
		const struct lag_chunk_header *last = kept ? &refs[kept - 1].head : NULL;
		bool same = last && last->producer == h->producer;
		uint32_t expected = same ? last->producer_seq + 1 : 0;

		if (same && h->producer_seq == last->producer_seq) {
			note_damage(&rd->damage, &rd->damage.bad_chunks, refs[i].offset);
			continue;
		}
		if (h->producer_seq != expected) {
			note_damage(&rd->damage, &rd->damage.missing_chunks, refs[i].offset);
			rd->damage.missing_chunks += h->producer_seq - expected - 1;
		}
		memmove((void *)&refs[kept++], (void *)&refs[i], sizeof(refs[i]));
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

static enum lag_status open_reader(const uint8_t *bytes, uint64_t n, int fd,
				   struct lag_trace_reader **out, struct lag_err *err)
{
	struct lag_trace_reader *rd = lag_calloc(1, sizeof(*rd));
	enum lag_status st;

	*out = NULL;
	if (!rd)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	rd->bytes = bytes;
	rd->n = n;
	rd->fd = fd;
	rd->chunks.item_size = sizeof(struct chunk_ref);
	lag_trace_cursor_init(&rd->cursor);
	st = read_header(rd, err);
	if (st == LAG_OK)
		st = index_chunks(rd, err);
	if (st != LAG_OK) {
		lag_trace_reader_close(rd);
		return st;
	}
	*out = rd;
	return LAG_OK;
}

enum lag_status lag_trace_reader_open(const uint8_t *bytes, size_t n, struct lag_trace_reader **out,
				      struct lag_err *err)
{
	return open_reader(bytes, n, -1, out, err);
}

enum lag_status lag_trace_reader_open_file(int fd, struct lag_trace_reader **out,
					   struct lag_err *err)
{
	struct stat st;

	*out = NULL;
	if (fstat(fd, &st))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot be read");
	return open_reader(NULL, (uint64_t)st.st_size, fd, out, err);
}

void lag_trace_reader_close(struct lag_trace_reader *rd)
{
	if (!rd)
		return;
	lag_trace_cursor_release(&rd->cursor);
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

size_t lag_trace_reader_n_chunks(const struct lag_trace_reader *rd)
{
	return rd->chunks.n;
}

void lag_trace_reader_chunk(const struct lag_trace_reader *rd, struct lag_chunk_header *chunk)
{
	memcpy((void *)chunk, (const void *)&rd->cursor.chunk, sizeof(*chunk));
}

void lag_trace_cursor_init(struct lag_trace_cursor *cur)
{
	memset((void *)cur, 0, sizeof(*cur));
}

void lag_trace_cursor_release(struct lag_trace_cursor *cur)
{
	free(cur->buffer);
	lag_trace_cursor_init(cur);
}

/* Finds the chunk's records, in the buffer where they are not in memory: as many as there are. */
static enum lag_status load_records(struct lag_trace_cursor *cur, const struct lag_trace_reader *rd)
{
	uint64_t at = cur->offset + sizeof(cur->chunk);
	uint32_t committed = atomic_load_explicit(&cur->chunk.committed, memory_order_relaxed);

	if (rd->bytes) {
		cur->records = rd->bytes + at;
		cur->n_bytes = rd->n - at < committed ? (uint32_t)(rd->n - at) : committed;
	} else {
		if (!cur->buffer)
			cur->buffer = lag_calloc(1, LAG_CHUNK_ROOM);
		if (!cur->buffer)
			return LAG_ERR_SYSTEM;
		cur->records = cur->buffer;
		cur->n_bytes = (uint32_t)read_at(rd, cur->buffer, committed, at);
	}
	/* Cut off here: the records before the cut are still good. */
	if (cur->n_bytes < committed)
		note_damage(&cur->damage, &cur->damage.bad_records, at + cur->n_bytes);
	return LAG_OK;
}

enum lag_status lag_trace_cursor_enter(struct lag_trace_cursor *cur,
				       const struct lag_trace_reader *rd, size_t i)
{
	const struct chunk_ref *ref = &LAG_VEC_AT(&rd->chunks, struct chunk_ref, i);
	uint32_t state = atomic_load_explicit(&ref->head.state, memory_order_relaxed);

	memcpy((void *)&cur->chunk, (const void *)&ref->head, sizeof(cur->chunk));
	cur->offset = ref->offset;
	cur->at = cur->n_bytes = 0;
	if (lag_failed(load_records(cur, rd)))
		return LAG_ERR_SYSTEM;
	if (state == LAG_CHUNK_SEALED && cur->n_bytes == cur->chunk.committed &&
	    lag_chunk_crc(&cur->chunk, cur->records, cur->n_bytes) != cur->chunk.crc) {
		note_damage(&cur->damage, &cur->damage.bad_chunks, cur->offset);
		cur->n_bytes = 0;
		return LAG_WARN;
	}
	lag_codec_start(&cur->codec, cur->chunk.base_ns);
	return LAG_OK;
}

enum lag_status lag_trace_cursor_next(struct lag_trace_cursor *cur, struct lag_record *rec)
{
	while (cur->at < cur->n_bytes) {
		size_t used = 0;
		enum lag_status st = lag_record_decode(
			cur->records + cur->at, cur->n_bytes - cur->at, &used, &cur->codec, rec);

		if (st == LAG_ERR_INPUT) {
			note_damage(&cur->damage, &cur->damage.bad_records,
				    cur->offset + sizeof(cur->chunk) + cur->at);
			cur->n_bytes = cur->at;
			break;
		}
		cur->at += (uint32_t)used;
		if (st == LAG_OK)
			return LAG_OK;
		cur->damage.unknown_records++;
	}
	return LAG_END;
}

static void add_damage(struct lag_trace_damage *to, struct lag_trace_damage *from)
{
	if ((from->bad_chunks || from->bad_records) &&
	    (!(to->bad_chunks || to->bad_records || to->missing_chunks) ||
	     from->first_offset < to->first_offset))
		to->first_offset = from->first_offset;
	to->bad_chunks += from->bad_chunks;
	to->bad_records += from->bad_records;
	to->unknown_records += from->unknown_records;
	*from = (struct lag_trace_damage){ 0 };
}

enum lag_status lag_trace_reader_next(struct lag_trace_reader *rd, struct lag_record *rec,
				      uint32_t *producer, uint64_t *tid)
{
	struct lag_trace_cursor *cur = &rd->cursor;

	while (lag_trace_cursor_next(cur, rec) != LAG_OK) {
		add_damage(&rd->damage, &cur->damage);
		if (rd->chunk == rd->chunks.n)
			return LAG_END;
		/* LAG_WARN: it has no records, and the damage is counted. */
		if (lag_failed(lag_trace_cursor_enter(cur, rd, rd->chunk++)))
			return LAG_ERR_SYSTEM;
	}
	*producer = cur->chunk.producer;
	*tid = cur->chunk.tid;
	return LAG_OK;
}

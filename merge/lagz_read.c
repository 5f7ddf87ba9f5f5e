/* SPDX-License-Identifier: Apache-2.0 */
/* A .lagz file to records, block by block. Every number comes from the file and is checked before it is
 * used; a block that does not read whole gives nothing. */
#include <byteswap.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "merge/lagz.h"
#include "merge/lagz_column.h"
#include "schema/base/varint.h"

#define BLOCK_RECORDS LAG_PACKED_BLOCK_RECORDS

struct chunk_start {
	uint32_t at; /* the first record of the block that is in it */
	struct lag_chunk_header chunk;
};

struct lag_packed_reader {
	struct lag_input *in; /* borrowed */
	struct lag_trace_header header;
	struct lag_trace_counters counters;
	struct lag_trace_damage damage;
	uint32_t n_chunks, index; /* index: of the next block */
	uint64_t n_seen;          /* records in blocks so far, unreadable ones included */
	bool at_end;
	/* The block being read. */
	uint32_t n, next, chunk;
	uint8_t kinds[BLOCK_RECORDS];
	uint32_t n_of[LAG_REC_LIMIT], taken[LAG_REC_LIMIT];
	size_t column_at[LAG_REC_LIMIT]; /* of a kind's first value in values */
	struct lag_vec values;           /* int64_t, column after column */
	struct lag_vec chunks;           /* struct chunk_start */
	const char *texts;
	uint8_t *packed, *raw; /* grown to the largest block so far */
	size_t packed_room, raw_room;
	size_t packed_max; /* what zstd makes of LAG_PACKED_RAW_MAX at worst */
	ZSTD_DCtx *zstd;
};

bool lag_packed_probe(const uint8_t *head, size_t n)
{
	uint64_t magic;

	if (n < sizeof(magic))
		return false;
	memcpy(&magic, head, sizeof(magic));
	return magic == LAG_PACKED_MAGIC || magic == bswap_64(LAG_PACKED_MAGIC);
}

/* Bytes there were, up to n; -1: the input failed. */
static long read_all(struct lag_packed_reader *rd, void *out, size_t n, struct lag_err *err)
{
	size_t done = 0;

	while (done < n) {
		long got = rd->in->read(rd->in, (uint8_t *)out + done, n - done, err);

		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (long)done;
}

static void note_damage(struct lag_packed_reader *rd, uint64_t *count)
{
	if (!rd->damage.bad_chunks && !rd->damage.bad_records)
		rd->damage.first_offset = rd->in->offset;
	++*count;
}

static enum lag_status read_header(struct lag_packed_reader *rd, struct lag_err *err)
{
	struct lag_packed_header h;
	long n = read_all(rd, &h, sizeof(h), err);
	uint32_t crc;

	if (n < 0)
		return err ? err->status : LAG_ERR_INPUT;
	if ((size_t)n < sizeof(h))
		return lag_err_set(err, LAG_ERR_INPUT, "%ld bytes are too few for a header", n);
	if (h.magic == bswap_64(LAG_PACKED_MAGIC)) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "written on a machine of the other byte order");
	}
	if (h.magic != LAG_PACKED_MAGIC)
		return lag_err_set(err, LAG_ERR_INPUT, "not a packed laggard trace");
	if (h.version != LAG_PACKED_VERSION || h.header_bytes != sizeof(h)) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "packed format version %u, this laggard reads version %u",
				   h.version, LAG_PACKED_VERSION);
	}
	crc = h.crc;
	h.crc = 0;
	if (lag_crc32c(0, &h, sizeof(h)) != crc)
		return lag_err_set(err, LAG_ERR_INPUT, "the header's checksum differs");
	memcpy(&rd->header, h.trace, sizeof(rd->header));
	memcpy((void *)&rd->counters, h.counters, sizeof(rd->counters));
	rd->header.host[sizeof(rd->header.host) - 1] = '\0';
	rd->n_chunks = h.n_chunks;
	return LAG_OK;
}

static const uint8_t *get_u32(const uint8_t *p, const uint8_t *end, uint32_t *out)
{
	uint64_t v;

	p = lag_varint_get(p, end, &v);
	*out = (uint32_t)v;
	return p && v <= UINT32_MAX ? p : NULL;
}

static const uint8_t *get_chunk(const uint8_t *p, const uint8_t *end, struct chunk_start *start)
{
	struct lag_chunk_header *c = &start->chunk;
	uint32_t state;
	uint64_t base;

	c->magic = LAG_CHUNK_MAGIC;
	p = get_u32(p, end, &start->at);
	p = p ? get_u32(p, end, &c->index) : NULL;
	p = p ? get_u32(p, end, &c->producer) : NULL;
	p = p ? get_u32(p, end, &c->producer_seq) : NULL;
	p = p ? lag_varint_get(p, end, &c->tid) : NULL;
	p = p ? lag_varint_get(p, end, &base) : NULL;
	if (p)
		c->base_ns = lag_unzigzag(base);
	p = p ? lag_varint_get(p, end, &c->lost_before) : NULL;
	p = p ? get_u32(p, end, &state) : NULL;
	if (!p || (state != LAG_CHUNK_CLAIMED && state != LAG_CHUNK_SEALED))
		return NULL;
	atomic_init(&c->state, state);
	return p;
}

/* The first chunk begins with the block, the others at later and later records. */
static const uint8_t *get_chunks(struct lag_packed_reader *rd, const uint8_t *p, const uint8_t *end)
{
	uint32_t n;

	rd->chunks.n = 0;
	p = get_u32(p, end, &n);
	if (!p || n == 0 || n > rd->n)
		return NULL;
	for (uint32_t i = 0; p && i < n; i++) {
		struct chunk_start *start = lag_vec_push(&rd->chunks);

		p = start ? get_chunk(p, end, start) : NULL;
		if (p && (i ? start->at <= start[-1].at || start->at >= rd->n : start->at != 0))
			return NULL;
	}
	return p;
}

static const uint8_t *get_kinds(struct lag_packed_reader *rd, const uint8_t *p, const uint8_t *end)
{
	if ((size_t)(end - p) < rd->n)
		return NULL;
	memset(rd->n_of, 0, sizeof(rd->n_of));
	memset(rd->taken, 0, sizeof(rd->taken));
	memcpy(rd->kinds, p, rd->n);
	for (uint32_t i = 0; i < rd->n; i++) {
		if (!lag_record_info_get(rd->kinds[i]))
			return NULL;
		rd->n_of[rd->kinds[i]]++;
	}
	return p + rd->n;
}

/* The columns of one kind; adds the bytes that follow its records to *n_text. */
static const uint8_t *get_columns(struct lag_packed_reader *rd, unsigned kind, const uint8_t *p,
				  const uint8_t *end, uint64_t *n_text)
{
	const struct lag_record_info *info = lag_record_info_get(kind);
	struct lag_column_of of = { .n = rd->n_of[kind] };
	int64_t *v;

	rd->column_at[kind] = rd->values.n;
	if (lag_failed(lag_vec_reserve(&rd->values, (info->n_fields + 1) * of.n)))
		return NULL;
	rd->values.n += (info->n_fields + 1) * of.n;
	v = (int64_t *)rd->values.items + rd->column_at[kind];
	for (size_t i = 0; p && i < info->n_fields; i++) {
		p = lag_column_get(p, end, v + i * of.n, &of);
		of.first = v;
	}
	of.first = NULL;
	v += info->n_fields * of.n;
	p = p ? lag_column_get(p, end, v, &of) : NULL;
	for (uint32_t i = 0; p && i < of.n; i++) {
		if (v[i] < 0 || v[i] > LAG_RECORD_BYTES_MAX)
			return NULL;
		*n_text += (uint64_t)v[i];
	}
	return p;
}

static bool open_block(struct lag_packed_reader *rd, uint32_t raw_bytes)
{
	const uint8_t *p = rd->raw, *end = rd->raw + raw_bytes;
	uint64_t n_text = 0;

	rd->values.n = 0;
	p = get_chunks(rd, p, end);
	p = p ? get_kinds(rd, p, end) : NULL;
	for (unsigned kind = 0; p && kind < LAG_REC_LIMIT; kind++) {
		if (rd->n_of[kind])
			p = get_columns(rd, kind, p, end, &n_text);
	}
	rd->texts = (const char *)p;
	rd->next = rd->chunk = 0;
	return p && (uint64_t)(end - p) == n_text;
}

/* True when the packed bytes are there and whole. *cut: the file ends inside the block. */
static enum lag_status read_packed(struct lag_packed_reader *rd, struct lag_packed_block *b,
				   bool *whole, bool *cut, struct lag_err *err)
{
	uint32_t crc = b->crc;
	long n = read_all(rd, rd->packed, b->packed_bytes, err);

	if (n < 0)
		return err ? err->status : LAG_ERR_INPUT;
	*cut = (uint32_t)n < b->packed_bytes;
	b->crc = 0;
	*whole = !*cut &&
		 lag_crc32c(lag_crc32c(0, b, sizeof(*b)), rd->packed, b->packed_bytes) == crc;
	return LAG_OK;
}

/* Most files are far smaller than the largest block allowed; what was there is not kept. */
static bool make_room(uint8_t **bytes, size_t *room, size_t n)
{
	if (n <= *room && *bytes)
		return true;
	free(*bytes);
	*room = n > 4096 ? n : 4096;
	*bytes = malloc(*room);
	if (!*bytes)
		*room = 0;
	return *bytes != NULL;
}

/* LAG_OK: a block is open. LAG_WARN: it was unreadable. LAG_END: no more. */
static enum lag_status next_block(struct lag_packed_reader *rd, struct lag_err *err)
{
	struct lag_packed_block b;
	long n = read_all(rd, &b, sizeof(b), err);
	bool whole = false, cut = true;
	enum lag_status st;

	rd->n = 0;
	if (n < 0)
		return err ? err->status : LAG_ERR_INPUT;
	if ((size_t)n < sizeof(b) || b.magic != LAG_PACKED_BLOCK_MAGIC || b.index != rd->index ||
	    b.n_records > BLOCK_RECORDS || b.raw_bytes > LAG_PACKED_RAW_MAX ||
	    b.packed_bytes > rd->packed_max) {
		/* Where the next block begins cannot be known. */
		note_damage(rd, &rd->damage.bad_records);
		return LAG_END;
	}
	if (!make_room(&rd->packed, &rd->packed_room, b.packed_bytes) ||
	    !make_room(&rd->raw, &rd->raw_room, b.raw_bytes))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to unpack");
	st = read_packed(rd, &b, &whole, &cut, err);
	if (st != LAG_OK)
		return st;
	if (cut) {
		note_damage(rd, &rd->damage.bad_records);
		return LAG_END;
	}
	if (whole && b.n_records == 0)
		return LAG_END;
	rd->index++;
	rd->n = b.n_records;
	rd->n_seen += whole ? b.n_records : BLOCK_RECORDS;
	if (whole && rd->n &&
	    ZSTD_decompressDCtx(rd->zstd, rd->raw, rd->raw_room, rd->packed, b.packed_bytes) ==
		    b.raw_bytes &&
	    open_block(rd, b.raw_bytes))
		return LAG_OK;
	note_damage(rd, &rd->damage.bad_chunks);
	rd->n = 0;
	return LAG_WARN;
}

static void take_record(struct lag_packed_reader *rd, struct lag_record *rec)
{
	unsigned kind = rd->kinds[rd->next++];
	const struct lag_record_info *info = lag_record_info_get(kind);
	uint32_t n = rd->n_of[kind], at = rd->taken[kind]++;
	const int64_t *v = (const int64_t *)rd->values.items + rd->column_at[kind] + at;

	rec->kind = info->kind;
	rec->newer = 0;
	for (size_t i = 0; i < info->n_fields; i++, v += n)
		rec->field[i] = *v;
	rec->bytes = rd->texts;
	rec->n_bytes = (size_t)*v;
	rd->texts += rec->n_bytes;
}

enum lag_status lag_packed_next(struct lag_packed_reader *rd, struct lag_record *rec,
				const struct lag_chunk_header **chunk, struct lag_err *err)
{
	const struct chunk_start *starts;

	while (rd->next >= rd->n && !rd->at_end) {
		enum lag_status st = next_block(rd, err);

		rd->at_end = st == LAG_END;
		if (lag_failed(st))
			return st;
	}
	if (rd->at_end)
		return LAG_END;
	starts = rd->chunks.items;
	if (rd->chunk + 1 < rd->chunks.n && starts[rd->chunk + 1].at == rd->next)
		rd->chunk++;
	*chunk = &starts[rd->chunk].chunk;
	take_record(rd, rec);
	return LAG_OK;
}

enum lag_status lag_packed_open(struct lag_input *in, struct lag_packed_reader **out,
				struct lag_err *err)
{
	struct lag_packed_reader *rd = lag_calloc(1, sizeof(*rd));
	enum lag_status st;

	*out = NULL;
	if (rd) {
		rd->in = in;
		rd->values.item_size = sizeof(int64_t);
		rd->chunks.item_size = sizeof(struct chunk_start);
		rd->packed_max = ZSTD_compressBound(LAG_PACKED_RAW_MAX);
		rd->zstd = ZSTD_createDCtx();
	}
	if (!rd || !rd->zstd) {
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory to unpack");
	} else {
		st = read_header(rd, err);
	}
	if (st != LAG_OK) {
		lag_packed_close(rd);
		return st;
	}
	*out = rd;
	return LAG_OK;
}

void lag_packed_close(struct lag_packed_reader *rd)
{
	if (!rd)
		return;
	lag_vec_release(&rd->values);
	lag_vec_release(&rd->chunks);
	free(rd->packed);
	free(rd->raw);
	(void)ZSTD_freeDCtx(rd->zstd);
	free(rd);
}

const struct lag_trace_header *lag_packed_trace_header(const struct lag_packed_reader *rd)
{
	return &rd->header;
}

const struct lag_trace_counters *lag_packed_counters(const struct lag_packed_reader *rd)
{
	return &rd->counters;
}

const struct lag_trace_damage *lag_packed_damage(const struct lag_packed_reader *rd)
{
	return &rd->damage;
}

uint32_t lag_packed_n_chunks(const struct lag_packed_reader *rd)
{
	return rd->n_chunks;
}

uint64_t lag_packed_n_seen(const struct lag_packed_reader *rd)
{
	return rd->n_seen;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A .lag file to a .lagz file: records are gathered by kind and field until a block is full,
 * which is then coded, compressed and written. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "merge/lagz.h"
#include "merge/lagz_column.h"
#include "schema/base/io.h"
#include "schema/base/varint.h"

#define BLOCK_RECORDS LAG_PACKED_BLOCK_RECORDS
#define ZSTD_LEVEL    3
/* Columns begin apart from each other in the cache. */
#define COLUMN_STRIDE ((size_t)BLOCK_RECORDS + 24)
/* The number of bytes that follow the fields is one column more. */
#define COLUMNS_MAX (LAG_RECORD_FIELDS_MAX + 1)

struct packer {
	int fd;
	struct lag_packed_tally *tally;
	/* The block being gathered. */
	uint8_t kinds[BLOCK_RECORDS];
	uint32_t n, n_of[LAG_REC_LIMIT];
	int64_t *columns[LAG_REC_LIMIT]; /* COLUMNS_MAX of COLUMN_STRIDE values; NULL until used */
	struct lag_buf texts, chunks;
	struct lag_chunk_header chunk; /* of the last record */
	uint32_t n_chunks;             /* begun in this block */
	bool any;                      /* a chunk was begun at all */
	/* What goes out. */
	struct lag_buf raw;
	uint8_t *packed;
	size_t packed_room;
	ZSTD_CCtx *zstd;
	uint32_t index;
};

static enum lag_status write_all(struct packer *pk, const void *bytes, size_t n,
				 struct lag_err *err)
{
	pk->tally->bytes_out += n;
	if (!lag_io_write(pk->fd, bytes, n))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write");
	return LAG_OK;
}

static void put(struct lag_buf *out, uint64_t v)
{
	if (lag_buf_reserve(out, LAG_VARINT_MAX)) {
		uint8_t *at = (uint8_t *)out->text + out->n;

		out->n += (size_t)(lag_varint_put(at, v) - at);
	}
}

/* From record pk->n on, records are of this chunk. */
static void begin_chunk(struct packer *pk, const struct lag_chunk_header *c, uint32_t state)
{
	pk->n_chunks++;
	put(&pk->chunks, pk->n);
	put(&pk->chunks, c->index);
	put(&pk->chunks, c->producer);
	put(&pk->chunks, c->producer_seq);
	put(&pk->chunks, c->tid);
	put(&pk->chunks, lag_zigzag(c->base_ns));
	put(&pk->chunks, c->lost_before);
	put(&pk->chunks, state);
}

static void put_columns(struct packer *pk, unsigned kind)
{
	const struct lag_record_info *info = lag_record_info_get(kind);
	const int64_t *columns = pk->columns[kind];
	struct lag_column_of of = { .n = pk->n_of[kind] };

	for (size_t i = 0; i < info->n_fields; i++) {
		lag_column_put(&pk->raw, columns + i * COLUMN_STRIDE, &of);
		of.first = columns;
	}
	of.first = NULL;
	lag_column_put(&pk->raw, columns + LAG_RECORD_FIELDS_MAX * COLUMN_STRIDE, &of);
}

static enum lag_status compress_block(struct packer *pk, struct lag_packed_block *head,
				      struct lag_err *err)
{
	size_t room = ZSTD_compressBound(pk->raw.n), n;

	if (room > pk->packed_room) {
		free(pk->packed);
		pk->packed = malloc(room);
		pk->packed_room = pk->packed ? room : 0;
	}
	if (!pk->packed || pk->raw.failed)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to pack");
	n = ZSTD_compressCCtx(pk->zstd, pk->packed, pk->packed_room, pk->raw.text, pk->raw.n,
			      ZSTD_LEVEL);
	if (ZSTD_isError(n) || pk->raw.n > LAG_PACKED_RAW_MAX)
		return lag_err_set(err, LAG_ERR_SYSTEM, "cannot compress");
	head->raw_bytes = (uint32_t)pk->raw.n;
	head->packed_bytes = (uint32_t)n;
	return LAG_OK;
}

/* Also the one without records, which ends the file. */
static enum lag_status write_block(struct packer *pk, struct lag_err *err)
{
	struct lag_packed_block head = { .magic = LAG_PACKED_BLOCK_MAGIC,
					 .index = pk->index++,
					 .n_records = pk->n };
	enum lag_status st = LAG_OK;

	if (pk->n) {
		put(&pk->raw, pk->n_chunks);
		lag_buf_add(&pk->raw, lag_buf_text(&pk->chunks), pk->chunks.n);
		lag_buf_add(&pk->raw, (const char *)pk->kinds, pk->n);
		for (unsigned kind = 0; kind < LAG_REC_LIMIT; kind++) {
			if (pk->n_of[kind])
				put_columns(pk, kind);
		}
		lag_buf_add(&pk->raw, lag_buf_text(&pk->texts), pk->texts.n);
		pk->raw.failed = pk->raw.failed || pk->chunks.failed || pk->texts.failed;
		st = compress_block(pk, &head, err);
		pk->tally->n_blocks++;
	}
	if (st != LAG_OK)
		return st;
	head.crc = lag_crc32c(lag_crc32c(0, &head, sizeof(head)), pk->packed, head.packed_bytes);
	st = write_all(pk, &head, sizeof(head), err);
	if (st == LAG_OK && head.packed_bytes)
		st = write_all(pk, pk->packed, head.packed_bytes, err);
	memset(pk->n_of, 0, sizeof(pk->n_of));
	pk->n = pk->n_chunks = 0;
	lag_buf_clear(&pk->raw);
	lag_buf_clear(&pk->chunks);
	lag_buf_clear(&pk->texts);
	return st;
}

static enum lag_status gather(struct packer *pk, const struct lag_record *rec,
			      const struct lag_chunk_header *chunk, struct lag_err *err)
{
	const struct lag_record_info *info = lag_record_info_get(rec->kind);
	uint32_t at = pk->n_of[rec->kind]++;
	int64_t *column = pk->columns[rec->kind];

	if (rec->newer)
		return lag_err_set(err, LAG_WARN, "has fields newer than this laggard");
	if (rec->n_bytes > LAG_RECORD_BYTES_MAX)
		return lag_err_set(err, LAG_WARN, "has a record longer than any writer makes");
	if (!column) {
		column = lag_calloc((size_t)COLUMNS_MAX * COLUMN_STRIDE, sizeof(*column));
		pk->columns[rec->kind] = column;
		if (!column)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to pack");
	}
	/* Each block says anew which chunk it begins in, so that it can be read for itself. */
	if (pk->n == 0 || !pk->any || chunk->index != pk->chunk.index) {
		begin_chunk(pk, chunk, atomic_load(&chunk->state));
		memcpy((void *)&pk->chunk, chunk, sizeof(*chunk));
		pk->any = true;
	}
	for (size_t i = 0; i < info->n_fields; i++)
		column[i * COLUMN_STRIDE + at] = rec->field[i];
	column[LAG_RECORD_FIELDS_MAX * COLUMN_STRIDE + at] = (int64_t)rec->n_bytes;
	lag_buf_add(&pk->texts, rec->bytes, rec->n_bytes);
	pk->kinds[pk->n++] = (uint8_t)rec->kind;
	pk->tally->n_records++;
	if (pk->n == BLOCK_RECORDS || pk->texts.n >= LAG_PACKED_TEXT_MAX)
		return write_block(pk, err);
	return LAG_OK;
}

static enum lag_status write_header(struct packer *pk, const struct lag_trace_reader *rd,
				    uint64_t n, struct lag_err *err)
{
	struct lag_packed_header h = {
		.magic = LAG_PACKED_MAGIC,
		.version = LAG_PACKED_VERSION,
		.header_bytes = sizeof(h),
		/* One that is cut behind its last record counts. */
		.n_chunks = n > LAG_CHUNKS_AT
				    ? (uint32_t)((n - LAG_CHUNKS_AT + LAG_CHUNK_BYTES - 1) /
						 LAG_CHUNK_BYTES)
				    : 0,
		.source_bytes = n,
	};

	memcpy(h.trace, lag_trace_reader_header(rd), sizeof(h.trace));
	memcpy(h.counters, (const void *)lag_trace_reader_counters(rd), sizeof(h.counters));
	h.crc = lag_crc32c(0, &h, sizeof(h));
	return write_all(pk, &h, sizeof(h), err);
}

static enum lag_status whole_or_warn(const struct lag_trace_reader *rd, struct lag_err *why)
{
	const struct lag_trace_damage *d = lag_trace_reader_damage(rd);

	if (d->bad_chunks || d->missing_chunks || d->bad_records) {
		(void)lag_err_set(why, LAG_WARN, "damaged from byte %llu on",
				  (unsigned long long)d->first_offset);
		return LAG_WARN;
	}
	if (d->unknown_records) {
		(void)lag_err_set(why, LAG_WARN, "has records newer than this laggard");
		return LAG_WARN;
	}
	return LAG_OK;
}

static enum lag_status pack_all(struct packer *pk, struct lag_trace_reader *rd, uint64_t n,
				struct lag_err *err)
{
	enum lag_status st = write_header(pk, rd, n, err);
	struct lag_chunk_header chunk;
	struct lag_record rec;
	uint32_t producer;
	uint64_t tid;

	while (st == LAG_OK) {
		st = lag_trace_reader_next(rd, &rec, &producer, &tid);
		if (lag_failed(st))
			(void)lag_err_set(err, st, "no memory");
		if (st != LAG_OK)
			break;
		lag_trace_reader_chunk(rd, &chunk);
		st = gather(pk, &rec, &chunk, err);
	}
	if (st != LAG_END)
		return st;
	st = pk->n ? write_block(pk, err) : LAG_OK;
	return st == LAG_OK ? write_block(pk, err) : st;
}

enum lag_status lag_packed_write(int in, int out, struct lag_packed_tally *tally,
				 struct lag_err *why)
{
	struct packer *pk = lag_calloc(1, sizeof(*pk));
	struct lag_trace_reader *rd = NULL;
	struct stat sb = { 0 };
	enum lag_status st;

	*tally = (struct lag_packed_tally){ 0 };
	if (!pk || !(pk->zstd = ZSTD_createCCtx())) {
		free(pk);
		return lag_err_set(why, LAG_ERR_SYSTEM, "no memory to pack");
	}
	pk->fd = out;
	pk->tally = tally;
	st = lag_trace_reader_open_file(in, &rd, why);
	if (st == LAG_ERR_INPUT)
		st = LAG_WARN;
	if (st == LAG_OK && fstat(in, &sb) != 0)
		st = lag_err_errno(why, LAG_ERR_INPUT, "cannot be read");
	tally->bytes_in = (uint64_t)sb.st_size;
	if (st == LAG_OK)
		st = whole_or_warn(rd, why);
	if (st == LAG_OK)
		st = pack_all(pk, rd, tally->bytes_in, why);
	if (st == LAG_OK)
		st = whole_or_warn(rd, why);
	lag_trace_reader_close(rd);
	for (size_t i = 0; i < LAG_REC_LIMIT; i++)
		free(pk->columns[i]);
	lag_buf_release(&pk->texts);
	lag_buf_release(&pk->chunks);
	lag_buf_release(&pk->raw);
	free(pk->packed);
	(void)ZSTD_freeCCtx(pk->zstd);
	free(pk);
	return st;
}

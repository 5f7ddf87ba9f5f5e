/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of packed rank files on any bytes, on blocks whose checksums are made right first, and on
 * the bytes as what a block unpacks to, so that mutations reach what is behind checksum and zstd. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "merge/lagz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *data;
	size_t n;
};

static long read_bytes(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	const struct bytes *b = in->state;
	size_t n = b->n - in->offset < room ? b->n - in->offset : room;

	(void)err;
	memcpy(buf, b->data + in->offset, n);
	in->offset += n;
	return (long)n;
}

static void read_all(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };
	struct lag_input in = { .path = "fuzz", .read = read_bytes, .state = &b };
	struct lag_packed_reader *rd = NULL;
	const struct lag_chunk_header *chunk;
	struct lag_record rec;
	struct lag_err err;
	size_t sum = 0;

	if (lag_packed_open(&in, &rd, &err) != LAG_OK)
		return;
	while (lag_packed_next(rd, &rec, &chunk, &err) == LAG_OK) {
		if (!lag_record_info_get(rec.kind) || rec.n_bytes > LAG_RECORD_BYTES_MAX)
			abort();
		for (size_t i = 0; i < rec.n_bytes; i++)
			sum += (uint8_t)rec.bytes[i];
		sum += chunk->index;
	}
	lag_packed_close(rd);
	/* Keeps the reads. */
	if (sum == (size_t)-2)
		abort();
}

static void repair(uint8_t *p, size_t n)
{
	struct lag_packed_header h;
	struct lag_packed_block b;
	size_t at = sizeof(h);

	if (n < sizeof(h))
		return;
	memcpy(&h, p, sizeof(h));
	h.magic = LAG_PACKED_MAGIC;
	h.version = LAG_PACKED_VERSION;
	h.header_bytes = sizeof(h);
	h.crc = 0;
	h.crc = lag_crc32c(0, &h, sizeof(h));
	memcpy(p, &h, sizeof(h));
	for (uint32_t i = 0; n - at >= sizeof(b); i++) {
		memcpy(&b, p + at, sizeof(b));
		if (b.packed_bytes > n - at - sizeof(b))
			return;
		b.magic = LAG_PACKED_BLOCK_MAGIC;
		b.index = i;
		b.crc = 0;
		b.crc = lag_crc32c(lag_crc32c(0, &b, sizeof(b)), p + at + sizeof(b),
				   b.packed_bytes);
		memcpy(p + at, &b, sizeof(b));
		at += sizeof(b) + b.packed_bytes;
	}
}

/* A file of one block: the first two bytes are its number of records, the others its content. */
static void read_as_block(const uint8_t *data, size_t size)
{
	const size_t head = sizeof(struct lag_packed_header) + sizeof(struct lag_packed_block);
	size_t room = head + ZSTD_compressBound(size);
	uint8_t *file = size > 2 ? calloc(1, room) : NULL;
	struct lag_packed_block b = { 0 };
	size_t n;

	if (!file)
		return;
	n = ZSTD_compress(file + head, room - head, data + 2, size - 2, 1);
	if (!ZSTD_isError(n)) {
		b.n_records = (data[0] | (uint32_t)data[1] << 8) % (LAG_PACKED_BLOCK_RECORDS + 1);
		b.raw_bytes = (uint32_t)(size - 2);
		b.packed_bytes = (uint32_t)n;
		memcpy(file + sizeof(struct lag_packed_header), &b, sizeof(b));
		repair(file, head + n);
		read_all(file, head + n);
	}
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	read_all(copy, size);
	repair(copy, size);
	read_all(copy, size);
	read_as_block(copy, size);
	free(copy);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The .lag reader on any bytes: it ends, stays inside, its records are of known kinds, and chunk by chunk
 * it finds the same as from one end to the other. Checksums are made right first, or nothing behind
 * them would ever be reached. */
#include <stdlib.h>
#include <string.h>

#include "schema/trace/trace_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *bytes, size_t n)
{
	struct lag_trace_header head;
	struct lag_chunk_header chunk;

	if (n < sizeof(head))
		return;
	memcpy(&head, bytes, sizeof(head));
	head.crc = 0;
	head.crc = lag_crc32c(0, &head, sizeof(head));
	memcpy(bytes, &head, sizeof(head));
	for (size_t at = LAG_CHUNKS_AT; at + sizeof(chunk) <= n; at += LAG_CHUNK_BYTES) {
		memcpy((void *)&chunk, bytes + at, sizeof(chunk));
		if (chunk.committed > n - at - sizeof(chunk) || chunk.committed > LAG_CHUNK_ROOM)
			continue;
		chunk.crc = lag_chunk_crc(&chunk, bytes + at + sizeof(chunk), chunk.committed);
		memcpy(bytes + at, (void *)&chunk, sizeof(chunk));
	}
}

static size_t in_order(struct lag_trace_reader *rd, const uint8_t *data, size_t size)
{
	struct lag_record rec;
	uint32_t producer;
	uint64_t tid;
	size_t n = 0;

	while (lag_trace_reader_next(rd, &rec, &producer, &tid) == LAG_OK) {
		/* A byte of file a record at least: more would be made up. */
		if (!lag_record_info_get(rec.kind) || ++n > size)
			abort();
		if (rec.n_bytes && ((const uint8_t *)rec.bytes < data ||
				    (const uint8_t *)rec.bytes + rec.n_bytes > data + size))
			abort();
	}
	return n;
}

static size_t by_chunks(const struct lag_trace_reader *rd)
{
	struct lag_trace_cursor cur;
	struct lag_record rec;
	size_t n = 0;

	lag_trace_cursor_init(&cur);
	for (size_t i = lag_trace_reader_n_chunks(rd); i-- > 0;) {
		if (lag_trace_cursor_enter(&cur, rd, i) != LAG_OK)
			continue;
		while (lag_trace_cursor_next(&cur, &rec) == LAG_OK)
			n++;
	}
	lag_trace_cursor_release(&cur);
	return n;
}

static void run(const uint8_t *data, size_t size)
{
	struct lag_trace_reader *rd = NULL;
	struct lag_err err;

	if (lag_trace_reader_open(data, size, &rd, &err) != LAG_OK)
		return;
	if (in_order(rd, data, size) != by_chunks(rd))
		abort();
	lag_trace_reader_close(rd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *mended = malloc(size ? size : 1);

	if (!mended)
		return 0;
	run(data, size);
	memcpy(mended, data, size);
	mend(mended, size);
	run(mended, size);
	free(mended);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up counters of sealed chunks, and decodes the records of open ones. Pure. */
#include "schema/trace/trace_tally.h"

#include <string.h>

#include "schema/record/codec.h"

static void add_open_chunk(struct lag_trace_tally *tally, const uint8_t *at, uint32_t committed,
			   int64_t base_ns)
{
	const uint8_t *p = at + sizeof(struct lag_chunk_header), *end = p + committed;
	struct lag_codec codec;
	struct lag_record rec;
	size_t used;

	lag_codec_start(&codec, base_ns);
	while (p < end) {
		enum lag_status status =
			lag_record_decode(p, (size_t)(end - p), &used, &codec, &rec);

		if (lag_failed(status))
			return;
		if (status == LAG_OK)
			tally->records[rec.kind]++;
		p += used;
	}
}

bool lag_trace_tally_read(struct lag_trace_tally *tally, const uint8_t *bytes, size_t n)
{
	struct lag_trace_counters counters;
	uint64_t magic;

	memset(tally, 0, sizeof(*tally));
	if (n < LAG_CHUNKS_AT)
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	if (magic != LAG_TRACE_MAGIC)
		return false;
	memcpy(&counters, bytes + LAG_PAGE_BYTES, sizeof(counters));
	for (size_t i = 0; i < LAG_REC_LIMIT; i++) {
		tally->records[i] = counters.written[i];
		tally->n_lost += counters.lost[i];
	}
	tally->hook_ns = counters.hook_ns;
	tally->thread_ns = counters.thread_ns;
	tally->clean = counters.clean_exit != 0;
	tally->capped = counters.lost_reason[LAG_LOSS_SIZE_CAP] != 0;
	tally->full = counters.lost_reason[LAG_LOSS_DISK_FULL] || counters.lost_reason[LAG_LOSS_IO];
	for (size_t at = LAG_CHUNKS_AT; at + LAG_CHUNK_BYTES <= n; at += LAG_CHUNK_BYTES) {
		struct lag_chunk_header chunk;

		memcpy(&chunk, bytes + at, sizeof(chunk));
		if (chunk.magic != LAG_CHUNK_MAGIC || chunk.state == LAG_CHUNK_FREE)
			continue;
		tally->n_bytes += LAG_CHUNK_BYTES;
		if (chunk.state == LAG_CHUNK_CLAIMED && chunk.committed <= LAG_CHUNK_ROOM)
			add_open_chunk(tally, bytes + at, chunk.committed, chunk.base_ns);
	}
	for (size_t i = 0; i < LAG_REC_LIMIT; i++)
		tally->n_records += tally->records[i];
	return true;
}

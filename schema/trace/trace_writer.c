/* SPDX-License-Identifier: Apache-2.0 */
/* Appends records to chunks of a .lag file. This path runs inside other people's threads: no lock, no
 * allocation, no stdio. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "schema/base/map.h"
#include "schema/trace/trace_internal.h"

void lag_trace_producer_init(struct lag_trace_producer *prod, struct lag_trace_file *file,
			     uint64_t tid)
{
	prod->file = file;
	prod->tid = tid;
	prod->id = atomic_fetch_add_explicit(&file->n_producers, 1, memory_order_relaxed);
}

static void count_loss(struct lag_trace_producer *prod, enum lag_record_kind kind,
		       enum lag_loss_reason reason)
{
	struct lag_trace_counters *c = prod->file->counters;

	prod->n_lost++;
	atomic_fetch_add_explicit(&c->lost[kind], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->lost_reason[reason], 1, memory_order_relaxed);
}

/* Ends the current chunk; by whom it is sealed is another matter. */
static void leave_chunk(struct lag_trace_producer *prod, bool may_hand_over)
{
	struct lag_chunk_header *chunk = prod->chunk;

	if (!chunk)
		return;
	prod->last_time = prod->codec.time_ns;
	chunk->n_records = prod->n_records;
	if (!may_hand_over || !lag_trace_file_hand_over(prod->file, chunk, prod->written))
		lag_trace_file_seal(prod->file, chunk, prod->written);
	memset(prod->written, 0, sizeof(prod->written));
	prod->n_records = 0;
	prod->chunk = NULL;
}

static bool roll(struct lag_trace_producer *prod)
{
	struct lag_chunk_header *chunk = lag_trace_file_chunk(prod->file);

	if (!chunk)
		return false;
	atomic_fetch_add_explicit(&prod->file->n_rolls, 1, memory_order_relaxed);
	leave_chunk(prod, true);
	lag_codec_start(&prod->codec, prod->last_time);
	chunk->producer = prod->id;
	chunk->producer_seq = prod->seq++;
	chunk->tid = prod->tid;
	chunk->base_ns = prod->last_time;
	chunk->lost_before = prod->n_lost;
	atomic_store_explicit(&chunk->state, LAG_CHUNK_CLAIMED, memory_order_release);
	prod->chunk = chunk;
	prod->used = 0;
	return true;
}

static size_t put(struct lag_trace_producer *prod, const struct lag_record *rec)
{
	return prod->chunk ? lag_record_encode((uint8_t *)(prod->chunk + 1) + prod->used,
					       LAG_CHUNK_ROOM - prod->used, &prod->codec, rec)
			   : 0;
}

bool lag_trace_append(struct lag_trace_producer *prod, const struct lag_record *rec)
{
	int saved = errno;
	enum lag_loss_reason reason = LAG_LOSS_TOO_LONG;
	size_t n = rec->n_bytes > LAG_RECORD_BYTES_MAX ? 0 : put(prod, rec);

	if (!n && rec->n_bytes <= LAG_RECORD_BYTES_MAX) {
		if (roll(prod)) {
			n = put(prod, rec);
		} else {
			reason = (enum lag_loss_reason)atomic_load_explicit(
				&prod->file->full_reason, memory_order_relaxed);
		}
	}
	if (n) {
		prod->used += (uint32_t)n;
		prod->n_records++;
		prod->written[rec->kind]++;
		atomic_store_explicit(&prod->chunk->committed, prod->used, memory_order_release);
	} else {
		count_loss(prod, rec->kind, reason);
	}
	errno = saved;
	return n > 0;
}

int64_t lag_trace_string(struct lag_trace_producer *prod, const char *text, size_t n)
{
	struct lag_record rec;
	uint64_t hash;
	size_t i;

	if (!text || !n)
		return 0;
	if (n > LAG_RECORD_BYTES_MAX)
		n = LAG_RECORD_BYTES_MAX;
	hash = lag_hash_bytes(text, n);
	for (i = hash; prod->strings[i %= LAG_PRODUCER_STRINGS].id; i++) {
		if (prod->strings[i].hash == hash)
			return prod->strings[i].id;
	}
	if (prod->strings_used >= LAG_PRODUCER_STRINGS * 3 / 4) {
		memset(prod->strings, 0, sizeof(prod->strings));
		prod->strings_used = 0;
		i = hash % LAG_PRODUCER_STRINGS;
	}
	lag_record_init(&rec, LAG_REC_string);
	rec.string.id = (int64_t)prod->n_strings + 1;
	rec.bytes = text;
	rec.n_bytes = n;
	if (!lag_trace_append(prod, &rec))
		return 0;
	prod->strings[i].hash = hash;
	prod->strings[i].id = ++prod->n_strings;
	prod->strings_used++;
	return prod->n_strings;
}

int64_t lag_trace_config(struct lag_trace_producer *prod, const struct lag_rec_launch_config *cfg)
{
	const size_t n_slots = sizeof(prod->configs) / sizeof(prod->configs[0]);
	struct lag_record rec = { .kind = LAG_REC_launch_config, .launch_config = *cfg };
	uint64_t hash;
	size_t i;

	rec.launch_config.id = 0;
	hash = lag_hash_bytes(&rec.launch_config, sizeof(rec.launch_config));
	for (i = hash; prod->configs[i %= n_slots].id; i++) {
		if (prod->configs[i].hash == hash)
			return prod->configs[i].id;
	}
	if (prod->configs_used >= n_slots * 3 / 4) {
		memset(prod->configs, 0, sizeof(prod->configs));
		prod->configs_used = 0;
		i = hash % n_slots;
	}
	rec.launch_config.id = (int64_t)prod->n_configs + 1;
	if (!lag_trace_append(prod, &rec))
		return LAG_NONE;
	prod->configs[i].hash = hash;
	prod->configs[i].id = ++prod->n_configs;
	prod->configs_used++;
	return prod->n_configs;
}

bool lag_trace_producer_enter(struct lag_trace_producer *prod, uint32_t index)
{
	uint32_t n = atomic_load(&prod->file->n_chunks);
	bool ok;

	atomic_store(&prod->file->n_chunks, index);
	ok = roll(prod);
	atomic_store(&prod->file->n_chunks, n > index + 1 ? n : index + 1);
	return ok;
}

void lag_trace_producer_abandon(struct lag_trace_producer *prod)
{
	if (prod->chunk)
		munmap(prod->chunk, LAG_CHUNK_BYTES);
	prod->chunk = NULL;
	memset(prod->written, 0, sizeof(prod->written));
	prod->n_records = 0;
}

void lag_trace_producer_close(struct lag_trace_producer *prod)
{
	int saved = errno;

	leave_chunk(prod, false);
	errno = saved;
}

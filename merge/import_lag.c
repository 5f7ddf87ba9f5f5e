/* SPDX-License-Identifier: Apache-2.0 */
/* The tracer's own files: one file is one process, hence one part. Producers' string and
 * configuration ids become those of the merge's pool. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge/import_lag.h"
#include "merge/source.h"
#include "schema/base/fmt.h"
#include "schema/trace/trace_reader.h"

#define FILE_MAX    ((uint64_t)1 << 36)
#define WATCH_EVERY 2048 /* records */

static bool probe(const uint8_t *head, size_t n)
{
	uint64_t magic;

	if (n < sizeof(magic))
		return false;
	memcpy(&magic, head, sizeof(magic));
	return magic == LAG_TRACE_MAGIC || magic == __builtin_bswap64(LAG_TRACE_MAGIC);
}

/* Slot of a producer's id; ids count up by one, so that a lost chunk leaves a hole but no id can be
 * far beyond what a file of this size may define. */
static void *slot_of(struct lag_vec *vec, int64_t id)
{
	if (id <= 0 || (uint64_t)id >= vec->max)
		return NULL;
	while (vec->n <= (uint64_t)id) {
		if (!lag_vec_push(vec))
			return NULL;
	}
	return (char *)vec->items + (size_t)id * vec->item_size;
}

static enum lag_status define_string(struct lag_import *im, const struct lag_record *rec,
				     struct lag_err *err)
{
	uint32_t *slot = slot_of(&im->strings, rec->string.id);
	uint32_t id;

	if (!slot) {
		im->part.n_bad++;
		return LAG_OK;
	}
	id = lag_strtab_add(&im->pool->strings, rec->bytes, rec->n_bytes);
	if (id == LAG_STR_NONE)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for strings");
	*slot = id;
	return LAG_OK;
}

static enum lag_status define_config(struct lag_import *im, const struct lag_record *rec,
				     struct lag_err *err)
{
	int64_t *slot = slot_of(&im->configs, rec->launch_config.id);

	if (!slot) {
		im->part.n_bad++;
		return LAG_OK;
	}
	*slot = lag_pool_config(im->pool, &rec->launch_config);
	return *slot == LAG_NONE ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for strings")
				 : LAG_OK;
}

static void resolve_ids(struct lag_import *im, struct lag_record *rec)
{
	for (uint32_t left = lag_record_strings[rec->kind]; left; left &= left - 1) {
		int64_t *field = &rec->field[__builtin_ctz(left)], id = *field;

		if (id == 0)
			continue;
		*field = id > 0 && (uint64_t)id < im->strings.n
				 ? LAG_VEC_AT(&im->strings, uint32_t, id)
				 : 0;
		im->n_unresolved += *field == 0;
	}
	if (rec->kind == LAG_REC_kernel && rec->kernel.config != LAG_NONE) {
		int64_t id = rec->kernel.config;

		rec->kernel.config = LAG_NONE;
		if (id > 0 && (uint64_t)id < im->configs.n)
			rec->kernel.config = LAG_VEC_AT(&im->configs, int64_t, id);
		im->n_unresolved += rec->kernel.config == LAG_NONE;
	}
}

enum lag_status lag_import_record(struct lag_import *im, struct lag_record *rec, uint32_t producer,
				  struct lag_err *err)
{
	if (producer != im->producer) {
		im->strings.n = im->configs.n = 0;
		im->producer = producer;
	}
	if (rec->kind == LAG_REC_string)
		return define_string(im, rec, err);
	if (rec->kind == LAG_REC_launch_config)
		return define_config(im, rec, err);
	resolve_ids(im, rec);
	return lag_part_add(&im->part, rec, err);
}

static enum lag_status intern(struct lag_import *im, const char *text, int64_t *field)
{
	uint32_t id;

	if (*field || !text[0])
		return LAG_OK;
	id = lag_strtab_add(&im->pool->strings, text, strlen(text));
	*field = id == LAG_STR_NONE ? 0 : id;
	return id == LAG_STR_NONE ? LAG_ERR_SYSTEM : LAG_OK;
}

/* What the header page says stands in for a process record that was never written. */
static enum lag_status use_header(struct lag_import *im, const struct lag_trace_header *h)
{
	struct lag_rec_process *p = &im->part.process;
	char boot[40] = "";
	bool known = false;

	for (size_t i = 0; i < sizeof(h->boot_id); i++) {
		known = known || h->boot_id[i];
		(void)snprintf(boot + 2 * i, 3, "%02x", h->boot_id[i]);
	}
	if (p->pid == LAG_NONE)
		p->pid = (int64_t)h->pid;
	if (p->pid_namespace == LAG_NONE)
		p->pid_namespace = (int64_t)h->pid_namespace;
	if (p->start_ns == LAG_NONE)
		p->start_ns = h->start_ns;
	if (lag_failed(intern(im, h->host, &p->host)))
		return LAG_ERR_SYSTEM;
	return known ? intern(im, boot, &p->boot_id) : LAG_OK;
}

/* Losses are counted in the header page at once, and written as records when that was possible: the
 * larger figure has all of them. */
static void use_counters(struct lag_import *im, const struct lag_trace_counters *c)
{
	const uint64_t sane = (uint64_t)1 << 56;

	for (size_t i = 0; i < LAG_REC_LIMIT; i++) {
		uint64_t n = atomic_load_explicit(&c->lost[i], memory_order_relaxed);

		if (n > im->part.lost[i] && n < sane)
			im->part.lost[i] = n;
	}
	for (size_t i = 0; i < LAG_LOSS_LIMIT; i++) {
		uint64_t n = atomic_load_explicit(&c->lost_reason[i], memory_order_relaxed);

		if (n > im->part.lost_reason[i] && n < sane)
			im->part.lost_reason[i] = n;
	}
	if (atomic_load_explicit(&c->clean_exit, memory_order_relaxed)) {
		im->part.clean_exit = 1;
	} else if (im->part.clean_exit < 0) {
		im->part.clean_exit = 0;
	}
}

static enum lag_status note_damage(struct lag_import *im, const struct lag_trace_damage *d)
{
	struct lag_part *part = &im->part;

	part->n_unknown = d->unknown_records;
	part->n_bad += d->bad_records;
	if (d->bad_chunks || d->missing_chunks || d->bad_records) {
		lag_part_note(part,
			      "damaged from byte %" PRIu64 " on: %" PRIu64
			      " %s unreadable, %" PRIu64 " missing, %" PRIu64
			      " %s cut off or corrupt",
			      d->first_offset, d->bad_chunks,
			      LAG_PLURAL(d->bad_chunks, "chunk", "chunks"), d->missing_chunks,
			      d->bad_records, LAG_PLURAL(d->bad_records, "record", "records"));
	}
	if (d->unknown_records) {
		lag_part_note(part, "%" PRIu64 " %s of kinds newer than this laggard left out",
			      d->unknown_records,
			      LAG_PLURAL(d->unknown_records, "record", "records"));
	}
	if (im->n_unresolved) {
		lag_part_note(part, "%" PRIu64 " %s lost with the chunks that held them",
			      im->n_unresolved, LAG_PLURAL(im->n_unresolved, "name", "names"));
	}
	part->lost_reason[LAG_LOSS_CORRUPT] += d->bad_records;
	return d->bad_chunks || d->missing_chunks || d->bad_records || part->n_bad ? LAG_WARN
										   : LAG_OK;
}

enum lag_status lag_import_begin(struct lag_import *im, struct lag_pool *pool, const char *path,
				 const char *format)
{
	*im = (struct lag_import){ .pool = pool,
				   .producer = UINT32_MAX,
				   .strings = LAG_VEC_INIT(uint32_t),
				   .configs = LAG_VEC_INIT(int64_t) };
	return lag_part_init(&im->part, pool, path, format);
}

void lag_import_max_ids(struct lag_import *im, uint64_t n)
{
	im->strings.max = im->configs.max = (size_t)n;
}

enum lag_status lag_import_end(struct lag_import *im, enum lag_status st,
			       const struct lag_import_facts *facts, struct lag_part_sink *sink,
			       struct lag_err *err)
{
	enum lag_status taken;

	if (st == LAG_END && facts->header) {
		if (lag_failed(use_header(im, facts->header))) {
			st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory for strings");
		} else {
			use_counters(im, facts->counters);
			st = note_damage(im, facts->damage);
		}
	}
	if (!lag_failed(st)) {
		taken = sink->take(sink, &im->part, err);
		st = lag_failed(taken) ? taken : st;
	} else {
		(void)lag_err_wrap(err, "%s", im->part.path);
		lag_part_release(&im->part);
	}
	lag_vec_release(&im->strings);
	lag_vec_release(&im->configs);
	return st;
}

/* How far the reader is, in bytes: by the chunks it has been in. */
struct lag_watch {
	uint64_t n_chunks;
	uint32_t chunk;
};

static bool tell_progress(struct lag_watch *w, const struct lag_trace_reader *rd,
			  struct lag_input *in)
{
	struct lag_chunk_header chunk;

	lag_trace_reader_chunk(rd, &chunk);
	if (!w->n_chunks || chunk.index != w->chunk)
		w->n_chunks++;
	w->chunk = chunk.index;
	return !in->watch || in->watch(in, w->n_chunks * (uint64_t)LAG_CHUNK_BYTES);
}

static enum lag_status import_records(struct lag_import *im, struct lag_trace_reader *rd,
				      struct lag_input *in, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	struct lag_watch watch = { 0 };
	struct lag_record rec;
	uint32_t producer;
	uint64_t tid;

	while (st == LAG_OK) {
		st = lag_trace_reader_next(rd, &rec, &producer, &tid);
		if (st == LAG_OK) {
			st = lag_import_record(im, &rec, producer, err);
			if (im->part.n_records % WATCH_EVERY == 0 && !tell_progress(&watch, rd, in))
				return lag_err_set(err, LAG_ERR_LIMIT, "interrupted");
		} else if (lag_failed(st)) {
			(void)lag_err_set(err, st, "no memory");
		}
	}
	return st;
}

/* A compressed file is held in memory; what would not leave room for its events is refused. */
static size_t bytes_max(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t half = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : FILE_MAX;

	return (size_t)(half < FILE_MAX ? half : FILE_MAX);
}

/* A plain file is read chunk by chunk; what comes out of a container is held in memory. */
static enum lag_status open_input(struct lag_trace_reader **rd, struct lag_input *in,
				  uint8_t **owned, size_t *n, struct lag_err *err)
{
	const uint8_t *bytes = NULL;
	enum lag_status st;

	if (in->file) {
		*n = in->n;
		return lag_trace_reader_open_file(*in->file, rd, err);
	}
	st = lag_input_slurp(in, bytes_max(), &bytes, n, owned, err);
	return lag_failed(st) ? st : lag_trace_reader_open(bytes, *n, rd, err);
}

static enum lag_status import(struct lag_input *in, struct lag_pool *pool,
			      const struct lag_import_opts *opts, struct lag_part_sink *sink,
			      struct lag_err *err)
{
	struct lag_trace_reader *rd = NULL;
	struct lag_import_facts facts = { 0 };
	struct lag_import im;
	uint8_t *owned = NULL;
	enum lag_status st;
	size_t n = 0;

	(void)opts;
	if (lag_failed(lag_import_begin(&im, pool, in->path, "lag")))
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", in->path);
	st = open_input(&rd, in, &owned, &n, err);
	if (st == LAG_OK) {
		facts = (struct lag_import_facts){ lag_trace_reader_header(rd),
						   lag_trace_reader_counters(rd),
						   lag_trace_reader_damage(rd) };
		/* With the record that needs it, each takes more than four bytes of file. */
		lag_import_max_ids(&im, n / 4 + 2);
		st = import_records(&im, rd, in, err);
	}
	st = lag_import_end(&im, st, &facts, sink, err);
	lag_trace_reader_close(rd);
	free(owned);
	return st;
}

const struct lag_importer lag_importer_lag = {
	.name = "lag", .clock = LAG_OUR_CLOCK, .tells_gaps = true, .probe = probe, .import = import
};

/* SPDX-License-Identifier: Apache-2.0 */
/* A .lagz file back to the .lag file it was: each record into the chunk it came from, by the tracer's
 * own writer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge/lagz.h"
#include "schema/trace/trace_writer.h"

struct restore {
	struct lag_packed_reader *rd;
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	struct lag_packed_budget *budget;
	uint8_t *used;     /* a bit a chunk of the source */
	uint32_t n_source; /* chunks */
	uint32_t n_paid;   /* chunks the budget allowed */
	struct lag_chunk_header chunk;
	bool in_chunk;
};

static enum lag_status pay(struct restore *rs, uint32_t n_chunks, struct lag_err *err)
{
	uint32_t more = n_chunks > rs->n_paid ? n_chunks - rs->n_paid : 0;

	rs->n_paid += more;
	return more ? rs->budget->take(rs->budget, (uint64_t)more * LAG_CHUNK_BYTES, err) : LAG_OK;
}

static void leave_chunk(struct restore *rs)
{
	if (!rs->in_chunk)
		return;
	if (atomic_load(&rs->chunk.state) == LAG_CHUNK_SEALED) {
		lag_trace_producer_close(rs->prod);
	} else {
		lag_trace_producer_abandon(rs->prod);
	}
	rs->in_chunk = false;
}

/* The writer counts what it could not write, and keeps errno. */
static enum lag_status refused(const struct restore *rs, struct lag_err *err)
{
	bool full = atomic_load(&rs->file.full_reason) == LAG_LOSS_DISK_FULL;

	return lag_err_set(err, LAG_ERR_SYSTEM, "cannot write: %s",
			   full ? "no space left, or a limit on the size of files"
				: "the file cannot grow");
}

static enum lag_status enter_chunk(struct restore *rs, const struct lag_chunk_header *c,
				   struct lag_err *err)
{
	bool same = rs->prod->file && rs->prod->id == c->producer;
	uint8_t bit = (uint8_t)(1u << c->index % 8);

	leave_chunk(rs);
	if (c->index >= rs->n_source || (rs->used[c->index / 8] & bit))
		return lag_err_set(err, LAG_ERR_INPUT, "chunk %u is out of place", c->index);
	rs->used[c->index / 8] |= bit;
	if (!same) {
		memset(rs->prod, 0, sizeof(*rs->prod));
		lag_trace_producer_init(rs->prod, &rs->file, c->tid);
		rs->prod->id = c->producer;
	}
	/* Chunks that had to be added before move the number on; a hole stays one. */
	if (c->producer_seq > rs->prod->seq)
		rs->prod->seq = c->producer_seq;
	rs->prod->tid = c->tid;
	rs->prod->last_time = c->base_ns;
	rs->prod->n_lost = c->lost_before;
	memcpy((void *)&rs->chunk, c, sizeof(*c));
	rs->in_chunk = lag_trace_producer_enter(rs->prod, c->index);
	return rs->in_chunk ? LAG_OK : refused(rs, err);
}

static enum lag_status put_record(struct restore *rs, const struct lag_record *rec,
				  const struct lag_chunk_header *c, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (!rs->in_chunk || c->index != rs->chunk.index)
		st = enter_chunk(rs, c, err);
	if (st == LAG_OK && !lag_trace_append(rs->prod, rec))
		return refused(rs, err);
	/* The writer's own chunks, for what did not fit. */
	return st == LAG_OK ? pay(rs, atomic_load(&rs->file.n_chunks), err) : st;
}

static enum lag_status finish(struct restore *rs, struct lag_err *err)
{
	const struct lag_trace_damage *d = lag_packed_damage(rs->rd);
	uint32_t n = atomic_load(&rs->file.n_chunks);
	uint32_t all = n > rs->n_source ? n : rs->n_source;
	off_t end = (off_t)LAG_CHUNKS_AT + (off_t)all * (off_t)LAG_CHUNK_BYTES;
	enum lag_status st = LAG_OK;

	memcpy((void *)rs->file.counters, (const void *)lag_packed_counters(rs->rd),
	       sizeof(*rs->file.counters));
	/* Chunks that nobody had claimed are zeroes, which is one of the two forms they have. */
	if (ftruncate(rs->file.fd, end) != 0)
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write");
	atomic_store(&rs->file.n_chunks, all);
	if (st == LAG_OK && (d->bad_chunks || d->bad_records)) {
		(void)lag_err_set(err, LAG_WARN,
				  "damaged from byte %llu on; the records before and between are "
				  "restored",
				  (unsigned long long)d->first_offset);
		st = LAG_WARN;
	}
	return st;
}

static enum lag_status restore_all(struct restore *rs, struct lag_err *err)
{
	const struct lag_chunk_header *chunk = NULL;
	enum lag_status st = pay(rs, rs->n_source, err);
	struct lag_record rec;

	if (st != LAG_OK)
		return st;
	rs->used = lag_calloc(rs->n_source / 8 + 1, 1);
	if (!rs->used)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to unpack");
	while (st == LAG_OK) {
		st = lag_packed_next(rs->rd, &rec, &chunk, err);
		if (st == LAG_OK)
			st = put_record(rs, &rec, chunk, err);
	}
	leave_chunk(rs);
	return st == LAG_END ? finish(rs, err) : st;
}

enum lag_status lag_packed_restore(struct lag_input *in, const char *path, unsigned mode,
				   struct lag_packed_budget *budget, struct lag_err *err)
{
	struct restore rs = { .budget = budget };
	enum lag_status st = lag_packed_open(in, &rs.rd, err);

	if (st != LAG_OK)
		return st;
	rs.prod = lag_calloc(1, sizeof(*rs.prod));
	rs.n_source = lag_packed_n_chunks(rs.rd);
	st = rs.prod ? lag_trace_file_create(&rs.file, path, mode, lag_packed_trace_header(rs.rd),
					     err)
		     : lag_err_set(err, LAG_ERR_SYSTEM, "no memory to unpack");
	if (st == LAG_OK) {
		atomic_store(&rs.file.n_chunks, rs.n_source);
		st = restore_all(&rs, err);
		lag_trace_file_close(&rs.file);
		if (lag_failed(st))
			(void)unlink(path);
	}
	lag_packed_close(rs.rd);
	free(rs.prod);
	free(rs.used);
	return st;
}

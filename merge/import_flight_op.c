/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a Flight Recorder dump: one operation each, with what the host had seen of it. Collectives
 * carry the group's own numbers; messages are numbered per process, which other ranks cannot match: the k-th
 * between two ranks is the k-th, provided that the dump has all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/flight.h"
#include "merge/kineto.h"
#include "schema/base/buf.h"
#include "schema/base/fmt.h"
#include "schema/base/parse.h"

#define TENSORS_TOLD 2 /* in the text of sizes */

bool lag_flight_message(const char *name, int64_t *own, int64_t *peer)
{
	const char *send = strstr(name, "send "), *recv = strstr(name, "recv ");
	const char *at = send ? send : recv;
	long long a, b;
	int n = 0;

	if (!at ||
	    sscanf(at, send ? "send %7lld->%7lld%n" : "recv %7lld<-%7lld%n", &a, &b, &n) != 2)
		return false;
	*own = a;
	*peer = b;
	return a >= 0 && b >= 0;
}

/* Elements of all tensors of a list of sizes; LAG_NONE when one is no size. */
static int64_t elements_of(struct lag_flight *f, const struct lag_datum *sizes)
{
	int64_t sum = 0;

	if (!lag_datum_count(sizes))
		return LAG_NONE;
	for (size_t i = 0; i < lag_datum_count(sizes); i++) {
		const struct lag_datum *dims = sizes->items[i];
		int64_t product = 1;

		if (!dims || (dims->kind != LAG_DATUM_LIST && dims->kind != LAG_DATUM_TUPLE) ||
		    !lag_flight_spend(f, 1 + dims->n))
			return LAG_NONE;
		for (size_t d = 0; d < dims->n; d++) {
			int64_t n = lag_datum_int(dims->items[d]);

			if (n < 0 || __builtin_mul_overflow(product, n, &product))
				return LAG_NONE;
		}
		if (__builtin_add_overflow(sum, product, &sum))
			return LAG_NONE;
	}
	return sum;
}

/* "4096x5120", or "4096x5120, 12 and 5 more". */
static void tell_sizes(const struct lag_datum *sizes, struct lag_buf *out)
{
	size_t n = lag_datum_count(sizes);

	for (size_t i = 0; i < n && i < TENSORS_TOLD; i++) {
		size_t dims = lag_datum_count(sizes->items[i]);

		lag_buf_puts(out, i ? ", " : "");
		for (size_t d = 0; d < dims && d < 8; d++) {
			lag_buf_printf(out, "%s%lld", d ? "x" : "",
				       (long long)lag_datum_int(sizes->items[i]->items[d]));
		}
		lag_buf_puts(out, dims > 8 ? "x..." : !dims ? "scalar" : "");
	}
	if (n > TENSORS_TOLD)
		lag_buf_printf(out, " and %zu more", n - TENSORS_TOLD);
}

static enum lag_status sizes_text(struct lag_flight *f, const struct lag_datum *in,
				  const struct lag_datum *out, int64_t *id, struct lag_err *err)
{
	struct lag_buf text = { 0 };
	uint32_t v = 0;
	enum lag_status st = LAG_OK;

	tell_sizes(in, &text);
	if (lag_datum_count(out)) {
		lag_buf_puts(&text, text.n ? " -> " : "-> ");
		tell_sizes(out, &text);
	}
	if (text.failed) {
		st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	} else if (text.n) {
		st = lag_flight_string(f, text.text, text.n, &v, err);
	}
	*id = v;
	lag_buf_release(&text);
	return st;
}

/* The call's own argument where sizes tell it; an all-to-all's may differ from peer to peer. */
static int64_t count_of(int64_t func, int64_t in, int64_t out)
{
	switch (func) {
	case LAG_FUNC_REDUCE_SCATTER:
	case LAG_FUNC_RECV:
		return out != LAG_NONE ? out : in;
	case LAG_FUNC_ALL_TO_ALL:
	case LAG_FUNC_SCATTER:
	case LAG_FUNC_GATHER:
	case LAG_FUNC_UNKNOWN:
		return LAG_NONE;
	default:
		return in;
	}
}

static int64_t state_of(const struct lag_datum *entry)
{
	const char *state = lag_datum_text(lag_datum_get(entry, "state"));

	if (strcmp(state, "completed") == 0)
		return LAG_OP_COMPLETED;
	if (strcmp(state, "started") == 0)
		return LAG_OP_STARTED;
	return strcmp(state, "scheduled") == 0 ? LAG_OP_ENQUEUED : LAG_NONE;
}

static int64_t positive(const struct lag_datum *d)
{
	return lag_positive(lag_datum_int(d));
}

/* Milliseconds, integer or real. */
static int64_t ms_of(const struct lag_datum *d)
{
	int64_t v = lag_datum_int(d);

	if (d && d->kind == LAG_DATUM_REAL && d->d >= 0 && d->d < 9e12)
		return (int64_t)(d->d * 1e6 + 0.5);
	return v >= 0 && v < INT64_MAX / 1000000 ? v * 1000000 : LAG_NONE;
}

static enum lag_status emit_seen(struct lag_flight *f, const struct lag_datum *entry,
				 const struct lag_rec_op *op, struct lag_err *err)
{
	const struct lag_datum *completed = lag_datum_get(entry, "time_discovered_completed_ns");
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_op_seen);
	rec.op_seen.enqueued_ns = op->enter_ns;
	rec.op_seen.started_ns = positive(lag_datum_get(entry, "time_discovered_started_ns"));
	rec.op_seen.completed_ns = positive(completed);
	rec.op_seen.op_id = op->op_id;
	rec.op_seen.state = state_of(entry);
	rec.op_seen.duration_ns = ms_of(lag_datum_get(entry, "duration_ms"));
	rec.op_seen.timeout_ns = ms_of(lag_datum_get(entry, "timeout_ms"));
	rec.op_seen.record_id = lag_datum_int(lag_datum_get(entry, "record_id"));
	f->n_unfinished += rec.op_seen.state != LAG_OP_COMPLETED;
	st = sizes_text(f, lag_datum_get(entry, "input_sizes"),
			lag_datum_get(entry, "output_sizes"), &rec.op_seen.sizes, err);
	return lag_failed(st) ? st : lag_part_add(&f->part, &rec, err);
}

/* The group's number of a collective. Operations of one coalesced call share theirs: the first has it. */
static enum lag_status number_of(struct lag_flight *f, const struct lag_datum *entry, size_t group,
				 struct lag_rec_op *op, struct lag_err *err)
{
	const struct lag_datum *seq = lag_datum_get(entry, "collective_seq_id");
	int64_t v = lag_datum_int(seq ? seq : lag_datum_get(entry, "seq_id"));
	uint64_t key = lag_hash_pair(group, (uint64_t)v), known;

	if (v < 0 || op->func == LAG_FUNC_UNKNOWN || op->func == LAG_FUNC_SEND ||
	    op->func == LAG_FUNC_RECV || lag_map_find(&f->numbered, key, &known))
		return LAG_OK;
	op->seq = v;
	return lag_failed(lag_map_set(&f->numbered, key, 1))
		       ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations")
		       : LAG_OK;
}

static enum lag_status emit_thread(struct lag_flight *f, const struct lag_datum *entry, int64_t tid,
				   struct lag_err *err)
{
	const char *name = lag_datum_text(lag_datum_get(entry, "thread_name"));
	struct lag_record rec;
	uint32_t id = 0;
	uint64_t seen;
	enum lag_status st;

	if (!name[0] || tid <= 0 || lag_map_find(&f->threads, (uint64_t)tid, &seen))
		return LAG_OK;
	lag_record_init(&rec, LAG_REC_thread);
	rec.thread.tid = tid;
	st = lag_flight_string(f, name, strlen(name), &id, err);
	rec.thread.name = id;
	if (!lag_failed(st) && lag_failed(lag_map_set(&f->threads, (uint64_t)tid, 1)))
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more threads");
	return lag_failed(st) ? st : lag_part_add(&f->part, &rec, err);
}

static int64_t datatype_of(const struct lag_datum *types)
{
	const char *first = lag_datum_count(types) ? lag_datum_text(types->items[0]) : "";

	return lag_kineto_datatype(first);
}

/* A recorder that was emptied in between may count its records from 0 again, but its groups count on. */
static bool is_first_of_job(const struct lag_datum *entry)
{
	return lag_datum_int(lag_datum_get(entry, "collective_seq_id")) <= 1 &&
	       lag_datum_int(lag_datum_get(entry, "p2p_seq_id")) <= 1;
}

/* Nothing was overwritten: record numbers begin at 0 and none is left out. Where one is not known, nothing
 * is known. */
static bool is_whole(struct lag_flight *f, const struct lag_datum *entries)
{
	for (size_t i = 0; i < lag_datum_count(entries); i++) {
		const struct lag_datum *entry = entries->items[i];

		if (!entry || entry->kind != LAG_DATUM_DICT ||
		    !lag_flight_spend(f, 16 + (uint64_t)entry->n) ||
		    lag_datum_int(lag_datum_get(entry, "record_id")) != (int64_t)i ||
		    (i == 0 && !is_first_of_job(entry)))
			return false;
	}
	return true;
}

static bool is_member(const struct lag_flight_group *group, int64_t at)
{
	return at >= 0 && (uint64_t)at < group->members.n;
}

/* Which message from one to the other it is, where both are known and all before it are there. */
static enum lag_status number_message(struct lag_flight *f, size_t group, int64_t own,
				      struct lag_rec_op *op, struct lag_err *err)
{
	const struct lag_flight_group *g = LAG_FLIGHT_GROUP(f, group);
	uint64_t key = lag_hash_pair(lag_hash_pair(group, (uint64_t)op->func), (uint64_t)op->peer);
	uint64_t next = 0;

	if (!f->whole || !is_member(g, own) || !is_member(g, op->peer) ||
	    LAG_VEC_AT(&g->members, int64_t, own) != f->rank) {
		f->n_unnumbered++;
		return LAG_OK;
	}
	(void)lag_map_find(&f->messages, key, &next);
	op->seq = (int64_t)next;
	return lag_failed(lag_map_set(&f->messages, key, next + 1))
		       ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more messages")
		       : LAG_OK;
}

/* LAG_END: this entry is bad. */
static enum lag_status emit_entry(struct lag_flight *f, const struct lag_datum *entry,
				  struct lag_err *err)
{
	const char *name = lag_datum_text(lag_datum_get(entry, "profiling_name"));
	int64_t at = positive(lag_datum_get(entry, "time_created_ns")), own, peer;
	const struct lag_datum *dtypes = lag_datum_get(entry, "input_dtypes");
	bool message = lag_flight_message(name, &own, &peer);
	struct lag_record rec;
	enum lag_status st;
	size_t group = 0;

	if (!entry || entry->kind != LAG_DATUM_DICT || at == LAG_NONE)
		return LAG_END;
	st = lag_flight_group_of(f, entry, &group, err);
	if (st != LAG_OK)
		return st;
	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = at;
	rec.op.op_id = (int64_t)++f->n_entries;
	rec.op.comm_id = (int64_t)group + 1;
	rec.op.tid = positive(lag_datum_get(entry, "thread_id"));
	rec.op.func = lag_func_parse(name, strlen(name));
	if (message)
		rec.op.peer = peer;
	rec.op.count = count_of(rec.op.func, elements_of(f, lag_datum_get(entry, "input_sizes")),
				elements_of(f, lag_datum_get(entry, "output_sizes")));
	rec.op.datatype = datatype_of(
		lag_datum_count(dtypes) ? dtypes : lag_datum_get(entry, "output_dtypes"));
	rec.op.sources = LAG_OP_FROM_META | LAG_OP_NUMBERED;
	st = message ? number_message(f, group, own, &rec.op, err)
		     : number_of(f, entry, group, &rec.op, err);
	if (!lag_failed(st))
		st = emit_thread(f, entry, rec.op.tid, err);
	rec.op.tid = rec.op.tid == LAG_NONE ? 0 : rec.op.tid;
	if (!lag_failed(st))
		st = lag_part_add(&f->part, &rec, err);
	return lag_failed(st) ? st : emit_seen(f, entry, &rec.op, err);
}

enum lag_status lag_flight_emit_ops(struct lag_flight *f, struct lag_err *err)
{
	const struct lag_datum *entries = lag_datum_get(f->root, "entries");

	f->whole = is_whole(f, entries);
	for (size_t i = 0; i < lag_datum_count(entries); i++) {
		const struct lag_datum *entry = entries->items[i];
		enum lag_status st;

		/* One look-up costs as much as the entry is wide. */
		if (!lag_flight_spend(f, 16 + (uint64_t)entry->n)) {
			return lag_err_set(err, LAG_ERR_LIMIT,
					   "entries refer to more than a dump can hold");
		}
		st = emit_entry(f, entry, err);
		if (lag_failed(st))
			return st;
		f->part.n_bad += st == LAG_END;
	}
	if (f->n_unnumbered) {
		lag_part_note(&f->part, "%llu %s not matched: %s",
			      (unsigned long long)f->n_unnumbered,
			      LAG_PLURAL(f->n_unnumbered, "message is", "messages are"),
			      f->whole ? "between which ranks is not known"
				       : "what came before is not all in the dump");
	}
	return LAG_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Instances: the operation with number k of a communicator on all its members, or the k-th message
 * from one member to another. Function, count and datatype are compared; what differs or is missing
 * is a finding. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/state.h"
#include "schema/base/fmt.h"

struct matcher {
	struct lag_merge *m;
	struct lag_map instance_of;   /* key -> index */
	struct lag_map low, high;     /* stream of numbers -> first and last recorded */
	struct lag_vec last_instance; /* uint32_t by process: 1 + the last one known to hold it */
};

static bool is_message(int64_t func)
{
	return func == LAG_FUNC_SEND || func == LAG_FUNC_RECV;
}

static const struct lag_rec_op *op_of(const struct lag_merge *m,
				      const struct lag_instance_member *at)
{
	return &LAG_PART_AT(&LAG_PROC_AT(m, at->proc)->part, op, at->op);
}

static const struct lag_instance_member *member_at(const struct lag_merge *m, uint32_t ref)
{
	return ref ? &LAG_VEC_AT(&m->members, struct lag_instance_member, ref - 1) : NULL;
}

/* The numbers that one process, or one side of a message stream, counted through. */
static uint64_t stream_key(uint32_t comm, uint64_t who, int64_t src, int64_t dst)
{
	return lag_hash_pair(lag_hash_pair(comm, who), lag_hash_pair((uint64_t)src, (uint64_t)dst));
}

static enum lag_status widen(struct matcher *w, uint64_t key, int64_t seq)
{
	enum lag_status st = LAG_OK;
	uint64_t at;

	if (!lag_map_find(&w->low, key, &at) || (uint64_t)seq < at)
		st = lag_map_set(&w->low, key, (uint64_t)seq);
	if (st == LAG_OK && (!lag_map_find(&w->high, key, &at) || (uint64_t)seq > at))
		st = lag_map_set(&w->high, key, (uint64_t)seq);
	return st;
}

static struct lag_instance_row *new_instance(struct matcher *w, uint64_t key,
					     const struct lag_rec_op *op,
					     const struct lag_op_link *link, bool message)
{
	const struct lag_comm_row *comm = LAG_COMM_AT(w->m, link->comm);
	/* Of unknown size: of more than the one that has a record. */
	uint32_t n_members = comm->n_ranks > 0 ? (uint32_t)comm->n_ranks : 2;
	struct lag_instance_row *row = lag_vec_push(&w->m->instances);

	if (!row || lag_failed(lag_map_set(&w->instance_of, key, w->m->instances.n - 1)))
		return NULL;
	*row = (struct lag_instance_row){ .comm = link->comm,
					  .func = message ? LAG_FUNC_SEND_RECV : (uint32_t)op->func,
					  .seq = link->seq,
					  .src = LAG_NONE,
					  .dst = LAG_NONE,
					  .bytes = LAG_NONE,
					  .datatype = op->datatype,
					  .n_members = message ? 2 : n_members };
	return row;
}

/* Processes come one after the other, so that another part of the same one can only be at the end. */
static bool is_in(const struct matcher *w, const struct lag_instance_row *row, uint32_t proc,
		  const struct lag_rec_op *rec)
{
	const struct lag_instance_member *at = member_at(w->m, row->last_ref);

	if (!at || at->proc != proc)
		return false;
	for (at = member_at(w->m, row->first_ref); at; at = member_at(w->m, at->next_ref)) {
		if (at->proc == proc && op_of(w->m, at)->comm_id == rec->comm_id &&
		    (!is_message(rec->func) || op_of(w->m, at)->func == rec->func))
			return true;
	}
	return false;
}

static enum lag_status join(struct matcher *w, uint32_t index, uint32_t proc, uint32_t op)
{
	struct lag_instance_row *row = LAG_INSTANCE_AT(w->m, index);
	struct lag_proc *p = LAG_PROC_AT(w->m, proc);
	struct lag_op_link *link = LAG_OP_LINK_AT(p, op);
	struct lag_instance_member *member;

	if (is_in(w, row, proc, &LAG_PART_AT(&p->part, op, op))) {
		LAG_COMM_AT(w->m, link->comm)->n_twice++;
		return LAG_OK;
	}
	/* What belonged to none before has no row that could say so now. */
	if (p->old && !link->instance_ref)
		return LAG_OK;
	member = lag_vec_push(&w->m->members);
	if (!member)
		return LAG_ERR_SYSTEM;
	*member = (struct lag_instance_member){ proc, op, 0 };
	if (row->last_ref) {
		LAG_VEC_AT(&w->m->members, struct lag_instance_member, row->last_ref - 1).next_ref =
			(uint32_t)w->m->members.n;
	} else {
		row->first_ref = (uint32_t)w->m->members.n;
	}
	row->last_ref = (uint32_t)w->m->members.n;
	row->n_recorded++;
	if (link->by_order)
		row->flags |= LAG_INSTANCE_BY_ORDER;
	if (LAG_LAUNCH_AT(p, link->launch_ref - 1)->n_ops > 1)
		row->flags |= LAG_INSTANCE_SHARED;
	link->instance_ref = index + 1;
	return LAG_OK;
}

static enum lag_status match_op(struct matcher *w, uint32_t proc, uint32_t op)
{
	struct lag_proc *p = LAG_PROC_AT(w->m, proc);
	const struct lag_rec_op *rec = &LAG_PART_AT(&p->part, op, op);
	const struct lag_op_link *link = LAG_OP_LINK_AT(p, op);
	bool message = is_message(rec->func);
	int64_t src = LAG_NONE, dst = LAG_NONE;
	struct lag_instance_row *row;
	uint64_t key, at = 0;

	if (link->seq == LAG_NONE || (message && (link->comm_rank < 0 || rec->peer < 0)))
		return LAG_OK;
	if (message) {
		src = rec->func == LAG_FUNC_SEND ? link->comm_rank : rec->peer;
		dst = rec->func == LAG_FUNC_SEND ? rec->peer : link->comm_rank;
	}
	key = lag_hash_pair(stream_key(link->comm, message, src, dst), (uint64_t)link->seq);
	if (lag_failed(widen(
		    w,
		    stream_key(link->comm, message ? (uint64_t)rec->func : 100u + proc, src, dst),
		    link->seq)))
		return LAG_ERR_SYSTEM;
	if (p->old && link->instance_ref) {
		at = link->instance_ref - 1;
		if (lag_failed(lag_map_set(&w->instance_of, key, at)))
			return LAG_ERR_SYSTEM;
	} else if (!lag_map_find(&w->instance_of, key, &at)) {
		if (p->old)
			return LAG_OK;
		at = w->m->instances.n;
		row = new_instance(w, key, rec, link, message);
		if (!row)
			return LAG_ERR_SYSTEM;
		row->src = src;
		row->dst = dst;
	}
	return join(w, (uint32_t)at, proc, op);
}

/* S of the bus bandwidth formulas: all ranks' data for operations that gather, scatter or exchange. */
static int64_t bytes_of(const struct lag_instance_row *row, const struct lag_rec_op *op)
{
	int64_t size = (int64_t)lag_datatype_size(op->datatype), bytes;
	bool all = row->func == LAG_FUNC_ALL_GATHER || row->func == LAG_FUNC_REDUCE_SCATTER ||
		   row->func == LAG_FUNC_ALL_TO_ALL || row->func == LAG_FUNC_GATHER ||
		   row->func == LAG_FUNC_SCATTER;

	if (op->count < 0 || !size || __builtin_mul_overflow(op->count, size, &bytes) ||
	    (all && __builtin_mul_overflow(bytes, (int64_t)row->n_members, &bytes)))
		return LAG_NONE;
	return bytes;
}

static bool rooted(uint32_t func)
{
	return func == LAG_FUNC_BROADCAST || func == LAG_FUNC_REDUCE || func == LAG_FUNC_GATHER ||
	       func == LAG_FUNC_SCATTER;
}

/* What two members say differently; NULL when they agree or do not know. */
static const char *difference(const struct lag_instance_row *row, const struct lag_rec_op *a,
			      const struct lag_rec_op *b)
{
	bool message = is_message(a->func);

	if (message ? a->func == b->func || !is_message(b->func) : a->func != b->func)
		return "function";
	if (a->datatype != LAG_NONE && b->datatype != LAG_NONE && a->datatype != b->datatype)
		return "datatype";
	if (rooted(row->func) && a->peer != LAG_NONE && b->peer != LAG_NONE && a->peer != b->peer)
		return "root";
	/* Imported all-to-alls may be of the kind with a count per peer. */
	if (a->count != LAG_NONE && b->count != LAG_NONE && a->count != b->count &&
	    !((a->sources & LAG_OP_FROM_META) && row->func == LAG_FUNC_ALL_TO_ALL))
		return "count";
	return NULL;
}

static void describe(const struct lag_rec_op *op, char *out, size_t room)
{
	char count[32] = "";

	if (op->count != LAG_NONE)
		(void)snprintf(count, sizeof(count), " of %" PRId64, op->count);
	(void)snprintf(out, room, "%s%s %s", lag_func_name(op->func), count,
		       op->datatype == LAG_NONE ? "" : lag_datatype_name(op->datatype));
}

static void check_instance(struct matcher *w, struct lag_instance_row *row)
{
	const struct lag_instance_member *first = member_at(w->m, row->first_ref);
	const struct lag_rec_op *a = op_of(w->m, first);
	struct lag_comm_row *comm = LAG_COMM_AT(w->m, row->comm);

	if (row->src == LAG_NONE && comm->n_ranks != LAG_NONE)
		row->n_members = (uint32_t)comm->n_ranks;
	row->bytes = bytes_of(row, a);
	for (const struct lag_instance_member *at = member_at(w->m, first->next_ref); at;
	     at = member_at(w->m, at->next_ref)) {
		const char *what = difference(row, a, op_of(w->m, at));
		char left[96], right[96];

		if (!what)
			continue;
		row->flags |= LAG_INSTANCE_MISMATCH;
		if (comm->n_mismatched++ > 0)
			return;
		describe(a, left, sizeof(left));
		describe(op_of(w->m, at), right, sizeof(right));
		lag_merge_find(w->m, 2, "mismatch",
			       LAG_ABOUT(LAG_PROC_AT(w->m, at->proc)->rank, row->comm, 1),
			       "operation %" PRId64 " differs in %s: rank %" PRId64
			       " called %s, rank %" PRId64 " called %s",
			       row->seq, what, LAG_PROC_AT(w->m, first->proc)->rank, left,
			       LAG_PROC_AT(w->m, at->proc)->rank, right);
		LAG_VEC_AT(&w->m->findings, struct lag_finding_row, w->m->findings.n - 1).seq =
			row->seq;
		return;
	}
}

/* Whether a missing part lies inside what its process counted through (lost, or skipped), or beyond it
 * (not yet or no longer recorded). */
static bool inside(const struct matcher *w, uint64_t key, int64_t seq)
{
	uint64_t low, high;

	return lag_map_find(&w->low, key, &low) && lag_map_find(&w->high, key, &high) &&
	       (uint64_t)seq >= low && (uint64_t)seq <= high;
}

static void check_missing(struct matcher *w, uint32_t instance)
{
	const struct lag_instance_row *row = LAG_INSTANCE_AT(w->m, instance);
	uint32_t *last = w->last_instance.items;
	struct lag_comm_row *comm = LAG_COMM_AT(w->m, row->comm);
	bool hole = false, edge = false;

	if (row->n_recorded >= row->n_members || row->n_recorded >= comm->n_recording)
		return;
	if (row->func == LAG_FUNC_SEND_RECV && row->src != LAG_NONE) {
		const struct lag_rec_op *op = op_of(w->m, member_at(w->m, row->first_ref));
		int64_t other = op->func == LAG_FUNC_SEND ? row->dst : row->src;
		uint64_t func = op->func == LAG_FUNC_SEND ? LAG_FUNC_RECV : LAG_FUNC_SEND;

		for (size_t i = 0; i < comm->members.n; i++) {
			const struct lag_comm_member_row *c =
				&LAG_VEC_AT(&comm->members, struct lag_comm_member_row, i);

			if (c->comm_rank != other || !c->proc_ref)
				continue;
			hole = inside(w, stream_key(row->comm, func, row->src, row->dst), row->seq);
			edge = !hole;
		}
	} else {
		for (const struct lag_instance_member *at = member_at(w->m, row->first_ref); at;
		     at = member_at(w->m, at->next_ref))
			last[at->proc] = instance + 1;
		for (size_t i = 0; i < comm->members.n; i++) {
			const struct lag_comm_member_row *c =
				&LAG_VEC_AT(&comm->members, struct lag_comm_member_row, i);
			bool in;

			if (!c->proc_ref || last[c->proc_ref - 1] == instance + 1)
				continue;
			in = inside(
				w,
				stream_key(row->comm, 100u + c->proc_ref - 1, LAG_NONE, LAG_NONE),
				row->seq);
			hole = hole || in;
			edge = edge || !in;
		}
	}
	comm->n_unmatched += hole;
	comm->n_edge += edge && !hole;
}

static void report(struct lag_merge *m)
{
	for (size_t i = 0; i < m->comms.n; i++) {
		const struct lag_comm_row *c = LAG_COMM_AT(m, i);

		if (c->n_mismatched > 1) {
			lag_merge_find(m, 2, "mismatch",
				       LAG_ABOUT(LAG_NONE, (int64_t)i, c->n_mismatched),
				       "%" PRIu64 " %s in function, count, datatype "
				       "or root between members",
				       c->n_mismatched,
				       LAG_PLURAL(c->n_mismatched, "operation differs",
						  "operations differ"));
		}
		if (c->n_unmatched) {
			lag_merge_find(
				m, 1, "unmatched", LAG_ABOUT(LAG_NONE, (int64_t)i, c->n_unmatched),
				"%" PRIu64 " %s a member whose process recorded "
				"earlier and later ones: records were lost, or it never called",
				c->n_unmatched,
				LAG_PLURAL(c->n_unmatched, "operation lacks", "operations lack"));
		}
		if (c->n_edge) {
			lag_merge_find(m, 0, "unmatched_edge",
				       LAG_ABOUT(LAG_NONE, (int64_t)i, c->n_edge),
				       "%" PRIu64 " %s before or after what some member "
				       "recorded",
				       c->n_edge,
				       LAG_PLURAL(c->n_edge, "operation lies", "operations lie"));
		}
		if (c->n_twice) {
			lag_merge_find(
				m, 1, "numbered_twice", LAG_ABOUT(LAG_NONE, (int64_t)i, c->n_twice),
				"%" PRIu64 " %s a number of the same process: left "
				"unmatched",
				c->n_twice,
				LAG_PLURAL(c->n_twice, "operation repeats", "operations repeat"));
		}
	}
}

enum lag_status lag_merge_match(struct lag_merge *m, struct lag_err *err)
{
	struct matcher w = { .m = m,
			     .instance_of = { .spill = m->spill },
			     .low = { .spill = m->spill },
			     .high = { .spill = m->spill },
			     .last_instance = LAG_VEC_INIT(uint32_t) };
	enum lag_status st = LAG_OK;

	for (uint32_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		for (uint32_t o = 0; o < LAG_PROC_AT(m, i)->op_links.n && st == LAG_OK; o++) {
			st = lag_merge_cancelled(m, o) ? LAG_ERR_LIMIT : match_op(&w, i, o);
		}
	}
	for (size_t i = 0; i < m->comms.n; i++) {
		struct lag_comm_row *c = LAG_COMM_AT(m, i);

		for (size_t k = 0; k < c->members.n; k++) {
			c->n_recording +=
				LAG_VEC_AT(&c->members, struct lag_comm_member_row, k).proc_ref !=
				0;
		}
	}
	if (st == LAG_OK)
		st = lag_vec_resize(&w.last_instance, m->procs.n);
	for (size_t i = 0; i < m->instances.n && st == LAG_OK; i++) {
		if (lag_merge_cancelled(m, i))
			st = LAG_ERR_LIMIT;
		/* One of an old trace that names none of its operations says nothing. */
		if (!LAG_INSTANCE_AT(m, i)->first_ref)
			continue;
		check_instance(&w, LAG_INSTANCE_AT(m, i));
		check_missing(&w, (uint32_t)i);
	}
	lag_map_release(&w.instance_of);
	lag_map_release(&w.low);
	lag_map_release(&w.high);
	lag_vec_release(&w.last_instance);
	if (st == LAG_ERR_LIMIT)
		return lag_merge_interrupted(err);
	if (st != LAG_OK)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for instances");
	report(m);
	return LAG_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One operation for each kernel or copy that carries communication, numbered per communicator in the
 * order in which the GPU ran them, unless the trace numbers them itself. */
#include <stdlib.h>
#include <string.h>

#include "merge/kineto_comm.h"
#include "schema/base/fmt.h"

/* Launch calls of the kernels that carry communication, by correlation; the first of equals. */
static enum lag_status find_launches(struct lag_kineto_work *w, struct lag_err *err)
{
	size_t n_calls = LAG_PART_COUNT(&w->k->p->part, api);
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < w->ops.n && !lag_failed(st); i++) {
		int64_t c = LAG_VEC_AT(&w->ops, struct lag_kineto_op, i).correlation;

		if (c)
			st = lag_map_set(&w->launch, (uint64_t)c, 0);
	}
	for (size_t i = 0; i < n_calls && !lag_failed(st); i++) {
		uint64_t c = (uint64_t)LAG_PART_GET(&w->k->p->part, api, i).correlation, seen;

		if (lag_map_find(&w->launch, c, &seen) && !seen)
			st = lag_map_set(&w->launch, c, i + 1);
	}
	return lag_failed(st) ? lag_err_set(err, st, "no memory for more launch calls") : LAG_OK;
}

static void set_call(struct lag_kineto_work *w, struct lag_kineto_op *op)
{
	struct lag_rec_api api;
	uint64_t at = 0;

	op->enter_ns = op->leave_ns = op->start_ns;
	op->tid = 0;
	if (!op->correlation || !lag_map_find(&w->launch, (uint64_t)op->correlation, &at) || !at)
		return;
	api = LAG_PART_GET(&w->k->p->part, api, at - 1);
	op->enter_ns = api.start_ns;
	op->leave_ns = api.end_ns;
	op->tid = api.tid;
}

/* The call's own argument: reduce-scatter counts what it receives, all-to-all what each peer gets. */
static int64_t count_of(const struct lag_kineto_op *op, const struct lag_kineto_comm *comm)
{
	const struct lag_kineto_coll *c = &op->coll;

	switch (op->func) {
	case LAG_FUNC_REDUCE_SCATTER:
		if (c->out != LAG_NONE)
			return c->out;
		return c->in != LAG_NONE && comm->size > 0 && c->in % comm->size == 0
			       ? c->in / comm->size
			       : LAG_NONE;
	case LAG_FUNC_ALL_TO_ALL:
		return c->in != LAG_NONE && !c->split && !comm->assumed && comm->size > 0 &&
				       c->in % comm->size == 0
			       ? c->in / comm->size
			       : LAG_NONE;
	case LAG_FUNC_RECV:
		return c->out != LAG_NONE ? c->out : c->in;
	case LAG_FUNC_SEND_RECV:
		return LAG_NONE;
	default:
		return c->in;
	}
}

static enum lag_status seq_of(struct lag_kineto_op *op, struct lag_kineto_comm *comm, int64_t peer,
			      int64_t *seq, struct lag_err *err)
{
	uint64_t key = (uint64_t)peer * 2 + (op->func == LAG_FUNC_RECV), next = 0;

	if (op->func != LAG_FUNC_SEND && op->func != LAG_FUNC_RECV) {
		*seq = comm->ordered ? op->coll.seq : comm->next_seq++;
		return LAG_OK;
	}
	(void)lag_map_find(&comm->peer_seq, key, &next);
	*seq = (int64_t)next;
	if (lag_failed(lag_map_set(&comm->peer_seq, key, next + 1)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more peers");
	return LAG_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct lag_kineto_op *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Collects the ops, in the order in which the GPU ran them. */
static enum lag_status collect(struct lag_kineto_work *w, struct lag_err *err)
{
	struct lag_kineto *k = w->k;

	for (size_t i = 0; i < k->p->carriers.n; i++) {
		struct lag_kineto_carrier *c =
			&LAG_VEC_AT(&k->p->carriers, struct lag_kineto_carrier, i);
		struct lag_kineto_op *op = lag_vec_push(&w->ops);

		if (!op)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
		*op = (struct lag_kineto_op){ .carrier = *c };
		if (c->kind == LAG_REC_kernel) {
			struct lag_rec_kernel r = LAG_PART_GET(&k->p->part, kernel, c->index);

			op->start_ns = r.start_ns;
			op->correlation = r.correlation;
			op->stream = r.stream;
			op->device = r.device;
		} else {
			struct lag_rec_memcpy r = LAG_PART_GET(&k->p->part, memcpy, c->index);

			op->start_ns = r.start_ns;
			op->correlation = r.correlation;
			op->stream = r.stream;
			op->device = r.device;
		}
		w->several_devices |=
			op->device != LAG_VEC_AT(&w->ops, struct lag_kineto_op, 0).device;
	}
	qsort(w->ops.items, w->ops.n, sizeof(struct lag_kineto_op), by_start);
	return LAG_OK;
}

/* The event that executes the operation carries its number. */
static enum lag_status mark_carrier(struct lag_kineto_work *w, const struct lag_kineto_op *op,
				    int64_t op_id, struct lag_err *err)
{
	struct lag_part *part = &w->k->p->part;
	struct lag_record rec = lag_part_get(part, op->carrier.kind, op->carrier.index);

	if (op->carrier.kind == LAG_REC_kernel) {
		rec.kernel.op_id = op_id;
	} else {
		rec.memcpy.op_id = op_id;
	}
	return lag_failed(lag_part_set(part, op->carrier.index, &rec))
		       ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations")
		       : LAG_OK;
}

static enum lag_status emit_op(struct lag_kineto_work *w, struct lag_kineto_op *op, int64_t op_id,
			       struct lag_err *err)
{
	struct lag_kineto_comm *comm = &LAG_VEC_AT(&w->comms, struct lag_kineto_comm, op->comm);
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = op->enter_ns;
	rec.op.leave_ns = op->leave_ns;
	rec.op.tid = op->tid;
	rec.op.op_id = op_id;
	rec.op.comm_id = comm->comm_id;
	rec.op.func = op->func;
	if (op->func == LAG_FUNC_SEND) {
		rec.op.peer = lag_kineto_peer(comm, op->coll.dst);
	} else if (op->func == LAG_FUNC_RECV) {
		rec.op.peer = lag_kineto_peer(comm, op->coll.src);
	}
	rec.op.count = count_of(op, comm);
	rec.op.datatype = lag_kineto_datatype(lag_kineto_text(w, op->coll.dtype));
	rec.op.stream = op->stream;
	rec.op.sources = op->from_name ? LAG_OP_FROM_NAME : LAG_OP_FROM_META;
	st = seq_of(op, comm, rec.op.peer, &rec.op.seq, err);
	if (!lag_failed(st))
		st = mark_carrier(w, op, op_id, err);
	return lag_failed(st) ? st : lag_part_add(&w->k->p->part, &rec, err);
}

/* Of a job of two, every group is the same two ranks. */
static void look_for_groups(struct lag_kineto_work *w)
{
	const struct lag_kineto_op *first = NULL;

	for (size_t i = 0; i < w->ops.n && w->k->world_size != 2; i++) {
		const struct lag_kineto_op *op = &LAG_VEC_AT(&w->ops, struct lag_kineto_op, i);

		if (op->coll.has_group)
			continue;
		first = first ? first : op;
		w->several_streams |= op->stream != first->stream && op->device == first->device;
	}
}

static enum lag_status resolve(struct lag_kineto_work *w, struct lag_err *err)
{
	enum lag_status st = find_launches(w, err);

	for (size_t i = 0; i < w->ops.n && !lag_failed(st); i++) {
		set_call(w, &LAG_VEC_AT(&w->ops, struct lag_kineto_op, i));
		lag_kineto_set_coll(w, &LAG_VEC_AT(&w->ops, struct lag_kineto_op, i));
	}
	look_for_groups(w);
	for (size_t i = 0; i < w->ops.n && !lag_failed(st); i++) {
		struct lag_kineto_op *op = &LAG_VEC_AT(&w->ops, struct lag_kineto_op, i);
		struct lag_kineto_comm *comm;

		st = lag_kineto_set_comm(w, op, err);
		if (lag_failed(st) || op->func == LAG_FUNC_SEND || op->func == LAG_FUNC_RECV)
			continue;
		/* The source's own numbers serve only where every operation has one and they rise. */
		comm = &LAG_VEC_AT(&w->comms, struct lag_kineto_comm, op->comm);
		comm->ordered &= op->coll.seq > comm->last_source_seq;
		comm->last_source_seq = op->coll.seq;
	}
	return st;
}

static enum lag_status emit(struct lag_kineto_work *w, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	size_t assumed = 0;

	for (size_t i = 0; i < w->comms.n && !lag_failed(st); i++) {
		st = lag_kineto_emit_comm(w, &LAG_VEC_AT(&w->comms, struct lag_kineto_comm, i),
					  err);
	}
	for (size_t i = 0; i < w->ops.n && !lag_failed(st); i++) {
		struct lag_kineto_op *op = &LAG_VEC_AT(&w->ops, struct lag_kineto_op, i);

		assumed += LAG_VEC_AT(&w->comms, struct lag_kineto_comm, op->comm).assumed;
		st = emit_op(w, op, (int64_t)i + 1, err);
	}
	if (assumed) {
		lag_part_note(&w->k->p->part,
			      w->several_streams
				      ? "%zu %s without a process group, on "
					"several streams: taken as a communicator for each, of "
					"unknown members"
				      : "%zu %s without a process group: taken "
					"as one communicator of all ranks, numbered by their order",
			      assumed,
			      LAG_PLURAL(assumed, "communication kernel", "communication kernels"));
	}
	return st;
}

/* The CPU events that say which group they are of, by the id that kernels launched inside share. */
static enum lag_status index_external(struct lag_kineto_work *w, struct lag_err *err)
{
	const struct lag_vec *all = &w->k->p->cpu_colls;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < all->n && !lag_failed(st); i++) {
		const struct lag_kineto_coll *c = &LAG_VEC_AT(all, struct lag_kineto_coll, i);

		if (c->has_group && c->external > 0)
			st = lag_map_set(&w->by_external, (uint64_t)c->external, i + 1);
	}
	return lag_failed(st) ? lag_err_set(err, st, "no memory for more operations") : st;
}

enum lag_status lag_kineto_add_ops(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_kineto_work w = { .k = k,
				     .ops = LAG_VEC_INIT(struct lag_kineto_op),
				     .comms = LAG_VEC_INIT(struct lag_kineto_comm) };
	enum lag_status st;

	if (!k->p->carriers.n)
		return LAG_OK;
	w.comms.max = 65536;
	if (k->p->cpu_colls.n) {
		qsort(k->p->cpu_colls.items, k->p->cpu_colls.n, sizeof(struct lag_kineto_coll),
		      lag_kineto_by_thread);
	}
	st = index_external(&w, err);
	if (!lag_failed(st))
		st = collect(&w, err);
	if (!lag_failed(st))
		st = resolve(&w, err);
	if (!lag_failed(st))
		st = emit(&w, err);
	for (size_t i = 0; i < w.comms.n; i++) {
		lag_vec_release(&LAG_VEC_AT(&w.comms, struct lag_kineto_comm, i).members);
		lag_map_release(&LAG_VEC_AT(&w.comms, struct lag_kineto_comm, i).peer_seq);
	}
	lag_vec_release(&w.ops);
	lag_vec_release(&w.comms);
	lag_map_release(&w.by_group);
	lag_map_release(&w.by_stream);
	lag_map_release(&w.by_external);
	lag_map_release(&w.launch);
	return st;
}

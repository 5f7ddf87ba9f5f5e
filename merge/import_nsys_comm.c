/* SPDX-License-Identifier: Apache-2.0 */
/* Communication of one process of an Nsight Systems report. Where NCCL's annotations say which communicator
 * a call belongs to, they are the operations, tied to the kernels launched inside them; else every kernel
 * of NCCL's is one, of an assumed communicator, known by its name only. */
#include <stdlib.h>
#include <string.h>

#include "merge/kineto.h"
#include "merge/nsys.h"
#include "schema/base/fmt.h"

#define OUR_EXTERNAL_KIND 5

struct comm {
	int64_t comm_id, n_ranks, comm_rank, device;
	uint64_t id; /* NCCL's; assumed ones: 1 + device where there are several */
	bool assumed;
};

struct work {
	struct lag_nsys *s;
	struct lag_nsys_proc *p;
	struct lag_vec comms;   /* struct comm */
	struct lag_map comm_of; /* (assumed, id) -> index */
	int64_t next_id;        /* operations and groups share their numbers */
	uint64_t n_assumed;
};

static int by_thread(const void *left, const void *right)
{
	const struct lag_nsys_call *a = left, *b = right;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns);
}

static int by_start(const void *left, const void *right)
{
	const struct lag_nsys_carrier *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

/* NULL without memory. */
static struct comm *comm_of(struct work *w, uint64_t id, bool assumed, int64_t device)
{
	uint64_t key = lag_hash_pair(assumed, id), at;
	struct comm *c;

	if (lag_map_find(&w->comm_of, key, &at))
		return &LAG_VEC_AT(&w->comms, struct comm, at);
	c = lag_vec_push(&w->comms);
	if (!c || lag_failed(lag_map_set(&w->comm_of, key, w->comms.n - 1)))
		return NULL;
	*c = (struct comm){ .comm_id = (int64_t)w->comms.n,
			    .n_ranks = LAG_NONE,
			    .comm_rank = LAG_NONE,
			    .device = device,
			    .id = id,
			    .assumed = assumed };
	return c;
}

static enum lag_status too_many(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more communicators");
}

/* ---- annotated calls ---- */

static enum lag_status add_group(struct work *w, const struct lag_nsys_call *start,
				 const struct lag_nsys_call *end, int64_t n_ops,
				 struct lag_err *err)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_group);
	rec.group.enter_ns = start->start_ns;
	rec.group.launch_ns = end->start_ns;
	rec.group.leave_ns = end->end_ns;
	rec.group.tid = start->tid;
	rec.group.group_id = start->group_id;
	rec.group.n_ops = n_ops;
	return lag_part_add(&w->p->part, &rec, err);
}

/* Numbers calls and groups; a group that one end of is missing is none. */
static enum lag_status number_calls(struct work *w, struct lag_err *err)
{
	struct lag_vec *calls = &w->p->calls;
	struct lag_nsys_call *at = calls->items, *open = NULL;
	int64_t depth = 0, n_ops = 0;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < calls->n && !lag_failed(st); i++) {
		if (i && at[i].tid != at[i - 1].tid) {
			open = NULL;
			depth = 0;
		}
		if (at[i].kind == LAG_NSYS_GROUP_START && !depth++) {
			open = &at[i];
			open->group_id = w->next_id++;
			n_ops = 0;
		} else if (at[i].kind == LAG_NSYS_OP && at[i].has_comm) {
			at[i].op_id = w->next_id++;
			at[i].group_id = open ? open->group_id : LAG_NONE;
			n_ops++;
		} else if (at[i].kind == LAG_NSYS_GROUP_END && depth && !--depth) {
			at[i].group_id = open->group_id;
			if (n_ops)
				st = add_group(w, open, &at[i], n_ops, err);
			open = NULL;
		}
	}
	return st;
}

/* The annotated call or end of a group that a kernel was launched in; NULL when there is none. */
static const struct lag_nsys_call *call_around(const struct work *w, int64_t tid, int64_t at_ns)
{
	const struct lag_vec *v = &w->p->calls;
	size_t lo = 0, hi = v->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct lag_nsys_call *c = &LAG_VEC_AT(v, struct lag_nsys_call, mid);

		if (c->tid < tid || (c->tid == tid && c->start_ns <= at_ns)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (size_t steps = 0; lo > 0 && steps < 16; steps++) {
		const struct lag_nsys_call *c = &LAG_VEC_AT(v, struct lag_nsys_call, --lo);

		if (c->tid != tid)
			break;
		if (c->end_ns >= at_ns && (c->op_id != LAG_NONE || c->group_id != LAG_NONE))
			return c;
	}
	return NULL;
}

/* The type that a kernel reduces, from its name: "..._Sum_bf16_RING_LL". */
static int64_t type_in(const char *name)
{
	static const struct {
		const char *token;
		enum lag_datatype type;
	} types[] = { { "f32", LAG_DT_FLOAT32 },   { "float", LAG_DT_FLOAT32 },
		      { "f16", LAG_DT_FLOAT16 },   { "half", LAG_DT_FLOAT16 },
		      { "bf16", LAG_DT_BFLOAT16 }, { "bfloat16", LAG_DT_BFLOAT16 },
		      { "f64", LAG_DT_FLOAT64 },   { "double", LAG_DT_FLOAT64 },
		      { "i32", LAG_DT_INT32 },     { "u32", LAG_DT_UINT32 },
		      { "i64", LAG_DT_INT64 },     { "u64", LAG_DT_UINT64 } };

	for (const char *at = strchr(name, '_'); at; at = strchr(at, '_')) {
		size_t n;

		at++;
		n = strcspn(at, "_(");
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			if (n == strlen(types[i].token) && memcmp(at, types[i].token, n) == 0)
				return types[i].type;
		}
	}
	return LAG_DT_INT8;
}

static enum lag_status tie(struct work *w, int64_t id, int64_t correlation, struct lag_err *err)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_external);
	rec.external.kind = OUR_EXTERNAL_KIND;
	rec.external.id = id;
	rec.external.correlation = correlation;
	return lag_part_add(&w->p->part, &rec, err);
}

static enum lag_status emit_call(struct work *w, const struct lag_nsys_call *call,
				 struct lag_err *err)
{
	int64_t type = call->datatype == LAG_NONE ? LAG_DT_INT8 : call->datatype;
	int64_t size = (int64_t)lag_datatype_size(type);
	struct comm *comm = comm_of(w, call->comm, false, LAG_NONE);
	struct lag_record rec;

	if (!comm)
		return too_many(err);
	if (call->kind == LAG_NSYS_INIT) {
		comm->n_ranks = lag_or(call->n_ranks, comm->n_ranks);
		comm->comm_rank = lag_or(call->comm_rank, comm->comm_rank);
		comm->device = lag_or(call->device, comm->device);
		return LAG_OK;
	}
	/* NCCL says how many bytes; what it moves only is bytes to it anyway. */
	if (call->bytes != LAG_NONE && call->bytes % size)
		type = LAG_DT_INT8;
	size = (int64_t)lag_datatype_size(type);
	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = call->start_ns;
	rec.op.leave_ns = call->end_ns;
	rec.op.tid = call->tid;
	rec.op.op_id = call->op_id;
	rec.op.comm_id = comm->comm_id;
	rec.op.func = call->func;
	rec.op.count = call->bytes == LAG_NONE ? LAG_NONE : call->bytes / size;
	rec.op.datatype = call->bytes == LAG_NONE ? LAG_NONE : type;
	rec.op.peer = call->peer;
	rec.op.group_id = call->group_id;
	rec.op.sources = LAG_OP_FROM_NVTX;
	return lag_part_add(&w->p->part, &rec, err);
}

/* ---- kernels known by their names ---- */

static enum lag_status emit_named(struct work *w, const struct lag_nsys_carrier *c,
				  const struct lag_nsys_launch *launch, struct lag_err *err)
{
	bool several = w->p->devices.n > 1;
	struct comm *comm = comm_of(w, several ? (uint64_t)c->device + 1 : 0, true, c->device);
	struct lag_record rec;
	enum lag_status st;

	if (!comm)
		return too_many(err);
	w->n_assumed++;
	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = launch ? launch->enter_ns : c->start_ns;
	rec.op.leave_ns = launch ? launch->leave_ns : c->start_ns;
	rec.op.tid = launch ? launch->tid : 0;
	rec.op.op_id = w->next_id++;
	rec.op.comm_id = comm->comm_id;
	rec.op.func = lag_nsys_name_at(w->s, c->name)->func;
	rec.op.stream = c->stream;
	rec.op.sources = LAG_OP_FROM_NAME;
	st = lag_part_add(&w->p->part, &rec, err);
	if (!lag_failed(st) && c->correlation)
		st = tie(w, rec.op.op_id, c->correlation, err);
	return st;
}

static enum lag_status emit_carriers(struct work *w, struct lag_err *err)
{
	struct lag_nsys_proc *p = w->p;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < p->carriers.n && !lag_failed(st); i++) {
		const struct lag_nsys_carrier *c =
			&LAG_VEC_AT(&p->carriers, struct lag_nsys_carrier, i);
		const struct lag_nsys_launch *launch = NULL;
		const struct lag_nsys_call *call = NULL;
		uint64_t at = 0;

		if (c->correlation && lag_map_find(&p->wanted, (uint64_t)c->correlation, &at) && at)
			launch = &LAG_VEC_AT(&p->launches, struct lag_nsys_launch, at - 1);
		if (launch && p->has_payloads)
			call = call_around(w, launch->tid, launch->enter_ns);
		if (!call) {
			st = emit_named(w, c, launch, err);
			continue;
		}
		/* A call outside groups is told apart by its kernel, which says what it reduces. */
		if (call->kind == LAG_NSYS_OP) {
			struct lag_nsys_call *calls = p->calls.items;

			calls[call - calls].datatype = type_in(lag_strtab_get(
				&w->s->pool->strings, lag_nsys_name_at(w->s, c->name)->id));
		}
		st = tie(w, call->group_id != LAG_NONE ? call->group_id : call->op_id,
			 c->correlation, err);
	}
	return st;
}

/* ---- communicators ---- */

static enum lag_status emit_comm(struct work *w, const struct comm *c, struct lag_err *err)
{
	static const char all[] = "assumed: all ranks";
	/* Of the same recipe as the Kineto importer's: one run may have both. */
	struct lag_record rec;
	enum lag_status st = LAG_OK;

	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.comm_id = c->comm_id;
	rec.comm.hash = c->assumed ? lag_group_hash("", "", c->id) : (int64_t)lag_hash_u64(c->id);
	rec.comm.nccl_hash = c->assumed ? LAG_NONE : (int64_t)c->id;
	rec.comm.n_ranks = c->n_ranks;
	rec.comm.comm_rank = c->comm_rank;
	rec.comm.device = c->device;
	if (c->comm_rank != LAG_NONE && c->n_ranks > w->p->world_ranks) {
		w->p->world_comm = c->id;
		w->p->world_ranks = c->n_ranks;
		w->p->world_rank = c->comm_rank;
	}
	if (c->assumed)
		st = lag_nsys_string(w->s, all, sizeof(all) - 1, &rec.comm.description, err);
	return lag_failed(st) ? st : lag_part_add(&w->p->part, &rec, err);
}

static enum lag_status emit_all(struct work *w, struct lag_err *err)
{
	struct lag_nsys_proc *p = w->p;
	enum lag_status st = number_calls(w, err);

	if (!lag_failed(st))
		st = emit_carriers(w, err);
	for (size_t i = 0; i < p->calls.n && p->has_payloads && !lag_failed(st); i++) {
		const struct lag_nsys_call *call = &LAG_VEC_AT(&p->calls, struct lag_nsys_call, i);

		if (call->has_comm && (call->kind == LAG_NSYS_OP || call->kind == LAG_NSYS_INIT))
			st = emit_call(w, call, err);
	}
	for (size_t i = 0; i < w->comms.n && !lag_failed(st); i++)
		st = emit_comm(w, &LAG_VEC_AT(&w->comms, struct comm, i), err);
	if (w->n_assumed) {
		lag_part_note(
			&p->part,
			"%llu %s without a communicator: taken as one of "
			"all ranks, numbered by their order (nsys export --include-blobs=true "
			"keeps what NCCL says)",
			(unsigned long long)w->n_assumed,
			LAG_PLURAL(w->n_assumed, "communication kernel", "communication kernels"));
	}
	return st;
}

enum lag_status lag_nsys_add_ops(struct lag_nsys *s, struct lag_nsys_proc *p, struct lag_err *err)
{
	struct work w = { .s = s, .p = p, .comms = LAG_VEC_INIT(struct comm), .next_id = 1 };
	enum lag_status st;

	w.comms.max = 65536;
	if (p->calls.n)
		qsort(p->calls.items, p->calls.n, sizeof(struct lag_nsys_call), by_thread);
	if (p->carriers.n)
		qsort(p->carriers.items, p->carriers.n, sizeof(struct lag_nsys_carrier), by_start);
	st = emit_all(&w, err);
	lag_vec_release(&w.comms);
	lag_map_release(&w.comm_of);
	return st;
}

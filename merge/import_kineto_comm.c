/* SPDX-License-Identifier: Apache-2.0 */
/* Communication in a Kineto trace. What a kernel says itself comes first, then the CPU event around its
 * launch call (record_param_comms, or the "nccl:..." annotation), then the kernel's name. Without any
 * word on the process group, one communicator of all ranks is assumed, and said so. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "merge/kineto.h"

struct comm {
	int64_t comm_id, size, own_rank;
	uint32_t name, description, ranks;
	int64_t device; /* assumed communicators of a process with several devices */
	bool assumed;
	struct lag_vec members;  /* int64_t job rank by communicator rank; empty = not known */
	struct lag_map peer_seq; /* (peer, direction) -> next number */
	int64_t next_seq, last_source_seq;
	bool ordered; /* the source's own numbers rise */
};

struct op {
	struct lag_kineto_carrier carrier;
	struct lag_kineto_coll coll;
	int64_t start_ns, correlation, stream, device;
	int64_t enter_ns, leave_ns, tid;
	enum lag_func func;
	bool from_name;
	size_t comm;
};

struct work {
	struct lag_kineto *k;
	struct lag_vec ops;    /* struct op */
	struct lag_vec comms;  /* struct comm */
	struct lag_map launch; /* correlation -> 1 + api index, of those wanted; 0 = wanted */
	bool several_devices;
};

static const char *text(const struct work *w, uint32_t id)
{
	return lag_strtab_get(&w->k->pool->strings, id);
}

enum lag_status lag_kineto_keep_coll(struct lag_kineto *k, struct lag_vec *to, struct lag_err *err)
{
	static const struct {
		enum lag_kineto_text from;
		size_t to;
	} texts[] = { { LAG_KT_COLLECTIVE, offsetof(struct lag_kineto_coll, name) },
		      { LAG_KT_DTYPE, offsetof(struct lag_kineto_coll, dtype) },
		      { LAG_KT_GROUP_NAME, offsetof(struct lag_kineto_coll, group) },
		      { LAG_KT_GROUP_TEXT, offsetof(struct lag_kineto_coll, description) },
		      { LAG_KT_GROUP_RANKS, offsetof(struct lag_kineto_coll, ranks) } };
	const struct lag_kineto_event *e = &k->event;
	struct lag_kineto_coll *c = lag_vec_push(to);
	const char *split = lag_buf_text(&e->text[LAG_KT_IN_SPLIT]);
	bool annotation = e->cat == LAG_KC_ANNOTATION;

	if (!c)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
	*c = (struct lag_kineto_coll){ .tid = e->tid,
				       .start_ns = e->ts_ns,
				       .end_ns = e->dur_ns > 0 ? e->ts_ns + e->dur_ns : e->ts_ns,
				       .external = e->i[LAG_KI_EXTERNAL],
				       .in = e->i[LAG_KI_IN_ELEMENTS],
				       .out = e->i[LAG_KI_OUT_ELEMENTS],
				       .size = e->i[LAG_KI_GROUP_SIZE],
				       .src = e->i[LAG_KI_SRC_RANK],
				       .dst = e->i[LAG_KI_DST_RANK],
				       .seq = e->i[LAG_KI_SEQ],
				       .comms_id = e->i[LAG_KI_COMMS_ID],
				       .split = split[0] && strcmp(split, "[]") != 0 };
	if (annotation)
		c->in = e->i[LAG_KI_INPUT_ELEMENTS];
	c->has_group = e->text[LAG_KT_GROUP_NAME].n || e->text[LAG_KT_GROUP_RANKS].n;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		enum lag_kineto_text from = texts[i].from;
		const struct lag_buf *buf;
		enum lag_status st;

		if (annotation && from == LAG_KT_COLLECTIVE)
			from = LAG_KT_NAME;
		else if (annotation && from == LAG_KT_DTYPE)
			from = LAG_KT_INPUT_TYPE;
		buf = &e->text[from];
		st = lag_kineto_string(k, lag_buf_text(buf), buf->n,
				       (uint32_t *)((char *)c + texts[i].to), err);
		if (lag_failed(st))
			return st;
	}
	return LAG_OK;
}

int64_t lag_kineto_datatype(const char *name)
{
	static const struct {
		const char *name;
		enum lag_datatype type;
	} types[] = { { "float", LAG_DT_FLOAT32 },
		      { "double", LAG_DT_FLOAT64 },
		      { "half", LAG_DT_FLOAT16 },
		      { "bfloat16", LAG_DT_BFLOAT16 },
		      { "int", LAG_DT_INT32 },
		      { "long", LAG_DT_INT64 },
		      { "long int", LAG_DT_INT64 },
		      { "char", LAG_DT_INT8 },
		      { "signed char", LAG_DT_INT8 },
		      { "byte", LAG_DT_UINT8 },
		      { "unsigned char", LAG_DT_UINT8 },
		      { "bool", LAG_DT_UINT8 },
		      { "float8_e4m3fn", LAG_DT_FLOAT8_E4M3 },
		      { "float8_e5m2", LAG_DT_FLOAT8_E5M2 } };

	if (strncmp(name, "c10::", 5) == 0)
		name += 5;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(types[i].name, name) == 0)
			return types[i].type;
	}
	return LAG_NONE;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct lag_kineto_coll *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* The innermost CPU event of thread tid around at_ns of which the predicate holds. Events nest, and few
 * deep, so a short look back from the last that starts before at_ns is enough. */
static const struct lag_kineto_coll *around(const struct work *w, int64_t tid, int64_t at_ns,
					    bool (*good)(const struct work *w,
							 const struct lag_kineto_coll *c))
{
	const struct lag_vec *v = &w->k->cpu_colls;
	size_t lo = 0, hi = v->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct lag_kineto_coll *c = &LAG_VEC_AT(v, struct lag_kineto_coll, mid);

		if (c->tid < tid || (c->tid == tid && c->start_ns <= at_ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t steps = 0; lo > 0 && steps < 64; steps++) {
		const struct lag_kineto_coll *c = &LAG_VEC_AT(v, struct lag_kineto_coll, --lo);

		if (c->tid != tid)
			break;
		if (c->end_ns >= at_ns && good(w, c))
			return c;
	}
	return NULL;
}

static bool names_group(const struct work *w, const struct lag_kineto_coll *c)
{
	(void)w;
	return c->has_group;
}

static bool names_func(const struct work *w, const struct lag_kineto_coll *c)
{
	const char *name = text(w, c->name);

	return lag_func_parse(name, strlen(name)) != LAG_FUNC_UNKNOWN;
}

/* Launch calls of the kernels that carry communication, by correlation; the first of equals. */
static enum lag_status find_launches(struct work *w, struct lag_err *err)
{
	const struct lag_vec *api = &w->k->part.records[LAG_REC_api];
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < w->ops.n && !lag_failed(st); i++) {
		int64_t c = LAG_VEC_AT(&w->ops, struct op, i).correlation;

		if (c)
			st = lag_map_set(&w->launch, (uint64_t)c, 0);
	}
	for (size_t i = 0; i < api->n && !lag_failed(st); i++) {
		uint64_t c = (uint64_t)LAG_VEC_AT(api, struct lag_rec_api, i).correlation, seen;

		if (lag_map_find(&w->launch, c, &seen) && !seen)
			st = lag_map_set(&w->launch, c, i + 1);
	}
	return lag_failed(st) ? lag_err_set(err, st, "no memory for more launch calls") : LAG_OK;
}

static void set_call(struct work *w, struct op *op)
{
	const struct lag_rec_api *api;
	uint64_t at = 0;

	op->enter_ns = op->leave_ns = op->start_ns;
	op->tid = 0;
	if (!op->correlation || !lag_map_find(&w->launch, (uint64_t)op->correlation, &at) || !at)
		return;
	api = &LAG_PART_AT(&w->k->part, api, at - 1);
	op->enter_ns = api->start_ns;
	op->leave_ns = api->end_ns;
	op->tid = api->tid;
}

/* Name of the kernel, "" for copies. */
static const char *carrier_name(const struct work *w, const struct op *op)
{
	if (op->carrier.kind != LAG_REC_kernel)
		return "";
	return text(w, (uint32_t)LAG_PART_AT(&w->k->part, kernel, op->carrier.index).name);
}

static void set_coll(struct work *w, struct op *op)
{
	const struct lag_kineto_coll *c = NULL, *named = NULL;
	const char *kernel = carrier_name(w, op);
	const char *name;

	if (op->carrier.coll >= 0)
		c = &LAG_VEC_AT(&w->k->colls, struct lag_kineto_coll, (size_t)op->carrier.coll);
	if (op->tid && !c)
		c = around(w, op->tid, op->enter_ns, names_group);
	if (op->tid && !c)
		named = c = around(w, op->tid, op->enter_ns, names_func);
	op->coll = c ? *c
		     : (struct lag_kineto_coll){ .in = LAG_NONE,
						 .out = LAG_NONE,
						 .size = LAG_NONE,
						 .src = LAG_NONE,
						 .dst = LAG_NONE,
						 .seq = LAG_NONE,
						 .comms_id = LAG_NONE };
	name = text(w, op->coll.name);
	op->func = lag_func_parse(name, strlen(name));
	if (op->func == LAG_FUNC_UNKNOWN)
		op->func = lag_func_parse(kernel, strcspn(kernel, "("));
	op->from_name = !c || (named && !named->has_group);
}

static enum lag_status parse_members(struct comm *comm, const char *list, struct lag_err *err)
{
	const char *p = list;

	/* PyTorch shortens long lists with "...". */
	if (strstr(list, ".."))
		return LAG_OK;
	while (*p) {
		char *end;
		int64_t *slot;

		if (*p < '0' || *p > '9') {
			p++;
			continue;
		}
		slot = lag_vec_push(&comm->members);
		if (!slot)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more members");
		*slot = strtoll(p, &end, 10);
		p = end;
	}
	return LAG_OK;
}

static enum lag_status fill_members(struct work *w, struct comm *comm, struct lag_err *err)
{
	comm->members.max = 1u << 20;
	if (comm->ranks) {
		enum lag_status st = parse_members(comm, text(w, comm->ranks), err);

		if (lag_failed(st))
			return st;
	}
	/* An empty list beside a group as large as the job is the default group. */
	if (comm->members.n || comm->assumed || comm->size <= 0 || comm->size != w->k->world_size ||
	    comm->size > 1 << 20)
		return LAG_OK;
	for (int64_t i = 0; i < comm->size; i++) {
		int64_t *slot = lag_vec_push(&comm->members);

		if (!slot)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more members");
		*slot = i;
	}
	return LAG_OK;
}

/* The list of ranks that distributedInfo gives for a group by its name. */
static void complete_group(const struct work *w, struct comm *comm)
{
	const struct lag_vec *groups = &w->k->groups;

	for (size_t i = 0; i < groups->n; i++) {
		const struct lag_kineto_group *g = &LAG_VEC_AT(groups, struct lag_kineto_group, i);

		if (g->name != comm->name)
			continue;
		if (comm->size == LAG_NONE)
			comm->size = g->size;
		if (!comm->description)
			comm->description = g->description;
		if (!comm->ranks || strstr(text(w, comm->ranks), ".."))
			comm->ranks = g->ranks ? g->ranks : comm->ranks;
		return;
	}
}

static enum lag_status add_comm(struct work *w, const struct op *op, bool assumed,
				struct lag_err *err)
{
	const struct lag_kineto *k = w->k;
	struct comm *comm = lag_vec_push(&w->comms);
	enum lag_status st;

	if (!comm)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more communicators");
	*comm = (struct comm){ .comm_id = (int64_t)w->comms.n,
			       .size = op->coll.size,
			       .own_rank = LAG_NONE,
			       .name = op->coll.group,
			       .description = op->coll.description,
			       .ranks = op->coll.ranks,
			       .device = op->device,
			       .assumed = assumed,
			       .members = LAG_VEC_INIT(int64_t),
			       .last_source_seq = LAG_NONE,
			       .ordered = true };
	if (assumed) {
		comm->size = w->several_devices ? LAG_NONE : k->world_size;
		comm->own_rank = w->several_devices ? LAG_NONE : k->rank;
		return LAG_OK;
	}
	complete_group(w, comm);
	st = fill_members(w, comm, err);
	if (comm->size == LAG_NONE && comm->members.n)
		comm->size = (int64_t)comm->members.n;
	for (size_t i = 0; i < comm->members.n; i++) {
		if (LAG_VEC_AT(&comm->members, int64_t, i) == k->rank)
			comm->own_rank = (int64_t)i;
	}
	return st;
}

static enum lag_status set_comm(struct work *w, struct op *op, struct lag_err *err)
{
	bool assumed = !op->coll.has_group;

	for (op->comm = 0; op->comm < w->comms.n; op->comm++) {
		const struct comm *c = &LAG_VEC_AT(&w->comms, struct comm, op->comm);

		if (c->assumed != assumed)
			continue;
		if (assumed ? !w->several_devices || c->device == op->device
			    : c->name == op->coll.group &&
				      (c->ranks == op->coll.ranks || !op->coll.ranks))
			return LAG_OK;
	}
	return add_comm(w, op, assumed, err);
}

/* Kineto's ranks are the group's in some versions, the job's in others. */
static int64_t peer_of(const struct comm *comm, int64_t rank)
{
	if (rank < 0)
		return LAG_NONE;
	if (rank != comm->own_rank && (comm->size == LAG_NONE || rank < comm->size))
		return rank;
	for (size_t i = 0; i < comm->members.n; i++) {
		if (LAG_VEC_AT(&comm->members, int64_t, i) == rank)
			return (int64_t)i;
	}
	return LAG_NONE;
}

/* The call's own argument: reduce-scatter counts what it receives, all-to-all what each peer gets. */
static int64_t count_of(const struct op *op, const struct comm *comm)
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

static enum lag_status seq_of(struct op *op, struct comm *comm, int64_t peer, int64_t *seq,
			      struct lag_err *err)
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
	const struct op *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Collects the ops, in the order in which the GPU ran them. */
static enum lag_status collect(struct work *w, struct lag_err *err)
{
	struct lag_kineto *k = w->k;

	for (size_t i = 0; i < k->carriers.n; i++) {
		struct lag_kineto_carrier *c =
			&LAG_VEC_AT(&k->carriers, struct lag_kineto_carrier, i);
		struct op *op = lag_vec_push(&w->ops);

		if (!op)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
		*op = (struct op){ .carrier = *c };
		if (c->kind == LAG_REC_kernel) {
			const struct lag_rec_kernel *r = &LAG_PART_AT(&k->part, kernel, c->index);

			op->start_ns = r->start_ns;
			op->correlation = r->correlation;
			op->stream = r->stream;
			op->device = r->device;
		} else {
			const struct lag_rec_memcpy *r = &LAG_PART_AT(&k->part, memcpy, c->index);

			op->start_ns = r->start_ns;
			op->correlation = r->correlation;
			op->stream = r->stream;
			op->device = r->device;
		}
		w->several_devices |= op->device != LAG_VEC_AT(&w->ops, struct op, 0).device;
	}
	qsort(w->ops.items, w->ops.n, sizeof(struct op), by_start);
	return LAG_OK;
}

static enum lag_status emit_comm(struct work *w, const struct comm *comm, struct lag_err *err)
{
	static const char assumed[] = "assumed: all ranks";
	const char *name = text(w, comm->name), *ranks = text(w, comm->ranks);
	struct lag_record rec;
	uint32_t id = comm->description;
	enum lag_status st = LAG_OK;

	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.comm_id = comm->comm_id;
	rec.comm.hash = (int64_t)lag_hash_pair(
		lag_hash_pair(lag_hash_bytes(name, strlen(name)),
			      lag_hash_bytes(ranks, strlen(ranks))),
		comm->assumed && w->several_devices ? (uint64_t)comm->device + 1 : 0);
	rec.comm.n_ranks = comm->size;
	rec.comm.comm_rank = comm->own_rank;
	rec.comm.device = comm->device;
	rec.comm.name = comm->name;
	if (comm->assumed)
		st = lag_kineto_string(w->k, assumed, sizeof(assumed) - 1, &id, err);
	rec.comm.description = id;
	if (!lag_failed(st))
		st = lag_part_add(&w->k->part, &rec, err);
	for (size_t i = 0; i < comm->members.n && !lag_failed(st); i++) {
		lag_record_init(&rec, LAG_REC_comm_member);
		rec.comm_member.comm_id = comm->comm_id;
		rec.comm_member.comm_rank = (int64_t)i;
		rec.comm_member.rank = LAG_VEC_AT(&comm->members, int64_t, i);
		st = lag_part_add(&w->k->part, &rec, err);
	}
	return st;
}

static enum lag_status emit_op(struct work *w, struct op *op, int64_t op_id, struct lag_err *err)
{
	struct comm *comm = &LAG_VEC_AT(&w->comms, struct comm, op->comm);
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = op->enter_ns;
	rec.op.leave_ns = op->leave_ns;
	rec.op.tid = op->tid;
	rec.op.op_id = op_id;
	rec.op.comm_id = comm->comm_id;
	rec.op.func = op->func;
	if (op->func == LAG_FUNC_SEND)
		rec.op.peer = peer_of(comm, op->coll.dst);
	else if (op->func == LAG_FUNC_RECV)
		rec.op.peer = peer_of(comm, op->coll.src);
	rec.op.count = count_of(op, comm);
	rec.op.datatype = lag_kineto_datatype(text(w, op->coll.dtype));
	rec.op.stream = op->stream;
	rec.op.sources = op->from_name ? LAG_OP_FROM_NAME : LAG_OP_FROM_META;
	st = seq_of(op, comm, rec.op.peer, &rec.op.seq, err);
	if (op->carrier.kind == LAG_REC_kernel)
		LAG_PART_AT(&w->k->part, kernel, op->carrier.index).op_id = op_id;
	else
		LAG_PART_AT(&w->k->part, memcpy, op->carrier.index).op_id = op_id;
	return lag_failed(st) ? st : lag_part_add(&w->k->part, &rec, err);
}

static enum lag_status resolve(struct work *w, struct lag_err *err)
{
	enum lag_status st = find_launches(w, err);

	for (size_t i = 0; i < w->ops.n && !lag_failed(st); i++) {
		struct op *op = &LAG_VEC_AT(&w->ops, struct op, i);
		struct comm *comm;

		set_call(w, op);
		set_coll(w, op);
		st = set_comm(w, op, err);
		if (lag_failed(st) || op->func == LAG_FUNC_SEND || op->func == LAG_FUNC_RECV)
			continue;
		/* The source's own numbers serve only where every operation has one and they rise. */
		comm = &LAG_VEC_AT(&w->comms, struct comm, op->comm);
		comm->ordered &= op->coll.seq > comm->last_source_seq;
		comm->last_source_seq = op->coll.seq;
	}
	return st;
}

static enum lag_status emit(struct work *w, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	size_t assumed = 0;

	for (size_t i = 0; i < w->comms.n && !lag_failed(st); i++)
		st = emit_comm(w, &LAG_VEC_AT(&w->comms, struct comm, i), err);
	for (size_t i = 0; i < w->ops.n && !lag_failed(st); i++) {
		struct op *op = &LAG_VEC_AT(&w->ops, struct op, i);

		assumed += LAG_VEC_AT(&w->comms, struct comm, op->comm).assumed;
		st = emit_op(w, op, (int64_t)i + 1, err);
	}
	if (assumed)
		lag_part_note(&w->k->part,
			      "%zu communication kernels without a process group: taken as one "
			      "communicator of all ranks, numbered by their order",
			      assumed);
	return st;
}

enum lag_status lag_kineto_add_ops(struct lag_kineto *k, struct lag_err *err)
{
	struct work w = { .k = k,
			  .ops = LAG_VEC_INIT(struct op),
			  .comms = LAG_VEC_INIT(struct comm) };
	enum lag_status st;

	if (!k->carriers.n)
		return LAG_OK;
	w.comms.max = 65536;
	if (k->cpu_colls.n)
		qsort(k->cpu_colls.items, k->cpu_colls.n, sizeof(struct lag_kineto_coll),
		      by_thread_and_time);
	st = collect(&w, err);
	if (!lag_failed(st))
		st = resolve(&w, err);
	if (!lag_failed(st))
		st = emit(&w, err);
	for (size_t i = 0; i < w.comms.n; i++) {
		lag_vec_release(&LAG_VEC_AT(&w.comms, struct comm, i).members);
		lag_map_release(&LAG_VEC_AT(&w.comms, struct comm, i).peer_seq);
	}
	lag_vec_release(&w.ops);
	lag_vec_release(&w.comms);
	lag_map_release(&w.launch);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of a Kineto trace: process groups, known by name and rank list. Without any word on the
 * group, one communicator of all ranks is assumed, and said so; where such operations run on several
 * streams, each stream's is a group of its own (PyTorch gives each group a stream), and of whom, nothing
 * tells. */
#include <stdlib.h>
#include <string.h>

#include "merge/kineto_comm.h"

static enum lag_status parse_members(struct lag_kineto_comm *comm, const char *list,
				     struct lag_err *err)
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

static enum lag_status fill_members(struct lag_kineto_work *w, struct lag_kineto_comm *comm,
				    struct lag_err *err)
{
	comm->members.max = 1u << 20;
	if (comm->ranks) {
		enum lag_status st = parse_members(comm, lag_kineto_text(w, comm->ranks), err);

		if (lag_failed(st))
			return st;
	}
	if (comm->members.n || comm->assumed || comm->size <= 0 || comm->size > 1 << 20)
		return LAG_OK;
	/* Long lists are cut short, but evenly spaced ranks are described; a group without a list that
	 * is as large as the job is the default group. */
	if (comm->first_rank < 0 || comm->rank_stride <= 0 || comm->rank_stride > 1 << 20) {
		if (comm->size != w->k->world_size)
			return LAG_OK;
		comm->first_rank = 0;
		comm->rank_stride = 1;
	}
	for (int64_t i = 0; i < comm->size; i++) {
		int64_t *slot = lag_vec_push(&comm->members);

		if (!slot)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more members");
		*slot = comm->first_rank + i * comm->rank_stride;
	}
	return LAG_OK;
}

/* The list of ranks that distributedInfo gives for a group by its name. */
static void complete_group(const struct lag_kineto_work *w, struct lag_kineto_comm *comm)
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
		if (!comm->ranks || strstr(lag_kineto_text(w, comm->ranks), ".."))
			comm->ranks = g->ranks ? g->ranks : comm->ranks;
		return;
	}
}

static enum lag_status add_comm(struct lag_kineto_work *w, const struct lag_kineto_op *op,
				bool assumed, struct lag_err *err)
{
	const struct lag_kineto *k = w->k;
	struct lag_kineto_comm *comm = lag_vec_push(&w->comms);
	enum lag_status st;

	if (!comm)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more communicators");
	*comm = (struct lag_kineto_comm){ .comm_id = (int64_t)w->comms.n,
					  .size = op->coll.size,
					  .own_rank = LAG_NONE,
					  .name = op->coll.group,
					  .description = op->coll.description,
					  .ranks = op->coll.ranks,
					  .device = op->device,
					  .first_rank = op->coll.first_rank,
					  .rank_stride = op->coll.rank_stride,
					  .assumed = assumed,
					  .members = LAG_VEC_INIT(int64_t),
					  .last_source_seq = LAG_NONE,
					  .ordered = true };
	if (assumed) {
		comm->stream = op->stream;
		if (!w->several_devices && !w->several_streams) {
			comm->size = k->world_size;
			comm->own_rank = k->p->rank;
		}
		return LAG_OK;
	}
	complete_group(w, comm);
	st = fill_members(w, comm, err);
	if (comm->size == LAG_NONE && comm->members.n)
		comm->size = (int64_t)comm->members.n;
	for (size_t i = 0; i < comm->members.n; i++) {
		if (LAG_VEC_AT(&comm->members, int64_t, i) == k->p->rank)
			comm->own_rank = (int64_t)i;
	}
	return st;
}

static uint64_t group_key(uint32_t name, uint32_t ranks)
{
	return (uint64_t)name << 32 | ranks;
}

/* The first one that a name and list stand for is meant by them. */
static enum lag_status name_comm(struct lag_kineto_work *w, uint32_t name, uint32_t ranks,
				 uint64_t comm)
{
	uint64_t key = group_key(name, ranks), known;

	return lag_map_find(&w->by_group, key, &known) ? LAG_OK
						       : lag_map_set(&w->by_group, key, comm);
}

static enum lag_status set_group(struct lag_kineto_work *w, struct lag_kineto_op *op,
				 struct lag_err *err)
{
	uint32_t name = op->coll.group, ranks = op->coll.ranks;
	const struct lag_kineto_comm *c;
	uint64_t at = w->comms.n;
	enum lag_status st;

	op->comm = w->comms.n;
	if (lag_map_find(&w->by_group, group_key(name, ranks), &at)) {
		op->comm = (size_t)at;
		return LAG_OK;
	}
	st = add_comm(w, op, false, err);
	if (lag_failed(st))
		return st;
	c = &LAG_VEC_AT(&w->comms, struct lag_kineto_comm, op->comm);
	/* As this operation says it, as the header does, and by the name alone. */
	if (lag_failed(name_comm(w, name, ranks, at)) ||
	    lag_failed(name_comm(w, name, c->ranks, at)) || lag_failed(name_comm(w, name, 0, at)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more communicators");
	return LAG_OK;
}

static enum lag_status set_assumed(struct lag_kineto_work *w, struct lag_kineto_op *op,
				   struct lag_err *err)
{
	int64_t device = w->several_devices ? op->device : 0;
	int64_t stream = w->several_streams ? op->stream : 0;
	uint64_t key = lag_hash_pair((uint64_t)device, (uint64_t)stream), at;

	/* The key is a hash: the next one is tried where somebody else has it. */
	for (; lag_map_find(&w->by_stream, key, &at); key++) {
		const struct lag_kineto_comm *c =
			&LAG_VEC_AT(&w->comms, struct lag_kineto_comm, at);

		op->comm = (size_t)at;
		if ((!w->several_devices || c->device == device) &&
		    (!w->several_streams || c->stream == stream))
			return LAG_OK;
	}
	op->comm = w->comms.n;
	if (lag_failed(lag_map_set(&w->by_stream, key, op->comm)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more communicators");
	return add_comm(w, op, true, err);
}

enum lag_status lag_kineto_set_comm(struct lag_kineto_work *w, struct lag_kineto_op *op,
				    struct lag_err *err)
{
	return op->coll.has_group ? set_group(w, op, err) : set_assumed(w, op, err);
}

/* PyTorch gives the peer as the job's rank; what is no member is taken as the group's. */
int64_t lag_kineto_peer(const struct lag_kineto_comm *comm, int64_t rank)
{
	for (size_t i = 0; i < comm->members.n; i++) {
		if (LAG_VEC_AT(&comm->members, int64_t, i) == rank)
			return (int64_t)i;
	}
	return rank >= 0 && (comm->size == LAG_NONE || rank < comm->size) ? rank : LAG_NONE;
}

int64_t lag_group_hash(const char *name, const char *ranks, uint64_t apart)
{
	return (int64_t)lag_hash_pair(lag_hash_pair(lag_hash_bytes(name, strlen(name)),
						    lag_hash_bytes(ranks, strlen(ranks))),
				      apart);
}

enum lag_status lag_kineto_emit_comm(struct lag_kineto_work *w, const struct lag_kineto_comm *comm,
				     struct lag_err *err)
{
	const char *name = lag_kineto_text(w, comm->name), *ranks = lag_kineto_text(w, comm->ranks);
	struct lag_record rec;
	uint32_t id = comm->description;
	uint64_t apart = 0;
	enum lag_status st = LAG_OK;

	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.comm_id = comm->comm_id;
	if (comm->assumed && w->several_devices)
		apart = (uint64_t)comm->device + 1;
	/* The same stream of another rank need not be the same group. */
	if (comm->assumed && w->several_streams) {
		apart = lag_hash_pair(lag_hash_pair(apart, (uint64_t)comm->stream),
				      (uint64_t)w->k->p->rank);
	}
	rec.comm.hash = lag_group_hash(name, ranks, apart);
	rec.comm.n_ranks = comm->size;
	rec.comm.comm_rank = comm->own_rank;
	rec.comm.device = comm->device;
	rec.comm.name = comm->name;
	if (comm->assumed) {
		st = lag_kineto_string(w->k,
				       w->several_streams ? LAG_SPAN("assumed: one group")
							  : LAG_SPAN("assumed: all ranks"),
				       &id, err);
	}
	rec.comm.description = id;
	if (!lag_failed(st))
		st = lag_part_add(&w->k->p->part, &rec, err);
	for (size_t i = 0; i < comm->members.n && !lag_failed(st); i++) {
		lag_record_init(&rec, LAG_REC_comm_member);
		rec.comm_member.comm_id = comm->comm_id;
		rec.comm_member.comm_rank = (int64_t)i;
		rec.comm_member.rank = LAG_VEC_AT(&comm->members, int64_t, i);
		st = lag_part_add(&w->k->p->part, &rec, err);
	}
	return st;
}

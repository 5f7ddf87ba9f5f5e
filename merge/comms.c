/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of all parts become one list: equal hashes are one communicator. Members are what
 * each process says about itself and what sources know about the others. */
#include <inttypes.h>
#include <stdlib.h>

#include "merge/state.h"

#define RANKS_MAX (INT64_C(1) << 20)

static uint64_t identity(const struct lag_rec_comm *c)
{
	if (c->hash != LAG_NONE && c->hash != 0)
		return lag_hash_pair(1, (uint64_t)c->hash);
	/* Sources without a hash: what they call it and how large it is. */
	return lag_hash_pair(lag_hash_pair(2, (uint64_t)c->name),
			     lag_hash_pair((uint64_t)c->description, (uint64_t)c->n_ranks));
}

static void keep(int64_t *field, int64_t value, int64_t unset)
{
	if (*field == unset)
		*field = value;
}

/* Where members of all communicators stand: by communicator and place, and (for who does not know its
 * place) by communicator and rank. */
struct member_index {
	struct lag_map by_place, by_rank;
};

static uint64_t member_key(size_t comm, int64_t number)
{
	return lag_hash_pair(comm, (uint64_t)number);
}

static struct lag_comm_member_row *member_at(struct lag_merge *m, size_t comm, size_t at)
{
	return &LAG_VEC_AT(&LAG_COMM_AT(m, comm)->members, struct lag_comm_member_row, at);
}

static bool find_rank(struct lag_merge *m, const struct member_index *index, size_t comm,
		      int64_t rank, uint64_t *at)
{
	return lag_map_find(&index->by_rank, member_key(comm, rank), at) &&
	       member_at(m, comm, *at)->rank == rank;
}

/* Row `at` is the rank's; of several the first is the one that is found by it. */
static enum lag_status note_rank(struct lag_merge *m, struct member_index *index, size_t comm,
				 size_t at)
{
	int64_t rank = member_at(m, comm, at)->rank;
	uint64_t known;

	if (rank == LAG_NONE || find_rank(m, index, comm, rank, &known))
		return LAG_OK;
	return lag_map_set(&index->by_rank, member_key(comm, rank), at);
}

static struct lag_comm_member_row *member_row(struct lag_merge *m, struct member_index *index,
					      size_t comm, int64_t comm_rank, int64_t rank)
{
	struct lag_vec *members = &LAG_COMM_AT(m, comm)->members;
	struct lag_comm_member_row *row;
	uint64_t key = member_key(comm, comm_rank), at;

	if (comm_rank == LAG_NONE ? find_rank(m, index, comm, rank, &at)
				  : lag_map_find(&index->by_place, key, &at))
		return member_at(m, comm, at);
	row = lag_vec_push(members);
	if (!row)
		return NULL;
	*row = (struct lag_comm_member_row){ comm_rank, rank, 0 };
	if (comm_rank != LAG_NONE && lag_failed(lag_map_set(&index->by_place, key, members->n - 1)))
		return NULL;
	return lag_failed(note_rank(m, index, comm, members->n - 1)) ? NULL : row;
}

static enum lag_status add_comm(struct lag_merge *m, struct lag_map *known, uint32_t proc,
				const struct lag_rec_comm *c)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	uint64_t key = identity(c), at = 0;
	struct lag_comm_row *row;
	enum lag_status st;

	if (!lag_map_find(known, key, &at)) {
		at = m->comms.n;
		row = lag_vec_push(&m->comms);
		if (!row)
			return LAG_ERR_SYSTEM;
		row->members = (struct lag_vec)LAG_VEC_INIT(struct lag_comm_member_row);
		row->hash = row->nccl_hash = row->n_ranks = LAG_NONE;
		st = lag_map_set(known, key, at);
		if (st != LAG_OK)
			return st;
	}
	row = LAG_COMM_AT(m, at);
	keep(&row->hash, c->hash, LAG_NONE);
	keep(&row->nccl_hash, c->nccl_hash, LAG_NONE);
	if (c->n_ranks > 0 && c->n_ranks <= RANKS_MAX)
		keep(&row->n_ranks, c->n_ranks, LAG_NONE);
	if (!row->name)
		row->name = (uint32_t)c->name;
	if (!row->description)
		row->description = (uint32_t)c->description;
	st = lag_map_set(&p->comm_of, (uint64_t)c->comm_id, at);
	if (st == LAG_OK && c->comm_rank != LAG_NONE && c->comm_rank < RANKS_MAX)
		st = lag_map_set(&p->comm_rank_of, (uint64_t)c->comm_id, (uint64_t)c->comm_rank);
	return st;
}

static size_t index_of(const struct lag_merge *m, size_t comm,
		       const struct lag_comm_member_row *row)
{
	return (size_t)(row - (struct lag_comm_member_row *)LAG_COMM_AT(m, comm)->members.items);
}

/* Every rank's place first, so that lists of members only fill in what is left. */
static enum lag_status add_own_places(struct lag_merge *m, struct member_index *index,
				      uint32_t proc)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, comm); i++) {
		const struct lag_rec_comm *c = &LAG_PART_AT(&p->part, comm, i);
		struct lag_comm_member_row *row;
		uint64_t at = 0, place = 0;

		if (!lag_map_find(&p->comm_of, (uint64_t)c->comm_id, &at) ||
		    !lag_map_find(&p->comm_rank_of, (uint64_t)c->comm_id, &place))
			continue;
		row = member_row(m, index, at, (int64_t)place, p->rank);
		if (!row)
			return LAG_ERR_SYSTEM;
		if (row->proc_ref && row->proc_ref != proc + 1) {
			lag_merge_find(m, 1, "communicator", LAG_ABOUT(p->rank, (int64_t)at, 1),
				       "ranks %" PRId64 " and %" PRId64
				       " both say that they are member %" PRIu64
				       " of one communicator",
				       row->rank, p->rank, place);
		}
		row->rank = p->rank;
		row->proc_ref = proc + 1;
		if (lag_failed(note_rank(m, index, at, index_of(m, at, row))))
			return LAG_ERR_SYSTEM;
	}
	return LAG_OK;
}

static enum lag_status add_listed(struct lag_merge *m, struct member_index *index, uint32_t proc)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, comm_member); i++) {
		const struct lag_rec_comm_member *c = &LAG_PART_AT(&p->part, comm_member, i);
		struct lag_comm_member_row *row;
		uint64_t at = 0;

		if (c->rank < 0 || c->rank >= RANKS_MAX || c->comm_rank < 0 ||
		    c->comm_rank >= RANKS_MAX ||
		    !lag_map_find(&p->comm_of, (uint64_t)c->comm_id, &at))
			continue;
		row = member_row(m, index, at, c->comm_rank, c->rank);
		if (!row)
			return LAG_ERR_SYSTEM;
		keep(&row->rank, c->rank, LAG_NONE);
		if (lag_failed(note_rank(m, index, at, index_of(m, at, row))))
			return LAG_ERR_SYSTEM;
		if (c->rank == p->rank && !row->proc_ref) {
			row->proc_ref = proc + 1;
			if (lag_failed(lag_map_set(&p->comm_rank_of, (uint64_t)c->comm_id,
						   (uint64_t)c->comm_rank)))
				return LAG_ERR_SYSTEM;
		}
	}
	return LAG_OK;
}

/* A process that knows the communicator but not its place in it. */
static enum lag_status add_unplaced(struct lag_merge *m, struct member_index *index, uint32_t proc)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, comm); i++) {
		const struct lag_rec_comm *c = &LAG_PART_AT(&p->part, comm, i);
		struct lag_comm_member_row *row;
		struct lag_comm_row *comm;
		uint64_t at = 0, place = 0;
		int64_t guess;

		if (!lag_map_find(&p->comm_of, (uint64_t)c->comm_id, &at) ||
		    lag_map_find(&p->comm_rank_of, (uint64_t)c->comm_id, &place))
			continue;
		comm = LAG_COMM_AT(m, at);
		/* In a communicator of the whole job members are numbered like ranks. */
		guess = comm->n_ranks == m->world_size ? p->rank : LAG_NONE;
		row = member_row(m, index, at, guess, p->rank);
		if (!row)
			return LAG_ERR_SYSTEM;
		if (row->proc_ref)
			continue;
		row->rank = p->rank;
		row->proc_ref = proc + 1;
	}
	return LAG_OK;
}

static int by_place(const void *left, const void *right)
{
	const struct lag_comm_member_row *a = left, *b = right;
	uint64_t x = (uint64_t)a->comm_rank, y = (uint64_t)b->comm_rank;

	/* LAG_NONE is the largest unsigned: unplaced members come last, by rank. */
	if (x != y)
		return x < y ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Places for members that nobody placed: the free numbers, in order of ranks. */
static void place_rest(struct lag_comm_row *comm)
{
	struct lag_comm_member_row *at = comm->members.items;
	int64_t next = 0;
	size_t placed = 0;

	if (!comm->members.n)
		return;
	qsort(at, comm->members.n, sizeof(*at), by_place);
	while (placed < comm->members.n && at[placed].comm_rank != LAG_NONE)
		placed++;
	for (size_t i = placed, seen = 0; i < comm->members.n; i++) {
		while (seen < placed && at[seen].comm_rank == next) {
			seen++;
			next++;
		}
		at[i].comm_rank = next++;
	}
	qsort(at, comm->members.n, sizeof(*at), by_place);
	/* Of a communicator that one rank alone knows, and not how large it is, others have no record. */
	if (comm->n_ranks == LAG_NONE ? comm->members.n > 1
				      : comm->n_ranks < (int64_t)comm->members.n)
		comm->n_ranks = (int64_t)comm->members.n;
}

static void find_parents(struct lag_merge *m, const struct lag_proc *p)
{
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, comm); i++) {
		const struct lag_rec_comm *c = &LAG_PART_AT(&p->part, comm, i);
		uint64_t at = 0, parent = 0;

		if (c->parent != LAG_NONE && lag_map_find(&p->comm_of, (uint64_t)c->comm_id, &at) &&
		    lag_map_find(&p->comm_of, (uint64_t)c->parent, &parent) && at != parent)
			LAG_COMM_AT(m, at)->parent_ref = (uint32_t)parent + 1;
	}
}

/* Operations on a communicator that no record describes get one that only this process knows. */
static enum lag_status add_undescribed(struct lag_merge *m, struct lag_map *known, uint32_t proc)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	enum lag_status st = LAG_OK;
	uint64_t at;

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, op) && st == LAG_OK; i++) {
		int64_t id = LAG_PART_AT(&p->part, op, i).comm_id;
		struct lag_record rec;

		if (lag_map_find(&p->comm_of, (uint64_t)id, &at))
			continue;
		lag_record_init(&rec, LAG_REC_comm);
		rec.comm.comm_id = id;
		rec.comm.hash = (int64_t)lag_hash_pair(lag_hash_pair(3, proc), (uint64_t)id);
		st = add_comm(m, known, proc, &rec.comm);
		if (st == LAG_OK)
			st = lag_part_add(&p->part, &rec, NULL);
	}
	return st;
}

static enum lag_status know_members(struct lag_merge *m, struct member_index *index, size_t comm)
{
	enum lag_status st = LAG_OK;

	for (size_t k = 0; k < LAG_COMM_AT(m, comm)->members.n && st == LAG_OK; k++) {
		st = lag_map_set(&index->by_place,
				 member_key(comm, member_at(m, comm, k)->comm_rank), k);
		if (st == LAG_OK)
			st = note_rank(m, index, comm, k);
	}
	return st;
}

/* Those of the trace that ranks are added to are known by what it says of them. */
static enum lag_status know_old(struct lag_merge *m, struct lag_map *known,
				struct member_index *index)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < m->old.n_comms && st == LAG_OK; i++) {
		const struct lag_comm_row *row = LAG_COMM_AT(m, i);
		struct lag_rec_comm c = { .hash = row->hash,
					  .name = row->name,
					  .description = row->description,
					  .n_ranks = row->n_ranks };

		st = lag_map_set(known, identity(&c), i);
		if (st == LAG_OK)
			st = know_members(m, index, i);
	}
	return st;
}

enum lag_status lag_merge_comms(struct lag_merge *m, struct lag_err *err)
{
	enum lag_status (*const passes[])(struct lag_merge *, struct member_index *,
					  uint32_t) = { add_own_places, add_listed, add_unplaced };
	struct member_index index = { 0 };
	struct lag_map known = { 0 };
	enum lag_status st = know_old(m, &known, &index);

	for (uint32_t i = m->old.n_procs; i < m->procs.n && st == LAG_OK; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		for (size_t c = 0; c < LAG_PART_COUNT(&p->part, comm) && !p->unused; c++) {
			st = add_comm(m, &known, i, &LAG_PART_AT(&p->part, comm, c));
			if (st != LAG_OK)
				break;
		}
		if (st == LAG_OK && !p->unused)
			st = add_undescribed(m, &known, i);
	}
	for (size_t pass = 0; pass < sizeof(passes) / sizeof(passes[0]); pass++) {
		for (uint32_t i = m->old.n_procs; i < m->procs.n && st == LAG_OK; i++) {
			if (!LAG_PROC_AT(m, i)->unused)
				st = passes[pass](m, &index, i);
		}
	}
	for (size_t i = m->old.n_procs; i < m->procs.n; i++) {
		if (!LAG_PROC_AT(m, i)->unused)
			find_parents(m, LAG_PROC_AT(m, i));
	}
	for (size_t i = 0; i < m->comms.n; i++)
		place_rest(LAG_COMM_AT(m, i));
	lag_map_release(&known);
	lag_map_release(&index.by_place);
	lag_map_release(&index.by_rank);
	if (st != LAG_OK)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for communicators");
	return LAG_OK;
}

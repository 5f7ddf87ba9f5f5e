/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators and their counters, in tables of fixed size without locks: read in every NCCL call,
 * written when one is made or ended. */
#include "schema/base/map.h"
#include "tracer/clock.h"
#include "tracer/nccl_internal.h"

#define N_COMMS 4096u /* powers of two */
#define N_PAIRS 65536u
#define GONE    ((uintptr_t)1) /* was used; probing goes on behind it */
#define FILLING ((uintptr_t)2)

static struct {
	struct lag_comm comms[N_COMMS];
	_Atomic int64_t next_id;

	struct {
		_Atomic uint64_t key;
		_Atomic uint64_t n;
	} pairs[N_PAIRS];
} table;

struct lag_comm *lag_comm_find(uintptr_t key)
{
	size_t slot = (size_t)lag_hash_u64(key);

	for (size_t i = 0; i < N_COMMS; i++, slot++) {
		struct lag_comm *comm = &table.comms[slot % N_COMMS];
		uintptr_t k = atomic_load_explicit(&comm->key, memory_order_acquire);

		if (k == key)
			return comm;
		if (!k)
			return NULL;
	}
	return NULL;
}

struct lag_comm *lag_comm_add(uintptr_t key, uint64_t hash, int64_t n_ranks, int64_t rank,
			      int64_t parent, const struct lag_nccl_real *real)
{
	size_t slot = (size_t)lag_hash_u64(key);

	for (size_t i = 0; i < N_COMMS; i++, slot++) {
		struct lag_comm *comm = &table.comms[slot % N_COMMS];
		uintptr_t free = 0;

		/* An entry that is gone is not used again: someone may still hold it. */
		if (!atomic_compare_exchange_strong(&comm->key, &free, FILLING))
			continue;
		comm->id = atomic_fetch_add(&table.next_id, 1);
		comm->hash = hash;
		comm->n_ranks = n_ranks;
		comm->rank = rank;
		comm->device = LAG_NONE;
		comm->parent = parent;
		comm->real = real;
		comm->created_ns = lag_clock_now();
		atomic_store_explicit(&comm->key, key, memory_order_release);
		return comm;
	}
	return NULL;
}

void lag_comm_forget(uintptr_t key)
{
	struct lag_comm *comm = lag_comm_find(key);

	if (comm)
		atomic_store_explicit(&comm->key, GONE, memory_order_release);
}

bool lag_comm_complete(struct lag_comm *comm)
{
	const struct lag_nccl_real *real = comm->real;
	ncclComm_t handle = (ncclComm_t)atomic_load(&comm->key); /* NOLINT: the key is the handle */
	bool news = false;
	int v;

	if (!real)
		return false;
	if (comm->n_ranks == LAG_NONE && real->ncclCommCount && !real->ncclCommCount(handle, &v)) {
		comm->n_ranks = v;
		news = true;
	}
	if (comm->rank == LAG_NONE && real->ncclCommUserRank &&
	    !real->ncclCommUserRank(handle, &v)) {
		comm->rank = v;
		news = true;
	}
	if (comm->device == LAG_NONE && real->ncclCommCuDevice &&
	    !real->ncclCommCuDevice(handle, &v)) {
		comm->device = v;
		news = true;
	}
	return news;
}

void lag_comm_write(struct lag_thread *t, const struct lag_comm *comm)
{
	uint64_t nccl_hash = atomic_load(&comm->nccl_hash);
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.created_ns = comm->created_ns;
	rec.comm.comm_id = comm->id;
	rec.comm.hash = (int64_t)comm->hash;
	if (nccl_hash)
		rec.comm.nccl_hash = (int64_t)nccl_hash;
	rec.comm.n_ranks = comm->n_ranks;
	rec.comm.comm_rank = comm->rank;
	rec.comm.device = comm->device;
	rec.comm.parent = comm->parent;
	(void)lag_trace_append(&t->prod, &rec);
}

void lag_comm_event(ncclComm_t handle, enum lag_comm_state state, ncclResult_t result)
{
	struct lag_comm *comm = lag_comm_find((uintptr_t)handle);
	struct lag_thread *t = comm ? lag_sink_enter(LAG_REC_comm_event) : NULL;
	struct lag_record rec;

	if (!t)
		return;
	lag_record_init(&rec, LAG_REC_comm_event);
	rec.comm_event.at_ns = lag_clock_now();
	rec.comm_event.comm_id = comm->id;
	rec.comm_event.state = state;
	rec.comm_event.result = result;
	(void)lag_trace_append(&t->prod, &rec);
	lag_sink_leave(t);
}

int64_t lag_comm_p2p_seq(const struct lag_comm *comm, int64_t peer, bool send)
{
	uint64_t key = ((uint64_t)comm->id + 1) << 33 | (uint64_t)(uint32_t)peer << 1 | send;
	size_t slot = (size_t)lag_hash_u64(key);

	for (size_t i = 0; i < N_PAIRS; i++, slot++) {
		uint64_t k = 0;

		if (atomic_compare_exchange_strong(&table.pairs[slot % N_PAIRS].key, &k, key) ||
		    k == key)
			return (int64_t)atomic_fetch_add(&table.pairs[slot % N_PAIRS].n, 1);
	}
	return LAG_NONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Life of communicators: creation by unique id, split, shrink, finalise, destroy, abort. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/nccl/nc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t hash_bytes(const void *data, size_t n, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t h = 1469598103934665603ULL ^ seed;

	for (size_t i = 0; i < n; i++) {
		h = (h ^ p[i]) * 1099511628211ULL;
	}
	return h;
}

/* The id is 128 bytes of which the first name the shared memory; the rest is random. */
ncclResult_t pncclGetUniqueId(ncclUniqueId *id)
{
	const char *run = sim_env_text("SIMGPU_RUN");
	uint64_t r[NCCL_UNIQUE_ID_BYTES / sizeof(uint64_t)];

	nc_nvtx_push_plain("ncclGetUniqueId");
	if (!id) {
		nc_nvtx_pop();
		return ncclInvalidArgument;
	}
	if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r) {
		nc_nvtx_pop();
		return ncclSystemError;
	}
	memcpy(id->internal, r, sizeof r);
	snprintf(id->internal, 64, "/simgpu.%.24s.%016" PRIx64, run ? run : "solo", r[0]);
	nc_nvtx_pop();
	return ncclSuccess;
}

static ncclResult_t join(ncclComm_t *out, const char *name, uint64_t hash, int n, int rank,
			 const ncclConfig_t *config)
{
	sim_init();
	struct ncclComm *c = nc_comm_attach(name, hash, n, rank);
	if (!c) {
		return ncclSystemError;
	}
	*out = c;
	if (config && config->blocking == 0) {
		return nc_comm_join_async(c);
	}
	return nc_in_group() ? nc_group_join_later(c) : nc_comm_wait_joined(c);
}

static const struct ncclComm *made(ncclResult_t r, const ncclComm_t *comm)
{
	return r == ncclSuccess || r == ncclInProgress ? *comm : NULL;
}

static ncclResult_t init(ncclComm_t *comm, int n, const ncclUniqueId *id, int rank,
			 const ncclConfig_t *config)
{
	char name[65];

	if (!comm || n < 1 || rank < 0 || rank >= n) {
		return ncclInvalidArgument;
	}
	snprintf(name, sizeof name, "%.64s", id->internal);
	return join(comm, name, hash_bytes(id, sizeof *id, 0), n, rank, config);
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
				     ncclConfig_t *config)
{
	nc_nvtx_push_plain("ncclCommInitRankConfig");
	ncclResult_t r = init(comm, n, &id, rank, config);
	nc_nvtx_pop_comm(made(r, comm));
	return r;
}

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
	nc_nvtx_push_plain("ncclCommInitRank");
	ncclResult_t r = init(comm, n, &id, rank, NULL);
	nc_nvtx_pop_comm(made(r, comm));
	return r;
}

ncclResult_t pncclCommInitRankScalable(ncclComm_t *comm, int n, int rank, int n_ids,
				       ncclUniqueId *ids, ncclConfig_t *config)
{
	if (n_ids < 1 || !ids) {
		return ncclInvalidArgument;
	}
	nc_nvtx_push_plain("ncclCommInitRankScalable");
	ncclResult_t r = init(comm, n, &ids[0], rank, config);
	nc_nvtx_pop_comm(made(r, comm));
	return r;
}

ncclResult_t pncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
	ncclUniqueId id;
	int before = sim_device_current();

	if (!comms || n < 1) {
		return ncclInvalidArgument;
	}
	nc_nvtx_push_plain("ncclCommInitAll");
	ncclResult_t r = ncclGetUniqueId(&id);
	ncclGroupStart();
	for (int i = 0; i < n && r == ncclSuccess; i++) {
		r = sim_device_set(devices ? devices[i] : i) == 0 ? init(&comms[i], n, &id, i, NULL)
								  : ncclInvalidArgument;
	}
	ncclResult_t end = ncclGroupEnd();
	sim_device_set(before);
	nc_nvtx_pop();
	return r != ncclSuccess ? r : end;
}

/* Tells the parent's other ranks our colour and key; two generations can be under way at most. */
static uint64_t split_publish(struct ncclComm *c, int color, int key)
{
	uint64_t g = ++c->split_generation;
	struct nc_member *me = &c->members[c->rank];

	me->split_color[g % 2] = color;
	me->split_key[g % 2] = key;
	__atomic_store_n(&me->split_generation, g, __ATOMIC_SEQ_CST);
	nc_shm_wake(&c->shm->event);
	return g;
}

static void split_wait(struct ncclComm *c, uint64_t g)
{
	for (int i = 0; i < c->n;) {
		uint32_t seen = __atomic_load_n(&c->shm->event, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&c->members[i].split_generation, __ATOMIC_SEQ_CST) >= g) {
			i++;
		} else {
			nc_shm_wait(&c->shm->event, seen);
		}
	}
}

static ncclResult_t split(struct ncclComm *c, int color, int key, ncclComm_t *out,
			  const ncclConfig_t *config)
{
	uint64_t g = split_publish(c, color, key), child = c->n_children++;
	char name[96];
	int n = 0, rank = 0;

	split_wait(c, g);
	if (color == NCCL_SPLIT_NOCOLOR) {
		*out = NULL;
		return ncclSuccess;
	}
	for (int i = 0; i < c->n; i++) {
		const struct nc_member *m = &c->members[i];
		int k = m->split_key[g % 2];
		if (m->split_color[g % 2] != color) {
			continue;
		}
		n++;
		rank += k < key || (k == key && i < c->rank);
	}
	uint64_t parts[] = { child, (uint64_t)(uint32_t)color };
	uint64_t hash = hash_bytes(parts, sizeof parts, c->hash);
	snprintf(name, sizeof name, "/simgpu.%.24s.s%016" PRIx64,
		 sim_env_text("SIMGPU_RUN") ? sim_env_text("SIMGPU_RUN") : "solo", hash);
	return join(out, name, hash, n, rank, config);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
			    ncclConfig_t *config)
{
	if (!comm || !out || color < NCCL_SPLIT_NOCOLOR) {
		return ncclInvalidArgument;
	}
	nc_nvtx_push_plain("ncclCommSplit");
	ncclResult_t r = split(comm, color, key, out, config);
	nc_nvtx_pop_comm(made(r, out));
	return r;
}

static ncclResult_t shrink(struct ncclComm *c, const int *without, int n_without, ncclComm_t *out,
			   const ncclConfig_t *config)
{
	char name[96];
	int rank = c->rank;

	for (int i = 0; i < n_without; i++) {
		if (without[i] == c->rank) {
			return ncclInvalidArgument;
		}
		rank -= without[i] < c->rank;
	}
	uint64_t hash =
		hash_bytes(without, (size_t)n_without * sizeof *without, c->hash ^ ++c->n_children);
	snprintf(name, sizeof name, "/simgpu.%.24s.k%016" PRIx64,
		 sim_env_text("SIMGPU_RUN") ? sim_env_text("SIMGPU_RUN") : "solo", hash);
	return join(out, name, hash, c->n - n_without, rank, config);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *without, int n_without, ncclComm_t *out,
			     ncclConfig_t *config, int flags)
{
	(void)flags;
	if (!comm || !out || !without || n_without < 1 || n_without >= comm->n) {
		return ncclInvalidArgument;
	}
	nc_nvtx_push_plain("ncclCommShrink");
	ncclResult_t r = shrink(comm, without, n_without, out, config);
	nc_nvtx_pop_comm(made(r, out));
	return r;
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
	if (!comm) {
		return ncclInvalidArgument;
	}
	nc_nvtx_push_plain("ncclCommFinalize");
	if (comm->last) {
		sim_op_wait(comm->last);
	}
	nc_nvtx_pop();
	return ncclSuccess;
}

static void drop(struct ncclComm *c)
{
	struct sim_op *last = c->last;

	c->last = NULL;
	sim_op_unref(last);
	nc_comm_unref(c);
}

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
	if (!comm) {
		return ncclSuccess;
	}
	nc_nvtx_push_plain("ncclCommDestroy");
	if (comm->last) {
		sim_op_wait(comm->last);
	}
	drop(comm);
	nc_nvtx_pop();
	return ncclSuccess;
}

static void abort_work(struct ncclComm *c)
{
	__atomic_store_n(&c->shm->aborted, 1, __ATOMIC_SEQ_CST);
	sim_engine_kick();
	for (int i = 0; i < c->n; i++) {
		if (c->bells[i]) {
			sim_doorbell_ring(c->bells[i]);
		}
	}
}

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
	if (!comm) {
		return ncclSuccess;
	}
	nc_nvtx_push_plain("ncclCommAbort");
	abort_work(comm);
	drop(comm);
	nc_nvtx_pop();
	return ncclSuccess;
}

ncclResult_t pncclCommRevoke(ncclComm_t comm, int flags)
{
	if (!comm || flags != NCCL_REVOKE_DEFAULT) {
		return ncclInvalidArgument;
	}
	abort_work(comm);
	return ncclSuccess;
}

NC_ALIAS(ncclGetUniqueId);
NC_ALIAS(ncclCommInitRankConfig);
NC_ALIAS(ncclCommInitRank);
NC_ALIAS(ncclCommInitRankScalable);
NC_ALIAS(ncclCommInitAll);
NC_ALIAS(ncclCommSplit);
NC_ALIAS(ncclCommShrink);
NC_ALIAS(ncclCommFinalize);
NC_ALIAS(ncclCommDestroy);
NC_ALIAS(ncclCommAbort);
NC_ALIAS(ncclCommRevoke);

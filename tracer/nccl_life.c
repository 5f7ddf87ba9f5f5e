/* SPDX-License-Identifier: Apache-2.0 */
/* Birth and death of communicators, interposed. Their identity is made here, from what all members
 * know: the unique id, or the parent's identity, the how-many-eth child, and the colour. */
#include <errno.h>

#include "schema/base/map.h"
#include "tracer/config.h"
#include "tracer/export.h"
#include "tracer/nccl_internal.h"
#include "tracer/tracer.h"

#define ABSENT      ncclInternalError
#define SHRINK_SALT UINT64_C(0x736872696e6b) /* keeps a shrink apart from a split */
#define PENDING_MAX 32

/* A communicator that NCCL may only hand out when the group ends. */
struct pending {
	ncclComm_t *handle;
	uint64_t hash;
	int64_t n_ranks, rank, parent;
	const struct lag_nccl_real *real;
	uint64_t nccl_hash; /* 0 = not told, as for all but one of many */
};

/* Groups that make communicators are made by one thread at a time in practice; each slot belongs to
 * the thread whose id is in it. */
static struct {
	_Atomic uint32_t tid;
	struct pending item;
} waiting[PENDING_MAX];

bool lag_life_enter(void)
{
	struct lag_nccl_thread *self = lag_nccl_self();

	return self->depth++ == 0 && lag_config_get()->nccl && lag_tracer_start();
}

void lag_life_leave(void)
{
	lag_nccl_self()->depth--;
}

static void announce(const struct pending *p)
{
	ncclComm_t handle = *p->handle;
	struct lag_comm *comm = handle ? lag_comm_find((uintptr_t)handle) : NULL;
	struct lag_thread *t;

	if (!handle || comm)
		return;
	comm = lag_comm_add((uintptr_t)handle, p->hash, p->n_ranks, p->rank, p->parent, p->real);
	t = comm ? lag_sink_enter(LAG_REC_comm) : NULL;
	if (!t)
		return;
	atomic_store(&comm->nccl_hash, p->nccl_hash);
	(void)lag_comm_complete(comm);
	lag_comm_write(t, comm);
	lag_sink_leave(t);
}

static void made(struct pending *p, ncclResult_t rc)
{
	uint32_t tid = lag_sink_tid();
	int saved = errno;

	p->nccl_hash = lag_nccl_self()->made_hash;
	lag_nccl_self()->made_hash = 0;
	if (rc != ncclSuccess && rc != ncclInProgress)
		return;
	for (size_t i = 0; lag_nccl_self()->group_depth && i < PENDING_MAX; i++) {
		uint32_t free = 0;

		if (atomic_compare_exchange_strong(&waiting[i].tid, &free, tid)) {
			waiting[i].item = *p;
			return;
		}
	}
	announce(p);
	errno = saved;
}

void lag_life_group_done(void)
{
	uint32_t tid = lag_sink_tid();
	int saved = errno;

	if (lag_nccl_self()->group_depth)
		return;
	for (size_t i = 0; i < PENDING_MAX; i++) {
		if (atomic_load(&waiting[i].tid) != tid)
			continue;
		announce(&waiting[i].item);
		atomic_store(&waiting[i].tid, 0);
	}
	errno = saved;
}

LAG_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(NULL);
	struct lag_nccl_thread *self = lag_nccl_self();
	ncclResult_t rc;

	self->depth++;
	rc = real->ncclGetUniqueId ? real->ncclGetUniqueId(uniqueId) : ABSENT;
	/* Called by ncclCommInitAll inside NCCL, this is the only sight of the id. */
	if (--self->depth > 0 && rc == ncclSuccess)
		self->unique_hash = lag_hash_bytes(uniqueId, sizeof(*uniqueId));
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
					 int rank)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(NULL);
	struct pending p = {
		comm, lag_hash_bytes(&commId, sizeof(commId)), nranks, rank, LAG_NONE, real, 0
	};
	bool ours = lag_life_enter();
	ncclResult_t rc = real->ncclCommInitRank
				  ? real->ncclCommInitRank(comm, nranks, commId, rank)
				  : ABSENT;

	lag_life_leave();
	if (ours)
		made(&p, rc);
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId,
					       int rank, ncclConfig_t *config)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(NULL);
	struct pending p = {
		comm, lag_hash_bytes(&commId, sizeof(commId)), nranks, rank, LAG_NONE, real, 0
	};
	bool ours = lag_life_enter();
	ncclResult_t rc = real->ncclCommInitRankConfig
				  ? real->ncclCommInitRankConfig(comm, nranks, commId, rank, config)
				  : ABSENT;

	lag_life_leave();
	if (ours)
		made(&p, rc);
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
						 int nId, ncclUniqueId *commIds,
						 ncclConfig_t *config)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(NULL);
	bool known = nId > 0 && commIds;
	struct pending p = { newcomm,  known ? lag_hash_bytes(&commIds[0], sizeof(commIds[0])) : 0,
			     nranks,   myrank,
			     LAG_NONE, real,
			     0 };
	bool ours = lag_life_enter();
	ncclResult_t rc = real->ncclCommInitRankScalable
				  ? real->ncclCommInitRankScalable(newcomm, nranks, myrank, nId,
								   commIds, config)
				  : ABSENT;

	lag_life_leave();
	if (ours)
		made(&p, rc);
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(NULL);
	struct lag_nccl_thread *self = lag_nccl_self();
	bool ours = lag_life_enter();
	ncclResult_t rc;

	if (ours)
		self->unique_hash = 0;
	rc = real->ncclCommInitAll ? real->ncclCommInitAll(comm, ndev, devlist) : ABSENT;
	lag_life_leave();
	self->made_hash = 0;
	for (int i = 0; ours && rc == ncclSuccess && i < ndev; i++) {
		struct pending p = { &comm[i], self->unique_hash, ndev, i, LAG_NONE, real, 0 };

		made(&p, rc);
	}
	return rc;
}

/* Identity of the next child of `parent`; counts it, also when this rank gets none. */
static void begin_child(ncclComm_t parent, uint64_t salt, struct pending *p)
{
	struct lag_comm *comm = lag_comm_find((uintptr_t)parent);
	uint64_t n;

	if (!comm)
		return;
	n = atomic_fetch_add(&comm->n_children, 1);
	p->hash = comm->hash ? lag_hash_pair(lag_hash_pair(comm->hash, n), salt) : 0;
	p->parent = comm->id;
}

LAG_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
				      ncclConfig_t *config)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct pending p = { newcomm, 0, LAG_NONE, LAG_NONE, LAG_NONE, real, 0 };
	bool ours = lag_life_enter();
	ncclResult_t rc;

	if (ours)
		begin_child(comm, (uint64_t)(uint32_t)color, &p);
	rc = real->ncclCommSplit ? real->ncclCommSplit(comm, color, key, newcomm, config) : ABSENT;
	lag_life_leave();
	if (ours && color != NCCL_SPLIT_NOCOLOR)
		made(&p, rc);
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList,
				       int excludeRanksCount, ncclComm_t *newcomm,
				       ncclConfig_t *config, int shrinkFlags)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct pending p = { newcomm, 0, LAG_NONE, LAG_NONE, LAG_NONE, real, 0 };
	bool ours = lag_life_enter();
	ncclResult_t rc = ABSENT;

	if (ours)
		begin_child(comm, SHRINK_SALT, &p);
	if (real->ncclCommShrink) {
		rc = real->ncclCommShrink(comm, excludeRanksList, excludeRanksCount, newcomm,
					  config, shrinkFlags);
	}
	lag_life_leave();
	if (ours)
		made(&p, rc);
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	bool ours = lag_life_enter();
	ncclResult_t rc = real->ncclCommFinalize ? real->ncclCommFinalize(comm) : ABSENT;

	lag_life_leave();
	if (ours)
		lag_comm_event(comm, LAG_COMM_FINALIZED, rc);
	return rc;
}

/* The record comes first: once the real call has returned, the handle can belong to a new one. */
LAG_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	bool ours = lag_life_enter();
	ncclResult_t rc;

	if (ours) {
		lag_comm_event(comm, LAG_COMM_DESTROYED, ncclSuccess);
		lag_comm_forget((uintptr_t)comm);
	}
	rc = real->ncclCommDestroy ? real->ncclCommDestroy(comm) : ABSENT;
	lag_life_leave();
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	bool ours = lag_life_enter();
	ncclResult_t rc;

	if (ours) {
		lag_comm_event(comm, LAG_COMM_ABORTED, ncclSuccess);
		lag_comm_forget((uintptr_t)comm);
	}
	rc = real->ncclCommAbort ? real->ncclCommAbort(comm) : ABSENT;
	lag_life_leave();
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	bool ours = lag_life_enter();
	ncclResult_t rc = real->ncclCommRevoke ? real->ncclCommRevoke(comm, revokeFlags) : ABSENT;

	lag_life_leave();
	if (ours)
		lag_comm_event(comm, LAG_COMM_ABORTED, rc);
	return rc;
}

LAG_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	bool ours = lag_life_enter();
	ncclResult_t rc = real->ncclCommGetAsyncError
				  ? real->ncclCommGetAsyncError(comm, asyncError)
				  : ABSENT;
	struct lag_comm *known;

	lag_life_leave();
	if (ours && rc == ncclSuccess && asyncError && *asyncError != ncclSuccess &&
	    *asyncError != ncclInProgress) {
		known = lag_comm_find((uintptr_t)comm);
		/* Watchdogs ask again and again. */
		if (known && !atomic_exchange(&known->failed, true))
			lag_comm_event(comm, LAG_COMM_ERROR, *asyncError);
	}
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the tracer's NCCL part. */
#ifndef TRACER_NCCL_INTERNAL_H
#define TRACER_NCCL_INTERNAL_H

#include <nccl.h>

#include "tracer/sink.h"

/* The real functions; a member is NULL where this NCCL is older. */
struct lag_nccl_real {
#define LAG_HOOK(name)      __typeof__(name)(*name);
#define LAG_NCCL_USED(name) __typeof__(name)(*name);
#include "tracer/hooks.def"
};

/* The functions that the call at `caller` (its return address) means, on this communicator if there is
 * one. Never NULL; all members are NULL in a program without NCCL. */
const struct lag_nccl_real *lag_nccl_real(void *caller, ncclComm_t handle);
#define LAG_NCCL_REAL(handle) lag_nccl_real(__builtin_return_address(0), handle)

uint32_t lag_nccl_copies(void);                        /* NCCLs that this process has used */
const struct lag_nccl_real *lag_nccl_copy(uint32_t i); /* i < lag_nccl_copies() */

/* A communicator of this process. Entries are never freed: their number is bounded, and a destroyed
 * one is only made unreachable. */
struct lag_comm {
	_Atomic uintptr_t key; /* ncclComm_t, or NCCL's hash where only annotations are seen */
	int64_t id;
	uint64_t hash;
	_Atomic uint64_t nccl_hash, seq, n_children;
	_Atomic int64_t n_ranks, rank, device;
	int64_t created_ns, parent;
	const struct lag_nccl_real
		*real;       /* the copy that made it; NULL where only annotations show it */
	_Atomic bool failed; /* an asynchronous error has been recorded */
};

struct lag_comm *lag_comm_find(uintptr_t key); /* NULL = unknown */

/* Makes the communicator known; NULL when the table is full. Does not write its record. */
struct lag_comm *lag_comm_add(uintptr_t key, uint64_t hash, int64_t n_ranks, int64_t rank,
			      int64_t parent, const struct lag_nccl_real *real);
void lag_comm_forget(uintptr_t key);

/* Fills what NCCL can tell by now (ranks, own rank, device); true when something was new. */
bool lag_comm_complete(struct lag_comm *comm);
void lag_comm_write(struct lag_thread *t, const struct lag_comm *comm);
void lag_comm_event(ncclComm_t handle, enum lag_comm_state state, ncclResult_t result);

/* Next number of (communicator, peer, direction); LAG_NONE when the table is full. */
int64_t lag_comm_p2p_seq(const struct lag_comm *comm, int64_t peer, bool send);

/* What this thread is in the middle of. Small: thread-local memory of preloaded libraries is scarce. */
struct lag_nccl_thread {
	int depth;       /* inside a real call: what NCCL calls itself is not the program's */
	int group_depth; /* the program's ncclGroupStart nesting */
	uint32_t n_ops;  /* in the group */
	int64_t group_id, group_enter_ns;
	struct lag_comm *comm; /* of the call we are in */
	uint64_t made_hash;    /* NCCL's, of the communicator that the call made */
	uint64_t unique_hash;  /* of the id that ncclCommInitAll made inside */
	int noted_depth;       /* annotations outside interposed calls; the outermost counts */
	int noted;             /* what the outermost one is */
	bool noted_pushed;
	int64_t noted_op, noted_launch_ns;
};

struct lag_nccl_thread *lag_nccl_self(void);

/* New operation or group number. */
int64_t lag_nccl_next_id(void);

struct lag_op_call {
	enum lag_func func;
	size_t count;
	ncclDataType_t datatype;
	int64_t redop, peer; /* LAG_NONE = none */
	ncclComm_t comm;
	void *stream;
	const struct lag_nccl_real *real;
	/* kept between enter and leave */
	int64_t id;
	bool pushed;
};

/* Around a start-work call. */
void lag_op_enter(struct lag_op_call *op);
ncclResult_t lag_op_leave(struct lag_op_call *op, ncclResult_t result);

/* An operation without its own call frame; returns its number, 0 = not recorded. */
int64_t lag_op_write(const struct lag_op_call *op, struct lag_comm *comm, int64_t sources);
void lag_op_end(int64_t id, int64_t result);

/* Groups; shared by calls and annotations. */
void lag_group_start(void);
void lag_group_end_enter(bool *pushed, int64_t *launch_ns);
void lag_group_end_leave(bool pushed, int64_t launch_ns, int64_t result);

/* Around a life-cycle call: false = not ours to record (nested, off). */
bool lag_life_enter(void);
void lag_life_leave(void);

/* Communicators whose creation ends with the group; called at its end. */
void lag_life_group_done(void);

#endif

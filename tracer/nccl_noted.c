/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL's own annotations add: its hash of a communicator to calls that were interposed, and whole
 * operations where the program reaches NCCL around us (dlsym, ctypes, static copies). Runs in the
 * program's threads, inside NCCL. */
#include <string.h>

#include "schema/base/map.h"
#include "tracer/config.h"
#include "tracer/cupti_door.h"
#include "tracer/nccl_door.h"
#include "tracer/nccl_internal.h"
#include "tracer/tracer.h"

enum noted {
	NOTED_NOTHING,
	NOTED_OP,
	NOTED_GROUP_END,
};

static void learn_hash(struct lag_comm *comm, uint64_t nccl_hash)
{
	uint64_t unknown = 0;
	struct lag_thread *t;

	if (!comm || !nccl_hash ||
	    !atomic_compare_exchange_strong(&comm->nccl_hash, &unknown, nccl_hash))
		return;
	t = lag_sink_enter(LAG_REC_comm);
	if (t) {
		lag_comm_write(t, comm);
		lag_sink_leave(t);
	}
}

/* All members see the same commHash, so it serves as identity where nothing better is known. */
static struct lag_comm *noted_comm(uint64_t comm_hash)
{
	struct lag_comm *comm = lag_comm_find((uintptr_t)comm_hash);

	if (comm)
		return comm;
	comm = lag_comm_add((uintptr_t)comm_hash, lag_hash_u64(comm_hash), LAG_NONE, LAG_NONE,
			    LAG_NONE);
	if (comm)
		learn_hash(comm, comm_hash);
	return comm;
}

static void note_op(struct lag_nccl_thread *self, enum lag_func func, uint64_t comm_hash,
		    int64_t bytes, int64_t peer)
{
	struct lag_op_call op = { .func = func,
				  .count = bytes > 0 ? (size_t)bytes : 0,
				  .datatype = LAG_DT_UINT8,
				  .redop = LAG_NONE,
				  .peer = peer };
	struct lag_comm *comm = comm_hash ? noted_comm(comm_hash) : NULL;

	if (!comm || !(self->noted_op = lag_op_write(&op, comm, LAG_OP_FROM_NVTX)))
		return;
	self->noted = NOTED_OP;
	self->noted_pushed = !self->group_depth && lag_cupti_push(self->noted_op);
}

void lag_nccl_annotated(const char *name, size_t n, uint64_t comm_hash, int64_t bytes, int64_t peer)
{
	struct lag_nccl_thread *self = lag_nccl_self();
	enum lag_func func;

	if (self->depth > 0) {
		learn_hash(self->comm, comm_hash);
		return;
	}
	if (self->noted_depth++ || !lag_config_get()->nccl || !lag_tracer_start())
		return;
	self->noted = NOTED_NOTHING;
	if (n == 14 && !memcmp(name, "ncclGroupStart", n)) {
		lag_group_start();
		return;
	}
	if (n == 12 && !memcmp(name, "ncclGroupEnd", n)) {
		lag_group_end_enter(&self->noted_pushed, &self->noted_launch_ns);
		self->noted = NOTED_GROUP_END;
		return;
	}
	func = lag_func_parse(name, n);
	if (func != LAG_FUNC_UNKNOWN)
		note_op(self, func, comm_hash, bytes, peer);
}

void lag_nccl_annotation_ends(void)
{
	struct lag_nccl_thread *self = lag_nccl_self();

	if (self->depth > 0 || !self->noted_depth || --self->noted_depth)
		return;
	if (self->noted == NOTED_GROUP_END) {
		lag_group_end_leave(self->noted_pushed, self->noted_launch_ns, LAG_NONE);
	} else if (self->noted == NOTED_OP) {
		if (self->noted_pushed)
			lag_cupti_pop();
		lag_op_end(self->noted_op, LAG_NONE);
	}
	self->noted = NOTED_NOTHING;
}

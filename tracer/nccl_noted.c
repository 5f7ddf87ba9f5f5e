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
static struct lag_comm *noted_comm(const struct lag_nccl_note *note)
{
	struct lag_comm *comm = lag_comm_find((uintptr_t)note->comm_hash);

	if (comm)
		return comm;
	comm = lag_comm_add((uintptr_t)note->comm_hash, lag_hash_u64(note->comm_hash),
			    note->n_ranks, note->rank, LAG_NONE, NULL);
	if (comm) {
		comm->device = note->device;
		learn_hash(comm, note->comm_hash);
	}
	return comm;
}

static void note_op(struct lag_nccl_thread *self, enum lag_func func,
		    const struct lag_nccl_note *note)
{
	struct lag_op_call op = { .func = func,
				  .count = note->bytes > 0 ? (size_t)note->bytes : 0,
				  .datatype = ncclUint8,
				  .redop = LAG_NONE,
				  .peer = note->peer };
	struct lag_comm *comm = note->comm_hash ? noted_comm(note) : NULL;

	if (!comm || !(self->noted_op = lag_op_write(&op, comm, LAG_OP_FROM_NVTX)))
		return;
	self->noted = NOTED_OP;
	self->noted_pushed = !self->group_depth && lag_cupti_push(self->noted_op);
}

void lag_nccl_annotated(const char *name, size_t n, const struct lag_nccl_note *note)
{
	struct lag_nccl_thread *self = lag_nccl_self();
	enum lag_func func;

	if (self->depth > 0) {
		learn_hash(self->comm, note->comm_hash);
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
		note_op(self, func, note);
}

void lag_nccl_annotation_ends(const struct lag_nccl_note *note)
{
	struct lag_nccl_thread *self = lag_nccl_self();

	if (self->depth > 0) {
		self->made_hash = note ? note->comm_hash : 0;
		return;
	}
	if (!self->noted_depth || --self->noted_depth)
		return;
	if (self->noted == NOTED_GROUP_END) {
		lag_group_end_leave(self->noted_pushed, self->noted_launch_ns, LAG_NONE);
	} else if (self->noted == NOTED_OP) {
		if (self->noted_pushed)
			lag_cupti_pop();
		lag_op_end(self->noted_op, LAG_NONE);
	} else if (note && note->comm_hash && note->n_ranks != LAG_NONE && lag_guard_on()) {
		(void)noted_comm(note);
	}
	self->noted = NOTED_NOTHING;
}

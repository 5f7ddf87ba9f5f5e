/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and groups: written on entry, so that a call that never returns is in the trace, and
 * completed on return. Runs in the program's threads around the real call. */
#include <errno.h>
#include <stdio.h>

#include "tracer/clock.h"
#include "tracer/config.h"
#include "tracer/cupti_door.h"
#include "tracer/nccl_door.h"
#include "tracer/nccl_internal.h"
#include "tracer/self.h"
#include "tracer/tracer.h"

static _Atomic int64_t last_id;
static __thread struct lag_nccl_thread self __attribute__((tls_model("initial-exec")));

struct lag_nccl_thread *lag_nccl_self(void)
{
	return &self;
}

int64_t lag_nccl_next_id(void)
{
	return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}

int64_t lag_nccl_n_ops(void)
{
	return atomic_load_explicit(&last_id, memory_order_relaxed);
}

static bool is_p2p(enum lag_func func)
{
	return func == LAG_FUNC_SEND || func == LAG_FUNC_RECV;
}

/* A communicator that was made where we could not see it: no identity, but its operations count. */
static struct lag_comm *find_comm(struct lag_thread *t, ncclComm_t handle,
				  const struct lag_nccl_real *real)
{
	struct lag_comm *comm = lag_comm_find((uintptr_t)handle);

	if (!comm && handle) {
		comm = lag_comm_add((uintptr_t)handle, 0, LAG_NONE, LAG_NONE, LAG_NONE, real);
		if (comm) {
			(void)lag_comm_complete(comm);
			lag_comm_write(t, comm);
		}
	} else if (comm && (comm->n_ranks == LAG_NONE || comm->device == LAG_NONE) &&
		   lag_comm_complete(comm)) {
		lag_comm_write(t, comm);
	}
	return comm;
}

static int64_t write_op(struct lag_thread *t, const struct lag_op_call *op, struct lag_comm *comm,
			int64_t sources)
{
	struct lag_record rec;
	int64_t id = lag_nccl_next_id();

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = lag_clock_now();
	rec.op.tid = lag_sink_tid();
	rec.op.op_id = id;
	rec.op.comm_id = comm->id;
	rec.op.func = op->func;
	rec.op.seq = is_p2p(op->func) ? lag_comm_p2p_seq(comm, op->peer, op->func == LAG_FUNC_SEND)
				      : (int64_t)atomic_fetch_add(&comm->seq, 1);
	rec.op.count = (int64_t)op->count;
	rec.op.datatype = op->datatype;
	rec.op.redop = op->redop;
	rec.op.peer = op->peer;
	if (sources & LAG_OP_FROM_CALL)
		rec.op.stream = lag_cupti_stream_id(op->stream);
	if (self.group_depth) {
		if (!self.group_id)
			self.group_id = lag_nccl_next_id();
		rec.op.group_id = self.group_id;
		self.n_ops++;
	}
	rec.op.sources = sources;
	(void)lag_trace_append(&t->prod, &rec);
	return id;
}

int64_t lag_op_write(const struct lag_op_call *op, struct lag_comm *comm, int64_t sources)
{
	struct lag_thread *t = lag_sink_enter(LAG_REC_op);
	int64_t id;

	if (!t)
		return 0;
	id = write_op(t, op, comm, sources);
	lag_sink_leave(t);
	return id;
}

void lag_op_enter(struct lag_op_call *op)
{
	struct lag_thread *t = NULL;
	int saved = errno;

	op->id = 0;
	op->pushed = false;
	if (self.depth++ == 0 && lag_config_get()->nccl && lag_tracer_start())
		t = lag_sink_enter(LAG_REC_op);
	if (t) {
		struct lag_comm *comm = find_comm(t, op->comm, op->real);

		self.comm = comm;
		if (comm)
			op->id = write_op(t, op, comm, LAG_OP_FROM_CALL);
		lag_sink_leave(t);
		/* Inside a group nothing is launched before its end. */
		if (op->id && !self.group_depth)
			op->pushed = lag_cupti_push(op->id);
	}
	errno = saved;
}

void lag_op_end(int64_t id, int64_t result)
{
	struct lag_thread *t = lag_sink_enter(LAG_REC_op_end);
	struct lag_record rec;

	if (!t)
		return;
	lag_record_init(&rec, LAG_REC_op_end);
	rec.op_end.leave_ns = lag_clock_now();
	rec.op_end.op_id = id;
	rec.op_end.result = result;
	(void)lag_trace_append(&t->prod, &rec);
	lag_sink_leave(t);
}

ncclResult_t lag_op_leave(struct lag_op_call *op, ncclResult_t result)
{
	int saved = errno;

	self.depth--;
	if (op->pushed)
		lag_cupti_pop();
	if (op->id) {
		self.comm = NULL;
		lag_op_end(op->id, result);
	}
	errno = saved;
	return result;
}

void lag_group_start(void)
{
	if (self.group_depth++ == 0) {
		self.group_id = 0;
		self.n_ops = 0;
		self.group_enter_ns = lag_clock_now();
	}
}

void lag_group_end_enter(bool *pushed, int64_t *launch_ns)
{
	int saved = errno;

	*pushed = self.group_depth == 1 && self.group_id && lag_cupti_push(self.group_id);
	*launch_ns = lag_clock_now();
	errno = saved;
}

void lag_group_end_leave(bool pushed, int64_t launch_ns, int64_t result)
{
	int saved = errno;
	struct lag_thread *t;
	struct lag_record rec;

	if (pushed)
		lag_cupti_pop();
	errno = saved;
	if (!self.group_depth || --self.group_depth || !self.group_id)
		return;
	t = lag_sink_enter(LAG_REC_group);
	if (t) {
		lag_record_init(&rec, LAG_REC_group);
		rec.group.enter_ns = self.group_enter_ns;
		rec.group.launch_ns = launch_ns;
		rec.group.leave_ns = lag_clock_now();
		rec.group.tid = lag_sink_tid();
		rec.group.group_id = self.group_id;
		rec.group.n_ops = self.n_ops;
		rec.group.result = result;
		(void)lag_trace_append(&t->prod, &rec);
		lag_sink_leave(t);
	}
	self.group_id = 0;
}

void lag_nccl_describe(struct lag_trace_producer *prod)
{
	static uint32_t told;
	char text[32];
	int v;

	/* Only the copies that the program has used: looking for them is its first call's business. */
	for (; told < lag_nccl_copies(); told++) {
		const struct lag_nccl_real *real = lag_nccl_copy(told);

		if (!real->ncclGetVersion || real->ncclGetVersion(&v))
			continue;
		(void)snprintf(text, sizeof(text), "%d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
		lag_self_meta(prod, "nccl", text);
		if (told) {
			(void)snprintf(text, sizeof(text), "%u", told + 1);
			lag_self_meta(prod, "nccl_copies", text);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: when each can start and when it ends. An operation is resolved as soon as all that it
 * waits for is resolved, often long before the wall clock gets there. */
#include "tests/simgpu/cuda/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct sim_op *sim_op_new(enum sim_op_kind kind)
{
	struct sim_op *op = calloc(1, sizeof *op);

	if (!op) {
		abort();
	}
	op->kind = kind;
	op->refs = 1;
	op->src_device = op->dst_device = -1;
	op->comm_slot = -1;
	return op;
}

struct sim_op *sim_op_ref(struct sim_op *op)
{
	__atomic_add_fetch(&op->refs, 1, __ATOMIC_RELAXED);
	return op;
}

static void deps_drop(struct sim_op *op)
{
	for (unsigned i = 0; i < op->n_deps; i++) {
		sim_op_unref(op->deps[i]);
	}
	free(op->deps);
	op->deps = NULL;
	op->n_deps = 0;
}

void sim_op_unref(struct sim_op *op)
{
	if (!op || __atomic_sub_fetch(&op->refs, 1, __ATOMIC_ACQ_REL) > 0) {
		return;
	}
	deps_drop(op);
	if (op->release) {
		op->release(op->ctx);
	}
	free(op);
}

void sim_op_after(struct sim_op *op, struct sim_op *dep)
{
	struct sim_op **v = realloc(op->deps, (op->n_deps + 1) * sizeof(void *));

	if (!v) {
		abort();
	}
	op->deps = v;
	op->deps[op->n_deps++] = sim_op_ref(dep);
}

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void wake_at(int64_t t)
{
	if (t < sim_eng.wake_ns) {
		sim_eng.wake_ns = t;
	}
}

void sim_op_finish(struct sim_op *op, int64_t end_ns)
{
	struct sim_stream *s = op->stream;

	op->end_ns = end_ns;
	op->state = SIM_OP_RESOLVED;
	s->last_end_ns = max64(s->last_end_ns, end_ns);
	s->unresolved = op->next;
	sim_truth_work(op);
	if (op->comm_slot >= 0 && sim_eng.n_comms - (unsigned)op->comm_slot <= SIM_COMM_INTERVALS) {
		sim_eng.comms[(unsigned)op->comm_slot % SIM_COMM_INTERVALS].end_ns = end_ns;
	}
	if (sim_eng.waiters) {
		pthread_cond_broadcast(&sim_eng.resolved);
	}
}

/* Sets start_ns when everything before the operation is known. */
static bool op_start(struct sim_op *op)
{
	int64_t base = op->stream->last_end_ns;

	for (unsigned i = 0; i < op->n_deps; i++) {
		if (op->deps[i]->state < SIM_OP_RESOLVED) {
			return false;
		}
		base = max64(base, op->deps[i]->end_ns);
	}
	if (base == SIM_NEVER) {
		return false;
	}
	if (op->kind <= SIM_OP_COMM) {
		base += sim_model_gap();
	}
	op->start_ns = max64(base, op->enqueued_ns + sim_model_latency(op));
	deps_drop(op);
	return true;
}

static void comm_opened(struct sim_op *op)
{
	struct sim_interval i = { op->start_ns, SIM_NEVER, op->stream->device };

	op->comm_slot = (int)(sim_eng.n_comms & 0x7fffffff);
	sim_eng.comms[sim_eng.n_comms++ % SIM_COMM_INTERVALS] = i;
}

static bool resolve_comm(struct sim_op *op, bool on_engine)
{
	int64_t end;

	if (op->state == SIM_OP_QUEUED) {
		if (!op_start(op)) {
			return false;
		}
		op->state = SIM_OP_STARTED;
		comm_opened(op);
		if (!on_engine) {
			sim_engine_kick();
		}
	}
	if (!on_engine) {
		return false;
	}
	if (!op->poll(op->ctx, op->start_ns, &end)) {
		return false;
	}
	sim_op_finish(op, end);
	return true;
}

static bool resolve_kernel(struct sim_op *op, int64_t now)
{
	int64_t end, again = SIM_NEVER;

	if (!sim_model_kernel(op, now, &end, &again)) {
		wake_at(again);
		if (again < sim_eng.asleep_until_ns) {
			sim_engine_kick();
		}
		return false;
	}
	sim_op_finish(op, end);
	return true;
}

static bool op_resolve(struct sim_op *op, int64_t now, bool on_engine)
{
	if (op->kind == SIM_OP_COMM) {
		return resolve_comm(op, on_engine);
	}
	if (op->state == SIM_OP_QUEUED) {
		if (!op_start(op)) {
			return false;
		}
		op->state = SIM_OP_STARTED;
	}
	switch (op->kind) {
	case SIM_OP_KERNEL:
		return resolve_kernel(op, now);
	case SIM_OP_MEMCPY:
	case SIM_OP_MEMSET:
		sim_mem_execute(op);
		sim_op_finish(op, op->start_ns + sim_model_copy(op));
		return true;
	case SIM_OP_HOST:
		wake_at(op->start_ns);
		if (!on_engine && op->start_ns < sim_eng.asleep_until_ns) {
			sim_engine_kick();
		}
		return false;
	default:
		sim_op_finish(op, op->start_ns);
		return true;
	}
}

void sim_resolve_all(int64_t now, bool on_engine)
{
	bool any = true;

	while (any) {
		any = false;
		for (struct sim_stream *s = sim_eng.streams; s; s = s->next) {
			while (s->unresolved && op_resolve(s->unresolved, now, on_engine)) {
				any = true;
			}
		}
	}
}

struct sim_op *sim_op_runnable_host(int64_t now)
{
	for (struct sim_stream *s = sim_eng.streams; s; s = s->next) {
		struct sim_op *op = s->unresolved;
		if (op && op->kind == SIM_OP_HOST && op->state == SIM_OP_STARTED &&
		    op->start_ns <= now) {
			return op;
		}
	}
	return NULL;
}

/* A full hardware queue makes the launching thread wait for its oldest operation. */
static void wait_for_room(struct sim_stream *s)
{
	while (s->n_ops >= sim_eng.queue_depth && s->head) {
		/* The stream has a reference too. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		struct sim_op *head = sim_op_ref(s->head);
		sim_engine_unlock();
		sim_op_wait(head);
		sim_op_unref(head);
		sim_collect();
		sim_engine_lock();
	}
}

struct sim_op *sim_enqueue(struct sim_stream *s, struct sim_op *op, bool keep)
{
	if (keep) {
		sim_op_ref(op);
	}
	sim_engine_lock();
	wait_for_room(s);
	int64_t now = sim_true_ns();
	op->enqueued_ns = sim_host_now();
	sim_stream_link(s, op);
	sim_resolve_all(now, false);
	bool engine_dozes = sim_eng.asleep_until_ns == SIM_NEVER;
	sim_engine_unlock();
	if (engine_dozes) {
		sim_engine_kick();
	}
	return keep ? op : NULL;
}

static void wait_for_ever(void) __attribute__((noreturn));

static void wait_for_ever(void)
{
	for (;;) {
		sim_sleep_until(sim_true_ns() + SIM_NS_PER_S);
	}
}

void sim_op_wait(struct sim_op *op)
{
	sim_engine_lock();
	while (op->state < SIM_OP_RESOLVED) {
		sim_eng.waiters++;
		pthread_cond_wait(&sim_eng.resolved, &sim_eng.lock);
		sim_eng.waiters--;
	}
	int64_t end = op->end_ns;
	sim_engine_unlock();
	if (end == SIM_NEVER) {
		wait_for_ever();
	}
	sim_sleep_until(end);
	sim_host_waited(end);
}

bool sim_op_done(struct sim_op *op)
{
	sim_engine_lock();
	int64_t now = sim_true_ns();
	if (op->state < SIM_OP_RESOLVED) {
		sim_resolve_all(now, false);
	}
	bool done = op->state >= SIM_OP_RESOLVED && op->end_ns <= sim_host_now();
	sim_engine_unlock();
	return done;
}

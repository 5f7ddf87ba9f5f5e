/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: order between operations, including that of the legacy default stream. */
#include "tests/simgpu/cuda/engine.h"

#include <stdlib.h>

/* Stream number that CUPTI gives the default stream, and the first one for created streams. */
#define DEFAULT_STREAM_ID 7
#define FIRST_STREAM_ID   13

static uint32_t next_stream_id = FIRST_STREAM_ID;
static uint32_t next_event_id = 1;
static uint64_t next_sync_id = 1;

/* Lock held. Streams stay in order of creation. */
static void stream_append(struct sim_stream *s)
{
	struct sim_stream **p = &sim_eng.streams;

	while (*p) {
		p = &(*p)->next;
	}
	*p = s;
}

struct sim_stream *sim_stream_new(uint32_t flags, int priority)
{
	struct sim_stream *s = calloc(1, sizeof *s);

	if (!s) {
		return NULL;
	}
	s->flags = flags;
	s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
	s->priority = priority;
	s->device = sim_device_current();
	sim_engine_lock();
	s->id = next_stream_id++;
	stream_append(s);
	sim_engine_unlock();
	return s;
}

void sim_stream_destroy(struct sim_stream *s)
{
	sim_engine_lock();
	s->destroyed = !s->legacy;
	sim_engine_unlock();
}

void sim_streams_reap(void)
{
	for (struct sim_stream **p = &sim_eng.streams; *p;) {
		struct sim_stream *s = *p;
		if (s->destroyed && !s->head) {
			*p = s->next;
			free(s);
		} else {
			p = &s->next;
		}
	}
}

struct sim_stream *sim_stream_of(const void *handle)
{
	int d = sim_device_current();

	if (handle && handle != (const void *)CU_STREAM_LEGACY &&
	    handle != (const void *)CU_STREAM_PER_THREAD) {
		return (struct sim_stream *)(uintptr_t)handle;
	}
	sim_engine_lock();
	struct sim_stream *s = sim_eng.legacy[d];
	if (!s) {
		s = calloc(1, sizeof *s);
		if (!s) {
			abort();
		}
		s->id = DEFAULT_STREAM_ID;
		s->device = d;
		s->legacy = true;
		sim_eng.legacy[d] = s;
		stream_append(s);
	}
	sim_engine_unlock();
	return s;
}

/* The legacy stream waits for all blocking streams of its device, and they for it. */
static void legacy_order(struct sim_stream *s, struct sim_op *op)
{
	if (s->legacy) {
		for (struct sim_stream *o = sim_eng.streams; o; o = o->next) {
			if (o != s && o->blocking && o->device == s->device && o->tail) {
				sim_op_after(op, o->tail);
			}
		}
	} else if (s->blocking && sim_eng.legacy[s->device] && sim_eng.legacy[s->device]->tail) {
		sim_op_after(op, sim_eng.legacy[s->device]->tail);
	}
}

void sim_stream_link(struct sim_stream *s, struct sim_op *op)
{
	legacy_order(s, op);
	op->stream = s;
	if (s->tail) {
		s->tail->next = op;
	} else {
		s->head = op;
	}
	s->tail = op;
	if (!s->unresolved) {
		s->unresolved = op;
	}
	s->n_ops++;
}

static struct sim_op *tail_ref(struct sim_stream *s)
{
	return s->tail ? sim_op_ref(s->tail) : NULL;
}

void sim_stream_wait_all(struct sim_stream *s)
{
	struct sim_op *tails[1024];
	size_t n = 0;

	sim_engine_lock();
	for (struct sim_stream *o = sim_eng.streams; o; o = o->next) {
		bool mine = s ? o == s : o->device == sim_device_current();
		if (mine && o->tail && n < sizeof tails / sizeof tails[0]) {
			tails[n++] = tail_ref(o);
		}
	}
	sim_engine_unlock();
	for (size_t i = 0; i < n; i++) {
		sim_op_wait(tails[i]);
		sim_op_unref(tails[i]);
	}
}

bool sim_stream_idle(struct sim_stream *s)
{
	sim_engine_lock();
	struct sim_op *t = tail_ref(s);
	sim_engine_unlock();
	bool idle = !t || sim_op_done(t);
	sim_op_unref(t);
	return idle;
}

struct sim_event *sim_event_new(uint32_t flags)
{
	struct sim_event *e = calloc(1, sizeof *e);

	if (e) {
		e->flags = flags;
		e->id = __atomic_fetch_add(&next_event_id, 1, __ATOMIC_RELAXED);
	}
	return e;
}

void sim_event_free(struct sim_event *e)
{
	sim_op_unref(e->op);
	free(e);
}

void sim_event_record(struct sim_event *e, struct sim_stream *s, uint32_t corr)
{
	struct sim_op *op = sim_op_new(SIM_OP_MARK);
	const struct sim_hooks *h = sim_hooks_get();

	op->corr = corr;
	op->event_id = e->id;
	op = sim_enqueue(s, op, true);
	sim_engine_lock();
	struct sim_op *old = e->op;
	e->op = op;
	e->sync_id = __atomic_fetch_add(&next_sync_id, 1, __ATOMIC_RELAXED);
	sim_engine_unlock();
	sim_op_unref(old);
	if (h && h->event_recorded) {
		h->event_recorded(op, e, sim_host_now());
	}
}

struct sim_op *sim_event_op(struct sim_event *e)
{
	sim_engine_lock();
	struct sim_op *op = e->op ? sim_op_ref(e->op) : NULL;
	sim_engine_unlock();
	return op;
}

void sim_event_wait_on(struct sim_event *e, struct sim_stream *s, uint32_t corr)
{
	struct sim_op *dep = sim_event_op(e);

	if (!dep) {
		return;
	}
	struct sim_op *op = sim_op_new(SIM_OP_WAIT);
	op->corr = corr;
	op->event_id = e->id;
	sim_op_after(op, dep);
	sim_op_unref(dep);
	sim_enqueue(s, op, false);
}

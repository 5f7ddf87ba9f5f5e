/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the lanes of a kernel as far as the queues allow; on the engine thread, engine locked. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/nccl/nc.h"

#include <string.h>

/* Bytes of the chunk in hand; the last one takes what division leaves. */
static uint64_t chunk_bytes(const struct nc_step *s, unsigned chunk)
{
	uint64_t each = s->bytes / s->chunks;

	return chunk + 1 == s->chunks ? s->bytes - each * (s->chunks - 1) : each;
}

/* Real data travel with the last chunk of a step. */
static size_t chunk_data(const struct nc_step *s, unsigned chunk)
{
	return chunk + 1 == s->chunks ? s->data_bytes : 0;
}

static void absorb_part(struct nc_work *w, const struct nc_step *s, size_t at, const char *data,
			size_t bytes)
{
	if (s->reduce) {
		nc_reduce(s->into + at, s->mine + at, data, bytes, w->type, w->op);
	} else {
		memcpy(s->into + at, data, bytes);
	}
	if (s->last && w->op == ncclAvg) {
		nc_scale(s->into + at, s->into + at, bytes, w->type, 1.0 / w->comm->n);
	}
}

/* What the sender sent counts, not what was expected: a wrong match shows as wrong data. */
static void absorb(struct nc_work *w, const struct nc_step *s, const char *data, size_t have)
{
	for (size_t i = 0; i < s->parts && s->into; i++) {
		size_t n = have < s->data_bytes ? have : s->data_bytes;
		absorb_part(w, s, i * s->stride, data, n);
		data += n;
		have -= n;
	}
}

static bool receive(struct nc_work *w, struct nc_lane *l, const struct nc_step *s)
{
	const char *data;
	const struct nc_slot *slot = nc_link_peek(w->comm, s->channel, s->from, &data);

	if (!slot) {
		return false;
	}
	if (slot->ready_ns > l->t_ns) {
		l->t_ns = slot->ready_ns;
	}
	absorb(w, s, data, (size_t)slot->data_bytes);
	nc_link_take(w->comm, s->channel, s->from, l->t_ns);
	return true;
}

static bool send(struct nc_work *w, struct nc_lane *l, const struct nc_step *s, int to)
{
	uint64_t bytes = chunk_bytes(s, l->chunk);
	uint64_t two = 2 * bytes;
	struct nc_chunk k = {
		.bytes = bytes,
		.limit = two > NC_WINDOW ? two : NC_WINDOW,
		.data = s->from >= 0 ? s->into : s->mine,
		.data_bytes = chunk_data(s, l->chunk),
		.parts = s->parts,
		.stride = s->stride,
	};

	return nc_link_send(w->comm, s->channel, to, &k, &l->t_ns);
}

/* False: blocked. True: the chunk of the step is through. */
static bool chunk_run(struct nc_work *w, struct nc_lane *l, const struct nc_step *s)
{
	if (l->stage == 0) {
		if (s->from >= 0 && !receive(w, l, s)) {
			return false;
		}
		l->stage = 1;
	}
	while (l->stage <= s->n_to) {
		if (!send(w, l, s, s->to[l->stage - 1])) {
			return false;
		}
		l->stage++;
	}
	l->stage = 0;
	return true;
}

static bool lane_run(struct nc_work *w, struct nc_lane *l)
{
	while (l->pc < l->n) {
		const struct nc_step *s = &l->steps[l->pc];
		if (!chunk_run(w, l, s)) {
			return false;
		}
		if (l->stalled) { /* a dead link: the first chunk goes, nothing after it */
			l->n = SIZE_MAX;
			return false;
		}
		if (++l->chunk == s->chunks) {
			l->chunk = 0;
			l->pc++;
		}
	}
	return true;
}

static void start(struct nc_work *w, int64_t start_ns)
{
	w->started = true;
	w->start_ns = start_ns;
	for (size_t i = 0; i < w->n_preps; i++) {
		const struct nc_prep *p = &w->preps[i];
		if (p->scale != 1.0) {
			nc_scale(p->dst, p->src, p->bytes, w->type, p->scale);
		} else {
			memmove(p->dst, p->src, p->bytes);
		}
	}
	for (size_t i = 0; i < w->n_lanes; i++) {
		w->lanes[i].t_ns = start_ns;
	}
}

static void tell_truth(const struct nc_work *w, int64_t end_ns)
{
	for (size_t i = 0; i < w->n_ops; i++) {
		const struct nc_op *o = &w->ops[i];
		struct sim_truth_comm t = {
			.comm = w->comm->hash,
			.seq = o->seq,
			.func = o->api,
			.bytes = o->bytes,
			.rank = w->comm->rank,
			.nranks = w->comm->n,
			.peer = o->peer,
			.start_ns = w->start_ns,
			.end_ns = end_ns,
		};
		sim_truth_comm(&t);
	}
}

bool nc_work_poll(void *work, int64_t start_ns, int64_t *end_ns)
{
	struct nc_work *w = work;
	bool done = true;

	if (!w->started) {
		start(w, start_ns);
	}
	if (__atomic_load_n(&w->comm->shm->aborted, __ATOMIC_RELAXED)) {
		int64_t now = sim_true_ns();
		*end_ns = now > start_ns ? now : start_ns;
		return true;
	}
	*end_ns = start_ns;
	for (size_t i = 0; i < w->n_lanes; i++) {
		struct nc_lane *l = &w->lanes[i];
		if (l->n == SIZE_MAX || !lane_run(w, l)) {
			done = false;
		} else if (l->t_ns > *end_ns) {
			*end_ns = l->t_ns;
		}
	}
	if (done) {
		tell_truth(w, *end_ns);
	}
	return done;
}

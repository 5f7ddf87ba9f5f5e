/* SPDX-License-Identifier: Apache-2.0 */
/* How far each member of each communicator had come when recording ended, and each rank's oldest
 * unfinished operation: from GPU events where they are on record, else from what hosts had seen. */
#include "viz/analysis/hang.h"

#include <stdlib.h>
#include <string.h>

/* One operation as called, from either source. */
struct call {
	int64_t at_ns, seq, start_ns;
	uint32_t r, comm, sizes;
	int32_t peer;
	uint8_t func;
	enum lag_hang_state state;
	bool seen;
};

typedef void take_call(struct lag_hang *h, const struct call *c);

bool lag_hang_joins_all(uint8_t func)
{
	return func == LAG_FUNC_ALL_REDUCE || func == LAG_FUNC_ALL_GATHER ||
	       func == LAG_FUNC_REDUCE_SCATTER || func == LAG_FUNC_ALL_TO_ALL ||
	       func == LAG_FUNC_BARRIER;
}

static bool is_message(uint8_t func)
{
	return func == LAG_FUNC_SEND || func == LAG_FUNC_RECV || func == LAG_FUNC_SEND_RECV;
}

const char *lag_hang_running(const struct lag_hang *h, uint32_t r)
{
	return h->running[r];
}

static void find_running(struct lag_hang *h)
{
	const struct lag_trace *t = h->trace;

	for (size_t i = 0; i < t->n_gpu; i++) {
		if (t->gpu[i].end_ns == LAG_NONE && t->gpu[i].class != LAG_CLASS_COMM)
			h->running[t->gpu[i].r] = lag_trace_text(t, t->gpu[i].name);
	}
}

const struct lag_hang_place *lag_hang_place_of(const struct lag_hang *h, uint32_t comm, uint32_t r)
{
	uint64_t at;

	return lag_map_find(&h->place_of, (uint64_t)comm << 32 | r, &at) ? &h->places[at] : NULL;
}

static struct lag_hang_place *place_at(struct lag_hang *h, uint32_t comm, uint32_t r)
{
	const struct lag_hang_place *p = lag_hang_place_of(h, comm, r);

	return p ? &h->places[p - h->places] : NULL;
}

static struct call of_op(const struct lag_trace *t, const struct lag_op *op)
{
	const struct lag_launch *l = op->launch < 0 ? NULL : &t->launches[op->launch];
	struct call c = { .at_ns = op->enter_ns,
			  .seq = op->seq,
			  .start_ns = l ? l->start_ns : LAG_NONE,
			  .r = op->r,
			  .comm = op->comm,
			  .peer = op->peer,
			  .func = op->func,
			  .state = LAG_HANG_ENQUEUED };

	if (l && l->start_ns != LAG_NONE)
		c.state = l->end_ns == LAG_NONE ? LAG_HANG_STARTED : LAG_HANG_FINISHED;
	return c;
}

static struct call of_seen(const struct lag_seen_op *op)
{
	return (struct call){ .at_ns = op->enqueued_ns,
			      .seq = op->seq,
			      .start_ns = LAG_NONE,
			      .r = op->r,
			      .comm = op->comm,
			      .sizes = op->sizes,
			      .peer = op->peer,
			      .func = op->func,
			      .state = op->state == LAG_OP_COMPLETED ? LAG_HANG_FINISHED
				       : op->state == LAG_OP_STARTED ? LAG_HANG_STARTED
								     : LAG_HANG_ENQUEUED,
			      .seen = true };
}

static void each_call(struct lag_hang *h, take_call *take)
{
	const struct lag_trace *t = h->trace;

	for (size_t i = 0; i < t->n_ops; i++) {
		struct call c = of_op(t, &t->ops[i]);

		if (!h->seen_rank[c.r])
			take(h, &c);
	}
	for (size_t i = 0; i < h->seen.ops.n; i++) {
		struct call c = of_seen(&LAG_VEC_AT(&h->seen.ops, struct lag_seen_op, i));

		take(h, &c);
	}
}

static void raise_to(int64_t *field, int64_t value)
{
	if (value > *field)
		*field = value;
}

static void take_place(struct lag_hang *h, const struct call *c)
{
	struct lag_hang_place *p = place_at(h, c->comm, c->r);

	h->n_calls++;
	if (!p || is_message(c->func) || c->seq == LAG_NONE)
		return;
	p->on_record = true;
	raise_to(&p->entered, c->seq);
	if (c->state == LAG_HANG_FINISHED)
		raise_to(&p->finished, c->seq);
	if (c->state != LAG_HANG_ENQUEUED)
		raise_to(&p->started, c->seq);
	if (c->state != LAG_HANG_FINISHED && (p->pending < 0 || c->seq < p->pending))
		p->pending = c->seq;
}

/* A process's own counts know of operations that its dump no longer holds; where a communicator has
 * messages they count those as well, by other numbers. */
static void take_progress(struct lag_hang *h, const struct lag_seen_progress *s)
{
	struct lag_hang_place *p = place_at(h, s->comm, s->r);

	if (!p || h->has_messages[s->comm])
		return;
	p->on_record = true;
	raise_to(&p->entered, s->enqueued);
	raise_to(&p->started, s->started);
	raise_to(&p->finished, s->completed);
	if (s->started != LAG_NONE)
		h->tells_starts[s->r] = true;
}

static void settle(struct lag_hang *h, uint32_t comm)
{
	const struct lag_comm *c = &h->trace->comms[comm];

	for (uint32_t m = 0; m < c->n_members; m++) {
		struct lag_hang_place *p = &h->places[c->first_member + m];
		const struct lag_rank *rank = p->r < 0 ? NULL : &h->trace->ranks[p->r];

		/* A GPU's recording that tells of no operation here tells that there was none. */
		if (rank && rank->recorded && !h->seen_rank[p->r])
			p->on_record = true;
		if (p->finished < 0 && p->pending >= 0)
			p->finished = p->pending - 1;
		/* What came later in the same communicator has finished: this has, too. */
		p->pending = p->entered > p->finished ? p->finished + 1 : -1;
		raise_to(&p->started, p->finished);
	}
}

/* Operations without GPU events may have lost them. One that runs, or that a host had not seen finish,
 * says that the communicator stands. */
static bool stands(const struct lag_hang *h, uint32_t comm)
{
	const struct lag_comm *c = &h->trace->comms[comm];

	for (uint32_t m = 0; m < c->n_members; m++) {
		const struct lag_hang_place *p = &h->places[c->first_member + m];

		if (p->r >= 0 && p->pending >= 0 &&
		    (h->seen_rank[p->r] || p->started > p->finished))
			return true;
	}
	return false;
}

static enum lag_status find_standing(struct lag_hang *h)
{
	for (uint32_t i = 0; i < h->trace->n_comms; i++) {
		const struct lag_comm *c = &h->trace->comms[i];
		struct lag_hang_comm *hc;

		settle(h, i);
		if (!stands(h, i)) {
			/* Not to be taken for anyone's head. */
			for (uint32_t m = 0; m < c->n_members; m++)
				h->places[c->first_member + m].pending = -1;
			continue;
		}
		hc = lag_vec_push(&h->comms);
		if (!hc)
			return LAG_ERR_SYSTEM;
		h->standing[i] = (uint32_t)h->comms.n;
		hc->comm = i;
		hc->seq = hc->since_ns = LAG_NONE;
		for (uint32_t m = 0; m < c->n_members; m++) {
			int64_t pending = h->places[c->first_member + m].pending;

			if (pending >= 0 && (hc->seq == LAG_NONE || pending < hc->seq))
				hc->seq = pending;
		}
	}
	return LAG_OK;
}

static bool is_pending(struct lag_hang *h, const struct call *c)
{
	const struct lag_hang_place *p = place_at(h, c->comm, c->r);

	if (c->state == LAG_HANG_FINISHED)
		return false;
	if (!is_message(c->func))
		return c->seq != LAG_NONE && p && p->pending >= 0 && c->seq >= p->pending;
	return c->seen || c->state == LAG_HANG_STARTED || lag_hang_running(h, c->r) != NULL;
}

static void take_head(struct lag_hang *h, const struct call *c)
{
	struct lag_hang_head *head = &h->heads[c->r];

	if (!is_pending(h, c) || (head->any && head->at_ns <= c->at_ns))
		return;
	h->n_standing += !head->any;
	*head = (struct lag_hang_head){
		.at_ns = c->at_ns,
		.seq = is_message(c->func) ? -1 : c->seq,
		.comm = c->comm,
		.peer = is_message(c->func) ? lag_trace_find_peer(h->trace, c->comm, c->peer) : -1,
		.sizes = c->sizes,
		.func = c->func,
		.any = true,
		.started = c->state == LAG_HANG_STARTED
	};
}

static void take_comm(struct lag_hang *h, const struct call *c)
{
	struct lag_hang_comm *hc;

	if (!h->standing[c->comm] || is_message(c->func))
		return;
	hc = &LAG_VEC_AT(&h->comms, struct lag_hang_comm, h->standing[c->comm] - 1);
	if (hc->seq != c->seq)
		return;
	hc->func = c->func;
	if (c->seen && !hc->sizes)
		hc->sizes = c->sizes;
	if (hc->since_ns == LAG_NONE || c->at_ns < hc->since_ns)
		hc->since_ns = c->at_ns;
}

enum lag_hang_state lag_hang_state_of(const struct lag_hang *h, const struct lag_hang_place *p,
				      int64_t seq)
{
	const struct lag_trace *t = h->trace;

	if (!p->on_record || p->r < 0 || !t->ranks[p->r].recorded)
		return LAG_HANG_NO_RECORD;
	if (p->finished >= seq)
		return LAG_HANG_FINISHED;
	if (p->started >= seq)
		return LAG_HANG_STARTED;
	return p->entered >= seq ? LAG_HANG_ENQUEUED : LAG_HANG_NEVER;
}

static void count_states(struct lag_hang *h, struct lag_hang_comm *hc)
{
	const struct lag_comm *c = &h->trace->comms[hc->comm];

	hc->starts_known = true;
	for (uint32_t m = 0; m < c->n_members; m++) {
		struct lag_hang_place *p = &h->places[c->first_member + m];
		enum lag_hang_state state;

		/* A recording that ends before the others began cannot tell. */
		if (p->r >= 0 && !h->seen_rank[p->r] && p->entered < hc->seq &&
		    hc->since_ns != LAG_NONE && h->trace->ranks[p->r].last_ns < hc->since_ns)
			p->on_record = false;
		state = lag_hang_state_of(h, p, hc->seq);
		hc->n[state]++;
		if (state == LAG_HANG_ENQUEUED && !h->tells_starts[p->r])
			hc->starts_known = false;
	}
	if (c->n_ranks > 0 && (uint32_t)c->n_ranks > c->n_members)
		hc->n[LAG_HANG_NO_RECORD] += (uint32_t)c->n_ranks - c->n_members;
}

static int by_age(const void *a, const void *b)
{
	const struct lag_hang_comm *x = a, *y = b;

	if (x->since_ns != y->since_ns)
		return x->since_ns < y->since_ns ? -1 : 1;
	return x->comm < y->comm ? -1 : x->comm > y->comm;
}

static enum lag_status prepare(struct lag_hang *h)
{
	const struct lag_trace *t = h->trace;

	for (size_t i = 0; i < t->n_comms; i++) {
		size_t end = t->comms[i].first_member + t->comms[i].n_members;

		h->n_places = end > h->n_places ? end : h->n_places;
	}
	h->places = lag_calloc(h->n_places, sizeof(*h->places));
	h->heads = lag_calloc(t->n_ranks, sizeof(*h->heads));
	h->seen_rank = lag_calloc(t->n_ranks, sizeof(*h->seen_rank));
	h->tells_starts = lag_calloc(t->n_ranks, sizeof(*h->tells_starts));
	h->has_messages = lag_calloc(t->n_comms, sizeof(*h->has_messages));
	h->standing = lag_calloc(t->n_comms, sizeof(*h->standing));
	h->deadlocked = lag_calloc(t->n_ranks, sizeof(*h->deadlocked));
	h->running = lag_calloc(t->n_ranks, sizeof(*h->running));
	if (!h->places || !h->heads || !h->seen_rank || !h->tells_starts || !h->has_messages ||
	    !h->standing || !h->deadlocked || !h->running)
		return LAG_ERR_SYSTEM;
	find_running(h);
	for (size_t i = 0; i < h->n_places; i++) {
		h->places[i] = (struct lag_hang_place){
			.r = -1, .entered = -1, .started = -1, .finished = -1, .pending = -1
		};
	}
	for (uint32_t i = 0; i < t->n_comms; i++) {
		for (uint32_t m = 0; m < t->comms[i].n_members; m++) {
			size_t at = t->comms[i].first_member + m;

			h->places[at].r = t->members[at].r;
			if (t->members[at].r >= 0 &&
			    lag_failed(lag_map_set(&h->place_of,
						   (uint64_t)i << 32 | (uint32_t)t->members[at].r,
						   at)))
				return LAG_ERR_SYSTEM;
		}
	}
	return LAG_OK;
}

static void note_sources(struct lag_hang *h)
{
	for (size_t i = 0; i < h->seen.progress.n; i++) {
		const struct lag_seen_progress *p =
			&LAG_VEC_AT(&h->seen.progress, struct lag_seen_progress, i);

		h->seen_rank[p->r] = true;
	}
	for (size_t i = 0; i < h->seen.ops.n; i++) {
		const struct lag_seen_op *op = &LAG_VEC_AT(&h->seen.ops, struct lag_seen_op, i);

		h->seen_rank[op->r] = true;
		h->tells_starts[op->r] |= op->state == LAG_OP_STARTED;
		h->has_messages[op->comm] |= is_message(op->func);
	}
	for (size_t r = 0; r < h->trace->n_ranks; r++)
		h->tells_starts[r] |= !h->seen_rank[r];
}

enum lag_status lag_hang_find(const struct lag_trace *trace, struct lag_hang *h,
			      struct lag_err *err)
{
	enum lag_status st;

	*h = (struct lag_hang){ .trace = trace,
				.comms = LAG_VEC_INIT(struct lag_hang_comm),
				.suspects = LAG_VEC_INIT(struct lag_hang_suspect) };
	st = lag_seen_load(trace, &h->seen, err);
	if (lag_failed(st))
		return st;
	st = prepare(h);
	if (!lag_failed(st)) {
		note_sources(h);
		each_call(h, take_place);
		for (size_t i = 0; i < h->seen.progress.n; i++) {
			take_progress(h,
				      &LAG_VEC_AT(&h->seen.progress, struct lag_seen_progress, i));
		}
		st = find_standing(h);
	}
	if (!lag_failed(st)) {
		each_call(h, take_head);
		each_call(h, take_comm);
		for (size_t i = 0; i < h->comms.n; i++)
			count_states(h, &LAG_VEC_AT(&h->comms, struct lag_hang_comm, i));
		if (h->comms.n)
			qsort(h->comms.items, h->comms.n, h->comms.item_size, by_age);
		st = lag_hang_walk(h);
	}
	return lag_failed(st) ? lag_err_set(err, st, "hang: no memory") : LAG_OK;
}

void lag_hang_release(struct lag_hang *h)
{
	lag_seen_release(&h->seen);
	lag_map_release(&h->place_of);
	lag_vec_release(&h->comms);
	lag_vec_release(&h->suspects);
	free(h->places);
	free(h->heads);
	free(h->seen_rank);
	free(h->tells_starts);
	free(h->has_messages);
	free(h->standing);
	free(h->deadlocked);
	free(h->running);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Each rank that stands waits, in its oldest unfinished operation, for others: those that never called it,
 * else those that are still in something before. Where nobody is waited for any more, suspicion ends. */
#include <stdlib.h>

#include "viz/analysis/hang.h"

/* Rank `from` waits for rank `to`. */
struct edge {
	uint32_t to, from;
};

struct walk {
	struct lag_hang *h;
	struct lag_vec edges; /* struct edge; sorted by to */
	uint8_t *root;        /* by rank: 1 + enum lag_hang_end, 0 none */
	bool *reached;        /* by rank, from any root */
	uint32_t *stamp;      /* by rank: last root it was reached from */
	uint32_t *queue;
};

static enum lag_status wait_for(struct walk *w, uint32_t from, int32_t to)
{
	struct edge *e = lag_vec_push(&w->edges);

	if (!e)
		return LAG_ERR_SYSTEM;
	*e = (struct edge){ (uint32_t)to, from };
	return LAG_OK;
}

static void end_at(struct walk *w, uint32_t r, enum lag_hang_end end)
{
	w->root[r] = (uint8_t)(end + 1);
}

static bool same_op(const struct lag_hang_head *a, const struct lag_hang_head *b)
{
	return a->any && b->any && a->seq >= 0 && a->comm == b->comm && a->seq == b->seq;
}

/* Known not to have started, while others have. */
static bool held_back(const struct lag_hang *h, int32_t r, const struct lag_hang_head *head)
{
	return h->tells_starts[r] && head->any && !head->started;
}

/* What keeps member p of the communicator from finishing r's operation. */
enum hold {
	HOLD_NOTHING,
	HOLD_ELSEWHERE, /* it is in something before, or did not start */
	HOLD_ABSENT,    /* it never called it, or nothing is known of it */
	HOLD_NOT_ITSELF /* it has finished: what holds r is r's own */
};

static enum hold hold_of(const struct lag_hang *h, const struct lag_hang_head *head,
			 const struct lag_hang_place *p)
{
	enum lag_hang_state state = lag_hang_state_of(h, p, head->seq);

	switch (state) {
	case LAG_HANG_FINISHED:
		return lag_hang_joins_all(head->func) ? HOLD_NOT_ITSELF : HOLD_NOTHING;
	case LAG_HANG_NEVER:
	case LAG_HANG_NO_RECORD:
		return p->r < 0 ? HOLD_NOTHING : HOLD_ABSENT;
	default:
		if (!same_op(head, &h->heads[p->r]))
			return h->heads[p->r].any ? HOLD_ELSEWHERE : HOLD_NOTHING;
		return head->started && held_back(h, p->r, &h->heads[p->r]) ? HOLD_ELSEWHERE
									    : HOLD_NOTHING;
	}
}

/* Every member is in the operation: communication hangs if all are known to have started. */
static enum lag_hang_end end_of_all(const struct lag_hang *h, const struct lag_hang_head *head)
{
	const struct lag_comm *c = &h->trace->comms[head->comm];

	if (c->n_ranks < 0 || (uint32_t)c->n_ranks > c->n_members)
		return LAG_HANG_UNKNOWN;
	for (uint32_t m = 0; m < c->n_members; m++) {
		if (lag_hang_state_of(h, &h->places[c->first_member + m], head->seq) !=
		    LAG_HANG_STARTED)
			return LAG_HANG_UNKNOWN;
	}
	return LAG_HANG_TOGETHER;
}

static enum lag_status walk_collective(struct walk *w, uint32_t r)
{
	struct lag_hang *h = w->h;
	const struct lag_hang_head *head = &h->heads[r];
	const struct lag_comm *c = &h->trace->comms[head->comm];
	size_t n_of[HOLD_NOT_ITSELF + 1] = { 0 };
	enum hold worst;
	enum lag_status st = LAG_OK;

	for (uint32_t m = 0; m < c->n_members; m++) {
		const struct lag_hang_place *p = &h->places[c->first_member + m];

		if (p->r != (int32_t)r)
			n_of[hold_of(h, head, p)]++;
	}
	worst = n_of[HOLD_NOT_ITSELF]  ? HOLD_NOT_ITSELF
		: n_of[HOLD_ABSENT]    ? HOLD_ABSENT
		: n_of[HOLD_ELSEWHERE] ? HOLD_ELSEWHERE
				       : HOLD_NOTHING;
	if (worst == HOLD_NOT_ITSELF) {
		end_at(w, r, LAG_HANG_LOCAL);
	} else if (worst == HOLD_NOTHING) {
		end_at(w, r, end_of_all(h, head));
	}
	for (uint32_t m = 0; m < c->n_members && st == LAG_OK; m++) {
		const struct lag_hang_place *p = &h->places[c->first_member + m];

		if (p->r != (int32_t)r && (worst == HOLD_ABSENT || worst == HOLD_ELSEWHERE) &&
		    hold_of(h, head, p) == worst)
			st = wait_for(w, r, p->r);
	}
	return st;
}

static enum lag_status walk_message(struct walk *w, uint32_t r)
{
	const struct lag_hang_head *head = &w->h->heads[r], *other;

	if (head->peer < 0) {
		end_at(w, r, LAG_HANG_UNKNOWN);
		return LAG_OK;
	}
	other = &w->h->heads[head->peer];
	/* Both in a message with each other: it is what hangs, if both have started. */
	if (other->any && other->seq < 0 && other->comm == head->comm &&
	    other->peer == (int32_t)r && other->func != head->func) {
		end_at(w, r,
		       head->started && other->started ? LAG_HANG_TOGETHER : LAG_HANG_UNKNOWN);
		return LAG_OK;
	}
	return wait_for(w, r, head->peer);
}

static enum lag_status walk_from(struct walk *w, uint32_t r)
{
	const struct lag_hang_head *head = &w->h->heads[r];

	if (!head->any)
		return LAG_OK;
	if (held_back(w->h, (int32_t)r, head) && lag_hang_running(w->h, r)) {
		end_at(w, r, LAG_HANG_BLOCKED);
		return LAG_OK;
	}
	return head->seq < 0 ? walk_message(w, r) : walk_collective(w, r);
}

static int by_target(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static int by_source(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* The same among edges sorted by where they come from. */
static size_t first_from(const struct walk *w, uint32_t from)
{
	size_t lo = 0, hi = w->edges.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (LAG_VEC_AT(&w->edges, struct edge, mid).from < from) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static size_t first_edge(const struct walk *w, uint32_t to)
{
	size_t lo = 0, hi = w->edges.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (LAG_VEC_AT(&w->edges, struct edge, mid).to < to) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* Everyone whose walk ends at r, r not counted; the first that waits for it directly in *direct. */
static uint32_t count_waiting(struct walk *w, uint32_t r, uint32_t stamp, int32_t *direct)
{
	uint32_t n = 0, head = 0, tail = 0;

	*direct = -1;
	w->queue[tail++] = r;
	w->stamp[r] = stamp;
	w->reached[r] = true;
	while (head < tail) {
		uint32_t at = w->queue[head++];

		for (size_t i = first_edge(w, at);
		     i < w->edges.n && LAG_VEC_AT(&w->edges, struct edge, i).to == at; i++) {
			uint32_t from = LAG_VEC_AT(&w->edges, struct edge, i).from;

			/* A collective tells more than a message. */
			if (at == r && (*direct < 0 || (w->h->heads[*direct].seq < 0 &&
							w->h->heads[from].seq >= 0)))
				*direct = (int32_t)from;
			if (w->stamp[from] == stamp)
				continue;
			w->stamp[from] = stamp;
			w->reached[from] = true;
			w->queue[tail++] = from;
			n++;
		}
	}
	return n;
}

static enum lag_status add_suspect(struct walk *w, uint32_t r, uint32_t stamp)
{
	const struct lag_hang *h = w->h;
	const struct lag_hang_head *head = &h->heads[r];
	struct lag_hang_suspect *s = lag_vec_push(&w->h->suspects);
	int32_t direct;

	if (!s)
		return LAG_ERR_SYSTEM;
	s->end = (enum lag_hang_end)(w->root[r] - 1);
	s->r = (int32_t)r;
	s->n_waiting = count_waiting(w, r, stamp, &direct);
	/* A silent rank has nothing under way: what it lacks in is what the first waits in. */
	if (!head->any && direct >= 0)
		head = &h->heads[direct];
	s->comm = head->comm;
	s->seq = head->seq;
	s->func = head->func;
	s->sizes = head->sizes;
	return LAG_OK;
}

/* Ranks that stand in one operation together are one suspect. */
static void join_equal(struct lag_vec *suspects)
{
	size_t kept = 0;

	for (size_t i = 0; i < suspects->n; i++) {
		struct lag_hang_suspect *s = &LAG_VEC_AT(suspects, struct lag_hang_suspect, i);
		bool known = false;

		for (size_t k = 0; k < kept && !known; k++) {
			struct lag_hang_suspect *o =
				&LAG_VEC_AT(suspects, struct lag_hang_suspect, k);

			known = (s->end == LAG_HANG_TOGETHER || s->end == LAG_HANG_UNKNOWN) &&
				o->end == s->end && o->comm == s->comm && o->seq == s->seq &&
				s->seq >= 0;
			if (known) {
				o->r = -1;
				o->n_waiting =
					s->n_waiting > o->n_waiting ? s->n_waiting : o->n_waiting;
			}
		}
		if (!known)
			LAG_VEC_AT(suspects, struct lag_hang_suspect, kept++) = *s;
	}
	suspects->n = kept;
}

/* Marks as reached what no other unreached rank waits for, until nothing more is. */
static void drop_unwanted(struct walk *w)
{
	uint32_t n = (uint32_t)w->h->trace->n_ranks, head = 0, tail = 0;
	uint32_t *n_wanting = w->stamp;
	struct edge *e = w->edges.items;

	for (uint32_t r = 0; r < n; r++)
		n_wanting[r] = 0;
	for (size_t i = 0; i < w->edges.n; i++)
		n_wanting[e[i].to] += !w->reached[e[i].from];
	for (uint32_t r = 0; r < n; r++) {
		if (!w->reached[r] && !n_wanting[r])
			w->queue[tail++] = r;
	}
	if (w->edges.n)
		qsort(e, w->edges.n, sizeof(*e), by_source);
	while (head < tail) {
		uint32_t r = w->queue[head++];

		w->reached[r] = true;
		for (size_t i = first_from(w, r); i < w->edges.n && e[i].from == r; i++) {
			if (!--n_wanting[e[i].to] && !w->reached[e[i].to])
				w->queue[tail++] = e[i].to;
		}
	}
}

/* Ranks that stand and whose walks end nowhere go round: those that others of them wait for. */
static enum lag_status find_deadlock(struct walk *w)
{
	struct lag_hang *h = w->h;
	struct lag_hang_suspect *s;

	drop_unwanted(w);
	for (uint32_t r = 0; r < h->trace->n_ranks; r++) {
		if (!w->reached[r] && h->heads[r].any)
			h->deadlocked[h->n_deadlocked++] = (int32_t)r;
	}
	if (!h->n_deadlocked)
		return LAG_OK;
	s = lag_vec_push(&h->suspects);
	if (!s)
		return LAG_ERR_SYSTEM;
	*s = (struct lag_hang_suspect){ .end = LAG_HANG_DEADLOCK,
					.r = -1,
					.comm = h->heads[h->deadlocked[0]].comm,
					.seq = h->heads[h->deadlocked[0]].seq,
					.func = h->heads[h->deadlocked[0]].func,
					.sizes = h->heads[h->deadlocked[0]].sizes,
					.n_waiting = h->n_standing - (uint32_t)h->n_deadlocked };
	return LAG_OK;
}

static int by_weight(const void *a, const void *b)
{
	const struct lag_hang_suspect *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	if (x->n_waiting != y->n_waiting)
		return x->n_waiting > y->n_waiting ? -1 : 1;
	return x->r < y->r ? -1 : x->r > y->r;
}

/* Whether the record of rank r tells that it never called what another waits in. */
static bool is_silent(const struct lag_hang *h, uint32_t r, const struct lag_hang_head *waiter)
{
	const struct lag_hang_place *p = lag_hang_place_of(h, waiter->comm, r);
	const struct lag_rank *rank = &h->trace->ranks[r];

	if (waiter->seq >= 0)
		return p && lag_hang_state_of(h, p, waiter->seq) == LAG_HANG_NEVER;
	/* Of messages only what is under way is known: a recording that goes on must show it. */
	return rank->recorded && (h->seen_rank[r] || rank->last_ns >= waiter->at_ns);
}

static enum lag_status find_suspects(struct walk *w)
{
	const struct lag_trace *t = w->h->trace;
	enum lag_status st = LAG_OK;

	for (uint32_t r = 0; r < t->n_ranks && st == LAG_OK; r++)
		st = walk_from(w, r);
	if (w->edges.n)
		qsort(w->edges.items, w->edges.n, w->edges.item_size, by_target);
	for (size_t i = 0; i < w->edges.n; i++) {
		const struct edge *e = &LAG_VEC_AT(&w->edges, struct edge, i);

		if (w->h->heads[e->to].any || w->root[e->to] == LAG_HANG_SILENT + 1)
			continue;
		end_at(w, e->to,
		       is_silent(w->h, e->to, &w->h->heads[e->from]) ? LAG_HANG_SILENT
								     : LAG_HANG_NOT_RECORDED);
	}
	for (uint32_t r = 0; r < t->n_ranks && st == LAG_OK; r++) {
		if (w->root[r])
			st = add_suspect(w, r, r + 1);
	}
	if (st == LAG_OK)
		st = find_deadlock(w);
	join_equal(&w->h->suspects);
	if (w->h->suspects.n) {
		qsort(w->h->suspects.items, w->h->suspects.n, w->h->suspects.item_size, by_weight);
	}
	return st;
}

enum lag_status lag_hang_walk(struct lag_hang *h)
{
	size_t n = h->trace->n_ranks;
	struct walk w = { .h = h,
			  .edges = LAG_VEC_INIT(struct edge),
			  .root = lag_calloc(n, sizeof(*w.root)),
			  .reached = lag_calloc(n, sizeof(*w.reached)),
			  .stamp = lag_calloc(n, sizeof(*w.stamp)),
			  .queue = lag_calloc(n, sizeof(*w.queue)) };
	enum lag_status st =
		w.root && w.reached && w.stamp && w.queue ? find_suspects(&w) : LAG_ERR_SYSTEM;

	lag_vec_release(&w.edges);
	free(w.root);
	free(w.reached);
	free(w.stamp);
	free(w.queue);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Forward: an end that comes too early is moved to what it waits for, later events of its device follow
 * with a shift that dies away. Backward: earlier ones are moved up to it, no farther than those that wait
 * for them allow. Rounds of both, until nothing moves. */
#include "merge/clock_order.h"

#include <math.h>
#include <stdlib.h>

#include "merge/align_common.h"
#include "merge/clock_view.h"

enum {
	ROUNDS = 64 /* a chain of as many ranks that push each other on is still repaired */
};

/* What remains of a local distance while a shift dies away. */
#define GAMMA 0.99

/* A start or an end on the common clock. */
struct event {
	int64_t at_ns;
	double shift; /* >= 0 */
	uint32_t device;
	uint32_t cause; /* 1 + index of its cause; 0 = none: a start */
	bool start;
};

/* What an end waits for: all starts of its operation (or the one of its message). */
struct cause {
	uint32_t first, n; /* into starts */
};

struct repair {
	struct lag_vec events; /* struct event; in order of making, until sorted */
	struct lag_vec causes; /* struct cause */
	struct lag_vec starts; /* uint32_t: event of each start, by cause */
	uint32_t *order;       /* events by device, then time */
	double *slack;         /* by event: how far a start may move before somebody must */
};

static bool push_start(struct repair *r, const struct lag_align_result *res,
		       const struct lag_align_member *m)
{
	uint32_t *at = lag_vec_push(&r->starts);
	struct event *e = at ? lag_vec_push(&r->events) : NULL;

	if (!e)
		return false;
	*at = (uint32_t)r->events.n - 1;
	*e = (struct event){ lag_align_apply(res, m->host, m->device, m->start_ns), 0, m->device, 0,
			     true };
	return true;
}

static bool push_end(struct repair *r, const struct lag_align_result *res,
		     const struct lag_align_member *m)
{
	struct event *e = lag_vec_push(&r->events);

	if (e) {
		*e = (struct event){ lag_align_apply(res, m->host, m->device, m->end_ns), 0,
				     m->device, (uint32_t)r->causes.n, false };
	}
	return e != NULL;
}

static bool push_cause(struct repair *r)
{
	struct cause *c = lag_vec_push(&r->causes);

	if (c)
		*c = (struct cause){ (uint32_t)r->starts.n, 0 };
	return c != NULL;
}

static bool add_collective(struct repair *r, const struct lag_align_input *in,
			   const struct lag_align_result *res, const struct lag_align_collective *c)
{
	bool ok = push_cause(r);

	for (uint32_t i = 0; ok && i < c->n_members; i++) {
		const struct lag_align_member *m = &in->members[c->first_member + i];

		if (lag_clock_known(m))
			ok = push_start(r, res, m) && push_end(r, res, m);
	}
	if (ok) {
		struct cause *cause = &LAG_VEC_AT(&r->causes, struct cause, r->causes.n - 1);
		cause->n = (uint32_t)r->starts.n - cause->first;
	}
	return ok;
}

static bool collect(struct repair *r, const struct lag_align_input *in,
		    const struct lag_align_result *res)
{
	bool ok = true;

	for (size_t i = 0; ok && i < in->n_collectives; i++) {
		const struct lag_align_collective *c = &in->collectives[i];

		if (lag_clock_usable(c->func, c->bytes) && c->n_members > 1)
			ok = add_collective(r, in, res, c);
	}
	for (size_t i = 0; ok && i < in->n_messages; i++) {
		const struct lag_align_message *m = &in->messages[i];

		if (!lag_clock_known(&m->send) || !lag_clock_known(&m->recv))
			continue;
		ok = push_cause(r) && push_start(r, res, &m->send) && push_end(r, res, &m->recv);
		if (ok)
			LAG_VEC_AT(&r->causes, struct cause, r->causes.n - 1).n = 1;
	}
	return ok;
}

#define EVENT(r, i) (&LAG_VEC_AT(&(r)->events, struct event, i))

struct sortable {
	int64_t at_ns;
	uint32_t device, event;
};

static int by_device_time(const void *pa, const void *pb)
{
	const struct sortable *a = pa;
	const struct sortable *b = pb;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return (a->event > b->event) - (a->event < b->event);
}

static bool sort_events(struct repair *r)
{
	struct sortable *s = lag_calloc(r->events.n, sizeof(*s));

	r->order = lag_calloc(r->events.n, sizeof(*r->order));
	r->slack = lag_calloc(r->events.n, sizeof(*r->slack));
	if (!s || !r->order || !r->slack) {
		free(s);
		return false;
	}
	for (size_t i = 0; i < r->events.n; i++)
		s[i] = (struct sortable){ EVENT(r, i)->at_ns, EVENT(r, i)->device, (uint32_t)i };
	if (r->events.n)
		qsort(s, r->events.n, sizeof(*s), by_device_time);
	for (size_t i = 0; i < r->events.n; i++)
		r->order[i] = s[i].event;
	free(s);
	return true;
}

/* By how much an end is before the last start that it waits for; <= 0: it is not. */
static double lacking(const struct repair *r, const struct event *e)
{
	const struct cause *c = &LAG_VEC_AT(&r->causes, struct cause, e->cause - 1);
	double most = -INFINITY;

	for (uint32_t k = 0; k < c->n; k++) {
		const struct event *s = EVENT(r, LAG_VEC_AT(&r->starts, uint32_t, c->first + k));

		most = fmax(most, (double)(s->at_ns - e->at_ns) + s->shift);
	}
	return most - e->shift;
}

/* Returns whether anything moved. */
static bool forward(struct repair *r)
{
	bool moved = false;
	double shift = 0;

	for (size_t i = 0; i < r->events.n; i++) {
		struct event *e = EVENT(r, r->order[i]);
		const struct event *before = i ? EVENT(r, r->order[i - 1]) : NULL;

		if (!before || before->device != e->device) {
			shift = 0;
		} else {
			shift = floor(shift - (1 - GAMMA) * (double)(e->at_ns - before->at_ns));
		}
		shift = fmax(shift, e->shift);
		if (shift > e->shift + 0.5) {
			e->shift = shift;
			moved = true;
		}
		double more = e->start ? 0 : lacking(r, e);
		if (more > 0.5) {
			e->shift = ceil(e->shift + more);
			moved = true;
		}
		shift = e->shift;
	}
	return moved;
}

/* How far each start may move before an end that waits for it must. */
static void find_slack(struct repair *r)
{
	for (size_t i = 0; i < r->events.n; i++)
		r->slack[i] = INFINITY;
	for (size_t i = 0; i < r->events.n; i++) {
		const struct event *e = EVENT(r, i);
		const struct cause *c;

		if (e->start)
			continue;
		c = &LAG_VEC_AT(&r->causes, struct cause, e->cause - 1);
		for (uint32_t k = 0; k < c->n; k++) {
			uint32_t s = LAG_VEC_AT(&r->starts, uint32_t, c->first + k);
			const struct event *start = EVENT(r, s);
			double room = (double)(e->at_ns - start->at_ns) + e->shift - start->shift;

			r->slack[s] = fmin(r->slack[s], fmax(room, 0));
		}
	}
}

static void backward(struct repair *r)
{
	double shift = 0;

	find_slack(r);
	for (size_t i = r->events.n; i-- > 0;) {
		struct event *e = EVENT(r, r->order[i]);
		const struct event *after = i + 1 < r->events.n ? EVENT(r, r->order[i + 1]) : NULL;

		if (!after || after->device != e->device) {
			shift = 0;
		} else {
			shift = floor(shift - (1 - GAMMA) * (double)(after->at_ns - e->at_ns));
		}
		if (shift > e->shift) {
			double room = e->start ? r->slack[r->order[i]] : INFINITY;

			e->shift = fmin(shift, e->shift + room);
		}
		shift = e->shift;
	}
}

static bool push_knot(struct lag_vec *out, uint32_t device, int64_t at, double shift)
{
	struct lag_align_repair *k = lag_vec_push(out);

	if (k)
		*k = (struct lag_align_repair){ device, at, shift };
	return k != NULL;
}

/* A device's shifts become a line from event to event; where nothing is moved there is no knot. */
static bool knots(const struct repair *r, struct lag_align_result *out)
{
	struct lag_vec v = LAG_VEC_INIT(struct lag_align_repair);
	bool ok = true;

	for (size_t i = 0; ok && i < r->events.n; i++) {
		const struct event *e = EVENT(r, r->order[i]);
		const struct event *a = i ? EVENT(r, r->order[i - 1]) : NULL;
		const struct event *b = i + 1 < r->events.n ? EVENT(r, r->order[i + 1]) : NULL;
		bool first = !a || a->device != e->device;
		bool last = !b || b->device != e->device;

		out->repair_max_ns = fmax(out->repair_max_ns, e->shift);
		if (e->shift <= 0 && (first || a->shift <= 0) && (last || b->shift <= 0))
			continue;
		int64_t fade = (int64_t)(e->shift / (1 - GAMMA)) + 1;
		/* Events at one moment share the largest of their shifts. */
		if (!last && b->at_ns == e->at_ns)
			continue;
		/* The first that is told, which need not be the first event: it may share its moment. */
		if (!v.n || LAG_VEC_AT(&v, struct lag_align_repair, v.n - 1).device != e->device)
			ok = push_knot(&v, e->device, e->at_ns - fade, 0);
		ok = ok && push_knot(&v, e->device, e->at_ns, e->shift);
		if (last)
			ok = ok && push_knot(&v, e->device, e->at_ns + fade, 0);
	}
	if (!ok) {
		lag_vec_release(&v);
		return false;
	}
	out->repairs = v.items;
	out->n_repairs = v.n;
	return true;
}

enum lag_status lag_clock_order(const struct lag_align_input *in, struct lag_align_result *out,
				struct lag_err *err)
{
	struct repair r = { .events = LAG_VEC_INIT(struct event),
			    .causes = LAG_VEC_INIT(struct cause),
			    .starts = LAG_VEC_INIT(uint32_t) };
	bool ok;

	r.events.max = r.starts.max = UINT32_MAX - 1;
	out->n_repaired = out->n_violations;
	ok = out->n_violations == 0 || (collect(&r, in, out) && sort_events(&r));
	if (ok && out->n_violations) {
		for (int i = 0; i < ROUNDS && forward(&r); i++)
			backward(&r);
		ok = knots(&r, out);
		if (ok)
			lag_align_count(in, out);
	}
	lag_vec_release(&r.events);
	lag_vec_release(&r.causes);
	lag_vec_release(&r.starts);
	free(r.order);
	free(r.slack);
	return ok ? LAG_OK
		  : lag_err_set(err, LAG_ERR_SYSTEM, "out of memory to repair the order of events");
}

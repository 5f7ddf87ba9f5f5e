/* SPDX-License-Identifier: Apache-2.0 */
/* Limits are thinned to the tightest of each pair and moment: looser ones cannot move a bound much,
 * and leaving some out only widens it. */
#include "merge/clock_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/align_common.h"
#include "merge/clock_bound.h"

enum {
	ALL_PAIRS_HOSTS = 16, /* above it only pairs with the last arriver or the reference */
	MAX_LIMITS = 2000000,
	MAX_SOLVES = 48,
	TABLE_HOSTS = 32,
	BINS = 256 /* over x = -2..2 */
};

/* Conversion errors of both devices may make a limit look tighter than it is. Without an estimate:
 * twice the worst seen anywhere. */
#define GUARD_BLIND_NS 60000.0
#define GUARD_FACTOR   5.0

struct host_times {
	int64_t *first_end, *last_start;
	uint32_t *hosts;
	uint32_t n;
};

struct build {
	const struct lag_clock_solved *s;
	struct lag_vec limits; /* struct lag_bound_limit */
	/* By earlier, later, bin: the tightest so far; NULL: too many hosts, all go into limits. */
	struct lag_bound_limit *best;
	double guard_ns;
	size_t thin; /* each n-th collective is enough */
};

static int bin(double x)
{
	double k = floor((x + 2) * (BINS / 4.0));
	return k < 0 ? 0 : k >= BINS ? BINS - 1 : (int)k;
}

static bool limit(struct build *b, uint32_t earlier, int64_t end, uint32_t later, int64_t start)
{
	double e = lag_clock_corrected(b->s, earlier, end);
	double s = lag_clock_corrected(b->s, later, start);
	struct lag_bound_limit new = { .earlier = earlier,
				       .later = later,
				       .x = e / b->s->view->span_ns,
				       .slack_ns = e - s + 2 * b->guard_ns };
	struct lag_bound_limit *l;
	if (b->best) {
		size_t n = b->s->view->in->n_hosts;
		l = &b->best[(earlier * n + later) * BINS + (size_t)bin(new.x)];
		if (l->earlier == l->later || new.slack_ns < l->slack_ns)
			*l = new;
		return true;
	}
	l = lag_vec_push(&b->limits);
	if (l)
		*l = new;
	return l != NULL;
}

static void host_times(const struct lag_clock_view *view, const struct lag_align_collective *c,
		       struct host_times *t)
{
	t->n = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = &view->members[c->first_member + i];
		uint32_t k = 0;
		if (!lag_clock_known(m))
			continue;
		/* Members come host by host or nearly: look from the newest back. */
		for (k = t->n; k > 0 && t->hosts[k - 1] != m->host;)
			k--;
		if (k == 0) {
			t->hosts[t->n] = m->host;
			t->first_end[t->n] = m->end_ns;
			t->last_start[t->n++] = m->start_ns;
			continue;
		}
		k--;
		t->first_end[k] = m->end_ns < t->first_end[k] ? m->end_ns : t->first_end[k];
		t->last_start[k] = m->start_ns > t->last_start[k] ? m->start_ns : t->last_start[k];
	}
}

static bool limit_collective(struct build *b, const struct host_times *t)
{
	uint32_t last = 0;
	for (uint32_t k = 1; k < t->n; k++) {
		if (lag_clock_corrected(b->s, t->hosts[k], t->last_start[k]) >
		    lag_clock_corrected(b->s, t->hosts[last], t->last_start[last]))
			last = k;
	}
	for (uint32_t i = 0; i < t->n; i++) {
		for (uint32_t k = 0; k < t->n; k++) {
			bool wanted = t->n <= ALL_PAIRS_HOSTS || k == last ||
				      t->hosts[i] == b->s->reference ||
				      t->hosts[k] == b->s->reference;
			if (i != k && wanted &&
			    !limit(b, t->hosts[i], t->first_end[i], t->hosts[k], t->last_start[k]))
				return false;
		}
	}
	return true;
}

static bool limit_collectives(struct build *b)
{
	const struct lag_align_input *in = b->s->view->in;
	size_t n = in->n_hosts;
	struct host_times t = { lag_calloc(n, sizeof(int64_t)), lag_calloc(n, sizeof(int64_t)),
				lag_calloc(n, sizeof(uint32_t)), 0 };
	bool ok = t.first_end && t.last_start && t.hosts;
	size_t seen = 0;
	for (size_t i = 0; ok && i < in->n_collectives && b->limits.n < MAX_LIMITS; i++) {
		const struct lag_align_collective *c = &in->collectives[i];
		if (!lag_clock_usable(c->func, c->bytes) || !lag_clock_pick(seen++, b->thin))
			continue;
		host_times(b->s->view, c, &t);
		ok = limit_collective(b, &t);
	}
	free(t.first_end);
	free(t.last_start);
	free(t.hosts);
	return ok;
}

static bool limit_messages(struct build *b)
{
	const struct lag_align_input *in = b->s->view->in;
	for (size_t i = 0; i < in->n_messages; i++) {
		const struct lag_align_message *m = &b->s->view->messages[i];
		if (m->send.host != m->recv.host && lag_clock_known(&m->send) &&
		    lag_clock_known(&m->recv) &&
		    !limit(b, m->recv.host, m->recv.end_ns, m->send.host, m->send.start_ns))
			return false;
	}
	return true;
}

static int by_bin(const void *pa, const void *pb)
{
	const struct lag_bound_limit *a = pa;
	const struct lag_bound_limit *b = pb;
	if (a->earlier != b->earlier)
		return a->earlier < b->earlier ? -1 : 1;
	if (a->later != b->later)
		return a->later < b->later ? -1 : 1;
	if (bin(a->x) != bin(b->x))
		return bin(a->x) < bin(b->x) ? -1 : 1;
	return (a->slack_ns > b->slack_ns) - (a->slack_ns < b->slack_ns);
}

/* The tightest limit of each bin. */
static void thin(struct lag_vec *limits)
{
	struct lag_bound_limit *l = limits->items;
	size_t n = 0;
	if (limits->n == 0)
		return;
	qsort(l, limits->n, sizeof(*l), by_bin);
	for (size_t i = 0; i < limits->n; i++) {
		if (n && l[n - 1].earlier == l[i].earlier && l[n - 1].later == l[i].later &&
		    bin(l[n - 1].x) == bin(l[i].x))
			continue;
		l[n++] = l[i];
	}
	limits->n = n;
	qsort(l, n, sizeof(*l), lag_bound_order);
}

/* Pieces of bent curves are not quite the lines that bounds take them for: by what messages move. */
static double unbent(const struct lag_clock_solved *s)
{
	double worst = 0;
	if (s->model->knots.n == 0)
		return 0;
	for (size_t i = 0; i < s->gather->pairs.n; i++) {
		const struct lag_clock_pair *p =
			&LAG_VEC_AT(&s->gather->pairs, struct lag_clock_pair, i);
		worst = fmax(worst, 2 * lag_clock_pair_scatter(s->view, p, s->model));
	}
	return worst;
}

static enum lag_status make_limits(struct build *b, const struct lag_clock_trust *trust,
				   struct lag_err *err)
{
	const struct lag_align_input *in = b->s->view->in;
	size_t per = in->n_hosts <= ALL_PAIRS_HOSTS ? (size_t)in->n_hosts * in->n_hosts
						    : 3 * (size_t)in->n_hosts;
	b->guard_ns = trust ? GUARD_FACTOR * trust->device_ns : GUARD_BLIND_NS;
	b->guard_ns += unbent(b->s);
	b->thin = in->n_collectives * per / MAX_LIMITS + 1;
	size_t n_best = (size_t)in->n_hosts * in->n_hosts * BINS;
	if (in->n_hosts <= TABLE_HOSTS)
		b->best = lag_calloc(n_best, sizeof(*b->best));
	bool ok = limit_collectives(b) && limit_messages(b);
	for (size_t i = 0; ok && b->best && i < n_best; i++) {
		struct lag_bound_limit *l;
		if (b->best[i].earlier == b->best[i].later)
			continue;
		l = lag_vec_push(&b->limits);
		ok = l != NULL;
		if (l)
			*l = b->best[i];
	}
	free(b->best);
	b->best = NULL;
	if (!ok)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock bounds");
	thin(&b->limits);
	return LAG_OK;
}

/* Where a host's map changes: a setting that brackets showed, or a knot of the fit. Repaired time. */
struct change {
	int64_t at_ns;
};

static int by_time(const void *pa, const void *pb)
{
	const struct change *a = pa;
	const struct change *b = pb;
	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static int64_t knot_ns(const struct lag_clock_view *view, const struct lag_fit_knot *k, double x)
{
	return view->origin_ns[k->host] + llround(x * view->span_ns);
}

static bool find_changes(const struct lag_clock_solved *s, uint32_t host, struct lag_vec *out)
{
	const struct lag_clock_view *view = s->view;
	uint32_t n;
	const struct lag_fit_knot *knots = lag_fit_knots(s->model, host, &n);
	out->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct change *c = lag_vec_push(out);
		if (!c)
			return false;
		c->at_ns = knot_ns(view, &knots[i], knots[i].x);
	}
	for (size_t i = 0; i < view->breaks.n; i++) {
		const struct lag_clock_break *b =
			&LAG_VEC_AT(&view->breaks, struct lag_clock_break, i);
		struct change *c;
		if (b->host != host)
			continue;
		c = lag_vec_push(out);
		if (!c)
			return false;
		c->at_ns = b->from_ns - b->shift_ns;
	}
	if (out->n)
		qsort(out->items, out->n, sizeof(struct change), by_time);
	return true;
}

/* The host's reading that is corrected to the middle of the reference's run, on the curve's piece at x
 * (relative to the host's origin). */
static int64_t middle_of(const struct lag_clock_solved *s, uint32_t host, double x)
{
	const struct lag_clock_view *view = s->view;
	double away = (double)(view->origin_ns[host] - view->origin_ns[s->reference]);
	double z = x * view->span_ns;
	double drift = lag_fit_slope(s->model, host, x) / view->span_ns;
	double over = z + away + lag_fit_value(s->model, host, x);
	double reach = z - over / (1 + drift);
	return fabs(reach) < 4e18 ? llround(reach) : 0;
}

/* One piece of a host's map, from repaired time `from` to `until`. All hosts' pieces refer to one
 * moment, the middle of the reference's run, where they contain it; else to their own middle. */
static struct lag_align_segment piece(const struct lag_clock_solved *s, uint32_t host, int64_t from,
				      int64_t until)
{
	const struct lag_clock_view *view = s->view;
	int64_t origin = view->origin_ns[host];
	int64_t lo = from > view->first_ns[host] ? from : view->first_ns[host];
	int64_t hi = until < view->last_ns[host] ? until : view->last_ns[host];
	int64_t inside = lo <= hi ? lo + (hi - lo) / 2 : from == INT64_MIN ? until - 1 : from;
	double x = (double)(inside - origin) / view->span_ns;
	double drift = lag_fit_slope(s->model, host, x) / view->span_ns;
	int64_t z = middle_of(s, host, x);
	if (origin + z < from || origin + z >= until)
		z = inside - origin;
	double offset = lag_fit_value(s->model, host, x) + drift * ((double)z - x * view->span_ns);
	int64_t shift = lag_clock_shift(view, host, inside);
	return (struct lag_align_segment){ .host = host,
					   .from_ns = from,
					   .ref_ns = origin + z + shift,
					   .offset_ns = offset - (double)shift,
					   .drift = drift,
					   .n_observations = s->model->n_obs[host] };
}

static enum lag_align_basis basis_of(const struct lag_clock_solved *s, uint32_t host)
{
	const struct lag_clock_gather *g = s->gather;
	bool messages = g && g->n_exchanges > 0;
	if (host == s->reference)
		return LAG_ALIGN_REFERENCE;
	if (!g)
		return LAG_ALIGN_WALL;
	if (g->set[host] != g->set[s->reference])
		return isfinite(s->prior_ns[host]) ? LAG_ALIGN_WALL : LAG_ALIGN_NOTHING;
	if (g->ends[host] != g->ends[s->reference])
		return LAG_ALIGN_MESSAGES;
	for (size_t i = 0; i < g->pairs.n; i++)
		messages |= LAG_VEC_AT(&g->pairs, struct lag_clock_pair, i).in_fit;
	return messages ? LAG_ALIGN_BOTH : LAG_ALIGN_COLLECTIVES;
}

/* Segments of one host; bounds still open. */
static bool host_segments(const struct lag_clock_solved *s, const struct lag_clock_trust *trust,
			  uint32_t host, struct lag_vec *changes, struct lag_vec *out)
{
	const struct lag_clock_view *view = s->view;
	int64_t first = view->first_ns[host] <= view->last_ns[host] ? view->first_ns[host] : 0;
	int64_t from = INT64_MIN;
	if (!find_changes(s, host, changes))
		return false;
	for (size_t i = 0; i <= changes->n; i++) {
		int64_t until =
			i < changes->n ? LAG_VEC_AT(changes, struct change, i).at_ns : INT64_MAX;
		struct lag_align_segment *seg;
		if (until <= from && i < changes->n)
			continue;
		seg = lag_vec_push(out);
		if (!seg)
			return false;
		*seg = piece(s, host, from, until);
		seg->from_ns = i ? from + lag_clock_shift(view, host, from) : first;
		seg->basis = basis_of(s, host);
		seg->uncertainty_ns = trust ? trust->host_ns[host] : -1;
		seg->bound_lo_ns = -INFINITY;
		seg->bound_hi_ns = INFINITY;
		from = until;
	}
	return true;
}

/* A host's repaired time on the axis of the limits. */
static double limit_x(const struct lag_clock_solved *s, uint32_t host, int64_t repaired_ns)
{
	return lag_clock_corrected(s, host, repaired_ns) / s->view->span_ns;
}

/* For each host the piece of its curve around x; false when none bends: one line throughout. */
static bool find_windows(const struct lag_clock_solved *s, double x,
			 struct lag_bound_window *windows)
{
	bool any = false;
	for (uint32_t h = 0; h < s->view->in->n_hosts; h++) {
		uint32_t n;
		const struct lag_fit_knot *k = lag_fit_knots(s->model, h, &n);
		windows[h] = (struct lag_bound_window){ -INFINITY, INFINITY };
		for (uint32_t i = 0; i < n; i++) {
			double before = limit_x(s, h, knot_ns(s->view, &k[i], k[i].x - k[i].reach));
			double after = limit_x(s, h, knot_ns(s->view, &k[i], k[i].x + k[i].reach));
			any = true;
			if (after <= x) {
				windows[h].from = after;
			} else if (windows[h].until == INFINITY) {
				windows[h].until = before;
			}
		}
	}
	return any;
}

/* While a clock may or may not have been set yet, a time is off by as much as it was set. */
static double setting(const struct lag_clock_view *view, uint32_t host, int64_t raw_ns)
{
	double worst = 0;
	for (size_t i = 0; i < view->breaks.n; i++) {
		const struct lag_clock_break *b =
			&LAG_VEC_AT(&view->breaks, struct lag_clock_break, i);
		if (b->host == host && raw_ns >= b->from_ns - b->margin_ns &&
		    raw_ns < b->from_ns + b->margin_ns)
			worst = fmax(worst, fabs((double)b->step_ns));
	}
	return worst;
}

static enum lag_status bound_segments(struct build *b, bool trusted, struct lag_vec *segments,
				      struct lag_err *err)
{
	const struct lag_clock_solved *s = b->s;
	uint32_t n = s->view->in->n_hosts;
	struct lag_bound *bounds = lag_calloc(n, sizeof(*bounds));
	struct lag_bound_window *windows = lag_calloc(n, sizeof(*windows));
	double solved = NAN;
	int solves = 0;
	enum lag_status st = bounds && windows
				     ? LAG_OK
				     : lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for bounds");
	for (size_t i = 0; st == LAG_OK && i < segments->n; i++) {
		struct lag_align_segment *seg = &LAG_VEC_AT(segments, struct lag_align_segment, i);
		double repaired = (double)(seg->ref_ns - s->view->origin_ns[s->reference]);
		double x = (repaired + seg->offset_ns) / s->view->span_ns;
		double relaxed;
		/* To a nanosecond or two: the common middle, and what brackets cut, are one moment. */
		if (!(fabs(x - solved) * s->view->span_ns < 16)) {
			if (solves++ == MAX_SOLVES)
				break;
			bool bent = find_windows(s, x, windows);
			struct lag_bound_moment at = { s->reference, x, bent ? windows : NULL };
			st = lag_bound_solve(b->limits.items, b->limits.n, n, &at, bounds, &relaxed,
					     err);
			solved = x;
		}
		if (st != LAG_OK)
			break;
		/* A moment at which the clock may or may not have been set yet. */
		double set = setting(s->view, seg->host, seg->ref_ns);
		seg->bound_lo_ns = seg->offset_ns + bounds[seg->host].lo_ns - set;
		seg->bound_hi_ns = seg->offset_ns + bounds[seg->host].hi_ns + set;
		double u = fmax(fabs(bounds[seg->host].lo_ns), fabs(bounds[seg->host].hi_ns));
		/* The reference is its own bound: that says nothing of what its devices' times are worth. */
		if (!trusted)
			seg->uncertainty_ns = isfinite(u) && seg->host != s->reference ? u : -1;
	}
	free(bounds);
	free(windows);
	return st;
}

/* Row of `device` in force at a repaired time; before its first row, that one. NULL without rows. */
static const struct lag_align_device *trust_at(const struct lag_clock_trust *trust, uint32_t device,
					       int64_t t)
{
	const struct lag_align_device *rows = trust->rows.items;
	size_t lo = 0;
	size_t hi = trust->rows.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (rows[mid].device < device ||
		    (rows[mid].device == device && rows[mid].from_ns <= t)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo > 0 && rows[lo - 1].device == device)
		return &rows[lo - 1];
	return lo < trust->rows.n && rows[lo].device == device ? &rows[lo] : NULL;
}

/* A moment from which something about a device is different, on raw time. */
struct cut {
	uint32_t device;
	int64_t at_ns;
};

static int by_device_time(const void *pa, const void *pb)
{
	const struct cut *a = pa;
	const struct cut *b = pb;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static bool push_cut(struct lag_vec *cuts, uint32_t device, int64_t at)
{
	struct cut *c = lag_vec_push(cuts);
	if (c)
		*c = (struct cut){ device, at };
	return c != NULL;
}

static bool find_cuts(const struct lag_clock_view *view, const struct lag_clock_trust *trust,
		      struct lag_vec *cuts)
{
	const uint32_t *host = view->in->device_host;
	for (size_t i = 0; i < trust->rows.n; i++) {
		const struct lag_align_device *r =
			&LAG_VEC_AT(&trust->rows, struct lag_align_device, i);
		int64_t shift = lag_clock_shift(view, host[r->device], r->from_ns);
		if (!push_cut(cuts, r->device, r->from_ns + shift))
			return false;
	}
	for (size_t i = 0; i < view->own.n; i++) {
		const struct lag_clock_own *o = &LAG_VEC_AT(&view->own, struct lag_clock_own, i);
		if (!push_cut(cuts, o->device, o->from_ns))
			return false;
	}
	for (size_t i = 0; i < view->breaks.n; i++) {
		const struct lag_clock_break *b =
			&LAG_VEC_AT(&view->breaks, struct lag_clock_break, i);
		for (uint32_t d = 0; d < view->in->n_devices; d++) {
			if (host[d] == b->host && !(push_cut(cuts, d, b->from_ns - b->margin_ns) &&
						    push_cut(cuts, d, b->from_ns + b->margin_ns)))
				return false;
		}
	}
	if (cuts->n)
		qsort(cuts->items, cuts->n, sizeof(struct cut), by_device_time);
	return true;
}

static bool device_rows(const struct lag_clock_solved *s, const struct lag_clock_trust *trust,
			struct lag_vec *out)
{
	const struct lag_clock_view *view = s->view;
	struct lag_vec cuts = LAG_VEC_INIT(struct cut);
	bool ok = find_cuts(view, trust, &cuts);
	for (size_t i = 0; ok && i < cuts.n; i++) {
		const struct cut *c = &LAG_VEC_AT(&cuts, struct cut, i);
		uint32_t host = view->in->device_host[c->device];
		int64_t t = lag_clock_repair(view, host, c->device, c->at_ns);
		const struct lag_align_device *r = trust_at(trust, c->device, t);
		struct lag_align_device *row = lag_vec_push(out);
		ok = row != NULL;
		if (!ok)
			break;
		double spread = lag_clock_own_spread(view, c->device, c->at_ns);
		double u = r ? r->uncertainty_ns : -1;
		double own = r ? r->own_ns : 0;
		/* What brackets leave open shows in the ends, where there are any. */
		double more = fmax(0, spread - own);
		if (u >= 0)
			u += more + setting(view, host, c->at_ns);
		*row = (struct lag_align_device){ c->device, c->at_ns,
						  lag_clock_own_offset(view, c->device, c->at_ns),
						  u, own + more };
	}
	lag_vec_release(&cuts);
	return ok;
}

enum lag_status lag_clock_result(const struct lag_clock_solved *s,
				 const struct lag_clock_trust *trust, const char *method,
				 struct lag_align_result *out, struct lag_err *err)
{
	struct build b = { .s = s, .limits = LAG_VEC_INIT(struct lag_bound_limit) };
	struct lag_vec segments = LAG_VEC_INIT(struct lag_align_segment);
	struct lag_vec devices = LAG_VEC_INIT(struct lag_align_device);
	struct lag_vec changes = LAG_VEC_INIT(struct change);
	memset(out, 0, sizeof(*out));
	enum lag_status st = make_limits(&b, trust, err);
	for (uint32_t h = 0; st == LAG_OK && h < s->view->in->n_hosts; h++) {
		if (!host_segments(s, trust, h, &changes, &segments))
			st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for segments");
	}
	if (st == LAG_OK)
		st = bound_segments(&b, trust != NULL, &segments, err);
	if (st == LAG_OK && trust && !device_rows(s, trust, &devices))
		st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for devices");
	lag_vec_release(&b.limits);
	lag_vec_release(&changes);
	if (st != LAG_OK) {
		lag_vec_release(&segments);
		lag_vec_release(&devices);
		return st;
	}
	out->method = method;
	out->reference_host = s->reference;
	out->segments = segments.items;
	out->n_segments = segments.n;
	out->devices = devices.items;
	out->n_devices = devices.n;
	out->arriver_bias_ns = trust ? trust->arriver_ns : -1;
	lag_align_count(s->view->in, out);
	return LAG_OK;
}

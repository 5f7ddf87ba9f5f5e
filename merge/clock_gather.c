/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives are averaged over the devices of each host: what one device's conversion is off must
 * not look like its host's clock. Short ones weigh most, since ends differ by up to a chunk. */
#include "merge/clock_gather.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_GROUPS = 3000,
	MIN_GROUPS = 400,
	MAX_PRODUCTS = 16000000, /* over all groups, of pairs of parameters */
	MAX_POINTS = 4000,       /* of one pair and size */
	KNOTS = 9,
	EACH_WAY = 3,
	MIN_WINDOWS = 3
};

/* Ends of the shortest operations still differ by a few microseconds. */
#define END_JITTER_NS 3000.0
/* Part of a message's time by which the two directions are trusted to agree. */
#define ASYMMETRY   0.03
#define SLOPE_LIMIT 1e-3
/* A window of messages is not known better than this. */
#define LEAST_NOISE_NS 1000.0
/* Ends of a ring lie up to two parts apart, where its links are unequal; and by a share of the time
 * that the smallest operation takes to go round. */
#define PARTS 2.0
#define HOPS  0.2
/* That far apart are the extremes: the standard error of one end is less. */
#define SKEW_SHARE 0.5

struct sums {
	double *end;
	uint32_t *n;
	uint32_t *touched;
};

static uint32_t find(uint32_t *parent, uint32_t h)
{
	while (parent[h] != h) {
		parent[h] = parent[parent[h]];
		h = parent[h];
	}
	return h;
}

static void unite(uint32_t *parent, uint32_t a, uint32_t b)
{
	a = find(parent, a);
	b = find(parent, b);
	if (a < b) {
		parent[b] = a;
	} else {
		parent[a] = b;
	}
}

/* The shortest member is the transfer without anyone's waiting; 0 if unknown. */
static double transfer(const struct lag_clock_view *view, const struct lag_align_collective *c)
{
	int64_t least = INT64_MAX;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = &view->members[c->first_member + i];
		if (lag_clock_known(m) && m->end_ns - m->start_ns < least)
			least = m->end_ns - m->start_ns;
	}
	return least == INT64_MAX ? 0 : (double)least;
}

double lag_clock_skew(const struct lag_clock_gather *g, const struct lag_clock_view *view,
		      const struct lag_align_collective *c)
{
	if (c->n_members < 2)
		return 0;
	uint32_t n = c->n_ranks > c->n_members ? c->n_ranks : c->n_members;
	double part = transfer(view, c) / (n - 1);
	return fmax(PARTS * part, part + HOPS * g->least_ns[c->comm]);
}

/* NULL without memory. */
static double *find_least(const struct lag_clock_view *view)
{
	const struct lag_align_input *in = view->in;
	uint32_t top = 0;
	for (size_t i = 0; i < in->n_collectives; i++)
		top = in->collectives[i].comm > top ? in->collectives[i].comm : top;
	double *least = lag_calloc((size_t)top + 1, sizeof(*least));
	for (size_t i = 0; least && i < in->n_collectives; i++) {
		const struct lag_align_collective *c = &in->collectives[i];
		double t = lag_clock_used(view, c) ? transfer(view, c) : 0;
		if (t > 0 && (least[c->comm] <= 0 || t < least[c->comm]))
			least[c->comm] = t;
	}
	return least;
}

/* One reading a host: the mean end of its devices. Returns the number of hosts; their sums stay in s
 * until the next call. */
static uint32_t sum_hosts(const struct lag_clock_view *view, const struct lag_align_collective *c,
			  struct sums *s, int64_t pivot)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = &view->members[c->first_member + i];
		if (!lag_clock_known(m))
			continue;
		if (s->n[m->host] == 0) {
			s->touched[n++] = m->host;
			s->end[m->host] = 0;
		}
		s->end[m->host] += (double)(m->end_ns - pivot);
		s->n[m->host]++;
	}
	return n;
}

static bool push_obs(struct lag_clock_gather *g, struct lag_fit_obs obs)
{
	struct lag_fit_obs *o = lag_vec_push(&g->obs);
	if (o)
		*o = obs;
	return o != NULL;
}

static bool push_group(struct lag_clock_gather *g, uint32_t n)
{
	struct lag_fit_group *grp = lag_vec_push(&g->groups);
	if (!grp)
		return false;
	*grp = (struct lag_fit_group){ g->obs.n - n, n };
	return true;
}

/* An origin near the ends, so that differences are exact in a double. */
static int64_t pivot_of(const struct lag_clock_view *view, const struct lag_align_collective *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		if (lag_clock_known(&view->members[c->first_member + i]))
			return view->members[c->first_member + i].end_ns;
	}
	return 0;
}

static bool add_collective(struct lag_clock_gather *g, const struct lag_clock_view *view, size_t i,
			   struct sums *s, double n_alike)
{
	const struct lag_align_collective *c = &view->in->collectives[i];
	int64_t pivot = pivot_of(view, c);
	double chunk = lag_clock_skew(g, view, c);
	double jitter2 = END_JITTER_NS * END_JITTER_NS;
	/* Who ends a chunk early does so each time: only jitter becomes less with repetition. */
	double weight = 1 / (jitter2 + n_alike * SKEW_SHARE * SKEW_SHARE * chunk * chunk);
	double noise = sqrt(jitter2 + chunk * chunk);
	uint32_t n = sum_hosts(view, c, s, pivot);
	bool ok = true;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t h = s->touched[k];
		double y = s->end[h] / s->n[h];
		double x = lag_clock_x(view, h, pivot + llround(y));
		/* With one host there is nothing to compare. */
		ok = ok &&
		     (n < 2 || push_obs(g, (struct lag_fit_obs){ h, x, y, weight, noise, noise }));
		s->n[h] = 0;
	}
	if (n < 2 || !ok)
		return ok;
	size_t *which = lag_vec_push(&g->which);
	if (which)
		*which = i;
	return which && push_group(g, n);
}

static bool joins_hosts(const struct lag_clock_view *view, const struct lag_align_collective *c)
{
	if (!lag_clock_used(view, c) || c->n_members < 2)
		return false;
	uint32_t host = view->members[c->first_member].host;
	for (uint32_t i = 1; i < c->n_members; i++) {
		if (view->members[c->first_member + i].host != host)
			return true;
	}
	return false;
}

/* Usable collectives that join hosts, by communicator; in all *total. NULL without memory. */
static uint32_t *count_comms(const struct lag_clock_view *view, size_t *total)
{
	const struct lag_align_input *in = view->in;
	uint32_t top = 0;
	for (size_t i = 0; i < in->n_collectives; i++)
		top = in->collectives[i].comm > top ? in->collectives[i].comm : top;
	uint32_t *count = lag_calloc((size_t)top + 1, sizeof(*count));
	for (size_t i = 0; count && i < in->n_collectives; i++) {
		const struct lag_align_collective *c = &in->collectives[i];
		count[c->comm] += joins_hosts(view, c);
		*total += joins_hosts(view, c);
	}
	return count;
}

/* So many groups are enough, and fewer where they are large. */
static size_t groups_wanted(const struct lag_clock_view *view)
{
	size_t hosts = view->in->n_hosts;
	size_t n = MAX_PRODUCTS / (4 * hosts * hosts + 1);
	return n > MAX_GROUPS ? MAX_GROUPS : n < MIN_GROUPS ? MIN_GROUPS : n;
}

static bool add_collectives(struct lag_clock_gather *g, const struct lag_clock_view *view)
{
	uint32_t hosts = view->in->n_hosts;
	size_t total = 0;
	size_t seen = 0;
	uint32_t *count = count_comms(view, &total);
	size_t stride = total / groups_wanted(view) + 1;
	struct sums s = { lag_calloc(hosts, sizeof(double)), lag_calloc(hosts, sizeof(uint32_t)),
			  lag_calloc(hosts, sizeof(uint32_t)) };
	bool ok = count && s.end && s.n && s.touched;
	for (size_t i = 0; ok && i < view->in->n_collectives; i++) {
		const struct lag_align_collective *c = &view->in->collectives[i];
		if (!joins_hosts(view, c))
			continue;
		bool n_to_n = lag_clock_usable(c->func, c->bytes);
		g->n_exchanges += !n_to_n;
		for (uint32_t k = 1; k < c->n_members && n_to_n; k++) {
			uint32_t a = view->members[c->first_member].host;
			uint32_t b = view->members[c->first_member + k].host;
			unite(g->ends, a, b);
			if (count[c->comm] >= LAG_CLOCK_OFTEN)
				unite(g->often, a, b);
		}
		if (lag_clock_pick(seen++, stride)) {
			ok = add_collective(g, view, i, &s,
					    fmax(1, count[c->comm] / (double)stride));
		}
	}
	free(s.end);
	free(s.n);
	free(s.touched);
	free(count);
	return ok;
}

struct tagged {
	uint32_t a, b;
	int64_t bytes;
	struct lag_pair_point point;
};

static int by_pair(const void *pa, const void *pb)
{
	const struct tagged *a = pa;
	const struct tagged *b = pb;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return (a->point.x > b->point.x) - (a->point.x < b->point.x);
}

static struct tagged tag(const struct lag_clock_view *view, const struct lag_align_message *m)
{
	const int64_t *o = view->origin_ns;
	double send_start = (double)(m->send.start_ns - o[m->send.host]);
	double recv_start = (double)(m->recv.start_ns - o[m->recv.host]);
	double recv_end = (double)(m->recv.end_ns - o[m->recv.host]);
	struct tagged t = { .a = m->send.host, .b = m->recv.host, .bytes = m->bytes };
	if (m->send.host < m->recv.host) {
		t.point =
			(struct lag_pair_point){ send_start / view->span_ns, recv_end - send_start,
						 recv_start - send_start, false };
	} else {
		t.a = m->recv.host;
		t.b = m->send.host;
		t.point = (struct lag_pair_point){ recv_end / view->span_ns, send_start - recv_end,
						   send_start - recv_start, true };
	}
	return t;
}

/* b's clock minus a's by the messages around x. */
static double pair_theta(const struct lag_clock_pair *p, double x)
{
	uint32_t k = 0;
	while (k + 1 < p->n_windows && fabs(p->x[k + 1] - x) <= fabs(p->x[k] - x))
		k++;
	return p->line.offset_ns + p->line.slope_ns * x + (p->n_windows ? p->off_ns[k] : 0);
}

/* Middle distance of the messages [from, until) from the line that found their receiver waiting, each
 * way; the mean of both ways is the clocks', half the difference the transfer's. */
static bool window_off(const struct lag_clock_pair *pair, const struct lag_pair_point *points,
		       size_t from, size_t until, double *scratch, double *off, double *x)
{
	double mid[2];
	double sum = 0;
	size_t counted = 0;
	for (int reverse = 0; reverse < 2; reverse++) {
		size_t n = 0;
		for (size_t i = from; i < until; i++) {
			if (points[i].reverse != (bool)reverse ||
			    !lag_pair_waited(&points[i], &pair->line))
				continue;
			scratch[n++] = lag_pair_residual(&points[i], &pair->line);
			sum += points[i].x;
		}
		if (n < EACH_WAY)
			return false;
		counted += n;
		mid[reverse] = lag_fit_median(scratch, n);
	}
	*x = sum / (double)counted;
	*off = (mid[0] + mid[1]) / 2;
	return true;
}

/* How the messages lie around their line over time: a clock need not keep its rate. */
static bool find_windows(struct lag_clock_pair *pair, const struct lag_pair_point *points, size_t n)
{
	size_t fewer = pair->line.n_forward < pair->line.n_reverse ? pair->line.n_forward
								   : pair->line.n_reverse;
	size_t windows = fewer / (EACH_WAY + 3);
	double *scratch = lag_calloc(n, sizeof(*scratch));
	size_t n_kept = 0;
	if (!scratch)
		return false;
	windows = windows > LAG_CLOCK_WINDOWS ? LAG_CLOCK_WINDOWS : windows;
	for (size_t w = 0; w < windows && windows >= MIN_WINDOWS; w++) {
		uint32_t k = pair->n_windows;
		pair->n_windows += window_off(pair, points, w * n / windows, (w + 1) * n / windows,
					      scratch, &pair->off_ns[k], &pair->x[k]);
	}
	if (pair->n_windows < MIN_WINDOWS)
		pair->n_windows = 0;
	for (size_t i = 0; i < n && pair->n_windows; i++) {
		double off = pair_theta(pair, points[i].x) - pair->line.offset_ns -
			     pair->line.slope_ns * points[i].x;
		if (!lag_pair_waited(&points[i], &pair->line))
			continue;
		scratch[n_kept++] = fabs(lag_pair_residual(&points[i], &pair->line) - off);
	}
	if (n_kept)
		pair->line.spread_ns = 1.4826 * lag_fit_median(scratch, n_kept);
	free(scratch);
	return true;
}

/* Fits the messages of one pair and size, and keeps the line if it is the pair's best. */
static enum lag_status fit_class(struct lag_clock_gather *g, const struct lag_clock_view *view,
				 const struct tagged *t, size_t n, struct lag_err *err)
{
	size_t stride = n / MAX_POINTS + 1;
	size_t n_points = 0;
	struct lag_pair_point *points = lag_calloc(n, sizeof(*points));
	struct lag_clock_pair pair = { .a = t[0].a, .b = t[0].b, .bytes = t[0].bytes };
	if (!points)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for messages");
	for (size_t i = 0; i < n; i++) {
		if (lag_clock_pick(i, stride))
			points[n_points++] = t[i].point;
	}
	if (n_points == 0)
		points[n_points++] = t[0].point;
	pair.x_from = points[0].x;
	pair.x_until = points[n_points - 1].x;
	enum lag_status st =
		lag_pair_fit(points, n_points, SLOPE_LIMIT * view->span_ns, &pair.line, err);
	if (st == LAG_OK && pair.line.known && !find_windows(&pair, points, n_points))
		st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for messages");
	free(points);
	if (st != LAG_OK || !pair.line.known)
		return st;
	struct lag_clock_pair *last =
		g->pairs.n ? &LAG_VEC_AT(&g->pairs, struct lag_clock_pair, g->pairs.n - 1) : NULL;
	if (last && last->a == pair.a && last->b == pair.b) {
		if (pair.line.transfer_ns < last->line.transfer_ns)
			*last = pair;
		return LAG_OK;
	}
	struct lag_clock_pair *out = lag_vec_push(&g->pairs);
	if (!out)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for pairs of hosts");
	*out = pair;
	return LAG_OK;
}

static enum lag_status fit_pairs(struct lag_clock_gather *g, const struct lag_clock_view *view,
				 struct lag_err *err)
{
	size_t n = 0;
	enum lag_status st = LAG_OK;
	struct tagged *t = lag_calloc(view->in->n_messages, sizeof(*t));
	if (!t)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for messages");
	for (size_t i = 0; i < view->in->n_messages; i++) {
		const struct lag_align_message *m = &view->messages[i];
		if (m->send.host != m->recv.host && lag_clock_known(&m->send) &&
		    lag_clock_known(&m->recv))
			t[n++] = tag(view, m);
	}
	qsort(t, n, sizeof(*t), by_pair);
	for (size_t from = 0, until; st == LAG_OK && from < n; from = until) {
		for (until = from + 1; until < n && t[until].a == t[from].a &&
				       t[until].b == t[from].b && t[until].bytes == t[from].bytes;)
			until++;
		st = fit_class(g, view, t + from, until - from, err);
	}
	free(t);
	return st;
}

static enum lag_status find_excess(struct lag_clock_gather *g, struct lag_err *err)
{
	double *v = lag_calloc(g->pairs.n, sizeof(*v));
	if (!v)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for pairs of hosts");
	struct lag_clock_pair *pairs = g->pairs.items;
	for (size_t i = 0; i < g->pairs.n; i++) {
		size_t n = 0;
		for (size_t k = 0; k < g->pairs.n; k++) {
			if (pairs[k].bytes == pairs[i].bytes)
				v[n++] = pairs[k].line.transfer_ns;
		}
		pairs[i].excess_ns = fmax(0, pairs[i].line.transfer_ns - lag_fit_median(v, n));
	}
	free(v);
	return LAG_OK;
}

enum lag_status lag_clock_use_pair(struct lag_clock_gather *g, const struct lag_clock_view *view,
				   struct lag_clock_pair *p, struct lag_err *err)
{
	/* A few simultaneous readings, together as certain as the line is. */
	int n = p->n_windows ? (int)p->n_windows : KNOTS;
	double weight = 1 / (n * lag_clock_pair_variance(p));
	double noise = fmax(p->line.spread_ns, LEAST_NOISE_NS);
	double limit = hypot(noise, sqrt(lag_clock_pair_variance(p)));
	double apart = (double)(view->origin_ns[p->b] - view->origin_ns[p->a]);
	for (int k = 0; k < n; k++) {
		double x =
			p->n_windows ? p->x[k] : p->x_from + (p->x_until - p->x_from) * k / (n - 1);
		double theta = pair_theta(p, x);
		double xb = x + theta / view->span_ns;
		struct lag_fit_obs a = { p->a, x, 0, weight, noise, limit };
		struct lag_fit_obs b = { p->b, xb, theta + apart, weight, noise, limit };
		if (!push_obs(g, a) || !push_obs(g, b) || !push_group(g, 2))
			return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for pairs of hosts");
	}
	p->in_fit = true;
	return LAG_OK;
}

static enum lag_status gather(struct lag_clock_gather *g, const struct lag_clock_view *view,
			      struct lag_err *err)
{
	uint32_t *often = g->often;
	if (!add_collectives(g, view))
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for collectives' ends");
	enum lag_status st = fit_pairs(g, view, err);
	if (st == LAG_OK)
		st = find_excess(g, err);
	for (size_t i = 0; st == LAG_OK && i < g->pairs.n; i++) {
		struct lag_clock_pair *p = &LAG_VEC_AT(&g->pairs, struct lag_clock_pair, i);
		if (find(often, p->a) != find(often, p->b))
			st = lag_clock_use_pair(g, view, p, err);
	}
	for (size_t i = 0; st == LAG_OK && i < g->groups.n; i++) {
		struct lag_fit_group grp = LAG_VEC_AT(&g->groups, struct lag_fit_group, i);
		const struct lag_fit_obs *o = &LAG_VEC_AT(&g->obs, struct lag_fit_obs, grp.first);
		for (uint32_t k = 1; k < grp.n; k++)
			unite(g->set, o[0].host, o[k].host);
	}
	for (uint32_t h = 0; h < view->in->n_hosts; h++) {
		g->set[h] = find(g->set, h);
		often[h] = find(often, h);
		g->ends[h] = find(g->ends, h);
	}
	return st;
}

enum lag_status lag_clock_gather_init(struct lag_clock_gather *g, const struct lag_clock_view *view,
				      struct lag_err *err)
{
	uint32_t n = view->in->n_hosts;
	*g = (struct lag_clock_gather){ .obs = LAG_VEC_INIT(struct lag_fit_obs),
					.groups = LAG_VEC_INIT(struct lag_fit_group),
					.which = LAG_VEC_INIT(size_t),
					.pairs = LAG_VEC_INIT(struct lag_clock_pair),
					.set = lag_calloc(n, sizeof(*g->set)),
					.often = lag_calloc(n, sizeof(*g->often)),
					.ends = lag_calloc(n, sizeof(*g->ends)) };
	enum lag_status st = LAG_ERR_SYSTEM;
	g->least_ns = find_least(view);
	if (!g->often || !g->set || !g->ends || !g->least_ns) {
		st = lag_err_set(err, st, "out of memory for %u hosts", n);
	} else {
		for (uint32_t h = 0; h < n; h++)
			g->often[h] = g->set[h] = g->ends[h] = h;
		st = gather(g, view, err);
	}
	if (st != LAG_OK)
		lag_clock_gather_release(g);
	return st;
}

void lag_clock_gather_release(struct lag_clock_gather *g)
{
	lag_vec_release(&g->obs);
	lag_vec_release(&g->groups);
	lag_vec_release(&g->which);
	lag_vec_release(&g->pairs);
	free(g->set);
	free(g->often);
	free(g->ends);
	free(g->least_ns);
	g->set = NULL;
	g->often = NULL;
	g->ends = NULL;
	g->least_ns = NULL;
}

double lag_clock_pair_variance(const struct lag_clock_pair *p)
{
	size_t fewer =
		p->line.n_forward < p->line.n_reverse ? p->line.n_forward : p->line.n_reverse;
	double noise = p->line.spread_ns / sqrt(fewer > 0 ? (double)fewer : 1.0);
	double skew = ASYMMETRY * p->line.transfer_ns;
	/* A slow link may be slow in one direction only. */
	return 1e6 + noise * noise + skew * skew + p->excess_ns * p->excess_ns;
}

/* Corrected reading of b less that of a, for readings that the messages call simultaneous. */
static double gap_at(const struct lag_clock_view *view, const struct lag_clock_pair *p,
		     const struct lag_fit_model *model, double x)
{
	double apart = (double)(view->origin_ns[p->b] - view->origin_ns[p->a]);
	double theta = pair_theta(p, x);
	return theta + apart + lag_fit_value(model, p->b, x + theta / view->span_ns) -
	       lag_fit_value(model, p->a, x);
}

double lag_clock_pair_gap(const struct lag_clock_view *view, const struct lag_clock_pair *pair,
			  const struct lag_fit_model *model)
{
	double sum = 0;
	if (pair->n_windows == 0)
		return gap_at(view, pair, model, (pair->x_from + pair->x_until) / 2);
	for (uint32_t k = 0; k < pair->n_windows; k++)
		sum += gap_at(view, pair, model, pair->x[k]);
	return sum / pair->n_windows;
}

double lag_clock_pair_scatter(const struct lag_clock_view *view, const struct lag_clock_pair *pair,
			      const struct lag_fit_model *model)
{
	double mean = lag_clock_pair_gap(view, pair, model);
	double sum = 0;
	for (uint32_t k = 0; k < pair->n_windows; k++) {
		double d = gap_at(view, pair, model, pair->x[k]) - mean;
		sum += d * d;
	}
	return pair->n_windows ? sqrt(sum / pair->n_windows) : 0;
}

bool lag_clock_message_residual(const struct lag_clock_view *view,
				const struct lag_clock_pair *pair,
				const struct lag_align_message *m, double *x, double *ns)
{
	if (!lag_clock_known(&m->send) || !lag_clock_known(&m->recv))
		return false;
	struct tagged t = tag(view, m);
	*x = t.point.x;
	*ns = lag_pair_residual(&t.point, &pair->line) -
	      (pair_theta(pair, *x) - pair->line.offset_ns - pair->line.slope_ns * *x);
	return lag_pair_waited(&t.point, &pair->line);
}

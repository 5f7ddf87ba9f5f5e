/* SPDX-License-Identifier: Apache-2.0 */
/* Each pair of hosts: the largest and smallest residual at one moment over all lines that respect
 * the pair's limits (a linear programme in offset and slope). Then shortest paths from the reference. */
#include "merge/clock_bound.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "schema/base/mem.h"

enum {
	SEARCH_STEPS = 90
};

/* Residual drift over half the run that is considered: beyond any estimate's error. */
#define SLOPE_LIMIT_NS 5e7

/* The limits of one pair, a < b, seen from x: error(b) - error(a) = c + e * (t - x). */
struct pair {
	const struct lag_bound_limit *limit;
	size_t n;
	double x;
};

struct edge {
	uint32_t a, b;
	double lo, hi; /* of error(b) - error(a) */
};

static uint32_t low_host(const struct lag_bound_limit *l)
{
	return l->earlier < l->later ? l->earlier : l->later;
}

static uint32_t high_host(const struct lag_bound_limit *l)
{
	return l->earlier < l->later ? l->later : l->earlier;
}

int lag_bound_order(const void *pa, const void *pb)
{
	const struct lag_bound_limit *a = pa;
	const struct lag_bound_limit *b = pb;
	if (low_host(a) != low_host(b))
		return low_host(a) < low_host(b) ? -1 : 1;
	if (high_host(a) != high_host(b))
		return high_host(a) < high_host(b) ? -1 : 1;
	return (a->x > b->x) - (a->x < b->x);
}

/* The interval left for c at slope e. */
static void interval(const struct pair *p, double e, double *lo, double *hi)
{
	*lo = -INFINITY;
	*hi = INFINITY;
	for (size_t i = 0; i < p->n; i++) {
		const struct lag_bound_limit *l = &p->limit[i];
		double t = e * (l->x - p->x);
		if (l->later > l->earlier) {
			*hi = fmin(*hi, l->slack_ns - t);
		} else {
			*lo = fmax(*lo, -l->slack_ns - t);
		}
	}
}

static double upper(const struct pair *p, double e)
{
	double lo;
	double hi;
	interval(p, e, &lo, &hi);
	return hi;
}

static double lower(const struct pair *p, double e)
{
	double lo;
	double hi;
	interval(p, e, &lo, &hi);
	return -lo;
}

static double width(const struct pair *p, double e)
{
	double lo;
	double hi;
	interval(p, e, &lo, &hi);
	return hi - lo;
}

/* Largest value of a concave function on [a, b]. */
static double best(const struct pair *p, double (*f)(const struct pair *, double), double a,
		   double b, double *at)
{
	for (int i = 0; i < SEARCH_STEPS; i++) {
		double u = a + (b - a) / 3;
		double v = b - (b - a) / 3;
		if (f(p, u) < f(p, v)) {
			a = u;
		} else {
			b = v;
		}
	}
	*at = (a + b) / 2;
	return f(p, *at);
}

/* Where the concave width falls to `least` between a (inside) and b. */
static double edge_of(const struct pair *p, double inside, double outside, double least)
{
	if (width(p, outside) >= least)
		return outside;
	for (int i = 0; i < SEARCH_STEPS; i++) {
		double mid = (inside + outside) / 2;
		if (width(p, mid) >= least) {
			inside = mid;
		} else {
			outside = mid;
		}
	}
	return inside;
}

static bool one_sided(const struct pair *p)
{
	bool up = false;
	bool down = false;
	for (size_t i = 0; i < p->n; i++) {
		up |= p->limit[i].later > p->limit[i].earlier;
		down |= p->limit[i].later < p->limit[i].earlier;
	}
	return !(up && down);
}

static struct edge pair_edge(const struct pair *p, double *relaxed)
{
	struct edge out = { low_host(p->limit), high_host(p->limit), -INFINITY, INFINITY };
	double at;
	if (one_sided(p)) {
		/* Any slope is possible: only a limit at this very moment would count. */
		return out;
	}
	double widest = best(p, width, -SLOPE_LIMIT_NS, SLOPE_LIMIT_NS, &at);
	double give = widest < 0 ? -widest / 2 : 0;
	double least = -2 * give;
	double from = edge_of(p, at, -SLOPE_LIMIT_NS, least);
	double until = edge_of(p, at, SLOPE_LIMIT_NS, least);
	double unused;
	out.hi = best(p, upper, from, until, &unused) + give;
	out.lo = -best(p, lower, from, until, &unused) - give;
	*relaxed = fmax(*relaxed, give);
	return out;
}

/* Leaves the limits in which both hosts' residuals still are the lines that they are at x. */
static void narrow(struct pair *p, const struct lag_bound_window *windows)
{
	const struct lag_bound_window *a = &windows[low_host(p->limit)];
	const struct lag_bound_window *b = &windows[high_host(p->limit)];
	double from = fmax(a->from, b->from);
	double until = fmin(a->until, b->until);
	while (p->n && p->limit[0].x < from) {
		p->limit++;
		p->n--;
	}
	while (p->n && p->limit[p->n - 1].x > until)
		p->n--;
}

static bool tighten(struct lag_bound *b, double lo, double hi)
{
	bool tighter = lo > b->lo_ns || hi < b->hi_ns;
	b->lo_ns = fmax(b->lo_ns, lo);
	b->hi_ns = fmin(b->hi_ns, hi);
	return tighter;
}

/* Bellman-Ford: the tightest upper and lower limit along any path from the reference. False when
 * the limits of different pairs contradict each other. */
static bool spread_edges(const struct edge *edges, size_t n, uint32_t n_hosts, uint32_t reference,
			 double give, struct lag_bound *b)
{
	bool moved = true;
	for (uint32_t h = 0; h < n_hosts; h++) {
		b[h] = h == reference ? (struct lag_bound){ 0, 0 }
				      : (struct lag_bound){ -INFINITY, INFINITY };
	}
	for (uint32_t round = 0; round <= n_hosts && moved; round++) {
		moved = false;
		for (size_t i = 0; i < n; i++) {
			const struct edge *e = &edges[i];
			struct lag_bound *u = &b[e->a];
			struct lag_bound *v = &b[e->b];
			double lo = e->lo - give;
			double hi = e->hi + give;
			moved |= tighten(v, u->lo_ns + lo, u->hi_ns + hi);
			moved |= tighten(u, v->lo_ns - hi, v->hi_ns - lo);
		}
	}
	for (uint32_t h = 0; h < n_hosts; h++) {
		if (b[h].lo_ns > b[h].hi_ns)
			return false;
	}
	return true;
}

enum lag_status lag_bound_solve(const struct lag_bound_limit *limits, size_t n, uint32_t n_hosts,
				const struct lag_bound_moment *at, struct lag_bound *bounds,
				double *relaxed_ns, struct lag_err *err)
{
	struct lag_vec edges = LAG_VEC_INIT(struct edge);
	*relaxed_ns = 0;
	for (size_t from = 0; from < n;) {
		size_t until = from;
		while (until < n && low_host(&limits[until]) == low_host(&limits[from]) &&
		       high_host(&limits[until]) == high_host(&limits[from]))
			until++;
		struct pair p = { limits + from, until - from, at->x };
		if (at->windows)
			narrow(&p, at->windows);
		from = until;
		if (p.n == 0)
			continue;
		struct edge *e = lag_vec_push(&edges);
		if (!e) {
			lag_vec_release(&edges);
			return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock bounds");
		}
		*e = pair_edge(&p, relaxed_ns);
	}
	double give = 0;
	while (!spread_edges(edges.items, edges.n, n_hosts, at->reference, give, bounds) &&
	       give < 1e15)
		give = give > 0 ? 2 * give : 1000;
	*relaxed_ns = fmax(*relaxed_ns, give);
	lag_vec_release(&edges);
	return LAG_OK;
}

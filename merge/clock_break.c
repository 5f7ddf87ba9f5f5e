/* SPDX-License-Identifier: Apache-2.0 */
/* A host's residuals against the others', in bins whose medians single outliers cannot move. Between
 * two known changes, each boundary of bins is tried as one more: what a bend or a step there explains
 * beyond a line is a matter of sums over the bins behind it. */
#include "merge/clock_break.h"

#include <math.h>
#include <stdlib.h>

enum {
	MAX_BINS = 160,
	PER_BIN = 3,
	MIN_OBS = 10,
	EDGE = 2, /* bins at each end of a stretch that a change cannot be told from noise in */
	MAX_KNOTS = 16
};

/* What a change must explain, in units of the bins' variance: chance gives a few times the logarithm
 * of the places that it has to choose from. */
#define GAIN_BASE    16.0
#define GAIN_PER_LOG 4.0
/* Medians of bins share errors that more observations do not lessen. */
#define BIN_FLOOR_NS 1000.0
/* A bend that explains nearly as much is the simpler story than a step. */
#define STEP_CLEARLY 1.15
/* What a neighbour's change may look like in a group of n: 1 / (n - 1) of it, squared, and a margin. */
#define MIRROR 0.3

struct point {
	double x, r, noise2;
};

struct bin {
	double x, r, w;
	size_t first, n; /* its points */
};

/* Sums over the bins from one on to the end of a stretch. */
struct sums {
	double w, wx, wxx, wr, wxr;
};

struct candidate {
	double gain, x, reach;
	bool step;
};

struct work {
	const struct lag_break_input *in;
	struct point *points; /* of one host, by x */
	double *scratch;
	struct bin bins[MAX_BINS];
	struct sums tail[MAX_BINS + 1];
	size_t n_bins;
};

static int by_x(const void *pa, const void *pb)
{
	const struct point *a = pa;
	const struct point *b = pb;

	return (a->x > b->x) - (a->x < b->x);
}

static void make_bins(struct work *w, size_t n)
{
	size_t n_bins = n / PER_BIN;

	n_bins = n_bins > MAX_BINS ? MAX_BINS : n_bins < MIN_OBS ? MIN_OBS : n_bins;
	w->n_bins = n_bins;
	for (size_t k = 0; k < n_bins; k++) {
		struct bin *b = &w->bins[k];
		double x = 0;
		double noise2 = 0;

		b->first = k * n / n_bins;
		b->n = (k + 1) * n / n_bins - b->first;
		for (size_t i = 0; i < b->n; i++) {
			x += w->points[b->first + i].x;
			noise2 += w->points[b->first + i].noise2;
			w->scratch[i] = w->points[b->first + i].r;
		}
		b->x = x / (double)b->n;
		b->r = lag_fit_median(w->scratch, b->n);
		b->w = 1 / (noise2 / (double)(b->n * b->n) + BIN_FLOOR_NS * BIN_FLOOR_NS);
	}
}

/* The bins' real variance in units of the assumed one, from neighbours' differences: changes are few. */
static double variance(struct work *w)
{
	size_t n = 0;

	for (size_t k = 1; k < w->n_bins; k++) {
		const struct bin *a = &w->bins[k - 1];
		const struct bin *b = &w->bins[k];

		w->scratch[n++] = fabs(b->r - a->r) / sqrt(1 / a->w + 1 / b->w);
	}
	double s = 1.4826 * lag_fit_median(w->scratch, n);

	return fmax(s * s, 0.02);
}

static void sum_tail(struct work *w, size_t from, size_t until)
{
	struct sums s = { 0 };

	w->tail[until] = s;
	for (size_t k = until; k-- > from;) {
		const struct bin *b = &w->bins[k];

		s.w += b->w;
		s.wx += b->w * b->x;
		s.wxx += b->w * b->x * b->x;
		s.wr += b->w * b->r;
		s.wxr += b->w * b->x * b->r;
		w->tail[k] = s;
	}
}

/* What z (its products with 1, x, z and r) explains beyond a line through all. *size: its factor. */
static double explained(const struct sums *all, double z1, double zx, double zz, double zr,
			double *size)
{
	double det = all->w * all->wxx - all->wx * all->wx;
	double a;
	double b;
	double own;
	double r;

	*size = 0;
	if (!(det > 0))
		return 0;
	a = (all->wxx * z1 - all->wx * zx) / det;
	b = (all->w * zx - all->wx * z1) / det;
	own = zz - a * z1 - b * zx;
	r = zr - a * all->wr - b * all->wxr;
	if (!(own > 1e-9 * zz))
		return 0;
	*size = r / own;
	return r * r / own;
}

/* By how much a bend moves the best line's worst point away from it. */
static double sag(double size, double before, double after)
{
	return fabs(size) * before * after / (before + after) / 2;
}

static void try_bend(const struct work *w, size_t from, size_t until, size_t k, double x,
		     struct candidate *best)
{
	const struct sums *t = &w->tail[k];
	double size;
	double gain = explained(&w->tail[from], t->wx - x * t->w, t->wxx - x * t->wx,
				t->wxx - 2 * x * t->wx + x * x * t->w, t->wxr - x * t->wr, &size);

	if (gain > best->gain &&
	    sag(size, x - w->bins[from].x, w->bins[until - 1].x - x) >= w->in->min_bend_ns)
		*best = (struct candidate){ gain, x, 0, false };
}

static double middle(double a, double b, double c)
{
	return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Bins of single points have no median of their own: a lone one gives way to its neighbours, while
 * bends and steps stay where they are. */
static void smooth(struct work *w)
{
	double before = w->bins[0].r;

	for (size_t k = 1; k + 1 < w->n_bins; k++) {
		double own = w->bins[k].r;

		w->bins[k].r = middle(before, own, w->bins[k + 1].r);
		before = own;
	}
	w->bins[0].r = middle(w->bins[0].r, w->bins[1].r, w->bins[2].r);
	w->bins[w->n_bins - 1].r = middle(w->bins[w->n_bins - 1].r, w->bins[w->n_bins - 2].r,
					  w->bins[w->n_bins - 3].r);
}

/* Where among the points of the two bins around boundary k the step lies: where the medians of both
 * sides leave least over. */
static void place_step(const struct work *w, size_t k, struct candidate *c)
{
	const struct bin *a = &w->bins[k - 1];
	const struct bin *b = &w->bins[k];
	size_t n = a->n + b->n;
	const struct point *p = w->points + a->first;
	double before = k >= 2 ? w->bins[k - 2].r : a->r;
	double after = k + 1 < w->n_bins ? w->bins[k + 1].r : b->r;
	double least = INFINITY;

	for (size_t at = 1; at < n; at++) {
		double sum = 0;

		for (size_t i = 0; i < n; i++)
			sum += fabs(p[i].r - (i < at ? before : after));
		if (sum < least && p[at].x > p[at - 1].x) {
			least = sum;
			c->x = (p[at].x + p[at - 1].x) / 2;
			c->reach = (p[at].x - p[at - 1].x) / 2;
		}
	}
}

static void try_step(const struct work *w, size_t from, size_t k, struct candidate *best,
		     size_t *where)
{
	const struct sums *t = &w->tail[k];
	double size;
	double gain = explained(&w->tail[from], t->w, t->wx, t->w, t->wr, &size);

	if (gain > best->gain && fabs(size) >= w->in->min_step_ns) {
		*best = (struct candidate){ gain, (w->bins[k - 1].x + w->bins[k].x) / 2, 0, true };
		*where = k;
	}
}

/* The best change between bins from and until, which lie between two known ones. */
static struct candidate search(struct work *w, size_t from, size_t until)
{
	struct candidate bend = { 0 };
	struct candidate step = { 0 };
	size_t at = 0;

	if (until - from <= EDGE + EDGE)
		return bend;
	sum_tail(w, from, until);
	for (size_t k = from + EDGE; k + EDGE <= until; k++) {
		double a = w->bins[k - 1].x;
		double b = w->bins[k].x;

		for (int i = 1; i <= 4; i++)
			try_bend(w, from, until, k, a + (b - a) * i / 4, &bend);
		try_step(w, from, k, &step, &at);
	}
	if (step.gain <= STEP_CLEARLY * bend.gain)
		return bend;
	place_step(w, at, &step);
	return step;
}

static struct candidate best_of_host(struct work *w, uint32_t host, size_t n)
{
	uint32_t n_knots;
	const struct lag_fit_knot *knots = lag_fit_knots(w->in->model, host, &n_knots);
	struct candidate best = { 0 };
	size_t from = 0;
	double scale;

	if (n < MIN_OBS || n_knots >= MAX_KNOTS)
		return best;
	qsort(w->points, n, sizeof(*w->points), by_x);
	make_bins(w, n);
	scale = variance(w);
	if (n < PER_BIN * w->n_bins)
		smooth(w);
	for (uint32_t i = 0; i <= n_knots; i++) {
		size_t until = from;
		struct candidate c;

		while (until < w->n_bins && (i == n_knots || w->bins[until].x < knots[i].x))
			until++;
		c = search(w, from, until);
		if (c.gain > best.gain)
			best = c;
		from = until;
	}
	best.gain /= scale;
	if (best.gain < GAIN_BASE + GAIN_PER_LOG * log((double)w->n_bins))
		best.gain = 0;
	return best;
}

/* By host: where its observations begin in `order`. */
static void sort_by_host(const struct lag_fit_problem *p, size_t *first, size_t *order)
{
	for (size_t i = 0; i < p->n_obs; i++)
		first[p->obs[i].host + 1]++;
	for (uint32_t h = 0; h < p->n_hosts; h++)
		first[h + 1] += first[h];
	for (size_t i = 0; i < p->n_obs; i++)
		order[first[p->obs[i].host]++] = i;
	for (uint32_t h = p->n_hosts; h > 0; h--)
		first[h] = first[h - 1];
	first[0] = 0;
}

/* The reading of a group whose clock is nobody's but its own; NULL without one. */
static const struct lag_fit_obs *fixed_of(const struct lag_fit_problem *p,
					  const struct lag_fit_group *g)
{
	for (size_t i = g->first; i < g->first + g->n; i++) {
		if (p->fixed[p->obs[i].host])
			return &p->obs[i];
	}
	return NULL;
}

/* What each reading is off: against the reference where that took part (its own changes are then
 * everybody else's, which a fit that trusts the many would hide), else against the others' mean. */
static void against(const struct lag_break_input *in, double *r)
{
	const struct lag_fit_problem *p = in->problem;

	for (size_t g = 0; g < p->n_groups; g++) {
		const struct lag_fit_group *grp = &p->groups[g];
		const struct lag_fit_obs *fixed = fixed_of(p, grp);
		double zero = fixed ? in->residual[fixed - p->obs] : 0;

		for (size_t i = grp->first; i < grp->first + grp->n; i++) {
			double others = fixed ? 1 : fmax(1 - in->share[i], 0.05);

			r[i] = (in->residual[i] - zero) / others;
		}
	}
}

/* A host whose partner in some group has the clearer change may only mirror that. */
static void drop_mirrors(const struct lag_fit_problem *p, const struct candidate *c, bool *drop)
{
	for (size_t g = 0; g < p->n_groups; g++) {
		const struct lag_fit_obs *o = p->obs + p->groups[g].first;
		uint32_t n = p->groups[g].n;
		uint32_t top = o[0].host;

		if (fixed_of(p, &p->groups[g]))
			continue;
		for (uint32_t i = 1; i < n; i++) {
			if (c[o[i].host].gain > c[top].gain)
				top = o[i].host;
		}
		for (uint32_t i = 0; i < n; i++) {
			double as_mirror = c[top].gain / ((double)(n - 1) * (n - 1));

			if (o[i].host != top && as_mirror > MIRROR * c[o[i].host].gain)
				drop[o[i].host] = true;
		}
	}
}

static int by_host_x(const void *pa, const void *pb)
{
	const struct lag_fit_knot *a = pa;
	const struct lag_fit_knot *b = pb;

	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	return (a->x > b->x) - (a->x < b->x);
}

static enum lag_status add_knots(const struct lag_fit_problem *p, const struct candidate *c,
				 const bool *drop, struct lag_vec *knots, size_t *found)
{
	for (uint32_t h = 0; h < p->n_hosts; h++) {
		struct lag_fit_knot *k;

		if (c[h].gain <= 0 || drop[h])
			continue;
		k = lag_vec_push(knots);
		if (!k)
			return LAG_ERR_SYSTEM;
		*k = (struct lag_fit_knot){ h, c[h].step, c[h].x, c[h].reach };
		++*found;
	}
	if (knots->n)
		qsort(knots->items, knots->n, sizeof(struct lag_fit_knot), by_host_x);
	return LAG_OK;
}

enum lag_status lag_break_find(const struct lag_break_input *in, struct lag_vec *knots,
			       size_t *found, struct lag_err *err)
{
	const struct lag_fit_problem *p = in->problem;
	struct work *w = lag_calloc(1, sizeof(*w));
	struct candidate *best = lag_calloc(p->n_hosts, sizeof(*best));
	bool *drop = lag_calloc(p->n_hosts, sizeof(*drop));
	size_t *order = lag_calloc(p->n_obs + p->n_hosts + 2, sizeof(*order));
	struct point *points = lag_calloc(p->n_obs, sizeof(*points));
	double *scratch = lag_calloc(2 * p->n_obs + MAX_BINS, sizeof(*scratch));
	double *r = scratch ? scratch + p->n_obs + MAX_BINS : NULL;
	size_t *first = order ? order + p->n_obs : NULL;
	enum lag_status st = LAG_ERR_SYSTEM;

	*found = 0;
	if (w && best && drop && order && points && scratch) {
		*w = (struct work){ .in = in, .points = points, .scratch = scratch };
		sort_by_host(p, first, order);
		against(in, r);
		for (uint32_t h = 0; h < p->n_hosts; h++) {
			size_t n = first[h + 1] - first[h];

			for (size_t i = 0; i < n && !p->fixed[h]; i++) {
				size_t at = order[first[h] + i];

				points[i] =
					(struct point){ p->obs[at].x, r[at],
							p->obs[at].noise_ns * p->obs[at].noise_ns };
			}
			if (!p->fixed[h])
				best[h] = best_of_host(w, h, n);
		}
		drop_mirrors(p, best, drop);
		st = add_knots(p, best, drop, knots, found);
	}
	free(w);
	free(best);
	free(drop);
	free(order);
	free(points);
	free(scratch);
	return st == LAG_OK ? st
			    : lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock changes");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A device's ends against those of the reference host (seen, by window), plus what cannot be seen:
 * the reference devices' own error, inferred from how devices of one host differ; skew of ends,
 * from messages and from last arrivers; the fit's own error. */
#include "merge/clock_trust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	WINDOW_SAMPLES = 6,
	MAX_WINDOWS = 16,
	ROW = 5 /* samples whose middle is believed */
};

/* Parts are very different from this factor on; so many samples of large ones are enough; and never
 * is less than this share of the assumed skew believed. */
#define DIVERSE     2.0
#define MIN_DIVERSE 9
#define LEAST_SKEW  0.08

/* By how much an undisciplined clock's rate changes over a run. */
#define WANDER 2e-8
/* Degrees of freedom with which the assumed scatter counts. */
#define FEW 6.0
/* By how much a device's conversion changes where nothing could show it. */
#define BLIND_CHANGE_NS 2500.0
/* By how much a curve may miss where its bends are not quite in their places. */
#define BEND_NS 5000.0
/* Squared, in standard errors. */
#define UNLIKELY 9.0
/* Rows that differ by less are one. */
#define ALIKE 0.08

/* Operations that much less certain than the best do not speak about devices. */
#define WEIGHT_CUT 0.25

struct state {
	const struct lag_clock_solved *s;
	struct lag_clock_trust *t;
	const struct path *path; /* by host */
	double factor;           /* from standard errors to the stated uncertainty */
	double noise;            /* factor on the variances that the weights assume */
	double scatter;          /* factor on those of single readings, which is what they show */
	double n_ref;            /* devices of the reference */
	bool blind;              /* nothing shows devices of one host apart */
	bool bracketed;          /* all of the reference's devices are known against its clock */
	double lone2;            /* square of what the reference's one device moves over the run */
	double *constant; /* by host: by which its ends always differ, and messages say that they do */
};

/* 96 % of a Student distribution with nu degrees of freedom (the scatter itself is an estimate). With
 * what is seen of each device added on top, 99 % of all times are covered. */
static double t96(double nu)
{
	return 2.054 + 2.66 / nu + 3.5 / (nu * nu) + 4.0 / (nu * nu * nu);
}

/* Sums along the pairs of hosts that messages join, from the reference: how far messages and fit are
 * apart, and how certain the messages are. variance stays infinite where no path leads. */
struct path {
	double gap, variance;
	/* By which messages move around the fit, squared and added up. A device that moves moves both its
	 * neighbours' messages, and nobody's beyond. */
	double scatter2;
	bool in_fit; /* the fit itself goes along it */
};

static bool follow(struct path *to, const struct path *from, const struct path *edge)
{
	if (!(from->variance + edge->variance < to->variance * (1 - 1e-9)))
		return false;
	*to = (struct path){ from->gap + edge->gap, from->variance + edge->variance,
			     from->scatter2 + edge->scatter2, from->in_fit && edge->in_fit };
	return true;
}

static void follow_pairs(const struct lag_clock_solved *s, struct path *path)
{
	bool moved = true;
	for (uint32_t h = 0; h < s->view->in->n_hosts; h++)
		path[h] = (struct path){ 0, h == s->reference ? 0 : INFINITY, 0, true };
	for (uint32_t round = 0; round < s->view->in->n_hosts && moved; round++) {
		moved = false;
		for (size_t i = 0; i < s->gather->pairs.n; i++) {
			const struct lag_clock_pair *p =
				&LAG_VEC_AT(&s->gather->pairs, struct lag_clock_pair, i);
			double scatter = lag_clock_pair_scatter(s->view, p, s->model);
			double gap = lag_clock_pair_gap(s->view, p, s->model);
			/* A gap beyond the transfer breaks causality: then the messages are at fault. */
			gap = fmax(fmin(gap, p->line.transfer_ns), -p->line.transfer_ns);
			bool often = s->gather->often[p->a] == s->gather->often[p->b];
			struct path edge = { gap, lag_clock_pair_variance(p),
					     scatter * scatter / (often ? 2 : 1), p->in_fit };
			moved |= follow(&path[p->b], &path[p->a], &edge);
			edge.gap = -gap;
			moved |= follow(&path[p->a], &path[p->b], &edge);
		}
	}
}

/* What the assumed skew of ends must be multiplied by, squared. Where collectives of very different
 * parts join the hosts, skews that grow with the parts would show as scatter between them: little
 * scatter means little skew. Operations of one kind show nothing: their skew may be constant. */
static bool skew_factor(const struct lag_clock_solved *s, const struct lag_clock_samples *samples,
			double *factor)
{
	size_t n = samples->across.n;
	const struct lag_clock_sample *p = samples->across.items;
	double *v = lag_calloc(n, sizeof(*v));
	*factor = fmax(1, s->scale * s->scale);
	if (!v)
		return false;
	for (size_t i = 0; i < n; i++)
		v[i] = sqrt(1 / p[i].weight);
	double large = n ? DIVERSE * lag_fit_place(v, n, n / 10) : 0;
	size_t n_large = 0;
	for (size_t i = 0; i < n; i++) {
		double noise = sqrt(1 / p[i].weight);
		if (noise >= large && s->view->in->device_host[p[i].device] != s->reference)
			v[n_large++] = fabs(p[i].err_ns) / noise;
	}
	if (n_large >= MIN_DIVERSE) {
		double f = fmax(LEAST_SKEW, 2 * lag_fit_median(v, n_large));
		*factor = f * f;
	}
	free(v);
	return true;
}

/* Variance of a host's constant error, which the weights assume and messages show something of: they
 * find a gap, and are off themselves by path->variance. The fit is not moved by that, so what remains
 * likely of the gap is error. A gap beyond what both explain is taken as it is, unless a slow link on
 * the way may be the reason; and where the fit goes along the messages, what it assumes of them holds. */
static double measured(const struct path *path, double assumed)
{
	double gap2 = path->gap * path->gap;
	double both = assumed + path->variance;
	double likely = both > 0 ? assumed / both : 0;
	if (path->in_fit)
		return gap2 + assumed + path->scatter2;
	if (gap2 > UNLIKELY * both)
		return gap2 + path->variance;
	return gap2 * likely * likely + path->variance * likely;
}

/* Variance of a host's curve against the reference's at x: the readings' scatter, and what they may all
 * be off alike: what messages show of that; without messages, what the weights assume. */
static double line_variance(const struct state *st, uint32_t host, double x)
{
	const struct lag_clock_solved *s = st->s;
	double alike;
	if (isinf(s->prior_ns[host]))
		return INFINITY;
	alike = st->noise * s->model->repeated[host];
	if (host != s->reference && isfinite(st->path[host].variance))
		alike = measured(&st->path[host], alike);
	return alike + st->scatter * lag_fit_variance(s->model, host, x);
}

/* By how much a clock may wander off its curve at a distance from what was observed: quartz by little,
 * a clock whose rate was seen to change by as much again. */
static double wander(const struct state *st, uint32_t host, double distance)
{
	uint32_t n;
	const struct lag_fit_knot *knots = lag_fit_knots(st->s->model, host, &n);
	const double *c = st->s->model->coef + lag_fit_first(st->s->model, host) + 2;
	double sum = 0;
	uint32_t bends = 0;
	for (uint32_t k = 0; k < n; k++) {
		bends += !knots[k].step;
		sum += knots[k].step ? 0 : c[k] * c[k];
	}
	double change = bends ? sqrt(sum / bends) : 0;
	return fmax(WANDER * st->s->view->span_ns, change) * distance;
}

/* What is not known about a device's times between two moments, which are at most `distance` away
 * from an observation; < 0 unknown. seen < 0: nothing was seen of the device itself. */
static double unseen(const struct state *st, uint32_t device, double from, double until,
		     double distance, bool seen)
{
	uint32_t host = st->s->view->in->device_host[device];
	uint32_t n;
	const struct lag_fit_knot *knots = lag_fit_knots(st->s->model, host, &n);
	double device2 = st->t->device_ns * st->t->device_ns;
	double away = wander(st, host, distance);
	double v = fmax(line_variance(st, host, from), line_variance(st, host, until));
	for (uint32_t k = 0; k < n; k++) {
		if (knots[k].x > from && knots[k].x < until)
			v = fmax(v, line_variance(st, host, knots[k].x));
	}
	v += away * away;
	if (n)
		v += BEND_NS * BEND_NS;
	/* With one device everywhere, the common clock is the reference's as its device shows it. */
	v += st->blind       ? st->lone2 + BLIND_CHANGE_NS * BLIND_CHANGE_NS
	     : st->bracketed ? 0
			     : device2 / st->n_ref;
	if (host != st->s->reference && st->t->arriver_ns > 0)
		v += st->t->arriver_ns * st->t->arriver_ns / 4;
	if (!seen)
		v += device2;
	if (!isfinite(v))
		return -1;
	/* Never better than the spread of ends that devices of one host show. */
	return fmax(st->factor * sqrt(v), st->blind ? 0 : st->t->device_ns) + st->s->prior_ns[host];
}

/* Adds a row; one that says nearly what the last one says is drawn into that. */
static bool emit(struct state *st, struct lag_align_device row)
{
	struct lag_vec *rows = &st->t->rows;
	struct lag_align_device *last =
		rows->n ? &LAG_VEC_AT(rows, struct lag_align_device, rows->n - 1) : NULL;
	if (last && last->device == row.device &&
	    (row.uncertainty_ns < 0) == (last->uncertainty_ns < 0) &&
	    fabs(row.uncertainty_ns - last->uncertainty_ns) <= ALIKE * fabs(last->uncertainty_ns)) {
		last->uncertainty_ns = fmax(last->uncertainty_ns, row.uncertainty_ns);
		last->own_ns = fmax(last->own_ns, row.own_ns);
		return true;
	}
	last = lag_vec_push(rows);
	if (last)
		*last = row;
	return last != NULL;
}

static bool emit_at(struct state *st, struct lag_align_device *row, double x, double u, double seen)
{
	const struct lag_clock_view *view = st->s->view;
	uint32_t host = view->in->device_host[row->device];
	row->from_ns = view->origin_ns[host] + llround(x * view->span_ns);
	row->uncertainty_ns = u < 0 ? -1 : u + fmax(seen, 0);
	return emit(st, *row);
}

/* Rows before (after) what was observed: the farther, the less is known. */
static bool beyond(struct state *st, struct lag_align_device *row, double x, double seen,
		   bool after)
{
	static const double steps[] = { 0, 1.0 / 64, 1.0 / 16, 0.25, 1, 4, 16, 64 };
	const int n = sizeof(steps) / sizeof(steps[0]) - 1;
	for (int i = 0; i < n; i++) {
		double near = after ? steps[i] : steps[n - 1 - i];
		double far = after ? steps[i + 1] : steps[n - i];
		double at = after ? x + near : x - far;
		double u = unseen(st, row->device, at, after ? x + far : x - near, far, seen >= 0);
		if (!emit_at(st, row, at, u, seen))
			return false;
	}
	return true;
}

/* What samples [lo, hi) of n show of a device: the largest middle of a few in a row, since a conversion
 * that is off stays so, while single ends are early or late. */
static double seen_of(const double *v, size_t n, size_t lo, size_t hi)
{
	double worst = 0;
	for (size_t i = lo; i < hi; i++) {
		double few[ROW];
		size_t size = n < ROW ? n : ROW;
		size_t from = i < size / 2 ? 0 : i - size / 2;
		from = from + size > n ? n - size : from;
		memcpy(few, v + from, size * sizeof(*v));
		worst = fmax(worst, fabs(lag_fit_median(few, size)));
		if (n <= ROW)
			worst = fmax(worst, fabs(v[i]));
	}
	return worst;
}

static double longest_gap(const struct lag_clock_sample *p, size_t n)
{
	double gap = 0;
	for (size_t i = 1; i < n; i++)
		gap = fmax(gap, p[i].x - p[i - 1].x);
	return gap;
}

/* One device's rows: a window of samples each, and beyond them. */
static bool device_rows(struct state *st, uint32_t device, const struct lag_clock_sample *p,
			size_t n, double *scratch)
{
	uint32_t host = st->s->view->in->device_host[device];
	double *worst = &st->t->host_ns[host];
	struct lag_align_device row = { .device = device };
	size_t windows = n / WINDOW_SAMPLES;
	double seen = -1;
	windows = windows < 1 ? 1 : windows > MAX_WINDOWS ? MAX_WINDOWS : windows;
	if (n == 0) {
		double first = lag_clock_x(st->s->view, host, st->s->view->first_ns[host]);
		double last = lag_clock_x(st->s->view, host, st->s->view->last_ns[host]);
		double u = unseen(st, device, first, last, 0, false);
		row.own_ns = st->factor * st->t->device_ns;
		*worst = u < 0 || *worst < 0 ? -1 : fmax(*worst, u);
		return beyond(st, &row, first, -1, false) && emit_at(st, &row, first, u, -1) &&
		       beyond(st, &row, last, -1, true);
	}
	for (size_t i = 0; i < n; i++) {
		scratch[i] = p[i].err_ns - st->constant[host];
		/* A lone end differs from no other of its host: that shows nothing of its device. */
		scratch[n + i] = isnan(p[i].own_ns) ? st->factor * st->t->device_ns : p[i].own_ns;
	}
	for (size_t w = 0; w < windows; w++) {
		size_t lo = w * n / windows;
		size_t hi = (w + 1) * n / windows;
		size_t next = hi < n ? hi : n - 1;
		row.own_ns = seen_of(scratch + n, n, lo, hi);
		seen = seen_of(scratch, n, lo, hi);
		if (w == 0 && !beyond(st, &row, p[0].x, seen, false))
			return false;
		double u = unseen(st, device, p[lo].x, p[next].x,
				  longest_gap(p + lo, next - lo + 1) / 2, true);
		*worst = u < 0 || *worst < 0 ? -1 : fmax(*worst, u + seen);
		if (!emit_at(st, &row, p[lo].x, u, seen))
			return false;
	}
	return beyond(st, &row, p[n - 1].x, seen, true);
}

/* Where messages carry the fit, the mean distance of a host's ends from the reference's is skew of
 * the collective, not error of the clock; what remains around it is the devices'. */
static void find_constants(struct state *st, const struct path *path,
			   const struct lag_clock_sample *p, size_t n, double *scratch)
{
	const struct lag_align_input *in = st->s->view->in;
	double *n_devices = st->t->host_ns; /* borrowed, zero again on return */
	for (size_t from = 0, until; from < n; from = until) {
		uint32_t host = in->device_host[p[from].device];
		for (until = from; until < n && p[until].device == p[from].device; until++)
			scratch[until - from] = p[until].err_ns;
		if (!path[host].in_fit || isinf(path[host].variance) || host == st->s->reference)
			continue;
		st->constant[host] += lag_fit_median(scratch, until - from);
		n_devices[host] += 1;
	}
	for (uint32_t h = 0; h < in->n_hosts; h++) {
		st->constant[h] /= fmax(n_devices[h], 1);
		n_devices[h] = 0;
	}
}

static double middle_and_spread(double *v, size_t n, double *mid)
{
	*mid = lag_fit_median(v, n);
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - *mid);
	return 1.4826 * lag_fit_median(v, n);
}

/* A lone reference's changes are in everybody's differences from it, where a fit smooths them away: what
 * the windows of its samples move by, as far as that is more than the samples' scatter. What it is off
 * all the time is the common clock's choice. */
static bool lone_reference(struct state *st, const struct lag_clock_samples *samples)
{
	const struct lag_clock_sample *p = samples->across.items;
	double *v = lag_calloc(2 * samples->across.n, sizeof(*v));
	double *scratch = v ? v + samples->across.n : NULL;
	size_t n = 0;
	for (size_t i = 0; v && i < samples->across.n && st->n_ref < 2; i++) {
		if (st->s->view->in->device_host[p[i].device] == st->s->reference)
			v[n++] = p[i].err_ns;
	}
	size_t windows = n / WINDOW_SAMPLES > MAX_WINDOWS ? MAX_WINDOWS : n / WINDOW_SAMPLES;
	double square = 0;
	double mid = 0;
	for (size_t w = 0; w < windows; w++) {
		size_t lo = w * n / windows;
		size_t size = (w + 1) * n / windows - lo;
		memcpy(scratch, v + lo, size * sizeof(*v));
		double m = lag_fit_median(scratch, size);
		mid += m / (double)windows;
		square += m * m / (double)windows;
	}
	if (windows > 1) {
		double spread = middle_and_spread(v, n, &st->constant[st->s->reference]);
		/* A median is off by 1.25 standard errors of a mean. */
		double chance = 1.57 * spread * spread * (double)windows / (double)n;
		st->lone2 = fmax(0, square - mid * mid - chance);
	} else if (n) {
		st->lone2 = middle_and_spread(v, n, &st->constant[st->s->reference]);
		st->lone2 *= st->lone2;
	}
	free(v);
	return v != NULL;
}

static bool all_rows(struct state *st, const struct path *path, struct lag_clock_samples *samples)
{
	struct lag_clock_sample *p = samples->across.items;
	uint32_t n_devices = st->s->view->in->n_devices;
	double top = 0;
	size_t n = 0;
	for (size_t i = 0; i < samples->across.n; i++)
		top = fmax(top, p[i].weight);
	for (size_t i = 0; i < samples->across.n; i++) {
		if (p[i].weight >= WEIGHT_CUT * top)
			p[n++] = p[i];
	}
	double *scratch = lag_calloc(2 * n, sizeof(*scratch));
	bool ok = scratch != NULL;
	size_t at = 0;
	if (ok)
		find_constants(st, path, p, n, scratch);
	for (uint32_t d = 0; ok && d < n_devices; d++) {
		size_t from = at;
		while (at < n && p[at].device == d)
			at++;
		ok = device_rows(st, d, n ? p + from : NULL, at - from, scratch);
	}
	free(scratch);
	return ok;
}

static enum lag_status trust(struct state *st, struct lag_clock_samples *samples, struct path *path,
			     struct lag_err *err)
{
	const struct lag_align_input *in = st->s->view->in;
	st->path = path;
	double n_free = (double)st->s->gather->obs.n - (double)st->s->gather->groups.n -
			(double)lag_fit_size(st->s->model);
	n_free = fmax(n_free, 0);
	st->blind = samples->blind;
	st->t->device_ns = samples->device_ns;
	st->t->arriver_ns = samples->arriver_ns;
	st->factor = t96(samples->freedom);
	st->bracketed = true;
	for (uint32_t d = 0; d < in->n_devices; d++) {
		bool ref = in->device_host[d] == st->s->reference;
		st->n_ref += ref;
		st->bracketed &= !ref || lag_clock_own_known(st->s->view, d);
	}
	st->n_ref = fmax(st->n_ref, 1);
	if (skew_factor(st->s, samples, &st->noise)) {
		double shown = st->s->scale * st->s->scale;
		/* Few readings may agree by chance. */
		st->scatter = (shown * n_free + st->noise * FEW) / (n_free + FEW);
	} else
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock samples");
	follow_pairs(st->s, path);
	if (!lone_reference(st, samples) || !all_rows(st, path, samples))
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for devices");
	return LAG_OK;
}

enum lag_status lag_clock_trust_init(struct lag_clock_trust *t, const struct lag_clock_solved *s,
				     struct lag_err *err)
{
	uint32_t n = s->view->in->n_hosts;
	struct lag_clock_samples samples;
	*t = (struct lag_clock_trust){ .rows = LAG_VEC_INIT(struct lag_align_device),
				       .host_ns = lag_calloc(n, sizeof(double)) };
	double *constant = lag_calloc(n, sizeof(*constant));
	struct path *path = lag_calloc(n, sizeof(*path));
	struct state st = { .s = s, .t = t, .constant = constant };
	enum lag_status status = lag_clock_samples_init(&samples, s, err);
	if (status == LAG_OK) {
		status =
			t->host_ns && constant && path
				? trust(&st, &samples, path, err)
				: lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %u hosts", n);
		lag_clock_samples_release(&samples);
	}
	free(constant);
	free(path);
	if (status != LAG_OK)
		lag_clock_trust_release(t);
	return status;
}

void lag_clock_trust_release(struct lag_clock_trust *t)
{
	lag_vec_release(&t->rows);
	free(t->host_ns);
	t->host_ns = NULL;
}

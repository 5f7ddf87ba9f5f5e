/* SPDX-License-Identifier: Apache-2.0 */
/* A device's ends against those of the reference host (seen, by window), plus what cannot be seen:
 * the reference devices' own error, inferred from how devices of one host differ; skew of ends,
 * from messages and from last arrivers; the fit's own error. */
#include "merge/clock_trust.h"

#include <math.h>
#include <stdlib.h>

enum {
	WINDOW_SAMPLES = 6,
	MAX_WINDOWS = 16
};

/* Parts are very different from this factor on; so many samples of large ones are enough; and never
 * is less than this share of the assumed skew believed. */
#define DIVERSE     2.0
#define MIN_DIVERSE 9
#define LEAST_SKEW  0.15

/* Operations that much less certain than the best do not speak about devices. */
#define WEIGHT_CUT 0.25

struct state {
	const struct lag_clock_solved *s;
	struct lag_clock_trust *t;
	double factor;    /* from standard errors to the stated uncertainty */
	double n_ref;     /* devices of the reference */
	double *variance; /* by host: of its line against the reference's */
	double *constant; /* by host: by which its ends always differ, and messages say that they do */
};

/* 98 % of a Student distribution with nu degrees of freedom (the scatter itself is an estimate). With
 * what is seen of each device added on top, 99 % of all times are covered. */
static double t98(double nu)
{
	return 2.326 + 3.73 / nu + 5.71 / (nu * nu) + 6.9 / (nu * nu * nu);
}

/* Sums along the pairs of hosts that messages join, from the reference: how far messages and fit are
 * apart, and how certain the messages are. variance stays infinite where no path leads. */
struct path {
	double gap, variance;
	bool in_fit; /* the fit itself goes along it */
};

static void follow_pairs(const struct lag_clock_solved *s, struct path *path)
{
	bool moved = true;
	for (uint32_t h = 0; h < s->view->in->n_hosts; h++)
		path[h] = (struct path){ 0, h == s->reference ? 0 : INFINITY, true };
	while (moved) {
		moved = false;
		for (size_t i = 0; i < s->gather->pairs.n; i++) {
			const struct lag_clock_pair *p =
				&LAG_VEC_AT(&s->gather->pairs, struct lag_clock_pair, i);
			struct path *a = &path[p->a];
			struct path *b = &path[p->b];
			double edge = lag_clock_pair_variance(p);
			double gap = lag_clock_pair_gap(s->view, p, s->lines);
			/* A gap beyond the transfer breaks causality: then the messages are at fault. */
			gap = fmax(fmin(gap, p->line.transfer_ns), -p->line.transfer_ns);
			if (isinf(a->variance) == isinf(b->variance))
				continue;
			if (isinf(b->variance)) {
				*b = (struct path){ a->gap + gap, a->variance + edge,
						    a->in_fit && p->in_fit };
			} else {
				*a = (struct path){ b->gap - gap, b->variance + edge,
						    b->in_fit && p->in_fit };
			}
			moved = true;
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
	lag_fit_median(v, n); /* sorts */
	double large = n ? DIVERSE * v[n / 10] : 0;
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

/* What messages show of a host's constant error. A gap that a slow link on the way explains is no
 * proof of anything: then at most twice the skew that is assumed without messages. */
static double measured(const struct path *path, double assumed)
{
	double shown = path->gap * path->gap + path->variance;
	bool certain = path->in_fit || path->gap * path->gap > 4 * path->variance;
	return certain ? shown : fmin(shown, 4 * assumed);
}

/* Variance of each host's line against the reference's at x = -1 and 1, the ends of the run, where it
 * is worst. Errors that every collective repeats are what messages show of them; without messages,
 * what the weights assume. */
static void line_variance(const struct lag_clock_solved *s, const struct path *path, double noise,
			  double *var)
{
	const struct lag_clock_gather *g = s->gather;
	for (uint32_t h = 0; h < s->view->in->n_hosts; h++) {
		const struct lag_fit_line *l = &s->lines[h];
		double own = noise * fmax(lag_fit_variance(l, s->slope_weight, -1),
					  lag_fit_variance(l, s->slope_weight, 1));
		if (h == s->reference) {
			var[h] = 0;
		} else if (isfinite(path[h].variance)) {
			var[h] = own / fmax(l->n_obs, 1) + measured(&path[h], own);
		} else if (g->often[h] == g->often[s->reference]) {
			var[h] = own;
		} else {
			var[h] = g->set[h] == g->set[s->reference] ? 2 * own : INFINITY;
		}
	}
}

static bool emit(struct state *st, uint32_t device, int64_t from, double seen)
{
	uint32_t host = st->s->view->in->device_host[device];
	double device2 = st->t->device_ns * st->t->device_ns;
	double unseen2 = device2 / st->n_ref + st->variance[host];
	struct lag_align_device *row = lag_vec_push(&st->t->rows);
	if (!row)
		return false;
	if (host != st->s->reference && st->t->arriver_ns > 0)
		unseen2 += st->t->arriver_ns * st->t->arriver_ns / 4;
	if (seen < 0)
		unseen2 += device2;
	double u = fmax(seen, 0) + st->factor * sqrt(unseen2);
	*row = (struct lag_align_device){ device, from, 0, isfinite(u) ? u : -1 };
	double *worst = &st->t->host_ns[host];
	if (row->uncertainty_ns < 0 || *worst < 0) {
		*worst = -1;
	} else {
		*worst = fmax(*worst, u);
	}
	return true;
}

/* One device's rows: a window of samples each, its largest error but for a tenth of them. */
static bool device_rows(struct state *st, uint32_t device, const struct lag_clock_sample *p,
			size_t n, double *scratch)
{
	uint32_t host = st->s->view->in->device_host[device];
	int64_t from = st->s->view->first_ns[host];
	size_t windows = n / WINDOW_SAMPLES;
	windows = windows < 1 ? 1 : windows > MAX_WINDOWS ? MAX_WINDOWS : windows;
	if (n == 0)
		return emit(st, device, from, -1);
	for (size_t w = 0; w < windows; w++) {
		size_t lo = w * n / windows;
		size_t hi = (w + 1) * n / windows;
		for (size_t i = lo; i < hi; i++)
			scratch[i - lo] = fabs(p[i].err_ns - st->constant[host]);
		lag_fit_median(scratch, hi - lo); /* sorts */
		double seen = scratch[(hi - lo - 1) * 9 / 10];
		if (!emit(st, device, w ? p[lo].at_ns : from, seen))
			return false;
	}
	return true;
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
	double *scratch = lag_calloc(n, sizeof(*scratch));
	bool ok = scratch != NULL;
	size_t at = 0;
	if (ok)
		find_constants(st, path, p, n, scratch);
	for (uint32_t d = 0; ok && d < n_devices; d++) {
		size_t from = at;
		while (at < n && p[at].device == d)
			at++;
		ok = device_rows(st, d, p + from, at - from, scratch);
	}
	free(scratch);
	return ok;
}

static enum lag_status trust(struct state *st, struct lag_clock_samples *samples, struct path *path,
			     struct lag_err *err)
{
	const struct lag_align_input *in = st->s->view->in;
	double noise;
	st->t->device_ns = samples->device_ns;
	st->t->arriver_ns = samples->arriver_ns;
	st->factor = t98(samples->freedom);
	for (uint32_t d = 0; d < in->n_devices; d++)
		st->n_ref += in->device_host[d] == st->s->reference;
	st->n_ref = fmax(st->n_ref, 1);
	if (!skew_factor(st->s, samples, &noise))
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock samples");
	follow_pairs(st->s, path);
	line_variance(st->s, path, noise, st->variance);
	if (!all_rows(st, path, samples))
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
	double *variance = lag_calloc(2 * (size_t)n, sizeof(*variance));
	struct path *path = lag_calloc(n, sizeof(*path));
	struct state st = { .s = s, .t = t, .variance = variance, .constant = variance + n };
	enum lag_status status = lag_clock_samples_init(&samples, s, err);
	if (status == LAG_OK) {
		status =
			t->host_ns && variance && path
				? trust(&st, &samples, path, err)
				: lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %u hosts", n);
		lag_clock_samples_release(&samples);
	}
	free(variance);
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

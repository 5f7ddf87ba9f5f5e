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

/* Operations that much less certain than the best do not speak about devices. */
#define WEIGHT_CUT 0.25

struct state {
	const struct lag_clock_solved *s;
	struct lag_clock_trust *t;
	double factor;    /* from standard errors to the stated uncertainty */
	double n_ref;     /* devices of the reference */
	double *variance; /* by host: of its line against the reference, worst over the run */
};

/* 98 % of a Student distribution with nu degrees of freedom (the scatter itself is an estimate). With
 * what is seen of each device added on top, 99 % of all times are covered. */
static double t98(double nu)
{
	return 2.326 + 3.73 / nu + 5.71 / (nu * nu) + 6.9 / (nu * nu * nu);
}

/* Constant errors of ends: what messages say of the same pairs, or how last arrivers move them. */
static double skew(const struct lag_clock_solved *s, double arriver_ns)
{
	double sum = 0;
	double n = 0;
	for (size_t i = 0; i < s->gather->pairs.n; i++) {
		const struct lag_clock_pair *p =
			&LAG_VEC_AT(&s->gather->pairs, struct lag_clock_pair, i);
		if (p->in_fit)
			continue;
		double gap = fabs(lag_clock_pair_gap(s->view, p, s->lines));
		gap = fmin(gap, p->line.transfer_ns); /* beyond it the messages are at fault */
		sum += gap * gap;
		n += 1;
	}
	return fmax(n > 0 ? sqrt(sum / n) : 0, arriver_ns / 2);
}

static void relax(const struct lag_clock_solved *s, double x, double noise, double *var)
{
	const struct lag_clock_gather *g = s->gather;
	uint32_t n = s->view->in->n_hosts;
	bool moved = true;
	while (moved) {
		moved = false;
		for (uint32_t h = 0; h < n; h++) {
			for (uint32_t o = 0; o < n && isinf(var[h]); o++) {
				if (o == h || isinf(var[o]) || g->often[o] != g->often[h])
					continue;
				var[h] = var[o] +
					 noise * lag_fit_variance(&s->lines[h], s->slope_weight, x);
				moved |= isfinite(var[h]);
			}
		}
		for (size_t i = 0; i < g->pairs.n; i++) {
			const struct lag_clock_pair *p =
				&LAG_VEC_AT(&g->pairs, struct lag_clock_pair, i);
			double edge = lag_clock_pair_variance(p) * (1 + 3 * x * x);
			if (!p->in_fit || isinf(var[p->a]) == isinf(var[p->b]))
				continue;
			if (isinf(var[p->a]))
				var[p->a] = var[p->b] + edge;
			else
				var[p->b] = var[p->a] + edge;
			moved = true;
		}
	}
}

/* Variance of each host's line against the reference's, at x, along the paths that join them. */
static void fit_variance(const struct lag_clock_solved *s, double x, double *var)
{
	uint32_t n = s->view->in->n_hosts;
	double noise = fmax(1, s->scale * s->scale);
	for (uint32_t h = 0; h < n; h++)
		var[h] = h == s->reference ? 0 : INFINITY;
	relax(s, x, noise, var);
	/* Joined by rare collectives only: their own information is all there is. */
	for (uint32_t h = 0; h < n; h++) {
		if (isinf(var[h]) && s->gather->set[h] == s->gather->set[s->reference])
			var[h] = noise * lag_fit_variance(&s->lines[h], s->slope_weight, x);
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
	if (host != st->s->reference)
		unseen2 += st->t->skew_ns * st->t->skew_ns;
	if (seen < 0)
		unseen2 += device2;
	double u = fmax(seen, 0) + st->factor * sqrt(unseen2);
	*row = (struct lag_align_device){ device, from, 0, isfinite(u) ? u : -1 };
	double *worst = &st->t->host_ns[host];
	if (row->uncertainty_ns < 0 || *worst < 0)
		*worst = -1;
	else
		*worst = fmax(*worst, u);
	return true;
}

/* One device's rows: a window of samples each, its largest error but for a tenth of them. */
static bool device_rows(struct state *st, uint32_t device, const struct lag_clock_sample *p,
			size_t n, double *scratch)
{
	int64_t from = st->s->view->first_ns[st->s->view->in->device_host[device]];
	size_t windows = n / WINDOW_SAMPLES;
	windows = windows < 1 ? 1 : windows > MAX_WINDOWS ? MAX_WINDOWS : windows;
	if (n == 0)
		return emit(st, device, from, -1);
	for (size_t w = 0; w < windows; w++) {
		size_t lo = w * n / windows;
		size_t hi = (w + 1) * n / windows;
		for (size_t i = lo; i < hi; i++)
			scratch[i - lo] = fabs(p[i].err_ns);
		lag_fit_median(scratch, hi - lo); /* sorts */
		double seen = scratch[(hi - lo - 1) * 9 / 10];
		if (!emit(st, device, w ? p[lo].at_ns : from, seen))
			return false;
	}
	return true;
}

static bool all_rows(struct state *st, struct lag_clock_samples *samples)
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
	for (uint32_t d = 0; ok && d < n_devices; d++) {
		size_t from = at;
		while (at < n && p[at].device == d)
			at++;
		ok = device_rows(st, d, p + from, at - from, scratch);
	}
	free(scratch);
	return ok;
}

static enum lag_status trust(struct state *st, struct lag_clock_samples *samples, double *edge,
			     struct lag_err *err)
{
	const struct lag_align_input *in = st->s->view->in;
	st->t->device_ns = samples->device_ns;
	st->t->arriver_ns = samples->arriver_ns;
	st->t->skew_ns = skew(st->s, samples->arriver_ns);
	st->factor = t98(samples->freedom);
	for (uint32_t d = 0; d < in->n_devices; d++)
		st->n_ref += in->device_host[d] == st->s->reference;
	st->n_ref = fmax(st->n_ref, 1);
	/* The ends of the run are where a line is least certain. */
	fit_variance(st->s, -1, st->variance);
	fit_variance(st->s, 1, edge);
	for (uint32_t h = 0; h < in->n_hosts; h++)
		st->variance[h] = fmax(st->variance[h], edge[h]);
	if (!all_rows(st, samples))
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
	double *block = lag_calloc(2 * (size_t)n, sizeof(double));
	struct state st = { .s = s, .t = t, .variance = block };
	enum lag_status status = lag_clock_samples_init(&samples, s, err);
	if (status == LAG_OK) {
		status = t->host_ns && block ? trust(&st, &samples, block + n, err)
					     : lag_err_set(err, LAG_ERR_SYSTEM,
							   "out of memory for %u hosts", n);
		lag_clock_samples_release(&samples);
	}
	free(block);
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

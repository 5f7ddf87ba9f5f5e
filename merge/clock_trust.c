/* SPDX-License-Identifier: Apache-2.0 */
/* A device's ends against those of the reference host (seen, by window), plus what cannot be seen:
 * the reference devices' own error, inferred from how devices of one host differ; skew of ends,
 * from messages and from last arrivers; the fit's own error. */
#include "merge/clock_trust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_SAMPLES = 400000,
	WINDOW_SAMPLES = 6,
	MAX_WINDOWS = 16
};

/* Conversions by drivers are off by tens of microseconds in the worst cases seen; this is assumed
 * with the weight of two differences until ends of the run itself say more. */
#define PRIOR_DEVICE_NS 8000.0
#define PRIOR_DEVICES   2.0
/* Where a host has one device only, and nothing shows. */
#define BLIND_DEVICE_NS 15000.0
/* Operations that much less certain than the best do not speak about devices. */
#define WEIGHT_CUT 0.25

struct sample {
	uint32_t device;
	bool across; /* against other hosts, else against its own host's mean */
	double x, err_ns;
	double weight;
	int64_t at_ns;
};

struct state {
	const struct lag_clock_solved *s;
	struct lag_clock_trust *t;
	struct lag_vec samples;
	double *mean, *variance; /* by host */
	uint32_t *n;             /* by host */
	double *best;            /* by host: largest weight of a sample within it */
};

double lag_clock_corrected(const struct lag_clock_solved *s, uint32_t host, int64_t repaired_ns)
{
	const struct lag_fit_line *l = &s->lines[host];
	double raw = (double)(repaired_ns - s->view->origin_ns[s->reference]);
	return raw + l->offset_ns + l->slope_ns * lag_clock_x(s->view, host, repaired_ns);
}

static const struct lag_align_member *member(const struct state *st,
					     const struct lag_align_collective *c, uint32_t i)
{
	const struct lag_align_member *m = &st->s->view->members[c->first_member + i];
	return lag_clock_known(m) ? m : NULL;
}

/* Mean corrected end of each host (st->mean, st->n), and of the hosts together. */
static double host_means(struct state *st, const struct lag_align_collective *c, uint32_t *n_hosts)
{
	double sum = 0;
	*n_hosts = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(st, c, i);
		if (m)
			st->n[m->host] = 0;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(st, c, i);
		if (!m)
			continue;
		double e = lag_clock_corrected(st->s, m->host, m->end_ns);
		st->mean[m->host] = st->n[m->host] ? st->mean[m->host] + e : e;
		st->n[m->host]++;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(st, c, i);
		/* The first member of each host turns its sum into the mean. */
		if (!m || st->variance[m->host] >= 0)
			continue;
		st->variance[m->host] = 0;
		st->mean[m->host] /= st->n[m->host];
		sum += st->mean[m->host];
		++*n_hosts;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		if (member(st, c, i))
			st->variance[member(st, c, i)->host] = -1;
	}
	return *n_hosts ? sum / *n_hosts : 0;
}

static bool push(struct state *st, const struct lag_align_member *m, bool across, double err,
		 double weight)
{
	struct sample *p = lag_vec_push(&st->samples);
	if (!p)
		return false;
	*p = (struct sample){ m->device, across, lag_clock_x(st->s->view, m->host, m->end_ns),
			      err,       weight, m->end_ns };
	if (!across && weight > st->best[m->host])
		st->best[m->host] = weight;
	return true;
}

static bool sample_collective(struct state *st, const struct lag_align_collective *c)
{
	uint32_t n_hosts;
	double all = host_means(st, c, &n_hosts);
	uint32_t ref = st->s->reference;
	bool has_ref = false;
	double chunk =
		lag_clock_transfer(st->s->view, c) / (c->n_members > 1 ? c->n_members - 1 : 1);
	double weight = 1 / (9e6 + chunk * chunk);
	for (uint32_t i = 0; i < c->n_members && !has_ref; i++)
		has_ref = member(st, c, i) && member(st, c, i)->host == ref;
	double zero = has_ref ? st->mean[ref] : all;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(st, c, i);
		if (!m)
			continue;
		double e = lag_clock_corrected(st->s, m->host, m->end_ns);
		if (n_hosts > 1 && !push(st, m, true, e - zero, weight))
			return false;
		if (st->n[m->host] > 1 && !push(st, m, false, e - st->mean[m->host], weight))
			return false;
	}
	return true;
}

static bool take_samples(struct state *st)
{
	const struct lag_align_input *in = st->s->view->in;
	size_t total = 0;
	for (size_t i = 0; i < in->n_collectives; i++)
		total += lag_clock_usable(in->collectives[i].func, in->collectives[i].bytes)
				 ? in->collectives[i].n_members
				 : 0;
	size_t stride = total / MAX_SAMPLES + 1;
	size_t seen = 0;
	for (uint32_t h = 0; h < in->n_hosts; h++)
		st->variance[h] = -1;
	for (size_t i = 0; i < in->n_collectives; i++) {
		const struct lag_align_collective *c = &in->collectives[i];
		if (lag_clock_usable(c->func, c->bytes) && c->n_members > 1 &&
		    seen++ % stride == 0 && !sample_collective(st, c))
			return false;
	}
	return true;
}

static int by_device(const void *pa, const void *pb)
{
	const struct sample *a = pa;
	const struct sample *b = pb;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->across != b->across)
		return a->across ? 1 : -1;
	return (a->x > b->x) - (a->x < b->x);
}

/* 99 % of a Student distribution with nu degrees of freedom. */
static double t99(double nu)
{
	return 2.576 + 4.92 / nu + 8.84 / (nu * nu) + 12.0 / (nu * nu * nu);
}

/* The spread of devices that share a host, over all hosts: what one conversion is off by. */
static void device_error(struct state *st)
{
	const struct lag_align_input *in = st->s->view->in;
	double sum = PRIOR_DEVICES * PRIOR_DEVICE_NS * PRIOR_DEVICE_NS;
	double nu = PRIOR_DEVICES;
	double *sq = st->mean;
	double *count = st->variance;
	memset(sq, 0, in->n_hosts * sizeof(*sq));
	memset(count, 0, in->n_hosts * sizeof(*count));
	for (size_t i = 0; i < st->samples.n; i++) {
		const struct sample *p = &LAG_VEC_AT(&st->samples, struct sample, i);
		uint32_t h = in->device_host[p->device];
		if (p->across || p->weight < WEIGHT_CUT * st->best[h])
			continue;
		sq[h] += p->err_ns * p->err_ns;
		count[h] += 1;
	}
	bool seen = false;
	for (uint32_t h = 0; h < in->n_hosts; h++) {
		double n = 0;
		for (uint32_t d = 0; d < in->n_devices; d++)
			n += in->device_host[d] == h;
		if (count[h] < 1 || n < 2)
			continue;
		/* sq/count is the mean square around the host's mean: n - 1 of n degrees of freedom. */
		sum += sq[h] / count[h] * n;
		nu += n - 1;
		seen = true;
	}
	if (!seen)
		sum = PRIOR_DEVICES * BLIND_DEVICE_NS * BLIND_DEVICE_NS;
	st->t->device_ns = sqrt(sum / nu);
	st->t->factor = t99(nu);
}

/* Which host came last, or UINT32_MAX when two are too close to tell. */
static uint32_t last_arriver(const struct state *st, const struct lag_align_collective *c)
{
	double latest = -INFINITY;
	double second = -INFINITY;
	uint32_t who = UINT32_MAX;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(st, c, i);
		if (!m)
			return UINT32_MAX;
		double s = lag_clock_corrected(st->s, m->host, m->start_ns);
		if (s > latest) {
			second = m->host == who ? second : latest;
			latest = s;
			who = m->host;
		} else if (m->host != who && s > second) {
			second = s;
		}
	}
	return latest - second > 3 * st->t->device_ns ? who : UINT32_MAX;
}

/* Mean ends of each host, apart for each last arriver: their largest difference. */
static enum lag_status arriver_bias(struct state *st, struct lag_err *err)
{
	uint32_t n = st->s->view->in->n_hosts;
	const struct lag_clock_gather *g = st->s->gather;
	st->t->arriver_ns = -1;
	if (n > 64)
		return LAG_OK; /* too many combinations for the few collectives of a run */
	double *sum = lag_calloc((size_t)n * n, sizeof(*sum));
	uint32_t *count = lag_calloc((size_t)n * n, sizeof(*count));
	if (!sum || !count) {
		free(sum);
		free(count);
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for last arrivers");
	}
	for (size_t i = 0; i < g->which.n; i++) {
		const struct lag_align_collective *c =
			&st->s->view->in->collectives[LAG_VEC_AT(&g->which, size_t, i)];
		uint32_t who = last_arriver(st, c);
		uint32_t n_hosts;
		if (who == UINT32_MAX)
			continue;
		double all = host_means(st, c, &n_hosts);
		for (uint32_t k = 0; k < c->n_members; k++) {
			const struct lag_align_member *m = member(st, c, k);
			if (!m || !st->n[m->host])
				continue;
			sum[(size_t)m->host * n + who] += st->mean[m->host] - all;
			count[(size_t)m->host * n + who]++;
			st->n[m->host] = 0; /* once a host */
		}
	}
	for (uint32_t h = 0; h < n; h++) {
		double lo = INFINITY;
		double hi = -INFINITY;
		for (uint32_t who = 0; who < n; who++) {
			size_t k = (size_t)h * n + who;
			if (count[k] < LAG_CLOCK_OFTEN)
				continue;
			lo = fmin(lo, sum[k] / count[k]);
			hi = fmax(hi, sum[k] / count[k]);
		}
		if (hi > lo)
			st->t->arriver_ns = fmax(st->t->arriver_ns, hi - lo);
	}
	free(sum);
	free(count);
	return LAG_OK;
}

/* Constant errors of ends: what messages say of the same pairs, else what last arrivers do, else the
 * time of one chunk of the operations that carry the fit. */
static void skew(struct state *st)
{
	const struct lag_clock_gather *g = st->s->gather;
	double sum = 0;
	double n = 0;
	for (size_t i = 0; i < g->pairs.n; i++) {
		const struct lag_clock_pair *p = &LAG_VEC_AT(&g->pairs, struct lag_clock_pair, i);
		if (p->in_fit)
			continue;
		double gap = lag_clock_pair_gap(st->s->view, p, st->s->lines);
		double limit = p->line.transfer_ns;
		gap = fabs(gap) < limit ? gap : limit; /* beyond it the message line is at fault */
		sum += gap * gap;
		n += 1;
	}
	double skew2 = n > 0 ? sum / n : 0;
	if (st->t->arriver_ns > 0)
		skew2 = fmax(skew2, st->t->arriver_ns * st->t->arriver_ns / 4);
	if (n == 0 && g->obs.n) {
		double w = 0;
		for (size_t i = 0; i < g->obs.n; i++)
			w = fmax(w, LAG_VEC_AT(&g->obs, struct lag_fit_obs, i).weight);
		skew2 = fmax(skew2, 1 / w);
	}
	st->t->skew_ns = sqrt(skew2);
}

/* Variance of each host's line against the reference, at x: along the paths that join them. */
static void fit_variance(struct state *st, double x, double *var)
{
	const struct lag_clock_solved *s = st->s;
	uint32_t n = s->view->in->n_hosts;
	double noise = fmax(1, s->scale * s->scale);
	for (uint32_t h = 0; h < n; h++)
		var[h] = h == s->reference ? 0 : INFINITY;
	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t h = 0; h < n; h++) {
			double own = noise * lag_fit_variance(&s->lines[h], s->slope_weight, x);
			for (uint32_t o = 0; o < n && isinf(var[h]); o++) {
				if (o == h || isinf(var[o]) ||
				    s->gather->often[o] != s->gather->often[h])
					continue;
				var[h] = var[o] + 2 * own;
				moved = true;
			}
		}
		for (size_t i = 0; i < s->gather->pairs.n; i++) {
			const struct lag_clock_pair *p =
				&LAG_VEC_AT(&s->gather->pairs, struct lag_clock_pair, i);
			double edge = lag_clock_pair_variance(p) * (1 + 3 * x * x);
			if (isinf(var[p->a]) == isinf(var[p->b]))
				continue;
			if (isinf(var[p->a]))
				var[p->a] = var[p->b] + edge;
			else
				var[p->b] = var[p->a] + edge;
			moved = true;
		}
	}
	/* Joined by rare collectives only: their own information is all there is. */
	for (uint32_t h = 0; h < n; h++) {
		if (isinf(var[h]) && s->gather->set[h] == s->gather->set[s->reference])
			var[h] = 2 * noise * lag_fit_variance(&s->lines[h], s->slope_weight, x);
	}
}

static uint32_t devices_of(const struct lag_align_input *in, uint32_t host)
{
	uint32_t n = 0;
	for (uint32_t d = 0; d < in->n_devices; d++)
		n += in->device_host[d] == host;
	return n ? n : 1;
}

static bool emit(struct state *st, uint32_t device, int64_t from, double seen, double var)
{
	const struct lag_clock_solved *s = st->s;
	uint32_t host = s->view->in->device_host[device];
	struct lag_align_device *row = lag_vec_push(&st->t->rows);
	if (!row)
		return false;
	double unseen2 =
		st->t->device_ns * st->t->device_ns / devices_of(s->view->in, s->reference) + var;
	if (host != s->reference)
		unseen2 += st->t->skew_ns * st->t->skew_ns;
	if (seen < 0)
		unseen2 += st->t->device_ns * st->t->device_ns;
	double u = fmax(seen, 0) + st->t->factor * sqrt(unseen2);
	*row = (struct lag_align_device){ device, from, 0, isfinite(u) ? u : -1 };
	double worst = st->t->host_ns[host];
	if (row->uncertainty_ns < 0)
		st->t->host_ns[host] = -1;
	else if (worst >= 0)
		st->t->host_ns[host] = fmax(worst, u);
	return true;
}

/* One device's rows: a window of samples each, its largest error but for a tenth of them. */
static bool device_rows(struct state *st, uint32_t device, const struct sample *p, size_t n,
			double *scratch, const double *var)
{
	uint32_t host = st->s->view->in->device_host[device];
	int64_t from = st->s->view->first_ns[host];
	size_t windows = n / WINDOW_SAMPLES;
	windows = windows < 1 ? 1 : windows > MAX_WINDOWS ? MAX_WINDOWS : windows;
	if (n == 0)
		return emit(st, device, from, -1, var[host]);
	for (size_t w = 0; w < windows; w++) {
		size_t lo = w * n / windows;
		size_t hi = (w + 1) * n / windows;
		for (size_t i = lo; i < hi; i++)
			scratch[i - lo] = fabs(p[i].err_ns);
		lag_fit_median(scratch, hi - lo); /* sorts */
		double seen = scratch[(hi - lo - 1) * 9 / 10];
		if (!emit(st, device, w ? p[lo].at_ns : from, seen, var[host]))
			return false;
	}
	return true;
}

static bool all_rows(struct state *st)
{
	const struct lag_align_input *in = st->s->view->in;
	struct sample *p = st->samples.items;
	double top = 0;
	size_t n = 0;
	for (size_t i = 0; i < st->samples.n; i++)
		top = p[i].across ? fmax(top, p[i].weight) : top;
	for (size_t i = 0; i < st->samples.n; i++) {
		if (p[i].across && p[i].weight >= WEIGHT_CUT * top)
			p[n++] = p[i];
	}
	double *scratch = lag_calloc(n, sizeof(*scratch));
	double *edge = st->mean;
	double *mid = st->variance;
	bool ok = scratch != NULL;
	/* The ends of the run are where a line is least certain. */
	fit_variance(st, 1, edge);
	fit_variance(st, -1, mid);
	for (uint32_t h = 0; h < in->n_hosts; h++)
		edge[h] = fmax(edge[h], mid[h]);
	size_t at = 0;
	for (uint32_t d = 0; ok && d < in->n_devices; d++) {
		size_t from = at;
		while (at < n && p[at].device == d)
			at++;
		ok = device_rows(st, d, p + from, at - from, scratch, edge);
	}
	free(scratch);
	return ok;
}

enum lag_status lag_clock_trust_init(struct lag_clock_trust *t, const struct lag_clock_solved *s,
				     struct lag_err *err)
{
	uint32_t n = s->view->in->n_hosts;
	*t = (struct lag_clock_trust){ .rows = LAG_VEC_INIT(struct lag_align_device),
				       .host_ns = lag_calloc(n, sizeof(double)) };
	double *block = lag_calloc(3 * (size_t)n, sizeof(double));
	struct state st = { .s = s,
			    .t = t,
			    .samples = LAG_VEC_INIT(struct sample),
			    .mean = block,
			    .variance = block + n,
			    .best = block + 2 * (size_t)n,
			    .n = lag_calloc(n, sizeof(uint32_t)) };
	enum lag_status status = LAG_OK;
	if (!t->host_ns || !block || !st.n || !take_samples(&st)) {
		status = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock samples");
	} else {
		if (st.samples.n)
			qsort(st.samples.items, st.samples.n, sizeof(struct sample), by_device);
		device_error(&st);
		for (uint32_t h = 0; h < n; h++)
			st.variance[h] = -1;
		status = arriver_bias(&st, err);
		skew(&st);
		if (status == LAG_OK && !all_rows(&st))
			status = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for devices");
	}
	lag_vec_release(&st.samples);
	free(block);
	free(st.n);
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

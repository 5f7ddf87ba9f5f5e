/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives whose parts are small show devices' own errors; large ones end too unevenly. Devices
 * that share a host are compared with each other, and, by messages, with those of a neighbour. */
#include "merge/clock_sample.h"

#include <math.h>
#include <stdlib.h>

enum {
	MAX_SAMPLES = 400000,
	MAX_ARRIVER_HOSTS = 64
};

/* Ends that may differ by more than this say nothing about devices. */
#define SMALL_CHUNK_NS 40000.0
#define JITTER2_NS     9e6

/* Conversions by drivers are off by tens of microseconds in the worst cases seen; this is assumed
 * with the weight of two devices, and all there is where nothing shows. */
#define PRIOR_NS      8000.0
#define PRIOR_FREEDOM 2.0
#define BLIND_NS      12000.0
#define BLIND_FREEDOM 60.0

/* Squared, in standard errors: what the widest of some pairs differs by without a reason. */
#define BY_CHANCE 7.0

struct host_end {
	double sum, square; /* of corrected ends; square around the first */
	double first;
	uint32_t n;
};

struct work {
	const struct lag_clock_solved *s;
	struct lag_clock_samples *out;
	struct host_end *ends; /* by host, of the present collective */
	double *square;  /* by host: sum over collectives of the variance between its devices */
	double *count;   /* by host: collectives in it */
	double *freedom; /* by host: devices less one */
};

double lag_clock_corrected(const struct lag_clock_solved *s, uint32_t host, int64_t repaired_ns)
{
	double raw = (double)(repaired_ns - s->view->origin_ns[s->reference]);
	return raw + lag_fit_value(s->model, host, lag_clock_x(s->view, host, repaired_ns));
}

static const struct lag_align_member *member(const struct work *w,
					     const struct lag_align_collective *c, uint32_t i)
{
	const struct lag_align_member *m = &w->s->view->members[c->first_member + i];
	return lag_clock_known(m) ? m : NULL;
}

/* Fills w->ends for the hosts of c; returns the mean of the hosts' means, and their number. */
static double host_ends(struct work *w, const struct lag_align_collective *c, uint32_t *n_hosts)
{
	double sum = 0;
	*n_hosts = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(w, c, i);
		if (m)
			w->ends[m->host] = (struct host_end){ 0 };
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(w, c, i);
		if (!m)
			continue;
		struct host_end *e = &w->ends[m->host];
		double at = lag_clock_corrected(w->s, m->host, m->end_ns);
		double before = e->n ? e->sum / e->n : 0;
		if (e->n == 0) {
			e->first = at;
			++*n_hosts;
		}
		e->sum += at;
		e->n++;
		e->square += (at - e->first) * (at - e->first);
		sum += e->sum / e->n - before;
	}
	return *n_hosts ? sum / *n_hosts : 0;
}

static double mean_of(const struct host_end *e)
{
	return e->sum / e->n;
}

/* Unbiased variance between the devices of a host in one collective. */
static double variance_of(const struct host_end *e)
{
	double d = mean_of(e) - e->first;
	return (e->square - e->n * d * d) / (e->n - 1);
}

static bool sample(struct work *w, const struct lag_align_collective *c, double chunk)
{
	uint32_t n_hosts;
	double all = host_ends(w, c, &n_hosts);
	uint32_t ref = w->s->reference;
	double weight = 1 / (JITTER2_NS + chunk * chunk);
	bool has_ref = false;
	for (uint32_t i = 0; i < c->n_members && !has_ref; i++)
		has_ref = member(w, c, i) && member(w, c, i)->host == ref;
	double zero = has_ref ? mean_of(&w->ends[ref]) : all;
	/* A lone device cannot differ from itself: from the other hosts it can. */
	double others = n_hosts > 1 ? (all * n_hosts - zero) / (n_hosts - 1) : zero;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(w, c, i);
		if (!m)
			continue;
		struct host_end *e = &w->ends[m->host];
		double at = lag_clock_corrected(w->s, m->host, m->end_ns);
		if (n_hosts > 1 || w->s->view->in->n_hosts == 1) {
			struct lag_clock_sample *p = lag_vec_push(&w->out->across);
			if (!p)
				return false;
			*p = (struct lag_clock_sample){ m->device,
							lag_clock_x(w->s->view, m->host, m->end_ns),
							at - (m->host == ref && e->n == 1 ? others
											  : zero),
							e->n > 1 ? at - mean_of(e) : NAN,
							weight,
							m->end_ns };
		}
		if (e->n < 2 || chunk > SMALL_CHUNK_NS)
			continue;
		w->square[m->host] += variance_of(e) / e->n; /* once for each of the n */
		w->count[m->host] += 1.0 / e->n;
		w->freedom[m->host] = fmax(w->freedom[m->host], e->n - 1);
	}
	return true;
}

static bool sample_collectives(struct work *w)
{
	const struct lag_align_input *in = w->s->view->in;
	size_t total = 0;
	size_t seen = 0;
	for (size_t i = 0; i < in->n_collectives; i++)
		total += in->collectives[i].n_members;
	size_t stride = total / MAX_SAMPLES + 1;
	for (size_t i = 0; i < in->n_collectives; i++) {
		const struct lag_align_collective *c = &in->collectives[i];
		if (lag_clock_used(w->s->view, c) && c->n_members > 1 &&
		    lag_clock_pick(seen++, stride) &&
		    !sample(w, c, lag_clock_skew(w->s->gather, w->s->view, c)))
			return false;
	}
	return true;
}

/* What a message says about its two devices, by half of the run. */
struct between {
	uint32_t a, b;
	bool second_half;
	double ns;
};

static int by_devices(const void *pa, const void *pb)
{
	const struct between *a = pa;
	const struct between *b = pb;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	if (a->second_half != b->second_half)
		return a->second_half ? 1 : -1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

static const struct lag_clock_pair *pair_of(const struct lag_clock_gather *g, uint32_t a,
					    uint32_t b)
{
	size_t lo = 0;
	size_t hi = g->pairs.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct lag_clock_pair *p = &LAG_VEC_AT(&g->pairs, struct lag_clock_pair, mid);
		if (p->a == a && p->b == b)
			return p;
		if (p->a < a || (p->a == a && p->b < b)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return NULL;
}

/* Sums the squares of device pairs' median distances from their hosts' line. Such a distance holds
 * two devices' errors. */
static void sum_between(struct between *v, size_t n, size_t n_host_pairs, double *sum,
			double *freedom)
{
	double squares = 0;
	size_t groups = 0;
	qsort(v, n, sizeof(*v), by_devices);
	for (size_t from = 0, until; from < n; from = until) {
		for (until = from + 1; until < n && v[until].a == v[from].a &&
				       v[until].b == v[from].b &&
				       v[until].second_half == v[from].second_half;)
			until++;
		double mid = v[from + (until - from) / 2].ns;
		squares += mid * mid / 2;
		groups++;
	}
	double nu = (double)groups / 2 - (double)n_host_pairs;
	if (nu < 1)
		return;
	/* Both halves look at the same devices: their mean, not their sum. */
	*sum += squares / 2;
	*freedom += nu;
}

static bool sample_messages(struct work *w, double *sum, double *freedom)
{
	const struct lag_clock_view *view = w->s->view;
	size_t n = 0;
	size_t stride = view->in->n_messages / MAX_SAMPLES + 1;
	struct between *v = lag_calloc(view->in->n_messages, sizeof(*v));
	if (!v)
		return false;
	for (size_t i = 0; i < view->in->n_messages; i++) {
		if (!lag_clock_pick(i, stride))
			continue;
		const struct lag_align_message *m = &view->messages[i];
		double x;
		double ns;
		bool forward = m->send.host < m->recv.host;
		const struct lag_align_member *a = forward ? &m->send : &m->recv;
		const struct lag_align_member *b = forward ? &m->recv : &m->send;
		const struct lag_clock_pair *p = pair_of(w->s->gather, a->host, b->host);
		if (!p || p->bytes != m->bytes || !lag_clock_message_residual(view, p, m, &x, &ns))
			continue;
		v[n++] = (struct between){ a->device, b->device, x > 0, ns };
	}
	sum_between(v, n, w->s->gather->pairs.n, sum, freedom);
	free(v);
	return true;
}

static bool device_error(struct work *w)
{
	double sum = 0;
	double nu = 0;
	for (uint32_t h = 0; h < w->s->view->in->n_hosts; h++) {
		if (w->count[h] <= 0)
			continue;
		sum += w->square[h] / w->count[h] * w->freedom[h];
		nu += w->freedom[h];
	}
	if (nu < 1 && !sample_messages(w, &sum, &nu))
		return false;
	if (nu < 1) {
		w->out->device_ns = BLIND_NS;
		w->out->blind = true;
		w->out->freedom = BLIND_FREEDOM;
		return true;
	}
	w->out->freedom = nu + PRIOR_FREEDOM;
	w->out->device_ns = sqrt((sum + PRIOR_FREEDOM * PRIOR_NS * PRIOR_NS) / w->out->freedom);
	return true;
}

/* Which host came last; UINT32_MAX when two are too close to tell or a member is missing. */
static uint32_t last_arriver(const struct work *w, const struct lag_align_collective *c)
{
	double latest = -INFINITY;
	double second = -INFINITY;
	uint32_t who = UINT32_MAX;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = member(w, c, i);
		if (!m)
			return UINT32_MAX;
		double at = lag_clock_corrected(w->s, m->host, m->start_ns);
		if (at > latest) {
			second = m->host == who ? second : latest;
			latest = at;
			who = m->host;
		} else if (m->host != who && at > second) {
			second = at;
		}
	}
	return latest - second > 3 * w->out->device_ns ? who : UINT32_MAX;
}

/* A host's ends while some host came last. */
struct arrival {
	double sum, square;
	uint32_t n;
};

static double mean_end(const struct arrival *a)
{
	return a->sum / a->n;
}

static double mean_variance(const struct arrival *a)
{
	double m = mean_end(a);
	return fmax(a->square / a->n - m * m, 0) / (a->n - 1);
}

/* Largest difference of a host's mean end between last arrivers that were seen often, as far as it is
 * more than the ends' scatter. */
static double widest(const struct arrival *cells, uint32_t n)
{
	double worst = -1;
	for (uint32_t h = 0; h < n; h++) {
		const struct arrival *row = cells + (size_t)h * n;
		const struct arrival *lo = NULL;
		const struct arrival *hi = NULL;
		for (uint32_t who = 0; who < n; who++) {
			const struct arrival *a = &row[who];
			if (a->n < LAG_CLOCK_OFTEN)
				continue;
			lo = !lo || mean_end(a) < mean_end(lo) ? a : lo;
			hi = !hi || mean_end(a) > mean_end(hi) ? a : hi;
		}
		if (lo == hi)
			continue;
		double d = mean_end(hi) - mean_end(lo);
		double chance = BY_CHANCE * (mean_variance(hi) + mean_variance(lo));
		worst = fmax(worst, sqrt(fmax(d * d - chance, 0)));
	}
	return worst;
}

static bool arrivers(struct work *w)
{
	const struct lag_clock_gather *g = w->s->gather;
	uint32_t n = w->s->view->in->n_hosts;
	w->out->arriver_ns = -1;
	if (n > MAX_ARRIVER_HOSTS)
		return true; /* more combinations than the collectives of a run can fill */
	struct arrival *cells = lag_calloc((size_t)n * n, sizeof(*cells));
	for (size_t i = 0; cells && i < g->which.n; i++) {
		const struct lag_align_collective *c =
			&w->s->view->in->collectives[LAG_VEC_AT(&g->which, size_t, i)];
		uint32_t who = last_arriver(w, c);
		uint32_t n_hosts;
		if (who == UINT32_MAX)
			continue;
		double all = host_ends(w, c, &n_hosts);
		for (uint32_t k = 0; k < c->n_members; k++) {
			const struct lag_align_member *m = member(w, c, k);
			if (!m || !w->ends[m->host].n)
				continue;
			struct arrival *a = &cells[(size_t)m->host * n + who];
			double off = mean_of(&w->ends[m->host]) - all;
			a->sum += off;
			a->square += off * off;
			a->n++;
			w->ends[m->host].n = 0; /* once a host */
		}
	}
	if (cells)
		w->out->arriver_ns = widest(cells, n);
	free(cells);
	return cells != NULL;
}

static int by_device(const void *pa, const void *pb)
{
	const struct lag_clock_sample *a = pa;
	const struct lag_clock_sample *b = pb;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->x > b->x) - (a->x < b->x);
}

enum lag_status lag_clock_samples_init(struct lag_clock_samples *out,
				       const struct lag_clock_solved *s, struct lag_err *err)
{
	uint32_t n = s->view->in->n_hosts;
	*out = (struct lag_clock_samples){ .across = LAG_VEC_INIT(struct lag_clock_sample) };
	double *block = lag_calloc(3 * (size_t)n, sizeof(double));
	struct host_end *ends = lag_calloc(n, sizeof(*ends));
	bool ok = block && ends;
	if (ok) {
		struct work w = { s, out, ends, block, block + n, block + 2 * (size_t)n };
		ok = sample_collectives(&w) && device_error(&w) && arrivers(&w);
	}
	if (ok && out->across.n)
		qsort(out->across.items, out->across.n, sizeof(struct lag_clock_sample), by_device);
	free(block);
	free(ends);
	if (ok)
		return LAG_OK;
	lag_clock_samples_release(out);
	return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock samples");
}

void lag_clock_samples_release(struct lag_clock_samples *samples)
{
	lag_vec_release(&samples->across);
}

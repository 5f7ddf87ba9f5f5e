/* SPDX-License-Identifier: Apache-2.0 */
/* Normal equations with the groups' means eliminated, inside a loop that reweights by residual
 * (absolute values first, then Huber). Linear in the observations: factored where the parameters are
 * few, else conjugate gradients. */
#include "merge/clock_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/clock_dense.h"

enum {
	ROUNDS = 12, /* of reweighting; half of them by absolute values */
	ROUNDS_QUICK = 6,
	ENOUGH = 5001,     /* no multiple of a group's size, nearly ever */
	DENSE_SOLVE = 400, /* parameters up to which factoring is the faster way */
	DENSE_MAX = 1536   /* up to which there is a covariance: 18 MiB */
};

#define HUBER 1.5
/* What a step's size may be before data speak, as a standard deviation. */
#define STEP_PRIOR_NS 1e12

/* Which errors the normal equations are to weigh. */
enum weigh {
	ALL,      /* for the solution */
	SCATTER,  /* single readings' own */
	REPEATED, /* those that each of a host's readings repeats: they move its offset alone */
};

struct work {
	const struct lag_fit_problem *p;
	enum weigh weigh;
	struct lag_fit_model *m;
	size_t size;
	double *robust;         /* factor on each weight */
	double *res;            /* residual of each observation */
	double *x;              /* the solution: the model's coefficients */
	double *r, *d, *q, *m1; /* of conjugate gradients: residual, direction, product, diagonal */
	double slope_weight;
	double *dense; /* NULL: too many parameters */
	double *sum;   /* by parameter: a group's sums */
	size_t *touched;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;
	return (x > y) - (x < y);
}

static double middle_of(double a, double b, double c)
{
	if (a < b)
		return b < c ? b : a < c ? c : a;
	return a < c ? a : b < c ? c : b;
}

/* Brings to place k of v what would stand there in order, with nothing greater before it and nothing less
 * behind (Hoare). */
static void select_place(double *v, size_t n, size_t k)
{
	ptrdiff_t lo = 0, hi = (ptrdiff_t)n - 1, at = (ptrdiff_t)k;

	for (size_t round = n; lo < hi; round /= 2) {
		double pivot = middle_of(v[lo], v[lo + (hi - lo) / 2], v[hi]);
		ptrdiff_t i = lo, j = hi;

		/* Whatever the values: no more than sorting. */
		if (!round) {
			qsort(v + lo, (size_t)(hi - lo) + 1, sizeof(*v), by_value);
			return;
		}
		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (pivot < v[j])
				j--;
			if (i <= j) {
				double w = v[i];

				v[i++] = v[j];
				v[j--] = w;
			}
		}
		if (at > j && at < i)
			return;
		if (at <= j) {
			hi = j;
		} else {
			lo = i;
		}
	}
}

double lag_fit_median(double *v, size_t n)
{
	double below = -INFINITY;

	if (n == 0)
		return 0;
	select_place(v, n, n / 2);
	if (n % 2)
		return v[n / 2];
	for (size_t i = 0; i < n / 2; i++)
		below = v[i] > below ? v[i] : below;
	return (below + v[n / 2]) / 2;
}

double lag_fit_place(double *v, size_t n, size_t k)
{
	select_place(v, n, k);
	return v[k];
}

static uint32_t n_params(const struct work *w, uint32_t host)
{
	if (w->p->fixed[host])
		return 0;
	return w->weigh == REPEATED ? 1 : 2 + w->m->first_knot[host + 1] - w->m->first_knot[host];
}

static double prior(const struct work *w, uint32_t host, uint32_t k)
{
	if (k == 0)
		return 0;
	if (k == 1)
		return w->slope_weight;
	return LAG_VEC_AT(&w->m->knots, struct lag_fit_knot, w->m->first_knot[host] + k - 2).step
		       ? 1 / (STEP_PRIOR_NS * STEP_PRIOR_NS)
		       : w->slope_weight;
}

static double value(const struct work *w, const double *v, const struct lag_fit_obs *o)
{
	const double *c = v + lag_fit_first(w->m, o->host);
	uint32_t n = n_params(w, o->host);
	double sum = 0;

	for (uint32_t k = 0; k < n; k++)
		sum += c[k] * lag_fit_basis(w->m, o->host, k, o->x);
	return sum;
}

/* Value of each observation under curves v (NULL: the readings themselves), minus its group's mean. */
static void centred(struct work *w, const double *v, double *out)
{
	const struct lag_fit_problem *p = w->p;
	for (size_t g = 0; g < p->n_groups; g++) {
		const struct lag_fit_group *grp = &p->groups[g];
		double sum = 0;
		double sw = 0;
		for (size_t i = grp->first; i < grp->first + grp->n; i++) {
			out[i] = v ? value(w, v, &p->obs[i]) : p->obs[i].y_ns;
			sum += w->robust[i] * p->obs[i].weight * out[i];
			sw += w->robust[i] * p->obs[i].weight;
		}
		for (size_t i = grp->first; i < grp->first + grp->n && sw > 0; i++)
			out[i] -= sum / sw;
	}
}

/* out = transpose of the model times the weighted values. */
static void gather(struct work *w, const double *values, double *out)
{
	const struct lag_fit_problem *p = w->p;
	memset(out, 0, w->size * sizeof(*out));
	for (size_t i = 0; i < p->n_obs; i++) {
		const struct lag_fit_obs *o = &p->obs[i];
		double *to = out + lag_fit_first(w->m, o->host);
		double t = w->robust[i] * o->weight * values[i];
		uint32_t n = n_params(w, o->host);
		for (uint32_t k = 0; k < n; k++)
			to[k] += t * lag_fit_basis(w->m, o->host, k, o->x);
	}
}

static void product(struct work *w, const double *v, double *out)
{
	centred(w, v, w->res);
	gather(w, w->res, out);
	for (uint32_t h = 0; h < w->p->n_hosts; h++) {
		size_t first = lag_fit_first(w->m, h);
		for (uint32_t k = 0; k < n_params(w, h); k++)
			out[first + k] += prior(w, h, k) * v[first + k];
	}
}

static void diagonal(struct work *w)
{
	const struct lag_fit_problem *p = w->p;
	memset(w->m1, 0, w->size * sizeof(*w->m1));
	for (uint32_t h = 0; h < p->n_hosts; h++) {
		for (uint32_t k = 0; k < n_params(w, h); k++)
			w->m1[lag_fit_first(w->m, h) + k] = prior(w, h, k);
	}
	for (size_t i = 0; i < p->n_obs; i++) {
		const struct lag_fit_obs *o = &p->obs[i];
		uint32_t n = n_params(w, o->host);
		for (uint32_t k = 0; k < n; k++) {
			double b = lag_fit_basis(w->m, o->host, k, o->x);
			w->m1[lag_fit_first(w->m, o->host) + k] += w->robust[i] * o->weight * b * b;
		}
	}
	for (size_t k = 0; k < w->size; k++)
		w->m1[k] = w->m1[k] > 0 ? 1 / w->m1[k] : 0;
}

static double dot_preconditioned(const struct work *w, const double *a, const double *b)
{
	double sum = 0;
	for (size_t k = 0; k < w->size; k++)
		sum += a[k] * w->m1[k] * b[k];
	return sum;
}

static void conjugate_gradients(struct work *w)
{
	size_t n = w->size;
	memset(w->x, 0, n * sizeof(double));
	diagonal(w);
	centred(w, NULL, w->res);
	gather(w, w->res, w->r);
	for (size_t k = 0; k < n; k++) {
		w->r[k] = -w->r[k];
		w->d[k] = w->m1[k] * w->r[k];
	}
	double rho = dot_preconditioned(w, w->r, w->r);
	const double enough = rho * 1e-26;
	for (size_t it = 0; it < 4 * n + 20 && rho > enough; it++) {
		double curvature = 0;
		product(w, w->d, w->q);
		for (size_t k = 0; k < n; k++)
			curvature += w->d[k] * w->q[k];
		if (!(curvature > 0))
			break;
		double step = rho / curvature;
		for (size_t k = 0; k < n; k++) {
			w->x[k] += step * w->d[k];
			w->r[k] -= step * w->q[k];
		}
		double next = dot_preconditioned(w, w->r, w->r);
		for (size_t k = 0; k < n; k++)
			w->d[k] = w->m1[k] * w->r[k] + next / rho * w->d[k];
		rho = next;
	}
}

/* One group's part of the lower triangle: its members' squares, less the square of its mean. */
static void add_group(struct work *w, const struct lag_fit_group *grp)
{
	size_t n_touched = 0;
	double sw = 0;
	for (size_t i = grp->first; i < grp->first + grp->n; i++) {
		const struct lag_fit_obs *o = &w->p->obs[i];
		double t = w->robust[i] *
			   (w->weigh == SCATTER ? 1 / (o->noise_ns * o->noise_ns) : o->weight);
		size_t first = lag_fit_first(w->m, o->host);
		uint32_t n = n_params(w, o->host);
		sw += t;
		for (uint32_t a = 0; a < n; a++) {
			double fa = lag_fit_basis(w->m, o->host, a, o->x);
			double *row = w->dense + (first + a) * w->size + first;
			w->sum[first + a] = t * fa;
			if (fa == 0)
				continue;
			/* Sums of this host so far are t times its factors. */
			for (uint32_t b = 0; b <= a; b++)
				row[b] += fa * w->sum[first + b];
			w->touched[n_touched++] = first + a;
		}
	}
	for (size_t i = 0; i < n_touched && sw > 0; i++) {
		double *row = w->dense + w->touched[i] * w->size;
		double t = w->sum[w->touched[i]] / sw;
		/* Hosts come in any order: the other triangle is never read. */
		for (size_t k = 0; k < n_touched; k++)
			row[w->touched[k]] -= t * w->sum[w->touched[k]];
	}
}

/* The normal equations, factored. A parameter that nothing determines gets a unit of its own. */
static bool factor(struct work *w)
{
	memset(w->dense, 0, w->size * w->size * sizeof(double));
	for (size_t g = 0; g < w->p->n_groups; g++)
		add_group(w, &w->p->groups[g]);
	for (uint32_t h = 0; h < w->p->n_hosts; h++) {
		size_t first = lag_fit_first(w->m, h);
		uint32_t n = 2 + w->m->first_knot[h + 1] - w->m->first_knot[h];
		for (uint32_t k = 0; k < n; k++) {
			double *at = &w->dense[(first + k) * (w->size + 1)];
			*at += k >= n_params(w, h) ? 1 : prior(w, h, k) + 1e-12 * *at;
			if (!(*at > 0))
				*at = 1;
		}
	}
	return lag_dense_factor(w->dense, w->size);
}

static void solve(struct work *w)
{
	if (!w->dense || w->size > DENSE_SOLVE || !factor(w)) {
		conjugate_gradients(w);
		return;
	}
	centred(w, NULL, w->res);
	gather(w, w->res, w->x);
	for (size_t k = 0; k < w->size; k++)
		w->x[k] = -w->x[k];
	lag_dense_solve(w->dense, w->size, w->x);
}

/* Robust spread of the residuals, in units of their limits or of their noise. Some thousand tell it. */
static double spread_of(const struct work *w, double *scratch, bool limits)
{
	const struct lag_fit_problem *p = w->p;
	size_t stride = p->n_obs / ENOUGH + 1;
	size_t n = 0;
	for (size_t i = 0; i < p->n_obs; i += stride) {
		const struct lag_fit_obs *o = &p->obs[i];
		scratch[n++] = fabs(w->res[i]) / (limits ? o->limit_ns : o->noise_ns);
	}
	return 1.4826 * lag_fit_median(scratch, n);
}

/* Residuals under the present curves, and their robust spread in units of the noise. */
static double residuals(struct work *w, double *scratch)
{
	const struct lag_fit_problem *p = w->p;
	centred(w, w->x, w->res);
	for (size_t g = 0; g < p->n_groups; g++) {
		const struct lag_fit_group *grp = &p->groups[g];
		double sum = 0;
		double sw = 0;
		for (size_t i = grp->first; i < grp->first + grp->n; i++) {
			sum += w->robust[i] * p->obs[i].weight * p->obs[i].y_ns;
			sw += w->robust[i] * p->obs[i].weight;
		}
		for (size_t i = grp->first; i < grp->first + grp->n && sw > 0; i++)
			w->res[i] += p->obs[i].y_ns - sum / sw;
	}
	return spread_of(w, scratch, true);
}

static void reweight(struct work *w, double scale, bool absolute)
{
	/* Residuals far below the noise carry no news: on a tree of pairs all are zero. */
	double floor = scale > 0.5 ? scale : 0.5;
	for (size_t i = 0; i < w->p->n_obs; i++) {
		double u = fabs(w->res[i]) / w->p->obs[i].limit_ns / floor;
		if (absolute) {
			w->robust[i] = 1 / (u > 0.3 ? u : 0.3);
		} else {
			w->robust[i] = u > HUBER ? HUBER / u : 1;
		}
	}
}

/* What is known of a host that too many others come with, as if it had seen the reference itself. */
static void own_repeated(struct work *w)
{
	for (uint32_t h = 0; h < w->p->n_hosts; h++) {
		double own = w->m->info[3 * (size_t)h];
		w->m->repeated[h] = w->p->fixed[h] ? 0 : own > 0 ? 2 / own : INFINITY;
	}
}

static void variances(struct work *w)
{
	w->weigh = REPEATED;
	if (!w->dense || !factor(w)) {
		own_repeated(w);
		return;
	}
	lag_dense_inverse(w->dense, w->size, w->sum);
	for (uint32_t h = 0; h < w->p->n_hosts; h++) {
		w->m->repeated[h] =
			w->p->fixed[h] ? 0 : w->dense[lag_fit_first(w->m, h) * (w->size + 1)];
	}
	w->weigh = SCATTER;
	if (!factor(w))
		return;
	lag_dense_inverse(w->dense, w->size, w->sum);
	for (uint32_t h = 0; h < w->p->n_hosts; h++) {
		double *own = w->dense + lag_fit_first(w->m, h) * (w->size + 1);
		for (uint32_t k = 0; w->p->fixed[h] && k < 2; k++)
			own[k * (w->size + 1)] = 0;
	}
	w->m->covariance = w->dense;
	w->dense = NULL;
}

static void publish(struct work *w, bool sure)
{
	memset(w->m->info, 0, 3 * (size_t)w->p->n_hosts * sizeof(double));
	memset(w->m->n_obs, 0, w->p->n_hosts * sizeof(*w->m->n_obs));
	for (size_t i = 0; i < w->p->n_obs; i++) {
		const struct lag_fit_obs *o = &w->p->obs[i];
		double *info = w->m->info + 3 * (size_t)o->host;
		double t = w->robust[i] * o->weight;
		info[0] += t;
		info[1] += t * o->x;
		info[2] += t * o->x * o->x;
		w->m->n_obs[o->host]++;
	}
	free(w->m->covariance);
	w->m->covariance = NULL;
	w->m->belief_weight = w->slope_weight = w->p->belief_weight;
	if (sure)
		variances(w);
}

static void shares(const struct work *w, double *out)
{
	for (size_t g = 0; g < w->p->n_groups; g++) {
		const struct lag_fit_group *grp = &w->p->groups[g];
		double sw = 0;
		for (size_t i = grp->first; i < grp->first + grp->n; i++)
			sw += w->robust[i] * w->p->obs[i].weight;
		for (size_t i = grp->first; i < grp->first + grp->n; i++)
			out[i] = sw > 0 ? w->robust[i] * w->p->obs[i].weight / sw : 0;
	}
}

enum lag_status lag_fit_solve(const struct lag_fit_problem *p, struct lag_fit_model *model,
			      bool sure, double *residual_out, double *share_out, double *scale,
			      struct lag_err *err)
{
	size_t n = lag_fit_size(model);
	double *block = lag_calloc(5 * n + 3 * p->n_obs, sizeof(double));
	struct work w = {
		.p = p, .m = model, .size = n, .x = model->coef, .slope_weight = p->slope_weight
	};
	w.touched = lag_calloc(n, sizeof(*w.touched));
	if (n <= DENSE_MAX)
		w.dense = lag_calloc(n * n, sizeof(double));
	if (!block || !w.touched || (n <= DENSE_MAX && !w.dense)) {
		free(block);
		free(w.touched);
		free(w.dense);
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %zu clock observations",
				   p->n_obs);
	}
	w.r = block;
	w.d = block + n;
	w.q = block + 2 * n;
	w.m1 = block + 3 * n;
	w.sum = block + 4 * n;
	w.robust = block + 5 * n;
	w.res = block + 5 * n + p->n_obs;
	double *scratch = block + 5 * n + 2 * p->n_obs;
	for (size_t i = 0; i < p->n_obs; i++)
		w.robust[i] = 1;
	int rounds = sure ? ROUNDS : ROUNDS_QUICK;
	for (int round = 0; round < rounds; round++) {
		solve(&w);
		double spread = residuals(&w, scratch);
		if (round + 1 < rounds)
			reweight(&w, spread, round < rounds / 2);
	}
	*scale = spread_of(&w, scratch, false);
	if (residual_out && p->n_obs)
		memcpy(residual_out, w.res, p->n_obs * sizeof(double));
	if (share_out)
		shares(&w, share_out);
	publish(&w, sure);
	free(block);
	free(w.touched);
	free(w.dense);
	return LAG_OK;
}

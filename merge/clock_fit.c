/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients on the normal equations, the groups' means eliminated, inside a loop that
 * reweights by residual (absolute values first, then Huber). Linear in the observations. */
#include "merge/clock_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

enum {
	ROUNDS = 12, /* of reweighting */
	ROUNDS_L1 = 6
};

#define HUBER 1.5

struct work {
	const struct lag_fit_problem *p;
	double *robust;            /* factor on each weight */
	double *res;               /* residual of each observation */
	double *x, *r, *d, *q, *m; /* 2 n_hosts: solution, residual, direction, product, diagonal */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;
	return (x > y) - (x < y);
}

double lag_fit_median(double *v, size_t n)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Value of each observation under lines v (NULL: the readings themselves), minus its group's mean. */
static void centred(struct work *w, const double *v, double *out)
{
	const struct lag_fit_problem *p = w->p;
	for (size_t g = 0; g < p->n_groups; g++) {
		const struct lag_fit_group *grp = &p->groups[g];
		double sum = 0;
		double sw = 0;
		for (size_t i = grp->first; i < grp->first + grp->n; i++) {
			const struct lag_fit_obs *o = &p->obs[i];
			size_t h = o->host;
			out[i] = v ? v[2 * h] + v[2 * h + 1] * o->x : o->y_ns;
			sum += w->robust[i] * o->weight * out[i];
			sw += w->robust[i] * o->weight;
		}
		for (size_t i = grp->first; i < grp->first + grp->n && sw > 0; i++)
			out[i] -= sum / sw;
	}
}

/* out = transpose of the model times the weighted values; the reference takes no part. */
static void gather(struct work *w, const double *values, double *out)
{
	const struct lag_fit_problem *p = w->p;
	memset(out, 0, 2 * (size_t)p->n_hosts * sizeof(*out));
	for (size_t i = 0; i < p->n_obs; i++) {
		const struct lag_fit_obs *o = &p->obs[i];
		double t = w->robust[i] * o->weight * values[i];
		out[2 * (size_t)o->host] += t;
		out[2 * (size_t)o->host + 1] += t * o->x;
	}
	out[2 * (size_t)p->reference] = 0;
	out[2 * (size_t)p->reference + 1] = 0;
}

static void product(struct work *w, const double *v, double *out)
{
	centred(w, v, w->res);
	gather(w, w->res, out);
	for (uint32_t h = 0; h < w->p->n_hosts; h++)
		out[2 * (size_t)h + 1] += w->p->slope_weight * v[2 * (size_t)h + 1];
}

static void diagonal(struct work *w)
{
	const struct lag_fit_problem *p = w->p;
	for (size_t k = 0; k < 2 * (size_t)p->n_hosts; k++)
		w->m[k] = k % 2 ? p->slope_weight : 0;
	for (size_t i = 0; i < p->n_obs; i++) {
		double t = w->robust[i] * p->obs[i].weight;
		w->m[2 * (size_t)p->obs[i].host] += t;
		w->m[2 * (size_t)p->obs[i].host + 1] += t * p->obs[i].x * p->obs[i].x;
	}
	for (size_t k = 0; k < 2 * (size_t)p->n_hosts; k++)
		w->m[k] = w->m[k] > 0 ? 1 / w->m[k] : 0;
}

static double dot_preconditioned(const struct work *w, const double *a, const double *b)
{
	double sum = 0;
	for (size_t k = 0; k < 2 * (size_t)w->p->n_hosts; k++)
		sum += a[k] * w->m[k] * b[k];
	return sum;
}

static void conjugate_gradients(struct work *w)
{
	size_t n = 2 * (size_t)w->p->n_hosts;
	memset(w->x, 0, n * sizeof(double));
	diagonal(w);
	centred(w, NULL, w->res);
	gather(w, w->res, w->r);
	for (size_t k = 0; k < n; k++) {
		w->r[k] = -w->r[k];
		w->d[k] = w->m[k] * w->r[k];
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
			w->d[k] = w->m[k] * w->r[k] + next / rho * w->d[k];
		rho = next;
	}
}

/* Residuals under the present lines, and their robust spread in units of the noise. */
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
	for (size_t i = 0; i < p->n_obs; i++)
		scratch[i] = fabs(w->res[i]) / p->obs[i].noise_ns;
	return 1.4826 * lag_fit_median(scratch, p->n_obs);
}

static void reweight(struct work *w, double scale, int round)
{
	/* Residuals far below the noise carry no news: on a tree of pairs all are zero. */
	double floor = scale > 0.5 ? scale : 0.5;
	for (size_t i = 0; i < w->p->n_obs; i++) {
		double u = fabs(w->res[i]) / w->p->obs[i].noise_ns / floor;
		if (round < ROUNDS_L1) {
			w->robust[i] = 1 / (u > 0.3 ? u : 0.3);
		} else {
			w->robust[i] = u > HUBER ? HUBER / u : 1;
		}
	}
}

static void publish(const struct work *w, struct lag_fit_line *lines)
{
	for (uint32_t h = 0; h < w->p->n_hosts; h++) {
		lines[h] = (struct lag_fit_line){ .offset_ns = w->x[2 * (size_t)h],
						  .slope_ns = w->x[2 * (size_t)h + 1] };
	}
	for (size_t i = 0; i < w->p->n_obs; i++) {
		const struct lag_fit_obs *o = &w->p->obs[i];
		double t = w->robust[i] * o->weight;
		lines[o->host].sw += t;
		lines[o->host].swx += t * o->x;
		lines[o->host].swxx += t * o->x * o->x;
		lines[o->host].n_obs++;
	}
}

enum lag_status lag_fit_solve(const struct lag_fit_problem *p, struct lag_fit_line *lines,
			      double *residual_out, double *scale, struct lag_err *err)
{
	size_t n = 2 * (size_t)p->n_hosts;
	double *block = lag_calloc(5 * n + 3 * p->n_obs, sizeof(double));
	if (!block) {
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %zu clock observations",
				   p->n_obs);
	}
	struct work w = { .p = p,
			  .x = block,
			  .r = block + n,
			  .d = block + 2 * n,
			  .q = block + 3 * n,
			  .m = block + 4 * n,
			  .robust = block + 5 * n,
			  .res = block + 5 * n + p->n_obs };
	double *scratch = block + 5 * n + 2 * p->n_obs;
	for (size_t i = 0; i < p->n_obs; i++)
		w.robust[i] = 1;
	*scale = 0;
	for (int round = 0; round < ROUNDS; round++) {
		conjugate_gradients(&w);
		*scale = residuals(&w, scratch);
		if (round + 1 < ROUNDS)
			reweight(&w, *scale, round);
	}
	publish(&w, lines);
	if (residual_out)
		memcpy(residual_out, w.res, p->n_obs * sizeof(double));
	free(block);
	return LAG_OK;
}

double lag_fit_variance(const struct lag_fit_line *line, double slope_weight, double x)
{
	double sxx = line->swxx + slope_weight;
	double det = line->sw * sxx - line->swx * line->swx;
	if (!(det > 0))
		return INFINITY;
	return (sxx - 2 * x * line->swx + x * x * line->sw) / det;
}

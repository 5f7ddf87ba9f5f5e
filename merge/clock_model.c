/* SPDX-License-Identifier: Apache-2.0 */
/* A fit's curves: their parameters, their values, and how certain they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/clock_fit.h"

enum lag_status lag_fit_init(struct lag_fit_model *model, uint32_t n_hosts, struct lag_err *err)
{
	*model = (struct lag_fit_model){ .n_hosts = n_hosts,
					 .knots = LAG_VEC_INIT(struct lag_fit_knot) };
	model->first_knot = lag_calloc((size_t)n_hosts + 1, sizeof(*model->first_knot));
	model->n_obs = lag_calloc(n_hosts, sizeof(*model->n_obs));
	model->coef = lag_calloc(2 * (size_t)n_hosts, sizeof(*model->coef));
	model->info = lag_calloc(3 * (size_t)n_hosts, sizeof(*model->info));
	model->repeated = lag_calloc(n_hosts, sizeof(*model->repeated));
	if (model->first_knot && model->n_obs && model->coef && model->info && model->repeated)
		return LAG_OK;
	lag_fit_release(model);
	return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %u clocks", n_hosts);
}

void lag_fit_release(struct lag_fit_model *model)
{
	lag_vec_release(&model->knots);
	free(model->first_knot);
	free(model->n_obs);
	free(model->coef);
	free(model->info);
	free(model->repeated);
	free(model->covariance);
	*model = (struct lag_fit_model){ 0 };
}

enum lag_status lag_fit_set_knots(struct lag_fit_model *model, const struct lag_fit_knot *knots,
				  size_t n, struct lag_err *err)
{
	double *coef = lag_calloc(2 * (size_t)model->n_hosts + n, sizeof(*coef));
	size_t at = 0;

	if (!coef)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %zu clock changes", n);
	model->knots.n = 0;
	for (uint32_t h = 0; h < model->n_hosts; h++) {
		model->first_knot[h] = (uint32_t)at;
		for (; at < n && knots[at].host == h; at++) {
			struct lag_fit_knot *k = lag_vec_push(&model->knots);

			if (!k) {
				free(coef);
				return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
			}
			*k = knots[at];
		}
	}
	model->first_knot[model->n_hosts] = (uint32_t)at;
	free(model->coef);
	free(model->covariance);
	model->coef = coef;
	model->covariance = NULL;
	return LAG_OK;
}

size_t lag_fit_size(const struct lag_fit_model *model)
{
	return 2 * (size_t)model->n_hosts + model->knots.n;
}

size_t lag_fit_first(const struct lag_fit_model *model, uint32_t host)
{
	return 2 * (size_t)host + model->first_knot[host];
}

const struct lag_fit_knot *lag_fit_knots(const struct lag_fit_model *model, uint32_t host,
					 uint32_t *n)
{
	const struct lag_fit_knot *all = model->knots.items;

	*n = model->first_knot[host + 1] - model->first_knot[host];
	return *n ? all + model->first_knot[host] : NULL;
}

static uint32_t count(const struct lag_fit_model *model, uint32_t host)
{
	return 2 + model->first_knot[host + 1] - model->first_knot[host];
}

double lag_fit_value(const struct lag_fit_model *model, uint32_t host, double x)
{
	const double *c = model->coef + lag_fit_first(model, host);
	uint32_t n = count(model, host);
	double sum = 0;

	for (uint32_t k = 0; k < n; k++)
		sum += c[k] * lag_fit_basis(model, host, k, x);
	return sum;
}

double lag_fit_slope(const struct lag_fit_model *model, uint32_t host, double x)
{
	const double *c = model->coef + lag_fit_first(model, host);
	uint32_t n;
	const struct lag_fit_knot *knots = lag_fit_knots(model, host, &n);
	double slope = c[1];

	for (uint32_t k = 0; k < n; k++)
		slope += knots[k].step || x < knots[k].x ? 0 : c[2 + k];
	return slope;
}

/* Without a covariance: by the host's own observations, as if it had seen the reference itself. */
static double own_variance(const struct lag_fit_model *model, uint32_t host, double x)
{
	const double *i = model->info + 3 * (size_t)host;
	double sxx = i[2] + model->belief_weight;
	double det = i[0] * sxx - i[1] * i[1];

	return det > 0 ? 2 * (sxx - 2 * x * i[1] + x * x * i[0]) / det : INFINITY;
}

double lag_fit_variance(const struct lag_fit_model *model, uint32_t host, double x)
{
	size_t size = lag_fit_size(model);
	size_t first = lag_fit_first(model, host);
	uint32_t n = count(model, host);
	double sum = 0;

	if (!model->covariance)
		return own_variance(model, host, x);
	for (uint32_t a = 0; a < n; a++) {
		const double *row = model->covariance + (first + a) * size + first;
		double fa = lag_fit_basis(model, host, a, x);

		for (uint32_t b = 0; b < n && fa != 0; b++)
			sum += fa * row[b] * lag_fit_basis(model, host, b, x);
	}
	return sum > 0 ? sum : 0;
}

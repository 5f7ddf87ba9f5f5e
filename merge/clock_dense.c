/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factors. Rows run along memory in every inner loop. */
#include "merge/clock_dense.h"

#include <math.h>

static double dot(const double *a, const double *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

bool lag_dense_factor(double *a, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double *row = a + i * n;

		for (size_t k = 0; k < i; k++)
			row[k] = (row[k] - dot(row, a + k * n, k)) / a[k * n + k];
		row[i] -= dot(row, row, i);
		if (!(row[i] > 0))
			return false;
		row[i] = sqrt(row[i]);
	}
	return true;
}

void lag_dense_solve(const double *a, size_t n, double *b)
{
	for (size_t i = 0; i < n; i++)
		b[i] = (b[i] - dot(a + i * n, b, i)) / a[i * n + i];
	for (size_t i = n; i-- > 0;) {
		b[i] /= a[i * n + i];
		for (size_t k = 0; k < i; k++)
			b[k] -= a[i * n + k] * b[i];
	}
}

/* The factor's inverse, below the diagonal and on it. */
static void invert_factor(double *a, size_t n, double *scratch)
{
	for (size_t i = 0; i < n; i++) {
		double *row = a + i * n;
		double pivot = 1 / row[i];

		for (size_t k = 0; k < i; k++)
			scratch[k] = 0;
		for (size_t j = 0; j < i; j++) {
			for (size_t k = 0; k <= j; k++)
				scratch[k] -= row[j] * a[j * n + k];
		}
		for (size_t k = 0; k < i; k++)
			row[k] = pivot * scratch[k];
		row[i] = pivot;
	}
}

void lag_dense_inverse(double *a, size_t n, double *scratch)
{
	invert_factor(a, n, scratch);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = i + 1; k < n; k++)
			a[i * n + k] = 0;
	}
	/* The sum over rows of each with itself grows in the upper triangle; of a row only its diagonal
	 * is in the way. */
	for (size_t j = 0; j < n; j++) {
		const double *row = a + j * n;
		double last = row[j];

		a[j * n + j] = 0;
		for (size_t k = 0; k < j; k++) {
			double *to = a + k * n;

			for (size_t i = k; i < j; i++)
				to[i] += row[k] * row[i];
			to[j] += row[k] * last;
		}
		a[j * n + j] += last * last;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++)
			a[i * n + k] = a[k * n + i];
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetric positive definite systems, dense: lower triangles, row after row, n x n doubles. */
#ifndef MERGE_CLOCK_DENSE_H
#define MERGE_CLOCK_DENSE_H

#include <stdbool.h>
#include <stddef.h>

/* Factors a in place (lower triangle); false where it is not positive definite. */
bool lag_dense_factor(double *a, size_t n);

/* b becomes the solution of the factored system. */
void lag_dense_solve(const double *a, size_t n, double *b);

/* a, factored, becomes the inverse of what was factored, both triangles; scratch has room for n. */
void lag_dense_inverse(double *a, size_t n, double *scratch);

#endif

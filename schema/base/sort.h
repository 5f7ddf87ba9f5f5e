/* SPDX-License-Identifier: Apache-2.0 */
/* A stable sort for what is sorted already but for a few places, or made of a few sorted runs: time for
 * these is linear (times log of the runs); nothing is slower than n log n. */
#ifndef SCHEMA_BASE_SORT_H
#define SCHEMA_BASE_SORT_H

#include "schema/base/mem.h"

/* < 0, 0, > 0 like qsort's. */
typedef int lag_compare(const void *left, const void *right, void *state);

/* Sorts n items of size bytes. scratch (any vector of bytes, may be NULL) is used when order is poor, and
 * kept for the next call; without memory for it: LAG_ERR_SYSTEM, items are then a permutation. */
enum lag_status lag_sort(void *items, size_t n, size_t size, lag_compare *order, void *state,
			 struct lag_vec *scratch) LAG_MUST_USE;

/* The items of a vector, with scratch from where its memory is. */
enum lag_status lag_vec_sort(struct lag_vec *vec, lag_compare *order, void *state) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of time as sorted, disjoint intervals: every duration laggard prints is the length of such a
 * union, never a sum of overlapping events. */
#ifndef VIZ_MODEL_INTERVAL_H
#define VIZ_MODEL_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

/* Times of a trace lie within it, on both sides: differences of two stay within int64. */
#define LAG_TIME_MAX_NS ((int64_t)1 << 61)

/* a + b without overflow: times in a damaged or hostile file may be anything. */
static inline int64_t lag_ns_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b > 0 ? INT64_MAX : INT64_MIN + 1;
}

/* a - b in the same way. */
static inline int64_t lag_ns_sub(int64_t a, int64_t b)
{
	int64_t difference;

	if (!__builtin_sub_overflow(a, b, &difference))
		return difference;
	return b < 0 ? INT64_MAX : INT64_MIN + 1;
}

struct lag_interval {
	int64_t start_ns, end_ns; /* half open */
};

/* Sorted and disjoint once lag_intervals_normalize has run. Zero-initialise; release when done. */
struct lag_intervals {
	struct lag_interval *at;
	size_t n, cap;
};

enum lag_status lag_intervals_add(struct lag_intervals *set, int64_t start_ns,
				  int64_t end_ns) LAG_MUST_USE;
void lag_intervals_normalize(struct lag_intervals *set); /* sort and merge; empty ones vanish */
void lag_intervals_release(struct lag_intervals *set);

/* Total length of a normalised set, and of its part in [from, to). */
int64_t lag_intervals_length(const struct lag_intervals *set);
int64_t lag_intervals_length_in(const struct lag_intervals *set, int64_t from, int64_t to);

/* out = a minus b, a and b; inputs normalised, out is normalised. out must differ from a and b. */
enum lag_status lag_intervals_subtract(const struct lag_intervals *a, const struct lag_intervals *b,
				       struct lag_intervals *out) LAG_MUST_USE;
enum lag_status lag_intervals_intersect(const struct lag_intervals *a,
					const struct lag_intervals *b,
					struct lag_intervals *out) LAG_MUST_USE;

#endif

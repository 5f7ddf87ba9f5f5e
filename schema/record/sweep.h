/* SPDX-License-Identifier: Apache-2.0 */
/* Time covered by events of several classes that come by start: time before the last start is settled, and of
 * what is later only how long each class still runs is known. Where several run at once, the lowest class
 * counts. Header only: a few instructions an event. */
#ifndef SCHEMA_RECORD_SWEEP_H
#define SCHEMA_RECORD_SWEEP_H

#include <stdbool.h>

#include "schema/record/pyramid.h"

struct lag_sweep {
	int64_t now_ns; /* time before it is settled */
	int64_t until_ns[LAG_PYRAMID_CLASSES];
};

struct lag_sweep_piece {
	int64_t from_ns, until_ns;
	int class;
};

static inline void lag_sweep_init(struct lag_sweep *sweep)
{
	sweep->now_ns = INT64_MIN;
	for (int c = 0; c < LAG_PYRAMID_CLASSES; c++)
		sweep->until_ns[c] = INT64_MIN;
}

/* The next piece of covered time before `to`, which does not go back; false: all of it is settled. */
static inline bool lag_sweep_next(struct lag_sweep *sweep, int64_t to,
				  struct lag_sweep_piece *piece)
{
	for (int c = 0; c < LAG_PYRAMID_CLASSES && sweep->now_ns < to; c++) {
		int64_t until = sweep->until_ns[c] < to ? sweep->until_ns[c] : to;

		if (until <= sweep->now_ns)
			continue;
		*piece = (struct lag_sweep_piece){ sweep->now_ns, until, c };
		sweep->now_ns = until;
		return true;
	}
	if (to > sweep->now_ns)
		sweep->now_ns = to;
	return false;
}

static inline void lag_sweep_add(struct lag_sweep *sweep, int class, int64_t end_ns)
{
	if (end_ns > sweep->until_ns[class])
		sweep->until_ns[class] = end_ns;
}

/* When nothing runs any more; INT64_MIN: there was nothing. */
static inline int64_t lag_sweep_end(const struct lag_sweep *sweep)
{
	int64_t last = INT64_MIN;

	for (int c = 0; c < LAG_PYRAMID_CLASSES; c++)
		last = sweep->until_ns[c] > last ? sweep->until_ns[c] : last;
	return last;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Time covered by events of several classes that come by start: time before the last start is settled, and of
 * what is later only how long each class still runs is known. Where several run at once, the lowest class
 * counts. Header only: a few instructions an event. */
#ifndef SCHEMA_RECORD_SWEEP_H
#define SCHEMA_RECORD_SWEEP_H

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

/* Settles time before `to`, which does not go back; returns how many pieces of it are covered, in order. */
static inline int lag_sweep_to(struct lag_sweep *sweep, int64_t to,
			       struct lag_sweep_piece pieces[LAG_PYRAMID_CLASSES])
{
	int64_t from = sweep->now_ns;
	int n = 0;

	for (int c = 0; c < LAG_PYRAMID_CLASSES && from < to; c++) {
		int64_t until = sweep->until_ns[c] < to ? sweep->until_ns[c] : to;

		if (until <= from)
			continue;
		pieces[n++] = (struct lag_sweep_piece){ from, until, c };
		from = until;
	}
	if (to > sweep->now_ns)
		sweep->now_ns = to;
	return n;
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

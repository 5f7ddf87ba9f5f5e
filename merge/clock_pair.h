/* SPDX-License-Identifier: Apache-2.0 */
/* What the messages between two hosts say about their clocks: two-way time transfer. A message that
 * found its receiver waiting ends one transfer time after its sender began; equal sizes take equal
 * times both ways, so the clocks' difference is the middle between the two directions. */
#ifndef MERGE_CLOCK_PAIR_H
#define MERGE_CLOCK_PAIR_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"

/* One message between hosts A and B. All differences are B's reading minus A's. */
struct lag_pair_point {
	double x;        /* when, by A's clock, on a scale of about -1..1 */
	double value_ns; /* A to B: recv_end - send_start; B to A: send_start - recv_end */
	double lead_ns;  /* A to B: recv_start - send_start; B to A: send_start - recv_start */
	bool reverse;    /* B to A */
};

/* B's clock minus A's at x: offset_ns + slope_ns * x. */
struct lag_pair_line {
	bool known; /* both directions had messages */
	double offset_ns, slope_ns;
	double transfer_ns;          /* one way; half the width that causality leaves */
	double spread_ns;            /* of single messages around the line */
	size_t n_forward, n_reverse; /* that entered the fit */
};

/* slope_limit_ns: no slope beyond +- this is considered. Points of one message size. */
enum lag_status lag_pair_fit(const struct lag_pair_point *points, size_t n, double slope_limit_ns,
			     struct lag_pair_line *line, struct lag_err *err) LAG_MUST_USE;

/* By the line, the receiver was there before the sender: the message took its transfer time. */
bool lag_pair_waited(const struct lag_pair_point *point, const struct lag_pair_line *line);

/* Distance of a message from the line: 0 for one that took the transfer time. */
double lag_pair_residual(const struct lag_pair_point *pt, const struct lag_pair_line *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The controlled logical clock, on request: what still contradicts cause and effect on the common clock
 * is moved until it does not, and its neighbourhood with it, gently, so that events of a device keep
 * their order and nearly their distances. After the idea of Rabenseifner and Becker. */
#ifndef MERGE_CLOCK_ORDER_H
#define MERGE_CLOCK_ORDER_H

#include "merge/align.h"

/* Fills out->repairs, counts what was contradicted before (n_repaired) and the largest shift, and counts
 * violations anew. Rules: a receive ends no earlier than its send starts, an operation that needs all
 * members no earlier than the last of them starts. */
enum lag_status lag_clock_order(const struct lag_align_input *in, struct lag_align_result *out,
				struct lag_err *err) LAG_MUST_USE;

#endif

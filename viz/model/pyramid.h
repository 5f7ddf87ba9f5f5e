/* SPDX-License-Identifier: Apache-2.0 */
/* Any window of any rank or stream without touching events: how much of each column was covered by each
 * class of GPU work, from the level of detail that the merge left (schema/record/pyramid.h). Times are
 * absolute (ns since the Unix epoch), as in the file. Not for several threads. */
#ifndef VIZ_MODEL_PYRAMID_H
#define VIZ_MODEL_PYRAMID_H

#include "schema/db/db.h"
#include "schema/record/pyramid.h"

struct lag_pyramid_lane {
	int64_t id, rank;
	int64_t device, context, stream; /* device and stream are LAG_NONE: the rank as a whole */
	int64_t n_events;
	int64_t first_ns,
		last_ns; /* first start, last end; what still ran ends with its recording */
	unsigned shift, top_shift; /* finest and coarsest level */
};

struct lag_pyramid; /* opaque */

/* db is borrowed for the pyramid's life. LAG_END: the trace has none. LAG_ERR_INPUT: what is said of a lane
 * cannot be true. */
enum lag_status lag_pyramid_open(struct lag_db *db, struct lag_pyramid **out,
				 struct lag_err *err) LAG_MUST_USE;
void lag_pyramid_close(struct lag_pyramid *pyramid); /* NULL is allowed */

/* All lanes by rank, a rank's own first; borrowed. */
const struct lag_pyramid_lane *lag_pyramid_lanes(const struct lag_pyramid *pyramid, size_t *n);

/* The rank's own lane, and how many lanes it has with that; NULL: it has no GPU event. */
const struct lag_pyramid_lane *lag_pyramid_rank(const struct lag_pyramid *pyramid, int64_t rank,
						size_t *n);

/* Adds to out[i] what lies in [edges[i], edges[i + 1]), for n columns; edges ascend. Buckets are at most
 * half as wide as the mean column, down to the finest level. Exact where edges are multiples of the
 * bucket; else a bucket is split in proportion, which moves at most one bucket's time across each edge and
 * loses none. LAG_ERR_INPUT: a blob that no merge wrote. */
enum lag_status lag_pyramid_columns(struct lag_pyramid *pyramid,
				    const struct lag_pyramid_lane *lane, const int64_t *edges,
				    int n, struct lag_bucket *out,
				    struct lag_err *err) LAG_MUST_USE;

/* Adds what lies in [t0, t1), coarse buckets in the middle and finer ones towards the ends: wrong by at
 * most one bucket of the finest level at each end. */
enum lag_status lag_pyramid_between(struct lag_pyramid *pyramid,
				    const struct lag_pyramid_lane *lane, int64_t t0, int64_t t1,
				    struct lag_bucket *out, struct lag_err *err) LAG_MUST_USE;

#endif

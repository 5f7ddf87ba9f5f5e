/* SPDX-License-Identifier: Apache-2.0 */
/* One lane's buckets while events come by start. A level hands each bucket that is over to its segment and
 * to the next level. */
#ifndef MERGE_LOD_TRACK_H
#define MERGE_LOD_TRACK_H

#include "schema/base/buf.h"
#include "schema/record/sweep.h"

struct lag_lod_level {
	struct lag_bucket bucket; /* number `index` */
	int64_t index;
	int64_t segment; /* that `packed` is of */
	uint64_t next;   /* place in it that comes next */
	struct lag_buf packed;
	bool used; /* has a bucket */
};

/* Takes a segment that is whole; false: no memory. */
typedef bool lag_lod_take(void *state, uint32_t lane, unsigned shift, int64_t segment,
			  const struct lag_buf *packed);

struct lag_lod_track {
	struct lag_sweep sweep;
	struct lag_lod_level *levels; /* the caller's */
	unsigned shift, n_levels;
	/* Buckets that all tracks together may still make; with none left they are of no use any more. */
	uint64_t *n_left;
	int64_t edge_ns; /* where the finest level's bucket ends */
	uint32_t lane;
	bool failed;
	lag_lod_take *take;
	void *state;
};

/* What the caller sets is set. */
void lag_lod_track_init(struct lag_lod_track *track);

/* An event; start_ns does not come before the last one's, end_ns not before start_ns. */
void lag_lod_track_add(struct lag_lod_track *track, enum lag_pyramid_class class, int64_t start_ns,
		       int64_t end_ns);
void lag_lod_track_end(struct lag_lod_track *track);

#endif

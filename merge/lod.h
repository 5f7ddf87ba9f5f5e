/* SPDX-License-Identifier: Apache-2.0 */
/* The level-of-detail pyramid of one process (schema/record/pyramid.h), made from its GPU events as they
 * come by start: each lane keeps one bucket a level and the ends of what runs, whatever comes. One thread. */
#ifndef MERGE_LOD_H
#define MERGE_LOD_H

#include "merge/state.h"
#include "schema/record/pyramid.h"

/* A lane and where it is; lane 0 is the process as a whole. */
struct lag_lod_lane {
	uint64_t n_events;
	int64_t first_ns, last_ns;
	uint32_t shape_ref; /* one of its shapes; 0: lane 0, or no event */
};

/* One segment's blob. */
struct lag_lod_row {
	int64_t segment;
	uint64_t at;   /* in bytes */
	uint32_t lane; /* index */
	uint16_t size;
	uint8_t shift;
};

struct lag_lod_proc {
	struct lag_vec lanes; /* struct lag_lod_lane */
	struct lag_vec rows;  /* struct lag_lod_row, by lane and level, then segment */
	struct lag_vec bytes; /* uint8_t */
	unsigned shift, top_shift;
};

/* The finest level is the one that keeps the whole pyramid at about a byte and a half an event. *lod is
 * zero-initialised before, and released after, also on failure. order: indices of p's GPU events by
 * corrected start; NULL: they lie so. LAG_ERR_LIMIT: cancelled. */
enum lag_status lag_lod_proc_build(struct lag_merge *m, const struct lag_proc *p,
				   const uint32_t *order, struct lag_lod_proc *lod,
				   struct lag_err *err) LAG_MUST_USE;
void lag_lod_proc_release(struct lag_lod_proc *lod);

#endif

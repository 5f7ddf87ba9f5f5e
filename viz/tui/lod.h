/* SPDX-License-Identifier: Apache-2.0 */
/* Level of detail for rows of time: how much of each class lies between two moments, in a time that
 * does not depend on how many slices lie there. */
#ifndef VIZ_TUI_LOD_H
#define VIZ_TUI_LOD_H

#include "viz/model/ledger.h"
#include "viz/tui/axis.h"

/* Slices are borrowed, sorted by start and do not overlap; gaps count as idle. */
struct lag_lod {
	const struct lag_time_slice *slices;
	size_t n;
	int64_t *sums; /* before every 64th slice: ns by class */
};

enum lag_status lag_lod_init(struct lag_lod *lod, const struct lag_time_slice *slices, size_t n,
			     struct lag_err *err) LAG_MUST_USE;
void lag_lod_release(struct lag_lod *lod);

/* ns by class in [t0, t1); what is not recorded is in no class. */
void lag_lod_between(const struct lag_lod *lod, int64_t t0, int64_t t1, int64_t ns[LAG_TIME_LIMIT]);

/* The same for each of `width` columns of a window, added to out[width][LAG_TIME_LIMIT]. */
void lag_lod_columns(const struct lag_lod *lod, const struct lag_axis *axis, int width,
		     int64_t *out);

/* Index of the slice that holds t, or of the next one; n if there is none. */
size_t lag_lod_find(const struct lag_lod *lod, int64_t t);

#endif

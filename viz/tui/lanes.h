/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as rows of time: what ran on one stream, waiting and transfer of communication kernels told
 * apart. Made when a rank is opened, kept until the view ends. */
#ifndef VIZ_TUI_LANES_H
#define VIZ_TUI_LANES_H

#include "viz/tui/scene.h"

struct lag_lane_rows {
	struct lag_lod *lods;           /* by lane index */
	struct lag_time_slice **slices; /* owned */
	uint32_t **events;              /* gpu event of each slice; owned */
	size_t n;
};

enum lag_status lag_lanes_init(struct lag_lane_rows *lanes, const struct lag_trace *trace,
			       struct lag_err *err) LAG_MUST_USE;
void lag_lanes_release(struct lag_lane_rows *lanes);

/* NULL (with a message) without memory. */
const struct lag_lod *lag_lanes_get(struct lag_lane_rows *lanes, struct lag_scene *scene,
				    size_t lane);

/* The gpu event that slice `i` of a stream's level of detail comes from. */
uint32_t lag_lanes_event(const struct lag_lane_rows *lanes, size_t lane, size_t i);

/* "compute", "NCCL", "copies": what takes most of the stream's time. */
const char *lag_lanes_use(struct lag_lane_rows *lanes, struct lag_scene *scene, size_t lane);

#endif

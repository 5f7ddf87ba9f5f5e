/* SPDX-License-Identifier: Apache-2.0 */
/* What lies at a place in time, in words. */
#ifndef VIZ_TUI_INSPECT_H
#define VIZ_TUI_INSPECT_H

#include "viz/tui/scene.h"

#define LAG_INSPECT_MAX 320

struct lag_spot {
	int64_t gpu;    /* index of the event, -1 */
	int32_t launch; /* its communication, -1 */
	int class;      /* enum lag_time_class, -1 not recorded */
	int64_t t0, t1; /* of the event, else of the slice of time */
};

/* lane -1: the rank's row, where the ledger says which of several events counts. */
void lag_inspect_at(struct lag_scene *scene, int32_t r, int32_t lane, int64_t t,
		    struct lag_spot *out);

/* "name, rank 5 stream 7" / "waited 8.902 ms for rank 5 · transfer ...", "" when nothing to say. */
void lag_inspect_what(const struct lag_scene *scene, int32_t r, const struct lag_spot *spot,
		      char out[LAG_INSPECT_MAX]);
void lag_inspect_why(const struct lag_scene *scene, const struct lag_spot *spot,
		     char out[LAG_INSPECT_MAX]);

/* What an event is called where room is short: "recv ← rank 7", "all_reduce", "flash_fwd_kernel". */
void lag_inspect_brief(const struct lag_trace *trace, size_t gpu, char out[LAG_INSPECT_MAX]);

/* Longest wait of an instance's members beyond the clock error; *who is who waited. 0 = nobody. */
int64_t lag_inspect_longest_wait(const struct lag_scene *scene, const struct lag_instance *instance,
				 int32_t *who);

/* Where a time is called from: the start of the step that holds it, else of the run. */
int64_t lag_inspect_origin(const struct lag_scene *scene, int64_t t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Why communication started late. Ready = latest of: its launch call returned, the work before it in its
 * stream ended, the work behind its awaited events ended. What its start comes later than that, beyond
 * the usual latency of a launch and the clock error, is contention on the device (queue, SMs, priority)
 * and no lateness of the rank. */
#ifndef VIZ_MODEL_READY_H
#define VIZ_MODEL_READY_H

#include "viz/model/replay.h"
#include "viz/model/waits.h"

/* Both LAG_NONE where what it waited for is not on record as a whole. */
struct lag_ready_launch {
	int64_t ready_ns;
	int64_t contention_ns; /* 0: none that exceeds what is usual and the clock error */
};

struct lag_ready {
	struct lag_ready_launch *launch; /* by launch index */
	size_t n;
	int32_t *latest; /* by instance: launch that came last, -1 */
	/* Median from launch to start of the kernels that waited for their launch only; where the GPU never
	 * ran dry, what the replay allows. */
	int64_t latency_ns;
	uint64_t n_unknown; /* launches of which nothing is said */
};

enum lag_status lag_ready_compute(const struct lag_trace *trace, const struct lag_replay *replay,
				  struct lag_ready *out, struct lag_err *err) LAG_MUST_USE;
void lag_ready_release(struct lag_ready *ready);

/* Contention of the launch that came last in what `launch` waited for; LAG_NONE: it waited for nobody,
 * or not known. The last `contention` ns before the arrival are those it took. */
int64_t lag_ready_of_last(const struct lag_trace *trace, const struct lag_waits *waits,
			  const struct lag_ready *ready, size_t launch);

#endif

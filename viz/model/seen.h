/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts had seen of communication when their recordings were written, from sources without GPU
 * events (Flight Recorder dumps). Few analyses need it: it is read from the database on demand. */
#ifndef VIZ_MODEL_SEEN_H
#define VIZ_MODEL_SEEN_H

#include "schema/base/strtab.h"
#include "viz/model/trace.h"

/* An operation, in its rank's order of enqueueing. */
struct lag_seen_op {
	int64_t enqueued_ns,
		seq; /* relative to the trace's origin; seq LAG_NONE: not to be matched */
	int64_t timeout_ns;
	uint32_t r, comm; /* indices of the trace */
	uint32_t sizes;   /* text of lag_seen_sizes */
	int32_t peer;     /* communicator rank, -1 */
	uint8_t func;
	uint8_t state; /* enum lag_op_state; 0 not recorded */
};

/* How far a rank had come in a communicator; LAG_NONE unknown, or not begun. */
struct lag_seen_progress {
	uint32_t r, comm;
	int64_t enqueued, started, completed;
};

struct lag_seen {
	struct lag_vec ops;      /* struct lag_seen_op */
	struct lag_vec progress; /* struct lag_seen_progress */
	struct lag_strtab sizes;
};

enum lag_status lag_seen_load(const struct lag_trace *trace, struct lag_seen *out,
			      struct lag_err *err) LAG_MUST_USE;
void lag_seen_release(struct lag_seen *seen);

static inline const char *lag_seen_sizes(const struct lag_seen *seen, const struct lag_seen_op *op)
{
	return lag_strtab_get(&seen->sizes, op->sizes);
}

#endif

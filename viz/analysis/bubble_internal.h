/* SPDX-License-Identifier: Apache-2.0 */
/* What a ladder knows of a run, and what it uses while it climbs. */
#ifndef VIZ_ANALYSIS_BUBBLE_INTERNAL_H
#define VIZ_ANALYSIS_BUBBLE_INTERNAL_H

#include "viz/analysis/bubble_ladder.h"
#include "viz/analysis/bubble_messages.h"

/* Transfer of one message between two ranks. */
struct lag_transfer {
	int32_t src, dst;
	int64_t ns;
};

struct lag_ladder {
	const struct lag_trace *trace;
	const struct lag_pipeline *pipe;
	const struct lag_peers *peers;
	int64_t *work_ns;   /* by block: compute, copies and other groups' communication in it */
	int64_t *launch_ns; /* by block: earliest start by its first launch, LAG_NONE unknown */
	int32_t n_stages, n_chunks;
	/* [(kind * n_stages + stage) * n_chunks + chunk], and by rank: usual work. */
	double *stage_usual, *rank_usual;
	double balanced[2];
	bool *cut;                      /* by group: a stage is not on record */
	bool *longer;                   /* by group: its data mean more work */
	struct lag_transfer *transfers; /* by (src, dst): medians */
	size_t n_transfers;
	struct lag_messages *messages;
	struct lag_vec ops;    /* struct lag_message_op: of the group being replayed */
	int32_t *receives;     /* by block: position of the operation that receives its input, -1 */
	int32_t *behind;       /* by block: another operation that it followed, -1 */
	struct lag_vec values; /* double: scratch */
	int64_t *end_ns;       /* by block: scratch of the replay */
	int32_t *slot;         /* (kind, part, microbatch) -> block, of the group being replayed */
	size_t n_slots;
};

/* Where a stage's part (kind, chunk) stands in stage_usual and in a rank's rank_usual. */
size_t lag_bubble_part(const struct lag_ladder *l, uint8_t kind, int32_t stage, int32_t chunk);

/* Fills work, usual durations, transfers and cuts (bubble_work.c). */
enum lag_status lag_bubble_work_find(struct lag_ladder *l,
				     const struct lag_roles *roles) LAG_MUST_USE;

/* Usual transfer of a message between two ranks; 0 unknown. */
int64_t lag_bubble_transfer(const struct lag_ladder *l, int32_t src, int32_t dst);

#endif

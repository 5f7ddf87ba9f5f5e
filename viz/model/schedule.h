/* SPDX-License-Identifier: Apache-2.0 */
/* The textbook pipeline schedules as sequences of blocks, to recognise executed orders and to replay
 * them. Sources: GPipe (Huang et al. 2019), 1F1B (PipeDream-Flush, Narayanan et al. 2021), interleaved
 * 1F1B (Megatron-LM, Narayanan et al. 2021). */
#ifndef VIZ_MODEL_SCHEDULE_H
#define VIZ_MODEL_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "viz/model/pipeline.h"

struct lag_slot {
	uint8_t kind; /* enum lag_block_kind */
	int32_t microbatch, chunk;
};

struct lag_schedule_shape {
	enum lag_schedule schedule;
	int32_t n_stages, n_chunks, n_microbatches;
};

/* Blocks of one stage: 2 * chunks * microbatches. */
size_t lag_schedule_length(const struct lag_schedule_shape *shape);

/* Writes the order of `stage` to out (lag_schedule_length slots). False for a shape the schedule does
 * not allow (interleaved needs microbatches divisible by stages; the others one chunk). */
bool lag_schedule_order(const struct lag_schedule_shape *shape, int32_t stage,
			struct lag_slot *out);

#endif

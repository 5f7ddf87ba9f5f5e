/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline schedules as executed: forward and backward blocks per rank and step. */
#ifndef VIZ_MODEL_PIPELINE_H
#define VIZ_MODEL_PIPELINE_H

#include "viz/model/trace.h"

struct lag_context;

enum lag_block_kind {
	LAG_BLOCK_FORWARD = 0,
	LAG_BLOCK_BACKWARD = 1,
	LAG_BLOCK_WEIGHT = 2
};

struct lag_block {
	int64_t start_ns, end_ns; /* first compute start to last compute end */
	int64_t busy_ns;          /* union of its compute */
	uint32_t r;
	int32_t step; /* index into steps */
	int32_t microbatch, chunk;
	uint8_t kind; /* enum lag_block_kind */
};

enum lag_schedule {
	LAG_SCHEDULE_UNKNOWN = 0,
	LAG_SCHEDULE_GPIPE,
	LAG_SCHEDULE_1F1B,
	LAG_SCHEDULE_INTERLEAVED
};

/* One pipeline group. */
struct lag_pipe_group {
	int32_t *rank_of_stage; /* rank index by stage; owned */
	int32_t n_stages, n_chunks, n_microbatches;
	enum lag_schedule schedule; /* UNKNOWN: the executed order matches none exactly */
};

/* A group's window in one step: first forward's start to last backward's end. */
struct lag_pipe_window {
	int64_t start_ns, end_ns; /* LAG_NONE: group has no whole schedule in this step */
};

struct lag_pipeline {
	struct lag_pipe_group *groups;
	size_t n_groups;          /* 0: no pipeline; bubble is "n/a", never 0 */
	struct lag_block *blocks; /* by (r, start) */
	size_t n_blocks;
	size_t *first_block;             /* [r] .. [r + 1] */
	struct lag_pipe_window *windows; /* [step * n_groups + group] */
	size_t n_steps;
	char how[128]; /* how blocks were told apart: "NVTX ranges", "send/receive order", ... */
};

const char *lag_schedule_name(enum lag_schedule schedule); /* "1F1B" */

enum lag_status lag_pipeline_find(struct lag_context *ctx, struct lag_pipeline *out,
				  struct lag_err *err) LAG_MUST_USE;
void lag_pipeline_release(struct lag_pipeline *pipeline);

#endif

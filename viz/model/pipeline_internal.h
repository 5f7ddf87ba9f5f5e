/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways of finding pipeline blocks share. */
#ifndef VIZ_MODEL_PIPELINE_INTERNAL_H
#define VIZ_MODEL_PIPELINE_INTERNAL_H

#include "schema/base/mem.h"
#include "viz/model/context.h"

/* A rank's compute events in launch order. */
struct lag_launched {
	int64_t at_ns; /* launch, or start where the launch is unknown */
	size_t gpu;    /* index */
};

/* Fills out (struct lag_launched) with the compute kernels of rank r, in launch order. */
enum lag_status lag_pipeline_launched(const struct lag_trace *trace, size_t r,
				      struct lag_vec *out) LAG_MUST_USE;

/* Adds the block made of compute events [first, last) of `launched`; nothing when there are none. */
enum lag_status lag_pipeline_add(const struct lag_trace *trace, const struct lag_vec *launched,
				 size_t first, size_t last, const struct lag_block *like,
				 struct lag_vec *blocks) LAG_MUST_USE;

/* Blocks of rank r from forward/backward annotations. blocks holds struct lag_block and gains none when
 * the rank has no such evidence. */
enum lag_status lag_pipeline_from_ranges(const struct lag_trace *trace,
					 const struct lag_steps *steps, size_t r,
					 struct lag_vec *blocks) LAG_MUST_USE;

/* Blocks of all ranks marked in `wanted` (by rank index) from the order of sends and receives. */
enum lag_status lag_pipeline_from_order(const struct lag_trace *trace,
					const struct lag_steps *steps,
					const struct lag_roles *roles, const bool *wanted,
					struct lag_vec *blocks) LAG_MUST_USE;

#endif

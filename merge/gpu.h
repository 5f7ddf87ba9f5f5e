/* SPDX-License-Identifier: Apache-2.0 */
/* A process's kernels, copies and sets in one array: what each has of its own, and shapes for the rest
 * (see compact.h for slots). */
#ifndef MERGE_GPU_H
#define MERGE_GPU_H

#include "merge/compact.h"

/* config stands for a kernel's configuration, or a copy's or set's bytes. */
struct lag_gpu {
	int64_t start_ns;
	uint32_t end, correlation, name, config, op_id; /* slots */
	uint32_t shape;                                 /* index */
	uint32_t api_ref, launch_ref;
};

struct lag_gpu_shape {
	int64_t device, context, stream, graph_id, graph_node_id, copy_kind, peer;
	int64_t end_ns, correlation, name, config,
		op_id;  /* of the one event that has no slot for it */
	uint32_t dense; /* device index */
	uint32_t queue; /* number of its (device, context, stream) in the process */
	uint8_t kind;   /* enum lag_gpu_kind */
};

#define LAG_GPU_SHAPE_AT(p, g) (&LAG_VEC_AT(&(p)->gpu_shapes, struct lag_gpu_shape, (g)->shape))

/* LAG_NONE: still running. */
#define LAG_GPU_END(p, g) lag_slot_end((g)->end, (g)->start_ns, LAG_GPU_SHAPE_AT(p, g)->end_ns)

/* A field that has a slot: LAG_GPU_SLOT(p, g, correlation). */
#define LAG_GPU_SLOT(p, g, field) lag_slot_value((g)->field, LAG_GPU_SHAPE_AT(p, g)->field)

#endif

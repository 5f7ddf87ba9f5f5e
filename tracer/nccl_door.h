/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL as seen by the other doors: the writer, and the annotations NCCL itself makes. */
#ifndef TRACER_NCCL_DOOR_H
#define TRACER_NCCL_DOOR_H

#include "schema/trace/trace_writer.h"

/* Version and number of copies, once known. Writer thread. */
void lag_nccl_describe(struct lag_trace_producer *prod);

int64_t lag_nccl_n_ops(void); /* operations and groups so far */

/* What an annotation of NCCL's own domain tells. comm_hash 0, others LAG_NONE: not told. */
struct lag_nccl_note {
	uint64_t comm_hash;
	int64_t bytes, peer;
	int64_t n_ranks, rank, device; /* of a communicator that was made */
};

/* An annotation of NCCL's own domain begins or ends on this thread. Calls that were interposed only give
 * NCCL's hash of the communicator to what is already recorded; others become operations here. */
void lag_nccl_annotated(const char *name, size_t n, const struct lag_nccl_note *note);
void lag_nccl_annotation_ends(const struct lag_nccl_note *note); /* NULL = nothing told */

#endif

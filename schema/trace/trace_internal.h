/* SPDX-License-Identifier: Apache-2.0 */
/* Between producers and the file that gives them chunks. No lock, no allocation; any thread. */
#ifndef SCHEMA_TRACE_TRACE_INTERNAL_H
#define SCHEMA_TRACE_TRACE_INTERNAL_H

#include "schema/trace/trace_writer.h"

/* A mapped chunk, prepared or new; NULL when there is no more, and file->full says why. */
struct lag_chunk_header *lag_trace_file_chunk(struct lag_trace_file *file);

/* Leaves a full chunk to the helper, with how many records of each kind it has. False: nobody takes
 * it. */
bool lag_trace_file_hand_over(struct lag_trace_file *file, struct lag_chunk_header *chunk,
			      const uint32_t *written);

/* Seals a full chunk, counts its records, and unmaps it. */
void lag_trace_file_seal(struct lag_trace_file *file, struct lag_chunk_header *chunk,
			 const uint32_t *written);

#endif

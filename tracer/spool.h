/* SPDX-License-Identifier: Apache-2.0 */
/* Where the chunks lie while they are written: in the run directory where a store into a mapped page
 * cannot block on a network, else in a local folder from which they are copied with plain writes. */
#ifndef TRACER_SPOOL_H
#define TRACER_SPOOL_H

#include "schema/trace/trace_writer.h"

/* Creates the trace file `name` for cfg's directories. */
enum lag_status lag_spool_create(struct lag_trace_file *file, const char *name,
				 const struct lag_trace_header *head,
				 struct lag_err *err) LAG_MUST_USE;

/* Copies what has been sealed since the last call, or with `all` everything, and then removes the
 * local file. Nothing to do when the trace lies in the run directory. Writer thread. */
void lag_spool_copy(struct lag_trace_file *file, bool all);

#endif

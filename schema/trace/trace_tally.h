/* SPDX-License-Identifier: Apache-2.0 */
/* How much is in a .lag file, from its counters and, where a process died, its open chunks: what the
 * receipt of `laggard record` says. Any bytes are safe input. */
#ifndef SCHEMA_TRACE_TRACE_TALLY_H
#define SCHEMA_TRACE_TRACE_TALLY_H

#include <stdbool.h>

#include "schema/trace/trace_format.h"

struct lag_trace_tally {
	uint64_t records[LAG_REC_LIMIT];
	uint64_t n_records, n_lost, n_bytes; /* bytes of chunks in use */
	uint64_t hook_ns, thread_ns;
	bool clean, capped, full; /* orderly end; size cap reached; disk full or I/O error */
};

/* False when it is no trace file. */
bool lag_trace_tally_read(struct lag_trace_tally *tally, const uint8_t *bytes, size_t n);

#endif

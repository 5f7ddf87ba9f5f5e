/* SPDX-License-Identifier: Apache-2.0 */
/* Notices when CUPTI has fallen silent although the program goes on. */
#ifndef TRACER_WATCH_H
#define TRACER_WATCH_H

#include "schema/trace/trace_writer.h"

/* Once a second, by the writer thread; now_ns is monotonic. Writes a gap record for each stretch of
 * silence, so that at any moment the file tells the gap up to that moment. */
void lag_watch_tick(struct lag_trace_producer *prod, int64_t now_ns);

#endif

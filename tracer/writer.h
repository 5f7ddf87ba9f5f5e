/* SPDX-License-Identifier: Apache-2.0 */
/* The tracer's one thread: takes CUPTI's buffers, keeps clock and receipt, prepares chunks. */
#ifndef TRACER_WRITER_H
#define TRACER_WRITER_H

#include "schema/trace/trace_writer.h"

bool lag_writer_start(struct lag_trace_file *file);

/* Something is waiting (async-signal-safe). */
void lag_writer_wake(void);

/* Asks for the orderly end and waits for it, at most timeout_ms. */
void lag_writer_stop(uint32_t timeout_ms);

#endif

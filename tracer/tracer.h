/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the tracer in one process: dormant, recording, finished. Each happens once. */
#ifndef TRACER_TRACER_H
#define TRACER_TRACER_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to record, if it was asked for and this process's rank is wanted. True when this process is
 * recorded now. Any thread; cheap when already decided. */
bool lag_tracer_start(void);

/* Orderly end: takes what CUPTI still holds, seals the file, goes silent. Waits at most timeout_ms for
 * the writer thread. Async-signal-safe; nothing happens in processes that are not recorded. */
void lag_tracer_finish(uint32_t timeout_ms);

void lag_tracer_at_exit(void); /* for atexit */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Where hooks put records: one producer per thread, from a fixed pool that is mapped once. A slot
 * outlives its thread and goes on to the next one: records carry their own thread id. */
#ifndef TRACER_SINK_H
#define TRACER_SINK_H

#include "schema/trace/trace_writer.h"
#include "tracer/guard.h"

#define LAG_SINK_THREADS 2048u

struct lag_thread {
	struct lag_trace_producer prod;
	_Atomic uint32_t busy;                /* its thread is between enter and leave */
	_Atomic uint32_t tid;                 /* 0 = free */
	_Atomic uint32_t next;                /* free list: index + 1 */
	_Atomic uint64_t n_hooks, sampled_ns; /* own time: every LAG_SINK_SAMPLE-th hook is timed */
	int64_t entered_ns;
};

#define LAG_SINK_SAMPLE 64u

/* Maps the pool; records go to file, which must outlive the process's hooks. */
bool lag_sink_open(struct lag_trace_file *file);

/* Begins a record of `kind` on this thread. NULL = do not record (not on, nested, no slot left); what
 * is lost by that is counted. leave must follow, on the same thread, before any call into the
 * program or its libraries. */
struct lag_thread *lag_sink_enter(enum lag_record_kind kind);
void lag_sink_leave(struct lag_thread *t);

uint32_t lag_sink_tid(void); /* of the calling thread, cached */

/* For the writer: number of slots ever used, and slot i. */
uint32_t lag_sink_count(void);
struct lag_thread *lag_sink_at(uint32_t i);

/* Gives slots of ended threads back. */
void lag_sink_reclaim(void);

/* After the guard is off and fenced: seals every chunk whose thread is not inside a hook. */
void lag_sink_seal(void);

int64_t lag_sink_hook_ns(void); /* estimate over all threads */

#endif

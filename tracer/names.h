/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads: analyses tell frameworks' threads (autograd, data loaders, watchdogs) by them. */
#ifndef TRACER_NAMES_H
#define TRACER_NAMES_H

#include "schema/trace/trace_writer.h"

/* A thread that records are about; its name is written when it is new. Writer thread. */
void lag_names_see(struct lag_trace_producer *prod, uint32_t tid);

/* Looks at all threads seen so far again: some are named late. Writer thread. */
void lag_names_refresh(struct lag_trace_producer *prod);

/* The program has named this thread itself: the system's name is not written over it. Any thread. */
void lag_names_claim(uint32_t tid);

#endif

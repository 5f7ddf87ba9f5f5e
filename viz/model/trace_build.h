/* SPDX-License-Identifier: Apache-2.0 */
/* What turns rows into a lag_trace: used by the loader, and by tests that make traces in memory. */
#ifndef VIZ_MODEL_TRACE_BUILD_H
#define VIZ_MODEL_TRACE_BUILD_H

#include "viz/model/trace.h"

/* Arrays are filled in any order (times absolute, ranks sorted by number, references by position;
 * launches' op ranges not yet set). Sorts everything as trace.h says, follows the references, sets
 * op ranges, instance ops, the ranks' ranges and extents, and makes times relative to the earliest. */
enum lag_status lag_trace_arrange(struct lag_trace *trace, struct lag_err *err) LAG_MUST_USE;

/* lag_trace_open without events, of which there are none then, nor a span of time. */
enum lag_status lag_trace_open_facts(const char *path, struct lag_trace **out,
				     struct lag_err *err) LAG_MUST_USE;

/* Its last part: times become relative to the earliest of the ranks' first_ns. */
void lag_trace_rebase(struct lag_trace *trace);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The time in which all recorded ranks recorded. Outside it a rank that is not on record looks idle or
 * fast; analyses use what lies inside. */
#ifndef VIZ_MODEL_WINDOW_H
#define VIZ_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct lag_buf;
struct lag_trace;
struct lag_comm;

struct lag_window {
	int64_t from_ns, until_ns; /* until_ns < from_ns: no time in common */
	int32_t late, early; /* rank index that began last and ended first; -1: below two ranks */
	bool all;            /* the user wants all that was recorded */
};

/* Of a trace whose ranks are known: from the latest beginning to the earliest end. A recording begins
 * when its source says, else with its first event, and ends with its last. */
struct lag_window lag_window_of(const struct lag_trace *trace);

/* Everything that was recorded, for those who ask for it. */
void lag_window_widen(struct lag_trace *trace);

/* Whether so much of the recorded time is outside that it has to be said: a twentieth. */
bool lag_window_tells(const struct lag_trace *trace);

/* "common window 12.3 s of 14.0 s: rank 5 ends 1.7 s early" */
void lag_window_text(const struct lag_trace *trace, struct lag_buf *out);

/* Whether what begins at ns was on record by all recorded members of comm from its beginning. */
bool lag_window_holds(const struct lag_trace *trace, const struct lag_comm *comm, int64_t ns);

#endif

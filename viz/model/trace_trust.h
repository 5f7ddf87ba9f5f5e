/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a trace that tell whether the rest can be trusted. Texts are borrowed from the trace. */
#ifndef VIZ_MODEL_TRACE_TRUST_H
#define VIZ_MODEL_TRACE_TRUST_H

#include <stdint.h>

struct lag_finding {
	int severity; /* 0 note, 1 warning, 2 error */
	int64_t rank, count;
	const char *kind, *text;
};

/* A counted loss, for `trust`. */
struct lag_loss_row {
	int64_t rank; /* LAG_NONE unknown */
	const char *kind, *reason;
	int64_t count;
};

/* Events of one rank and kind that were put aside for one reason; times and name of the first. */
struct lag_quarantine_row {
	int64_t rank; /* LAG_NONE: of a process that is not used */
	const char *record, *reason, *name;
	int64_t count, raw_start_ns, raw_end_ns;
};

/* An input file of the merge. */
struct lag_source_row {
	const char *path, *format, *status,
		*note; /* status: ok, damaged, empty, duplicate, refused */
	int64_t n_records, n_bad;
};

/* One thing that a number of sources do not record at all, which is not that there was none of it. */
struct lag_unrecorded_row {
	const char *what;
	int64_t n_sources, n_all; /* sources that lack it, of all that were used */
};

/* Nothing of `what` was recorded in this time. */
struct lag_gap_row {
	int64_t rank; /* LAG_NONE unknown */
	const char *what, *reason;
	int64_t from_ns, until_ns;
};

#endif

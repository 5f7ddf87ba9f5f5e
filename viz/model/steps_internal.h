/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways of finding steps share. Each fills marks: the host interval of each step on each rank;
 * lag_steps_find turns them into GPU spans. */
#ifndef VIZ_MODEL_STEPS_INTERNAL_H
#define VIZ_MODEL_STEPS_INTERNAL_H

#include "viz/model/steps.h"

/* One step of one rank on the host's time axis; work launched in [from, until) belongs to it. */
struct lag_step_mark {
	int64_t number, from_ns, until_ns;
	uint32_t r;
};

/* What a rank calls or runs, in its order; equal numbers are equal symbols. */
struct lag_step_symbols {
	uint64_t *what;
	int64_t *from_ns, *until_ns; /* the call's time on the host, or the kernel's launch */
	size_t n;
};

struct lag_step_period {
	size_t symbols, phase; /* a step is so many symbols; the first whole one begins at phase */
	bool marked;           /* the host is silent longest where it is cut */
	bool nested;           /* something repeats within it, and something comes once */
};

/* The period of a sequence; false where none is found, or where one is that cannot be a step's. Scratch
 * has room for 8 bytes a symbol. */
bool lag_steps_find_period(const struct lag_step_symbols *s, void *scratch,
			   struct lag_step_period *out);

/* From annotations. Leaves marks empty when no rank has any. */
enum lag_status lag_steps_from_ranges(const struct lag_trace *trace, const char *step_by,
				      struct lag_vec *marks, char *label, size_t room) LAG_MUST_USE;

/* From the repetition of the communication sequence (kernels where there is none). Leaves marks empty
 * when nothing repeats. */
enum lag_status lag_steps_from_repeats(const struct lag_trace *trace, struct lag_vec *marks,
				       char *label, size_t room) LAG_MUST_USE;

/* Marks as cut the first and last steps of ranks whose recording begins or ends in the middle of them:
 * fewer events than the rank's other steps, and an edge apart from all other ranks'. */
enum lag_status lag_steps_cut_edges(const struct lag_trace *trace,
				    struct lag_steps *steps) LAG_MUST_USE;

#endif

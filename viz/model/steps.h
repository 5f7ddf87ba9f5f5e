/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps: from annotations, else from the repetition of the collective sequence, else fixed
 * windows (and so labelled). GPU work belongs to the step whose host range launched it. */
#ifndef VIZ_MODEL_STEPS_H
#define VIZ_MODEL_STEPS_H

#include "viz/model/trace.h"

enum lag_steps_source {
	LAG_STEPS_RANGE = 1,  /* annotation ("step N", ProfilerStep#N, or --step-by) */
	LAG_STEPS_REPEAT = 2, /* repetition of the collective sequence */
	LAG_STEPS_WINDOW = 3, /* no repetition found: fixed windows */
	LAG_STEPS_WHOLE = 4,  /* too little to divide: the whole trace is one step */
};

/* One rank's share of one step. Empty (start == end == LAG_NONE) where the rank has nothing in it. */
struct lag_step_span {
	int64_t host_start_ns, host_end_ns; /* of the host range; LAG_NONE when not from ranges */
	int64_t start_ns,
		end_ns; /* GPU span: from the end of the rank's previous step (or its first GPU
				   * work) to the end of its last GPU work launched in this step */
	size_t gpu_first,
		gpu_last; /* inclusive index range in gpu[] that holds its events, if any */
	bool cut;         /* holds work that never ended, or a time without recording, or its end */
};

struct lag_step {
	int64_t number;           /* as annotated, else counted from 0 */
	int64_t start_ns, end_ns; /* over all recorded ranks: earliest start, latest end */
	bool complete; /* every recorded rank has it whole: only such steps enter statistics. Work
			* that never ended, gaps, and the last step of a rank that was killed are not */
};

struct lag_steps {
	enum lag_steps_source source;
	char label[256];   /* how they were found, for people */
	bool given_missed; /* the annotation that was asked for is nowhere; the label says so */
	struct lag_step *steps;
	size_t n_steps;
	struct lag_step_span *spans; /* [step * n_ranks + r] */
	size_t n_ranks;
	int32_t *of_gpu; /* step of each gpu event: an index below n_steps, -1 = none */
};

static inline const struct lag_step_span *lag_steps_span(const struct lag_steps *steps, size_t step,
							 size_t r)
{
	return &steps->spans[step * steps->n_ranks + r];
}

enum lag_status lag_steps_find(const struct lag_trace *trace, const char *step_by,
			       struct lag_steps *out, struct lag_err *err) LAG_MUST_USE;
void lag_steps_release(struct lag_steps *steps);

#endif

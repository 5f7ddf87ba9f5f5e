/* SPDX-License-Identifier: Apache-2.0 */
/* What would have happened: the run as a graph of GPU work, replayed with other durations. Edges come
 * from the trace alone: order in a stream, event records and waits, launches after the host's calls
 * and synchronisations, collectives and messages with their partners. Delays that no edge explains are
 * kept as they were, so that nothing changed replays as measured, to the nanosecond. */
#ifndef VIZ_MODEL_REPLAY_H
#define VIZ_MODEL_REPLAY_H

#include "viz/model/roles.h"
#include "viz/model/steps.h"
#include "viz/model/trace.h"

struct lag_replay; /* opaque; borrows the trace, steps and roles it was made from */

struct lag_replay_facts {
	uint64_t n_edges; /* from events recorded and awaited */
	uint64_t
		n_inferred; /* work that began as other work of its rank ended: taken as waiting for it */
	uint64_t n_unexplained; /* began > 50 us after everything it is known to wait for */
	uint64_t
		n_forced; /* edges dropped because they formed a circle (clock error, lost records) */
	uint64_t n_host_syncs;
};

/* A scenario; zero-initialised: as measured. */
struct lag_replay_change {
	const int64_t *duration_ns; /* by gpu event, for work that is not communication */
	bool scale_transfer;        /* use transfer_scale */
	double transfer_scale[LAG_ROLE_LIMIT]; /* by role of the communicator */
	bool host_free;                        /* launches never come late */
	const uint8_t *stall_free;             /* by rank index: its host's stalls take no time */
};

/* When each step ends, over all ranks; the first step's start is as measured. */
struct lag_replay_result {
	int64_t *step_end_ns; /* by step; LAG_NONE: nothing of it */
	size_t n_steps;
	int64_t start_ns, end_ns;     /* of the steps together */
	int64_t steps_ns, n_measured; /* time of the whole steps, and how many they are */
	int64_t *waiting_ns; /* by rank index: inside communication, for partners on record */
};

enum lag_status lag_replay_new(const struct lag_trace *trace, const struct lag_steps *steps,
			       const struct lag_roles *roles, struct lag_replay **out,
			       struct lag_err *err) LAG_MUST_USE;
void lag_replay_free(struct lag_replay *replay);

const struct lag_replay_facts *lag_replay_facts(const struct lag_replay *replay);

enum lag_status lag_replay_run(const struct lag_replay *replay,
			       const struct lag_replay_change *change,
			       struct lag_replay_result *out, struct lag_err *err) LAG_MUST_USE;
void lag_replay_result_release(struct lag_replay_result *result);

/* Mean time of a whole step, from the end of the one before to its own over all ranks. */
int64_t lag_replay_step_ns(const struct lag_replay_result *result);

/* What let a GPU event start: the return of its launch call, and the last end of what the device had to
 * finish first (before it in its stream, awaited events). Moments as measured; LAG_NONE: nothing. */
struct lag_replay_release {
	int64_t launched_ns, work_ns;
};

/* False where not all that it waited for is on record: no launch, a node of a graph, an inferred edge. */
bool lag_replay_released(const struct lag_replay *replay, size_t gpu,
			 struct lag_replay_release *out);

/* Longest stall of rank index r's host in a step: time between two calls of the CUDA API far beyond
 * what it usually takes. 0 = none. */
int64_t lag_replay_stall(const struct lag_replay *replay, size_t r, size_t step);

#endif

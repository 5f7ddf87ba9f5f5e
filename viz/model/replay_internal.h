/* SPDX-License-Identifier: Apache-2.0 */
/* The replay's graph. A node is a gpu event; a gate is a host call that blocked until GPU work ended. */
#ifndef VIZ_MODEL_REPLAY_INTERNAL_H
#define VIZ_MODEL_REPLAY_INTERNAL_H

#include "schema/base/map.h"
#include "viz/model/replay.h"

#define LAG_REPLAY_LATENCY_NS     INT64_C(10000) /* launch to start, at most, when nothing is before */
#define LAG_REPLAY_COINCIDENCE_NS INT64_C(20000) /* "as other work ended" */
#define LAG_REPLAY_UNEXPLAINED_NS INT64_C(50000)
#define LAG_REPLAY_STALL_NS       INT64_C(2000000)

struct lag_replay_node {
	int64_t duration_ns; /* measured; communication: from the last arrival to its end */
	int64_t delay_ns;    /* start after everything it waited for */
	int64_t launch_ns; /* earliest start by its launch, after the gate (absolute without one) */
	int64_t stall_ns;  /* part of launch_ns that was stalls of the host */
	int32_t before;    /* node before it in its stream, -1 */
	int32_t gate;      /* last gate before its launch, -1 */
	uint32_t first_dep, n_deps;
	bool comm; /* ends with its partners */
	bool alone; /* communication whose partners do not decide its end (credits, or none matched) */
	bool launched;
	bool unsure; /* what it waited for is not on record: an inferred edge, a node of a graph */
};

struct lag_replay_gate {
	int64_t offset_ns; /* the call, after the gate before (absolute without one) */
	int64_t stall_ns;
	int64_t delay_ns;         /* return after the call and what it waited for */
	int64_t at_ns, return_ns; /* measured */
	int32_t before, awaited;  /* gate; node, -1 */
	uint32_t r;
};

enum lag_replay_task {
	LAG_TASK_START = 0,
	LAG_TASK_END = 1, /* communication only: other work ends with its start */
	LAG_TASK_GATE = 2
};

struct lag_replay_stall {
	uint32_t r;
	int32_t step;
	int64_t ns;
};

struct lag_replay {
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	const struct lag_roles *roles;
	struct lag_replay_node *nodes; /* n_gpu */
	struct lag_vec deps;           /* int32_t: nodes that must have ended */
	struct lag_vec gates;          /* struct lag_replay_gate, by rank and time */
	struct lag_vec order;          /* int64_t: 4 * index + enum lag_replay_task */
	struct lag_vec stalls;         /* struct lag_replay_stall */
	struct lag_replay_facts facts;
	/* While edges are found, of an operation table: what node i waits for by what the operations are,
	 * by_type[by_type_first[i] .. [i + 1]]. NULL: events and streams tell. */
	size_t *by_type_first;
	int32_t *by_type;
};

/* A node at a moment: its launch, its end; or just a moment. */
struct lag_replay_moment {
	int64_t at_ns;
	int32_t node;
};

/* One rank while its edges are found. */
struct lag_replay_walk {
	struct lag_replay *rp;
	size_t r, lane_begin, lane_end;
	struct lag_vec launched; /* by launch time */
	struct lag_vec ended;    /* struct lag_replay_moment, by end */
	struct lag_vec *pending; /* by lane - lane_begin: int32_t nodes its next work waits for */
	int32_t *last;           /* by lane: last node launched so far */
	struct lag_map events;   /* event -> 1 + node it was recorded behind */
	int32_t gate;
	int32_t *last_of_comm;    /* by communicator: last node launched so far */
	bool *in_order;           /* by communicator: its kernels run one after the other */
	struct lag_vec gaps;      /* struct lag_replay_moment: ends of the host's stalls */
	struct lag_vec stall_sum; /* int64_t: stalls up to and with each gap */
};

/* Number of entries at or before ns in a vector of moments sorted by time. */
size_t lag_replay_until(const struct lag_vec *v, int64_t ns);

/* The rank's stalls: found, summed up to a moment, and kept in the replay by step (replay_host.c). */
enum lag_status lag_replay_find_stalls(struct lag_replay_walk *w) LAG_MUST_USE;
int64_t lag_replay_stalled(const struct lag_replay_walk *w, int64_t ns);
enum lag_status lag_replay_keep_stalls(struct lag_replay_walk *w) LAG_MUST_USE;

/* A host call from `at` to `back` that blocked until node (-1 unknown) had ended. */
enum lag_status lag_replay_add_gate(struct lag_replay_walk *w, int64_t at, int64_t back,
				    int32_t node) LAG_MUST_USE;

/* Gates from API calls before a moment, for sources that keep no synchronisation records. */
enum lag_status lag_replay_api_gates(struct lag_replay_walk *w, int64_t before_ns,
				     size_t *at) LAG_MUST_USE;

/* What ended last at or before ns on the rank, -1. */
int32_t lag_replay_last_ended(const struct lag_replay_walk *w, int64_t ns);

/* Fills nodes, deps and gates of one rank (replay_edges.c). */
enum lag_status lag_replay_connect(struct lag_replay *rp, size_t r) LAG_MUST_USE;

/* Fills by_type where the trace is an operation table; the caller frees it (replay_operations.c). */
enum lag_status lag_replay_find_operations(struct lag_replay *rp) LAG_MUST_USE;

/* Puts all tasks into an order in which each comes after what it needs (replay_order.c). */
enum lag_status lag_replay_sort(struct lag_replay *rp) LAG_MUST_USE;

/* The node that executes an operation, -1. */
static inline int32_t lag_replay_node_of(const struct lag_trace *trace, const struct lag_op *op)
{
	return op->launch < 0 ? -1 : trace->launches[op->launch].gpu;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline job as operations (forward-compute, backward-send, grads-reduce-scatter, ...) and what each
 * waits for, and simulations of it with other durations. Definitions: Lin et al., "Understanding Stragglers
 * in Large Model Training Using What-if Analysis", OSDI 2025, section 3. For traces of operation tables. */
#ifndef VIZ_MODEL_OPMODEL_H
#define VIZ_MODEL_OPMODEL_H

#include "schema/record/optype.h"
#include "viz/model/context.h"

struct lag_op_node {
	int64_t start_ns, end_ns;
	uint32_t gpu;  /* the event it is */
	uint32_t r;    /* rank index */
	uint32_t name; /* string index */
	int32_t step;  /* index into steps */
	int32_t group; /* whom it communicates with, -1 nobody */
	uint8_t type;  /* enum lag_optype */
};

struct lag_opmodel {
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	struct lag_vec nodes; /* struct lag_op_node, by rank and start */
	/* In ns: of computations from start to end; of communication from the start of the group's
	 * last member to the own end, which is the transfer without the waiting. */
	double *duration;
	double *ideal; /* of each type: the mean of computations, the median of communication */
	/* Private: what each node waits for, and members of groups, as lists one after the other. */
	struct lag_vec edges; /* (node, waits for) */
	size_t *next_first;   /* nodes that wait for node i: next[next_first[i] .. [i + 1]] */
	uint32_t *next, *n_waits;
	size_t *member_first;
	uint32_t *members;
	size_t n_groups;
	double *start, *end; /* of the last simulation */
	uint32_t *queue, *waits, *arrived;
};

/* True when every source of the trace is an operation table. */
bool lag_opmodel_applies(const struct lag_trace *trace);

/* Nodes and edges only: nothing can be simulated. LAG_ERR_SYSTEM. model is the caller's to release. */
enum lag_status lag_opmodel_graph(const struct lag_trace *trace, const struct lag_steps *steps,
				  struct lag_opmodel *model) LAG_MUST_USE;

/* LAG_ERR_SYSTEM, or what the context fails with. model is the caller's to release. */
enum lag_status lag_opmodel_build(struct lag_context *ctx, struct lag_opmodel *model,
				  struct lag_err *err) LAG_MUST_USE;
void lag_opmodel_release(struct lag_opmodel *model);

/* Simulates with these durations (by node); step_ns[s] gets each step's time, NaN without operations.
 * False when operations wait for each other in a circle: the recorded order contradicts itself. */
bool lag_opmodel_run(struct lag_opmodel *model, const double *duration, double *step_ns);

/* opmodel_edges.c: what waits for what. */
enum lag_status lag_opmodel_edges(struct lag_opmodel *model) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes traces in memory for tests, as the loader would have loaded them. Every call works or ends the
 * test program. Times are ns and may start anywhere; the finished trace's are relative to the first. */
#ifndef TESTS_UNIT_TRACE_BUILDER_H
#define TESTS_UNIT_TRACE_BUILDER_H

#include "schema/base/strtab.h"
#include "viz/model/trace.h"

struct trace_builder {
	struct lag_trace *trace;
	struct lag_strtab *texts;
	struct lag_vec gpu, lanes, ranges, api, syncs, launches, ops, comms, members;
	int64_t next_correlation;
};

/* Ranks 0 .. n_ranks - 1, all recorded, `per_host` of them on each host. */
void tb_init(struct trace_builder *tb, int n_ranks, int per_host);

/* Forgets that rank was recorded: it is in the job, but has no trace. */
void tb_missing(struct trace_builder *tb, int rank);

/* GPU work whose launch call is not known yet; its position, for tb_launched. */
size_t tb_kernel(struct trace_builder *tb, int rank, int64_t stream, const char *name,
		 int64_t start_ns, int64_t end_ns);
size_t tb_copy(struct trace_builder *tb, int rank, int64_t stream, int64_t bytes, int64_t start_ns,
	       int64_t end_ns);

/* The host call that launched it (also recorded as an API call). */
void tb_launched(struct trace_builder *tb, size_t gpu, uint64_t tid, int64_t start_ns,
		 int64_t end_ns);

/* A host call such as "cudaStreamSynchronize". */
void tb_api(struct trace_builder *tb, int rank, uint64_t tid, const char *name, int64_t start_ns,
	    int64_t end_ns);

void tb_range(struct trace_builder *tb, int rank, uint64_t tid, const char *name, int64_t start_ns,
	      int64_t end_ns);

/* A communicator of these job ranks; its position. */
uint32_t tb_comm(struct trace_builder *tb, const char *name, const int *ranks, int n);

/* A communication kernel on one rank with its one operation. peer: communicator rank, -1. Returns the
 * launch, to which tb_op_more adds operations (fused or grouped). */
int32_t tb_op(struct trace_builder *tb, uint32_t comm, int rank, enum lag_func func, int64_t seq,
	      int32_t peer, int64_t bytes, int64_t start_ns, int64_t end_ns);
void tb_op_more(struct trace_builder *tb, int32_t launch, enum lag_func func, int64_t seq,
		int32_t peer, int64_t bytes);

/* Clock error of every rank (0 by default). */
void tb_uncertainty(struct trace_builder *tb, int64_t ns);

/* Matches operations and arranges the trace; the caller closes it. The builder is then empty. */
struct lag_trace *tb_finish(struct trace_builder *tb);

#endif

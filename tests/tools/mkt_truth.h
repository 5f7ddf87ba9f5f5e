/* SPDX-License-Identifier: Apache-2.0 */
/* truth.json: what was put into a synthetic run, and what the right answers are. */
#ifndef TESTS_TOOLS_MKT_TRUTH_H
#define TESTS_TOOLS_MKT_TRUTH_H

#include "tests/tools/mkt_run.h"

/* One rank in one step. */
struct mkt_truth_row {
	int64_t fwd_ns, bwd_ns; /* kernels of all forwards, of all backwards */
	int64_t first_fwd_ns,
		last_bwd_ns; /* start of the first forward, end of the last backward */
};

/* A forward or backward of one microbatch and chunk: from its first kernel to its last. */
struct mkt_truth_block {
	int rank, step, chunk, mb;
	bool backward;
	int64_t start_ns, end_ns, busy_ns;
	int64_t ready_ns; /* earliest start by its first launch */
};

/* A message with the result of a block; not written with --batch-p2p, where kernels carry two. */
struct mkt_truth_message {
	int src, dst, step, chunk, mb; /* of the block that it comes from */
	bool backward;
	int64_t send_start_ns, send_end_ns, recv_start_ns, recv_end_ns;
};

struct mkt_truth {
	struct lag_vec ends;     /* int64_t: when the last rank's host left the step */
	struct lag_vec rows;     /* struct mkt_truth_row: step-major, then rank */
	struct lag_vec blocks;   /* struct mkt_truth_block, with --blocks */
	struct lag_vec messages; /* struct mkt_truth_message, with --blocks */
};

void mkt_truth_init(struct mkt_truth *t);
void mkt_truth_release(struct mkt_truth *t);

/* Notes the step that run has just resolved. */
enum lag_status mkt_truth_add(struct mkt_truth *t, const struct mkt_run *run) LAG_MUST_USE;

/* Writes DIR/truth.json; clean is the same run without faults (may be the same object). */
enum lag_status mkt_truth_write(const struct mkt_truth *t, const struct mkt_truth *clean,
				const struct mkt_run *run, struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a synthetic run looks like: shape, durations, noise, clocks and faults. */
#ifndef TESTS_TOOLS_MKT_OPTIONS_H
#define TESTS_TOOLS_MKT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	MKT_FAULTS_MAX = 64,
	MKT_PP_MAX = 256,
	MKT_RANKS_MAX = 16384
};

enum mkt_order {
	MKT_GPIPE,
	MKT_1F1B,
	MKT_INTERLEAVED
};

enum mkt_fault_kind {
	MKT_SLOW,      /* a = rank, factor: every kernel of its GPU */
	MKT_SLOW_DATA, /* a = dp rank, factor: kernels whose work depends on the data */
	MKT_SLOW_LINK, /* a -> b, factor: transfers between the two ranks */
	MKT_STALL,     /* a = rank, at = step, ns: the host stops before its first forward */
	MKT_MISSING,   /* a = rank: no file */
	MKT_DROP,      /* a = rank, at = one record in so many is lost (GPU side), and counted */
};

struct mkt_fault {
	enum mkt_fault_kind kind;
	int a, b;
	int64_t at, until; /* steps, half open */
	double factor;
	int64_t ns;
};

struct mkt_options {
	const char *out;
	uint64_t seed;
	int pp, dp, tp, chunks, microbatches, steps;
	int ranks_per_host;
	enum mkt_order order;
	int layers[MKT_PP_MAX]; /* per stage, all chunks together */
	int64_t fwd_ns;         /* forward of one layer and microbatch */
	double bwd_ratio;
	int64_t embed_ns, loss_ns, optimizer_ns;
	int64_t launch_ns;       /* host: from one call to the next */
	int64_t host_ns;         /* host: before each forward or backward */
	int64_t launch_delay_ns; /* from the call to the earliest start on the GPU */
	int64_t gap_ns;          /* between kernels of one stream */
	double launch_jitter;
	double kernel_sigma, gpu_sigma, seq_sigma;
	int64_t p2p_ns, tp_ns, grad_ns, norm_ns; /* transfer times */
	double comm_sigma;
	int64_t act_bytes, grad_bytes, eager_bytes;
	int buckets;
	bool grad_allreduce, nvtx, one_thread, pair_comms, batch_p2p, copies, blocks;
	double offset_ms, drift_ppm; /* largest, either sign */
	int64_t device_ns;           /* largest error of the conversion of device times */
	int64_t ring_ns;             /* how far the ends of one collective lie apart */
	struct mkt_fault faults[MKT_FAULTS_MAX];
	int n_faults;
};

struct mkt_place {
	int stage, dp, tp;
};

/* Reads argv; prints its own message and returns an exit code >= 0 when the program should end. */
int mkt_options_read(struct mkt_options *opt, int argc, char **argv);

static inline int mkt_n_ranks(const struct mkt_options *opt)
{
	return opt->pp * opt->dp * opt->tp;
}

/* Ranks count through tp first, then dp, then pp. */
static inline struct mkt_place mkt_place_of(const struct mkt_options *opt, int rank)
{
	return (struct mkt_place){ .stage = rank / (opt->tp * opt->dp),
				   .dp = rank / opt->tp % opt->dp,
				   .tp = rank % opt->tp };
}

static inline int mkt_rank_of(const struct mkt_options *opt, struct mkt_place at)
{
	return (at.stage * opt->dp + at.dp) * opt->tp + at.tp;
}

#endif

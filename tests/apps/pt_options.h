/* SPDX-License-Identifier: Apache-2.0 */
/* What pipetrain is told to do: command line and the launcher's RANK, WORLD_SIZE, LOCAL_RANK.
 * Times in nanoseconds, sizes in bytes. */
#ifndef LAG_TESTS_APPS_PT_OPTIONS_H
#define LAG_TESTS_APPS_PT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PT_MAX_STAGES 64
#define PT_MAX_SLOTS  4096

enum pt_order {
	PT_GPIPE,
	PT_1F1B,
	PT_INTERLEAVED
};

/* Which communicators carry the pipeline's messages. */
enum pt_pp_comm {
	PT_PP_GROUP,     /* one over the pipeline group */
	PT_PP_DIRECTION, /* two over the pipeline group: forward, backward */
	PT_PP_PAIR       /* one of two ranks for each neighbour pair and direction */
};

struct pt_options {
	int rank, world, local_rank;
	int pp, dp, tp;
	enum pt_order order;
	int chunks, microbatches, steps;
	int layers[PT_MAX_STAGES]; /* of each stage, over all its chunks */
	int64_t fwd_ns;            /* one layer, one microbatch */
	double bwd_ratio;
	int64_t optimizer_ns, embed_ns, loss_ns, host_ns;
	size_t act_bytes, grad_bytes, batch_bytes;
	int copies;         /* host-to-device copies a microbatch on the first stage */
	int buckets;        /* of the gradient reduction */
	double work_jitter; /* relative spread of a microbatch's work */
	uint64_t seed;
	enum pt_pp_comm pp_comm;
	bool batch_p2p;      /* group each send with the next receive */
	bool grad_allreduce; /* instead of reduce-scatter and all-gather */
	bool nvtx, verbose;
	const char *nvtx_domain; /* NULL: the default domain */
	const char *rdv_dir;
};

/* Where a rank stands: tp fastest, then dp, then pp. */
struct pt_place {
	int stage, dp, tp;
};

struct pt_place pt_place_of(const struct pt_options *opt, int rank);
int pt_rank_at(const struct pt_options *opt, struct pt_place place);

/* Fills opt from argv and the environment. Returns 0, or the exit code to leave with
 * (a message or the usage text has then been printed). */
int pt_options_parse(struct pt_options *opt, int argc, char **argv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A synthetic run: every rank's program for one step, and the engine that gives it times. Times are
 * true ns since the start of the run; clocks come in only when records are written. */
#ifndef TESTS_TOOLS_MKT_RUN_H
#define TESTS_TOOLS_MKT_RUN_H

#include <stddef.h>

#include "schema/base/mem.h"
#include "tests/tools/mkt_options.h"

#define MKT_UNKNOWN INT64_MIN

enum mkt_stream {
	MKT_S_COMPUTE,
	MKT_S_FWD_RECV,
	MKT_S_FWD_SEND,
	MKT_S_BWD_RECV,
	MKT_S_BWD_SEND,
	MKT_S_TP,
	MKT_S_DP,
	MKT_N_STREAMS
};

enum mkt_kernel {
	MKT_K_GEMM,
	MKT_K_DGRAD,
	MKT_K_WGRAD,
	MKT_K_ATTN_FWD,
	MKT_K_ATTN_BWD,
	MKT_K_NORM_FWD,
	MKT_K_NORM_BWD,
	MKT_K_GELU_FWD,
	MKT_K_GELU_BWD,
	MKT_K_EMBED,
	MKT_K_EMBED_BWD,
	MKT_K_LOSS_FWD,
	MKT_K_LOSS_BWD,
	MKT_K_GRAD_NORM,
	MKT_K_ADAM,
	MKT_N_KERNELS
};

enum mkt_item_kind {
	MKT_I_KERNEL,
	MKT_I_COPY, /* name: CUPTI's copy kind */
	MKT_I_SET,
	MKT_I_COLL, /* name: enum lag_func */
	MKT_I_P2P,
	MKT_I_RECORD, /* event record on stream; the event is that of the stream */
	MKT_I_WAIT,   /* stream waits for the event of stream `name` */
	MKT_I_PUSH,   /* NVTX; name: enum mkt_range */
	MKT_I_POP,
	MKT_I_SYNC, /* host waits for stream */
};

enum mkt_range {
	MKT_R_STEP,
	MKT_R_FORWARD,
	MKT_R_BACKWARD,
	MKT_R_OPTIMIZER
};

enum {
	MKT_DEPS = 3
};

/* One call of the host, and what it starts on the GPU. */
struct mkt_item {
	uint8_t kind, stream, name;
	bool backward; /* from the autograd thread */
	uint8_t chunk;
	int16_t mb; /* -1: belongs to none */
	int32_t next;
	int32_t dep[MKT_DEPS];
	int64_t after_ns; /* ends of earlier steps that it waits for */
	int64_t call_ns, leave_ns;
	int64_t start_ns, end_ns;
	int64_t dur_ns; /* transfers: set when they are resolved */
	int64_t bytes;
	int32_t comm;        /* collectives */
	int32_t conn[2];     /* send, receive; -1 none */
	int32_t seq[2];      /* collectives: [0]; else as conn, counted from the first step */
	int64_t part_end[2]; /* of the send and the receive */
};

/* Messages of one direction between two ranks. */
struct mkt_conn {
	int src, dst; /* ranks; dst -1: does not exist */
	int comm, src_in_comm, dst_in_comm;
	double factor;
	struct lag_vec sends, recvs; /* int32_t: item of the step's k-th message */
	int32_t sent, received;      /* in earlier steps */
};

struct mkt_comm {
	char name[48];
	int n;
	int *ranks;
	double factor;
	/* The instance that is gathering. */
	int n_arrived, last;
	int64_t last_ns;
	int32_t *items; /* by member */
};

struct mkt_rank {
	int rank, host;
	struct mkt_place at;
	double gpu_factor;
	int tp_comm, dp_comm; /* -1: none */
	int world_seq, tp_seq, dp_seq;
	int64_t host_ns;                   /* the host thread's time */
	int64_t stream_end[MKT_N_STREAMS]; /* of the last resolved item */
	struct lag_vec items;              /* struct mkt_item, of this step */
	int32_t head[MKT_N_STREAMS];       /* first unresolved item */
	int32_t tail[MKT_N_STREAMS];       /* last item, -1 none in this step */
	int32_t pending[MKT_N_STREAMS][MKT_DEPS];
	int64_t pending_after[MKT_N_STREAMS];
	uint64_t n_draws; /* in this step */
	bool queued;
};

struct mkt_run {
	const struct mkt_options *opt;
	bool faults; /* injected faults take effect */
	int n_ranks, n_comms, n_conns, n_hosts;
	struct mkt_rank *ranks;
	struct mkt_comm *comms;
	struct mkt_conn *conns; /* [2 * source rank + backward] */
	int step;
	int *queue; /* ranks whose streams may advance */
	int n_queue;
};

static inline struct mkt_item *mkt_item_at(const struct mkt_rank *r, int32_t i)
{
	return &LAG_VEC_AT(&r->items, struct mkt_item, i);
}

/* A standard draw bounded by 3, from whatever identifies it. */
double mkt_draw(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
/* Uniform in [-1, 1]. */
double mkt_uniform(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

enum lag_status mkt_run_init(struct mkt_run *run, const struct mkt_options *opt, bool faults,
			     struct lag_err *err) LAG_MUST_USE;
void mkt_run_release(struct mkt_run *run);

/* Enqueues step run->step on one rank: program and host times (mkt_program.c). */
enum lag_status mkt_program_fill(struct mkt_run *run, struct mkt_rank *r) LAG_MUST_USE;

/* Product of the run's active faults of a kind that name a (and b, where they name two). */
double mkt_fault_factor(const struct mkt_run *run, enum mkt_fault_kind kind, int a, int b);

/* Fills and resolves the next step on all ranks. Afterwards every item has its times. */
enum lag_status mkt_run_step(struct mkt_run *run, struct lag_err *err) LAG_MUST_USE;

#endif

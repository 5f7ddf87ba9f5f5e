/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NCCL. A communicator is one piece of shared memory with a bounded queue for every
 * ordered pair of ranks; operations are programs of receive-reduce-send steps over those queues,
 * and every chunk carries the true time at which it arrives. */
#ifndef SIM_NCCL_NC_H
#define SIM_NCCL_NC_H

#include "tests/simgpu/cuda/sim.h"

#include <nccl.h>
#include <pthread.h>

#define NC_SLOTS       8         /* credits: chunks in flight on one link */
#define NC_WINDOW      (4 << 20) /* bytes in flight on one link */
#define NC_PAYLOAD     65536     /* real bytes that one chunk can carry */
#define NC_CHUNK_BYTES (512 << 10)
#define NC_MAX_CHUNKS  8

enum nc_func {
	NC_ALL_REDUCE,
	NC_REDUCE,
	NC_BROADCAST,
	NC_ALL_GATHER,
	NC_REDUCE_SCATTER,
	NC_SEND,
	NC_RECV
};

/* Shared memory. */
struct nc_slot {
	int64_t ready_ns;    /* true time at which the chunk is there */
	int64_t consumed_ns; /* true time at which the receiver has taken it */
	uint64_t bytes;
	uint64_t data_bytes;
};

struct nc_link {
	uint64_t sent, taken; /* chunks ever */
	uint32_t receiver_waits, sender_waits;
	struct nc_slot slots[NC_SLOTS];
};

struct nc_member {
	int32_t pid, bell_fd, rank_in_world, device;
	uint64_t split_generation;
	int32_t split_color[2], split_key[2];
};

struct nc_shared {
	uint32_t joined, ready, event, aborted;
};

/* One process's end of a communicator. */
struct nc_tx {
	uint64_t freed; /* chunks whose credit has been taken back */
	uint64_t bytes_out;
};

struct ncclComm {
	int refs, rank, n, device;
	uint64_t hash;
	uint64_t ordinal; /* n-th of this process: the same in every run of one seed */
	char name[96];
	struct nc_shared *shm;
	size_t shm_bytes;
	struct nc_member *members;
	uint32_t **bells;
	struct nc_tx *tx; /* [channel][peer] */
	double *lag_ns, *ns_per_byte, link_sigma;
	uint64_t n_children, split_generation, seq;
	uint64_t *p2p_seq[2]; /* [send, recv][peer] */
	struct sim_op *last;  /* operations of one communicator run in order */
	bool tree;
	int n_scales;
	double *scales;     /* of user-made reductions, from ncclNumOps on */
	ncclResult_t state; /* ncclInProgress while a non-blocking join is under way */
};

enum nc_channel {
	NC_COLL,
	NC_P2P,
	NC_CHANNELS
};

/* Operations as the program calls them. */
struct nc_op {
	enum nc_func func;
	const char *api; /* name of the call */
	struct ncclComm *comm;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int peer; /* root or peer, -1 */
	struct sim_stream *stream;
	uint64_t seq, bytes;
};

/* What a rank does in a step, chunk by chunk: take from `from` (reduce it onto `mine` when asked)
 * into `into`, then pass it on to each of `to`; without `from`, `mine` is passed on. */
struct nc_step {
	int from, to[2], n_to;
	enum nc_channel channel;
	unsigned chunks;
	uint64_t bytes;
	const char *mine;
	char *into;
	size_t data_bytes; /* real bytes at the head of each of `parts` parts */
	size_t parts, stride;
	bool reduce, last; /* last: the reduction is complete here */
};

struct nc_lane {
	struct nc_step *steps;
	size_t n, cap, pc;
	unsigned chunk;
	int stage; /* 0: receive; i: send to to[i - 1] */
	int64_t t_ns;
	bool stalled;
};

struct nc_prep {
	char *dst;
	const char *src;
	size_t bytes;
	double scale;
};

struct nc_work {
	struct ncclComm *comm;
	struct nc_op *ops;
	size_t n_ops;
	struct nc_lane *lanes;
	size_t n_lanes;
	struct nc_prep *preps; /* local copies when the kernel starts */
	size_t n_preps;
	char *scratch;
	ncclDataType_t type;
	ncclRedOp_t op;
	bool started;
	int64_t start_ns;
};

/* nc_comm.c */
struct nc_link *nc_link(struct ncclComm *c, enum nc_channel ch, int from, int to);
char *nc_payload(struct ncclComm *c, enum nc_channel ch, int from, int to, unsigned slot);
void nc_comm_unref(struct ncclComm *c);
struct ncclComm *nc_comm_attach(const char *name, uint64_t hash, int n, int rank);
/* Joining in two steps, so that one thread can join several: open needs all to have attached, wait
 * needs all to have opened. */
ncclResult_t nc_comm_open(struct ncclComm *c);
void nc_comm_wait_open(struct ncclComm *c);
ncclResult_t nc_comm_wait_joined(struct ncclComm *c); /* both */
/* The same on a thread of its own; c->state tells when it is done. */
ncclResult_t nc_comm_join_async(struct ncclComm *c);
ncclResult_t nc_comm_state(const struct ncclComm *c);
void nc_shm_wait(uint32_t *word, uint32_t seen);
void nc_shm_wake(uint32_t *word);

/* nc_link.c: false: the other side has to move first. */
struct nc_chunk {
	uint64_t bytes, limit; /* limit: bytes that may be in flight with it */
	const char *data;
	size_t data_bytes, parts, stride;
};

bool nc_link_send(struct ncclComm *c, enum nc_channel ch, int to, const struct nc_chunk *k,
		  int64_t *t_ns);
const struct nc_slot *nc_link_peek(struct ncclComm *c, enum nc_channel ch, int from,
				   const char **data);
void nc_link_take(struct ncclComm *c, enum nc_channel ch, int from, int64_t t_ns);

/* nc_data.c */
size_t nc_type_size(ncclDataType_t t);
const char *nc_type_name(ncclDataType_t t);
void nc_reduce(char *into, const char *a, const char *b, size_t bytes, ncclDataType_t t,
	       ncclRedOp_t op);
void nc_scale(char *into, const char *src, size_t bytes, ncclDataType_t t, double factor);
double nc_op_scale(const struct ncclComm *c, ncclRedOp_t op); /* of user-made ones, else 1 */

/* nc_program.c: the work of one fused kernel. Takes over ops. NULL: nothing to run. */
struct nc_work *nc_work_new(const struct nc_op *ops, size_t n);
void nc_work_free(void *work);

/* nc_run.c */
bool nc_work_poll(void *work, int64_t start_ns, int64_t *end_ns);

/* nc_launch.c: kernels of a finished group. */
ncclResult_t nc_launch(const struct nc_op *ops, size_t n);

/* nc_group.c */
ncclResult_t nc_enqueue(const struct nc_op *op);
bool nc_in_group(void);
ncclResult_t nc_group_join_later(struct ncclComm *c);

/* nc_fault.c */
enum nc_hang {
	NC_NO_HANG,
	NC_HANG_HOST,
	NC_HANG_GPU,
	NC_HANG_LINK
};
enum nc_hang nc_fault_next(void); /* for the next operation of this process */
void nc_fault_block(void) __attribute__((noreturn));
double nc_fault_link_factor(int from_world, int to_world);

/* nc_nvtx.c: NCCL's own ranges. */
void nc_nvtx_push(const struct nc_op *op);
void nc_nvtx_push_plain(const char *name);
void nc_nvtx_pop(void);
void nc_nvtx_pop_comm(const struct ncclComm *c); /* NULL: none was made */

/* nccl.h declares these two without a parameter list. */
ncclResult_t pncclGroupStart(void);
ncclResult_t pncclGroupEnd(void);

#define NC_ALIAS(fn) extern __typeof__(p##fn) fn __attribute__((weak, alias("p" #fn)))

#endif

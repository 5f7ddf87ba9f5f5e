/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engine share: its state, and steps that need its lock held. */
#ifndef SIM_CUDA_ENGINE_H
#define SIM_CUDA_ENGINE_H

#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/cuda/sim.h"

#include <pthread.h>

#define SIM_MAX_DEVICES    64
#define SIM_COMM_INTERVALS 256

struct sim_doorbell {
	uint32_t word;
	uint32_t sleeping;
};

struct sim_interval {
	int64_t start_ns, end_ns;
	int device;
};

struct sim_engine {
	pthread_mutex_t lock;
	pthread_mutex_t deliver; /* taken before lock; keeps hooks in order */
	pthread_cond_t resolved;
	unsigned waiters;
	struct sim_stream *streams;
	struct sim_stream *legacy[SIM_MAX_DEVICES];
	struct sim_interval comms[SIM_COMM_INTERVALS];
	unsigned n_comms; /* ever started; the ring holds the last ones */
	struct sim_doorbell *bell;
	int bell_fd;
	int64_t wake_ns; /* when the engine must look again at the latest */
	int64_t asleep_until_ns;
	unsigned queue_depth;
	const struct sim_hooks *hooks;
};

extern struct sim_engine sim_eng;

/* model.c: how long things take. Lock held. */
void sim_model_load(void);
int64_t sim_model_latency(const struct sim_op *op); /* enqueue to earliest start */
int64_t sim_model_gap(void);                        /* between operations of one stream */
/* End of a kernel that starts at op->start_ns; false: not known before *again_ns. */
bool sim_model_kernel(const struct sim_op *op, int64_t now, int64_t *end_ns, int64_t *again_ns);
int64_t sim_model_copy(const struct sim_op *op); /* duration */

/* op.c. Lock held. */
void sim_resolve_all(int64_t now, bool on_engine);
struct sim_op *sim_op_runnable_host(int64_t now);
void sim_op_finish(struct sim_op *op, int64_t end_ns);

/* stream.c. Lock held. */
void sim_stream_link(struct sim_stream *s, struct sim_op *op);
void sim_streams_reap(void);

/* memory.c: the data part of a copy or set. Lock held. */
void sim_mem_execute(const struct sim_op *op);

/* truth.c */
void sim_truth_open(void);
void sim_truth_flush(void);

/* truth_work.c */
void sim_truth_work_open(void);
void sim_truth_work(const struct sim_op *op); /* that has just been resolved */

/* inject.c */
void sim_inject(void);

#endif

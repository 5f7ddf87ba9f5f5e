/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of the training program: its streams, buffers and order of work; a step enqueues all of
 * it and waits for the gradient norm, as frameworks do. */
#ifndef LAG_TESTS_APPS_PT_TRAIN_H
#define LAG_TESTS_APPS_PT_TRAIN_H

#include "tests/apps/pt_comm.h"
#include "tests/apps/pt_gpu.h"
#include "tests/apps/pt_nvtx.h"
#include "tests/apps/pt_options.h"
#include "tests/apps/pt_schedule.h"

enum pt_stream {
	PT_COMPUTE,
	PT_FWD_RECV,
	PT_FWD_SEND,
	PT_BWD_RECV,
	PT_BWD_SEND,
	PT_TP,
	PT_DP,
	PT_N_STREAMS
};

/* Device buffers. Payloads are written once; each collective is out of place, so that its result
 * can be checked and its input stays. */
struct pt_buffers {
	char *send[2], *recv[2]; /* by direction: forward, backward */
	char *tp_in, *tp_out;    /* bf16 */
	char *grads, *reduced;   /* f32, of one bucket */
	char *accum;             /* what is cleared before each step */
	char *shard, *params;    /* bf16 */
	char *batch, *loss;
	float *norm_in, *norm_out; /* one element a step */
	void *batch_host;
	size_t bucket_bytes, shard_bytes;
};

struct pt_train {
	const struct pt_options *opt;
	struct pt_place at;
	struct pt_gpu gpu;
	struct pt_comms comms;
	struct pt_nvtx nvtx;
	cudaStream_t streams[PT_N_STREAMS];
	cudaEvent_t done[PT_N_STREAMS]; /* recorded on that stream, awaited by another */
	struct pt_buffers buf;
	struct pt_act *acts;
	int n_acts;
	double *work; /* factor on the kernels of each microbatch */
};

void pt_train_init(struct pt_train *t, const struct pt_options *opt);
void pt_train_release(struct pt_train *t);
void pt_train_step(struct pt_train *t, int step);
/* Makes stream wait until everything so far on before has finished. */
void pt_train_order(struct pt_train *t, enum pt_stream before, enum pt_stream stream);

/* Forward or backward of one microbatch through the layers of one chunk (pt_layer.c). */
void pt_layers_run(struct pt_train *t, struct pt_act act);

/* Known payloads, and whether they arrived (pt_payload.c). check prints what is wrong. */
void pt_payload_put(struct pt_train *t);
int pt_payload_check(struct pt_train *t, int last_step);
int pt_payload_check_norm(struct pt_train *t, int step, float norm);
/* Start of the message of a slot in one step. */
const char *pt_payload_message(const struct pt_train *t, bool backward, int slot, int step);

#endif

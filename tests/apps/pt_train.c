/* SPDX-License-Identifier: Apache-2.0 */
/* A training step on one rank: parameters gathered, microbatches through the pipeline, gradients
 * reduced, norm, optimizer. Host thread only; streams and events carry every dependency. */
#include "tests/apps/pt_train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* The data decide the work: ranks that see the same microbatch (same dp) get the same factor. */
static double work_factor(const struct pt_train *t, int step, int mb)
{
	if (t->opt->work_jitter <= 0)
		return 1.0;
	uint64_t h = mix(t->opt->seed ^
			 mix((uint64_t)step << 40 ^ (uint64_t)t->at.dp << 20 ^ (uint64_t)mb));
	double u = (double)(h >> 11) * 0x1p-53;
	/* Uniform with the asked standard deviation. */
	double f = 1.0 + t->opt->work_jitter * sqrt(12.0) * (u - 0.5);
	return f > 0.1 ? f : 0.1;
}

static void *host_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return p;
}

static void alloc_buffers(struct pt_train *t)
{
	const struct pt_options *opt = t->opt;
	struct pt_buffers *b = &t->buf;
	size_t n_slots = (size_t)(opt->microbatches * opt->chunks);
	size_t unit = (size_t)opt->dp * 256;
	size_t bucket = opt->grad_bytes / (size_t)opt->buckets;
	b->bucket_bytes = (bucket + unit - 1) / unit * unit;
	b->shard_bytes = b->bucket_bytes * (size_t)opt->buckets / 2 / (size_t)opt->dp;
	for (int dir = 0; dir < 2 && opt->pp > 1; dir++) {
		/* Messages of different slots overlap but for their first bytes: they are only read. */
		b->send[dir] = pt_gpu_alloc(opt->act_bytes + n_slots * 256);
		b->recv[dir] = pt_gpu_alloc(opt->act_bytes * n_slots);
	}
	if (opt->tp > 1) {
		b->tp_in = pt_gpu_alloc(opt->act_bytes);
		b->tp_out = pt_gpu_alloc(opt->act_bytes);
	}
	if (opt->dp > 1) {
		b->grads = pt_gpu_alloc(b->bucket_bytes);
		b->reduced = pt_gpu_alloc(b->bucket_bytes);
		b->shard = pt_gpu_alloc(b->shard_bytes);
		b->params = pt_gpu_alloc(b->shard_bytes * (size_t)opt->dp);
	}
	b->accum = pt_gpu_alloc(opt->grad_bytes);
	b->batch = pt_gpu_alloc(opt->batch_bytes);
	b->batch_host = host_alloc(1, opt->batch_bytes);
	b->loss = pt_gpu_alloc(256);
	b->norm_in = pt_gpu_alloc((size_t)opt->steps * sizeof(float));
	b->norm_out = pt_gpu_alloc((size_t)opt->steps * sizeof(float));
}

void pt_train_init(struct pt_train *t, const struct pt_options *opt)
{
	*t = (struct pt_train){ .opt = opt, .at = pt_place_of(opt, opt->rank) };
	pt_gpu_init(&t->gpu, opt->local_rank);
	for (int i = 0; i < PT_N_STREAMS; i++) {
		PT_CUDA(cudaStreamCreateWithFlags(&t->streams[i], cudaStreamNonBlocking));
		PT_CUDA(cudaEventCreateWithFlags(&t->done[i], cudaEventDisableTiming));
	}
	pt_nvtx_init(&t->nvtx, opt->nvtx, opt->nvtx_domain);
	alloc_buffers(t);
	pt_payload_put(t);
	pt_comms_init(&t->comms, opt);
	t->n_acts = pt_schedule_size(opt);
	t->acts = host_alloc((size_t)t->n_acts, sizeof(*t->acts));
	t->work = host_alloc((size_t)opt->microbatches, sizeof(*t->work));
	pt_schedule_fill(opt, t->at.stage, t->acts);
}

void pt_train_release(struct pt_train *t)
{
	struct pt_buffers *b = &t->buf;
	void *device[] = { b->send[0], b->send[1], b->recv[0], b->recv[1], b->tp_in,
			   b->tp_out,  b->grads,   b->reduced, b->accum,   b->shard,
			   b->params,  b->batch,   b->loss,    b->norm_in, b->norm_out };
	PT_CUDA(cudaDeviceSynchronize());
	pt_comms_release(&t->comms);
	for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); i++) {
		if (device[i])
			PT_CUDA(cudaFree(device[i]));
	}
	for (int i = 0; i < PT_N_STREAMS; i++) {
		PT_CUDA(cudaEventDestroy(t->done[i]));
		PT_CUDA(cudaStreamDestroy(t->streams[i]));
	}
	pt_gpu_release(&t->gpu);
	pt_nvtx_release(&t->nvtx);
	free(b->batch_host);
	free(t->acts);
	free(t->work);
}

void pt_train_order(struct pt_train *t, enum pt_stream before, enum pt_stream stream)
{
	PT_CUDA(cudaEventRecord(t->done[before], t->streams[before]));
	PT_CUDA(cudaStreamWaitEvent(t->streams[stream], t->done[before], 0));
}

static bool has_source(const struct pt_train *t, int i)
{
	return i < t->n_acts && pt_act_source(t->opt, t->at.stage, t->acts[i]) >= 0;
}

static bool has_target(const struct pt_train *t, int i)
{
	return i >= 0 && pt_act_target(t->opt, t->at.stage, t->acts[i]) >= 0;
}

static void receive(struct pt_train *t, struct pt_act act, enum pt_stream stream)
{
	const struct pt_flow *flow = act.backward ? &t->comms.backward : &t->comms.forward;
	char *into =
		t->buf.recv[act.backward] + t->opt->act_bytes * (size_t)pt_act_slot(t->opt, act);
	PT_NCCL(ncclRecv(into, t->opt->act_bytes / 2, ncclBfloat16, flow->from.peer,
			 flow->from.comm, t->streams[stream]));
}

static void post(struct pt_train *t, struct pt_act act, int step, enum pt_stream stream)
{
	const struct pt_flow *flow = act.backward ? &t->comms.backward : &t->comms.forward;
	const char *from = pt_payload_message(t, act.backward, pt_act_slot(t->opt, act), step);
	PT_NCCL(ncclSend(from, t->opt->act_bytes / 2, ncclBfloat16, flow->to.peer, flow->to.comm,
			 t->streams[stream]));
}

/* One action's input by streams of their own: compute waits for what it needs, a send for nobody. */
static void receive_apart(struct pt_train *t, int i)
{
	enum pt_stream stream = t->acts[i].backward ? PT_BWD_RECV : PT_FWD_RECV;
	if (!has_source(t, i))
		return;
	receive(t, t->acts[i], stream);
	pt_train_order(t, stream, PT_COMPUTE);
}

static void send_apart(struct pt_train *t, int i, int step)
{
	enum pt_stream stream = t->acts[i].backward ? PT_BWD_SEND : PT_FWD_SEND;
	if (!has_target(t, i))
		return;
	pt_train_order(t, PT_COMPUTE, stream);
	post(t, t->acts[i], step, stream);
}

/* The result of action i and the input of the next in one group: on one communicator, neighbours
 * that send to each other at the same time would else wait for ever. */
static void exchange(struct pt_train *t, int i, int step)
{
	bool out = has_target(t, i);
	bool in = has_source(t, i + 1);
	if (!out && !in)
		return;
	pt_train_order(t, PT_COMPUTE, PT_FWD_SEND);
	PT_NCCL(ncclGroupStart());
	if (out)
		post(t, t->acts[i], step, PT_FWD_SEND);
	if (in)
		receive(t, t->acts[i + 1], PT_FWD_SEND);
	PT_NCCL(ncclGroupEnd());
	if (in)
		pt_train_order(t, PT_FWD_SEND, PT_COMPUTE);
}

static void load_batch(struct pt_train *t, struct pt_act act)
{
	if (act.backward || act.chunk > 0 || t->at.stage > 0)
		return;
	for (int i = 0; i < t->opt->copies; i++)
		PT_CUDA(cudaMemcpyAsync(t->buf.batch, t->buf.batch_host, t->opt->batch_bytes,
					cudaMemcpyHostToDevice, t->streams[PT_COMPUTE]));
}

static void run_pipeline(struct pt_train *t, int step)
{
	bool batch = t->opt->batch_p2p;
	if (batch)
		exchange(t, -1, step);
	for (int i = 0; i < t->n_acts; i++) {
		struct pt_act act = t->acts[i];
		pt_nvtx_push(&t->nvtx, act.backward ? "backward mb" : "forward mb", act.mb);
		if (t->opt->host_ns)
			nanosleep(&(struct timespec){ .tv_sec = t->opt->host_ns / 1000000000,
						      .tv_nsec = t->opt->host_ns % 1000000000 },
				  NULL);
		load_batch(t, act);
		if (!batch)
			receive_apart(t, i);
		pt_layers_run(t, act);
		if (!batch)
			send_apart(t, i, step);
		pt_nvtx_pop(&t->nvtx);
		if (batch)
			exchange(t, i, step);
	}
}

static void gather_params(struct pt_train *t)
{
	if (!t->comms.dp || t->opt->grad_allreduce)
		return;
	PT_NCCL(ncclAllGather(t->buf.shard, t->buf.params, t->buf.shard_bytes / 2, ncclBfloat16,
			      t->comms.dp, t->streams[PT_DP]));
	pt_train_order(t, PT_DP, PT_COMPUTE);
}

static void reduce_grads(struct pt_train *t)
{
	struct pt_buffers *b = &t->buf;
	if (!t->comms.dp)
		return;
	pt_train_order(t, PT_COMPUTE, PT_DP);
	for (int i = 0; i < t->opt->buckets; i++) {
		if (t->opt->grad_allreduce)
			PT_NCCL(ncclAllReduce(b->grads, b->reduced, b->bucket_bytes / 4,
					      ncclFloat32, ncclSum, t->comms.dp,
					      t->streams[PT_DP]));
		else
			PT_NCCL(ncclReduceScatter(
				b->grads, b->reduced, b->bucket_bytes / 4 / (size_t)t->opt->dp,
				ncclFloat32, ncclSum, t->comms.dp, t->streams[PT_DP]));
	}
	pt_train_order(t, PT_DP, PT_COMPUTE);
}

/* The norm is a sum over every rank, and the host waits for it, as gradient clipping does. */
static float optimize(struct pt_train *t, int step)
{
	enum {
		N_NORM = 2,
		N_ADAM = 4
	};

	cudaStream_t stream = t->streams[PT_COMPUTE];
	float norm = 0;
	pt_nvtx_push(&t->nvtx, "optimizer", -1);
	for (int i = 0; i < N_NORM; i++)
		pt_gpu_launch(&t->gpu, PT_GRAD_NORM, t->opt->optimizer_ns / 20, stream);
	pt_train_order(t, PT_COMPUTE, PT_DP);
	PT_NCCL(ncclAllReduce(t->buf.norm_in + step, t->buf.norm_out + step, 1, ncclFloat32,
			      ncclSum, t->comms.world, t->streams[PT_DP]));
	pt_train_order(t, PT_DP, PT_COMPUTE);
	pt_gpu_fetch(&norm, t->buf.norm_out + step, sizeof(norm), stream);
	for (int i = 0; i < N_ADAM; i++)
		pt_gpu_launch(&t->gpu, PT_ADAM, t->opt->optimizer_ns * 9 / 10 / N_ADAM, stream);
	/* The next step's all-gather takes what the optimizer wrote. */
	pt_train_order(t, PT_COMPUTE, PT_DP);
	pt_nvtx_pop(&t->nvtx);
	return norm;
}

void pt_train_step(struct pt_train *t, int step)
{
	cudaStream_t stream = t->streams[PT_COMPUTE];
	float loss = 0;
	for (int mb = 0; mb < t->opt->microbatches; mb++)
		t->work[mb] = work_factor(t, step, mb);
	pt_nvtx_push(&t->nvtx, "step", step);
	if (t->opt->copies)
		PT_CUDA(cudaMemsetAsync(t->buf.accum, 0, t->opt->grad_bytes, stream));
	gather_params(t);
	run_pipeline(t, step);
	reduce_grads(t);
	float norm = optimize(t, step);
	if (t->opt->copies && t->at.stage == t->opt->pp - 1)
		pt_gpu_fetch(&loss, t->buf.loss, sizeof(loss), stream);
	PT_CUDA(cudaStreamSynchronize(stream));
	pt_nvtx_pop(&t->nvtx);
	if (pt_payload_check_norm(t, step, norm))
		exit(3);
}

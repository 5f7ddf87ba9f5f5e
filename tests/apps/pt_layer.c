/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a transformer layer, forward and backward, and the tensor-parallel all-reduces
 * between them. */
#include "tests/apps/pt_train.h"

#define N_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct part {
	enum pt_kernel kernel;
	int permille; /* of the layer's time */
	bool reduce;  /* its output is summed over the tensor-parallel group */
};

static const struct part forward[] = {
	{ PT_NORM_FWD, 40, false }, { PT_GEMM, 210, false },    { PT_ATTN_FWD, 180, false },
	{ PT_GEMM, 90, true },      { PT_NORM_FWD, 40, false }, { PT_GEMM, 200, false },
	{ PT_GELU_FWD, 40, false }, { PT_GEMM, 200, true },
};

static const struct part backward[] = {
	{ PT_DGRAD, 100, false }, { PT_WGRAD, 100, false }, { PT_GELU_BWD, 20, false },
	{ PT_DGRAD, 100, true },  { PT_WGRAD, 100, false }, { PT_NORM_BWD, 30, false },
	{ PT_DGRAD, 50, false },  { PT_WGRAD, 50, false },  { PT_ATTN_BWD, 220, false },
	{ PT_DGRAD, 100, true },  { PT_WGRAD, 100, false }, { PT_NORM_BWD, 30, false },
};

static void tp_reduce(struct pt_train *t)
{
	if (!t->comms.tp)
		return;
	pt_train_order(t, PT_COMPUTE, PT_TP);
	PT_NCCL(ncclAllReduce(t->buf.tp_in, t->buf.tp_out, t->opt->act_bytes / 2, ncclBfloat16,
			      ncclSum, t->comms.tp, t->streams[PT_TP]));
	pt_train_order(t, PT_TP, PT_COMPUTE);
}

/* Parts last their share of the whole; rounding never lets the sum drift from it. */
static void run_parts(struct pt_train *t, const struct part *parts, int n, int64_t layer_ns)
{
	int64_t before = 0;
	int done = 0;
	for (int i = 0; i < n; i++) {
		done += parts[i].permille;
		int64_t until = layer_ns * done / 1000;
		pt_gpu_launch(&t->gpu, parts[i].kernel, until - before, t->streams[PT_COMPUTE]);
		before = until;
		if (parts[i].reduce)
			tp_reduce(t);
	}
}

static int64_t scaled(int64_t ns, double factor)
{
	return (int64_t)((double)ns * factor + 0.5);
}

void pt_layers_run(struct pt_train *t, struct pt_act act)
{
	const struct pt_options *opt = t->opt;
	cudaStream_t stream = t->streams[PT_COMPUTE];
	bool first = pt_act_source(opt, t->at.stage, (struct pt_act){ .chunk = act.chunk }) < 0;
	bool last = pt_act_target(opt, t->at.stage, (struct pt_act){ .chunk = act.chunk }) < 0;
	double factor = t->work[act.mb];
	int n_layers = opt->layers[t->at.stage] / opt->chunks;
	int64_t layer_ns = scaled(opt->fwd_ns, factor);
	if (!act.backward) {
		if (first)
			pt_gpu_launch(&t->gpu, PT_EMBED, scaled(opt->embed_ns, factor), stream);
		for (int i = 0; i < n_layers; i++)
			run_parts(t, forward, N_OF(forward), layer_ns);
		if (last)
			pt_gpu_launch(&t->gpu, PT_LOSS_FWD, scaled(opt->loss_ns, factor), stream);
		return;
	}
	layer_ns = scaled(layer_ns, opt->bwd_ratio);
	factor *= opt->bwd_ratio;
	if (last)
		pt_gpu_launch(&t->gpu, PT_LOSS_BWD, scaled(opt->loss_ns, factor), stream);
	for (int i = 0; i < n_layers; i++)
		run_parts(t, backward, N_OF(backward), layer_ns);
	if (first)
		pt_gpu_launch(&t->gpu, PT_WGRAD, scaled(opt->embed_ns, factor), stream);
}

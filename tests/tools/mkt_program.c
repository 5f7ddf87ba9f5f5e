/* SPDX-License-Identifier: Apache-2.0 */
/* A training step as one rank's host thread enqueues it: copies, parameters gathered, forwards and
 * backwards in the order of the schedule, gradients reduced, norm, optimizer, one synchronise. */
#include "schema/record/enums.h"
#include "tests/tools/mkt_run.h"

struct part {
	enum mkt_kernel kernel;
	int permille; /* of the layer's time */
	bool reduce;  /* its output is summed over the tensor-parallel group */
};

static const struct part forward_parts[] = {
	{ MKT_K_NORM_FWD, 40, false },  { MKT_K_GEMM, 210, false },
	{ MKT_K_ATTN_FWD, 200, false }, { MKT_K_GEMM, 90, true },
	{ MKT_K_NORM_FWD, 40, false },  { MKT_K_GEMM, 190, false },
	{ MKT_K_GELU_FWD, 40, false },  { MKT_K_GEMM, 190, true },
};

static const struct part backward_parts[] = {
	{ MKT_K_DGRAD, 95, false }, { MKT_K_WGRAD, 95, false },  { MKT_K_GELU_BWD, 20, false },
	{ MKT_K_DGRAD, 95, true },  { MKT_K_WGRAD, 95, false },  { MKT_K_NORM_BWD, 30, false },
	{ MKT_K_DGRAD, 50, false }, { MKT_K_WGRAD, 50, false },  { MKT_K_ATTN_BWD, 240, false },
	{ MKT_K_DGRAD, 100, true }, { MKT_K_WGRAD, 100, false }, { MKT_K_NORM_BWD, 30, false },
};

#define FACTOR_MIN  0.05 /* of a host call's time */
#define N_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct act {
	bool backward;
	int mb, chunk;
};

/* What is being built. A failed push makes everything after it void. */
struct build {
	struct mkt_run *run;
	struct mkt_rank *r;
	bool backward, failed;
	int mb, chunk;
	double seq; /* factor of the microbatch's data-dependent work */
};

static uint64_t key(const struct build *b, int what)
{
	return ((uint64_t)b->run->step << 16) + (uint64_t)what;
}

static int64_t host_cost(struct build *b, int64_t ns)
{
	const struct mkt_options *opt = b->run->opt;
	double u = mkt_uniform(opt->seed, (uint64_t)b->r->rank, key(b, 1), b->r->n_draws++);
	double factor = 1 + opt->launch_jitter * u;

	/* However much it varies, time goes forward. */
	return (int64_t)((double)ns * (factor > FACTOR_MIN ? factor : FACTOR_MIN)) + 1;
}

/* A host call that takes `cost` and leaves nothing on a stream yet. */
static struct mkt_item *call(struct build *b, enum mkt_item_kind kind, int name, int64_t cost)
{
	struct mkt_item *it = lag_vec_push(&b->r->items);
	if (!it) {
		b->failed = true;
		return NULL;
	}
	int64_t spent = host_cost(b, cost);
	it->kind = (uint8_t)kind;
	it->name = (uint8_t)name;
	it->backward = b->backward;
	it->mb = (int16_t)b->mb;
	it->chunk = (uint8_t)b->chunk;
	it->next = -1;
	it->conn[0] = it->conn[1] = it->comm = -1;
	for (int i = 0; i < MKT_DEPS; i++)
		it->dep[i] = -1;
	it->call_ns = b->r->host_ns;
	it->leave_ns = it->call_ns + spent * 3 / 5;
	b->r->host_ns += spent;
	it->start_ns = it->end_ns = it->part_end[0] = it->part_end[1] = MKT_UNKNOWN;
	return it;
}

/* A host call that puts something at the end of a stream. */
static struct mkt_item *enqueue(struct build *b, enum mkt_item_kind kind, enum mkt_stream stream,
				int name, int64_t dur)
{
	struct mkt_rank *r = b->r;
	int64_t cost = b->run->opt->launch_ns * (kind == MKT_I_COLL || kind == MKT_I_P2P ? 2 : 1);
	struct mkt_item *it = call(b, kind, name, cost);
	if (!it)
		return NULL;
	int32_t i = (int32_t)r->items.n - 1;
	it->stream = (uint8_t)stream;
	it->dur_ns = dur;
	it->after_ns = r->pending_after[stream];
	r->pending_after[stream] = INT64_MIN;
	for (int d = 0; d < MKT_DEPS; d++) {
		it->dep[d] = r->pending[stream][d];
		r->pending[stream][d] = -1;
	}
	if (r->tail[stream] >= 0) {
		mkt_item_at(r, r->tail[stream])->next = i;
	} else {
		r->head[stream] = i;
	}
	r->tail[stream] = i;
	return it;
}

/* `stream` goes on only after everything so far on `before`. */
static void order(struct build *b, enum mkt_stream before, enum mkt_stream stream)
{
	struct mkt_rank *r = b->r;
	struct mkt_item *it = call(b, MKT_I_RECORD, 0, b->run->opt->launch_ns / 3);
	if (it)
		it->stream = (uint8_t)before;
	it = call(b, MKT_I_WAIT, before, b->run->opt->launch_ns / 3);
	if (it)
		it->stream = (uint8_t)stream;
	int32_t last = r->tail[before];
	if (last < 0) {
		if (r->pending_after[stream] < r->stream_end[before])
			r->pending_after[stream] = r->stream_end[before];
		return;
	}
	/* A later wait for the same stream implies the earlier one. */
	int slot = 0;
	while (slot < MKT_DEPS - 1 && r->pending[stream][slot] >= 0 &&
	       mkt_item_at(r, r->pending[stream][slot])->stream != before)
		slot++;
	r->pending[stream][slot] = last;
}

static void kernel(struct build *b, enum mkt_kernel k, int64_t ns)
{
	const struct mkt_options *opt = b->run->opt;
	struct mkt_rank *r = b->r;
	double f = r->gpu_factor * mkt_fault_factor(b->run, MKT_SLOW, r->rank, 0);
	f *= 1 +
	     opt->kernel_sigma * mkt_draw(opt->seed, (uint64_t)r->rank, key(b, 2), r->n_draws++);
	if (k == MKT_K_ATTN_FWD || k == MKT_K_ATTN_BWD)
		f *= b->seq;
	int64_t dur = (int64_t)((double)ns * f);
	if (dur > 0)
		enqueue(b, MKT_I_KERNEL, MKT_S_COMPUTE, k, dur);
}

static void collective(struct build *b, int comm, int *seq, enum lag_func func,
		       enum mkt_stream stream, int64_t bytes, int64_t ns)
{
	struct mkt_item *it = enqueue(b, MKT_I_COLL, stream, func, ns);
	if (!it)
		return;
	it->comm = comm;
	it->seq[0] = (*seq)++;
	it->bytes = bytes;
}

static void tp_reduce(struct build *b)
{
	const struct mkt_options *opt = b->run->opt;
	if (b->r->tp_comm < 0)
		return;
	order(b, MKT_S_COMPUTE, MKT_S_TP);
	collective(b, b->r->tp_comm, &b->r->tp_seq, LAG_FUNC_ALL_REDUCE, MKT_S_TP, opt->act_bytes,
		   opt->tp_ns);
	order(b, MKT_S_TP, MKT_S_COMPUTE);
}

static void run_parts(struct build *b, const struct part *parts, int n, int64_t layer_ns)
{
	for (int i = 0; i < n; i++) {
		kernel(b, parts[i].kernel, layer_ns * parts[i].permille / 1000);
		if (parts[i].reduce)
			tp_reduce(b);
	}
}

static void run_layers(struct build *b, struct act a)
{
	const struct mkt_options *opt = b->run->opt;
	int stage = b->r->at.stage;
	int n = opt->layers[stage] / opt->chunks;
	bool first = stage == 0 && a.chunk == 0;
	bool last = stage == opt->pp - 1 && a.chunk == opt->chunks - 1;
	if (!a.backward) {
		if (first)
			kernel(b, MKT_K_EMBED, opt->embed_ns);
		for (int i = 0; i < n; i++)
			run_parts(b, forward_parts, N_OF(forward_parts), opt->fwd_ns);
		if (last)
			kernel(b, MKT_K_LOSS_FWD, opt->loss_ns);
		return;
	}
	if (last)
		kernel(b, MKT_K_LOSS_BWD, (int64_t)((double)opt->loss_ns * opt->bwd_ratio));
	for (int i = 0; i < n; i++) {
		run_parts(b, backward_parts, N_OF(backward_parts),
			  (int64_t)((double)opt->fwd_ns * opt->bwd_ratio));
	}
	if (first)
		kernel(b, MKT_K_EMBED_BWD, (int64_t)((double)opt->embed_ns * opt->bwd_ratio));
}

/* k-th forward (or backward) of any stage: rounds of pp microbatches, chunk by chunk. */
static struct act nth(const struct mkt_options *opt, int k, bool backward)
{
	if (opt->chunks == 1)
		return (struct act){ backward, k, 0 };
	int round = opt->pp * opt->chunks;
	int chunk = k % round / opt->pp;
	return (struct act){ backward, k / round * opt->pp + k % opt->pp,
			     backward ? opt->chunks - 1 - chunk : chunk };
}

/* i-th action of a stage. */
static struct act act_at(const struct mkt_options *opt, int stage, int i)
{
	int total = opt->microbatches * opt->chunks;
	int warm = total;
	if (opt->order == MKT_1F1B) {
		warm = opt->pp - 1 - stage;
	} else if (opt->order == MKT_INTERLEAVED) {
		warm = 2 * (opt->pp - 1 - stage) + (opt->chunks - 1) * opt->pp;
	}
	if (warm > total)
		warm = total;
	if (i < warm)
		return nth(opt, i, false);
	int j = i - warm;
	if (j >= 2 * (total - warm))
		return nth(opt, i - total, true);
	return j % 2 ? nth(opt, j / 2, true) : nth(opt, warm + j / 2, false);
}

/* The connection an action's input (or output) takes; -1 at the ends of the model. */
static int act_conn(const struct build *b, struct act a, bool out)
{
	const struct mkt_options *opt = b->run->opt;
	int part = a.chunk * opt->pp + b->r->at.stage;
	int step = a.backward == out ? -1 : 1;
	if (part + step < 0 || part + step >= opt->pp * opt->chunks)
		return -1;
	if (out)
		return 2 * b->r->rank + a.backward;
	struct mkt_place from = b->r->at;
	from.stage = (part + step) % opt->pp;
	return 2 * mkt_rank_of(opt, from) + a.backward;
}

static void message(struct build *b, enum mkt_stream stream, int out, int in)
{
	struct mkt_item *it = enqueue(b, MKT_I_P2P, stream, 0, 0);
	if (!it)
		return;
	int32_t i = (int32_t)b->r->items.n - 1;
	it->bytes = b->run->opt->act_bytes;
	for (int dir = 0; dir < 2; dir++) {
		int c = dir ? in : out;
		it->conn[dir] = c;
		if (c < 0)
			continue;
		struct mkt_conn *conn = &b->run->conns[c];
		struct lag_vec *list = dir ? &conn->recvs : &conn->sends;
		it->seq[dir] = (dir ? conn->received : conn->sent) + (int32_t)list->n;
		int32_t *slot = lag_vec_push(list);
		if (slot) {
			*slot = i;
		} else {
			b->failed = true;
		}
	}
}

static void range(struct build *b, bool push, enum mkt_range name)
{
	if (b->run->opt->nvtx)
		call(b, push ? MKT_I_PUSH : MKT_I_POP, name, 200);
}

static void exchange(struct build *b, int i, int n_acts)
{
	const struct mkt_options *opt = b->run->opt;
	int stage = b->r->at.stage;
	int out = i >= 0 ? act_conn(b, act_at(opt, stage, i), true) : -1;
	int in = i + 1 < n_acts ? act_conn(b, act_at(opt, stage, i + 1), false) : -1;
	if (out < 0 && in < 0)
		return;
	order(b, MKT_S_COMPUTE, MKT_S_FWD_SEND);
	message(b, MKT_S_FWD_SEND, out, in);
	if (in >= 0)
		order(b, MKT_S_FWD_SEND, MKT_S_COMPUTE);
}

static void run_act(struct build *b, struct act a)
{
	const struct mkt_options *opt = b->run->opt;
	b->mb = a.mb;
	b->chunk = a.chunk;
	b->backward = a.backward;
	uint64_t dp = (uint64_t)b->r->at.dp;
	b->seq = 1 + opt->seq_sigma * mkt_draw(opt->seed, dp, key(b, 3), (uint64_t)a.mb);
	b->seq *= mkt_fault_factor(b->run, MKT_SLOW_DATA, b->r->at.dp, 0);
	range(b, true, a.backward ? MKT_R_BACKWARD : MKT_R_FORWARD);
	if (opt->host_ns)
		b->r->host_ns += host_cost(b, opt->host_ns);
	if (opt->copies && !a.backward && a.chunk == 0 && b->r->at.stage == 0) {
		struct mkt_item *it = enqueue(b, MKT_I_COPY, MKT_S_COMPUTE, 1, 12000);
		if (it)
			it->bytes = 256 << 10;
	}
	int in = opt->batch_p2p ? -1 : act_conn(b, a, false);
	if (in >= 0) {
		enum mkt_stream s = a.backward ? MKT_S_BWD_RECV : MKT_S_FWD_RECV;
		message(b, s, -1, in);
		order(b, s, MKT_S_COMPUTE);
	}
	run_layers(b, a);
	int out = opt->batch_p2p ? -1 : act_conn(b, a, true);
	if (out >= 0) {
		enum mkt_stream s = a.backward ? MKT_S_BWD_SEND : MKT_S_FWD_SEND;
		order(b, MKT_S_COMPUTE, s);
		message(b, s, out, -1);
	}
	range(b, false, MKT_R_FORWARD);
	b->mb = -1;
	b->chunk = 0;
	b->backward = false;
}

static void reduce_grads(struct build *b)
{
	const struct mkt_options *opt = b->run->opt;
	if (b->r->dp_comm < 0)
		return;
	order(b, MKT_S_COMPUTE, MKT_S_DP);
	for (int i = 0; i < opt->buckets; i++) {
		collective(b, b->r->dp_comm, &b->r->dp_seq,
			   opt->grad_allreduce ? LAG_FUNC_ALL_REDUCE : LAG_FUNC_REDUCE_SCATTER,
			   MKT_S_DP, opt->grad_bytes / opt->buckets, opt->grad_ns / opt->buckets);
	}
	order(b, MKT_S_DP, MKT_S_COMPUTE);
}

static void optimize(struct build *b)
{
	const struct mkt_options *opt = b->run->opt;
	range(b, true, MKT_R_OPTIMIZER);
	for (int i = 0; i < 2; i++)
		kernel(b, MKT_K_GRAD_NORM, opt->optimizer_ns / 20);
	order(b, MKT_S_COMPUTE, MKT_S_DP);
	collective(b, 0, &b->r->world_seq, LAG_FUNC_ALL_REDUCE, MKT_S_DP, 4, opt->norm_ns);
	order(b, MKT_S_DP, MKT_S_COMPUTE);
	struct mkt_item *it = enqueue(b, MKT_I_COPY, MKT_S_COMPUTE, 2, 1500);
	if (it)
		it->bytes = 4;
	for (int i = 0; i < 4; i++)
		kernel(b, MKT_K_ADAM, opt->optimizer_ns * 9 / 40);
	order(b, MKT_S_COMPUTE, MKT_S_DP);
	range(b, false, MKT_R_OPTIMIZER);
}

static int64_t stall(const struct build *b)
{
	int64_t ns = 0;
	for (int i = 0; b->run->faults && i < b->run->opt->n_faults; i++) {
		const struct mkt_fault *f = &b->run->opt->faults[i];
		if (f->kind == MKT_STALL && f->a == b->r->rank && f->at == b->run->step)
			ns += f->ns;
	}
	return ns;
}

enum lag_status mkt_program_fill(struct mkt_run *run, struct mkt_rank *r)
{
	const struct mkt_options *opt = run->opt;
	struct build b = { .run = run, .r = r, .mb = -1, .seq = 1 };
	int n_acts = 2 * opt->microbatches * opt->chunks;
	range(&b, true, MKT_R_STEP);
	if (opt->copies) {
		struct mkt_item *it = enqueue(&b, MKT_I_SET, MKT_S_COMPUTE, 0, 30000);
		if (it)
			it->bytes = opt->grad_bytes;
	}
	if (r->dp_comm >= 0 && !opt->grad_allreduce) {
		collective(&b, r->dp_comm, &r->dp_seq, LAG_FUNC_ALL_GATHER, MKT_S_DP,
			   opt->grad_bytes / 2 / opt->dp, opt->grad_ns / 2);
		order(&b, MKT_S_DP, MKT_S_COMPUTE);
	}
	r->host_ns += stall(&b);
	if (opt->batch_p2p)
		exchange(&b, -1, n_acts);
	for (int i = 0; i < n_acts; i++) {
		run_act(&b, act_at(opt, r->at.stage, i));
		if (opt->batch_p2p)
			exchange(&b, i, n_acts);
	}
	reduce_grads(&b);
	optimize(&b);
	struct mkt_item *it = call(&b, MKT_I_SYNC, 0, opt->launch_ns);
	if (it)
		it->stream = MKT_S_COMPUTE;
	range(&b, false, MKT_R_STEP);
	return b.failed ? LAG_ERR_SYSTEM : LAG_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A small event-driven pipeline: blocks start when their stage is free and their input is there, the
 * gradients are reduced when all replicas of a stage are done. Everything the model holds is derived
 * from those times, none of it from the code under test. */
#include "tests/tui/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tests/tui/fake_tables.h"

#define STAGES  4
#define DP      2
#define RANKS   8 /* STAGES * DP */
#define MICRO   8
#define STEPS   12
#define LAYERS  4
#define COMMS   10 /* a pair of stages each, and the replicas of a stage */
#define SLOW    5
#define XFER_NS 408000

enum {
	NAME_GEMM = 1,
	NAME_ATTN,
	NAME_NORM,
	NAME_ADAM,
	NAME_SEND_RECV,
	NAME_REDUCE_SCATTER,
	NAME_COPY,
	NAME_LIMIT
};

static const char *const names[NAME_LIMIT] = {
	"",
	"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
	"flash_fwd_kernel",
	"vectorized_layer_norm_kernel",
	"multi_tensor_apply_kernel",
	"ncclDevKernel_SendRecv",
	"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
	"Memcpy HtoD",
};

struct fake {
	struct lag_tui_data data;
	struct lag_trace trace;
	struct lag_roles roles;
	struct lag_steps steps;
	struct lag_waits waits;
	struct lag_pipeline pipeline;
	struct lag_ledger ledger;
	struct lag_peers peers;
	struct lag_stragglers stragglers;
	struct lag_straggler judged[RANKS];
	float step_ratio[STEPS * RANKS];
	struct lag_rank ranks[RANKS];
	struct lag_host hosts[STAGES];
	struct lag_lane lanes[RANKS * 3];
	struct lag_comm comms[COMMS];
	struct lag_rank_role rank_roles[RANKS];
	enum lag_comm_role comm_roles[COMMS];
	struct lag_step step[STEPS];
	struct lag_step_span spans[STEPS * RANKS];
	struct lag_pipe_group groups[DP];
	struct lag_pipe_window windows[STEPS * DP];
	int32_t rank_of_stage[DP][STAGES];
	int64_t by_step[STEPS * RANKS * LAG_TIME_LIMIT];
	size_t slice_first[RANKS + 1], block_first[RANKS + 1];
	const char *strings[NAME_LIMIT];
	struct lag_vec gpu, launches, ops, instances, instance_ops, wait, slices[RANKS],
		blocks[RANKS];
	struct lag_time_slice *all_slices;
	struct lag_block *all_blocks;
	struct fake_tables *tables;
	uint32_t seed;
};

static void *push(struct lag_vec *vec)
{
	void *item = lag_vec_push(vec);

	if (!item)
		abort();
	return item;
}

/* +-3 %, the same every time. */
static int64_t noisy(struct fake *fake, int64_t ns)
{
	fake->seed = fake->seed * 1664525u + 1013904223u;
	return ns + ns * (int64_t)(fake->seed >> 16) / 65536 * 6 / 100 - ns * 3 / 100;
}

/* launch: the communication that it lies in, -1. */
static void slice_in(struct fake *fake, int r, int64_t from, int64_t to, int class, int step,
		     int32_t launch)
{
	struct lag_time_slice *item;

	if (to <= from)
		return;
	item = push(&fake->slices[r]);
	*item = (struct lag_time_slice){ from, to, (uint8_t) class, launch };
	fake->by_step[(step * RANKS + r) * LAG_TIME_LIMIT + class] += to - from;
}

static void slice(struct fake *fake, int r, int64_t from, int64_t to, int class, int step)
{
	slice_in(fake, r, from, to, class, step, -1);
}

static size_t event(struct fake *fake, int r, int lane, int name, int64_t from, int64_t to)
{
	struct lag_gpu_event *item = push(&fake->gpu);

	*item = (struct lag_gpu_event){ .start_ns = from,
					.end_ns = to,
					.launch_start_ns = from - 30000,
					.launch_end_ns = from - 24000,
					.r = (uint32_t)r,
					.name = (uint32_t)name,
					.full = (uint32_t)name,
					.lane = (uint32_t)(r * 3 + lane),
					.launch = -1,
					.config = -1 };
	item->class = name == NAME_COPY ? LAG_CLASS_COPY
		      : lane            ? LAG_CLASS_COMM
					: LAG_CLASS_COMPUTE;
	item->kind = name == NAME_COPY ? LAG_GPU_COPY : LAG_GPU_KERNEL;
	item->bytes = name == NAME_COPY ? 4 << 20 : 0;
	return fake->gpu.n - 1;
}

/* One rank's part in a communication. */
struct part {
	int r;
	uint32_t comm;
	int func;
	int64_t from, to, arrival;
	int last;
};

/* A communication kernel with one operation, part of the last instance. Which gpu event it is, is
 * only known once they are sorted. */
static void launch(struct fake *fake, const struct part *part)
{
	struct lag_launch *item = push(&fake->launches);
	struct lag_op *op = push(&fake->ops);
	struct lag_wait *wait = push(&fake->wait);
	uint32_t *member = push(&fake->instance_ops);
	bool reduce = part->func == LAG_FUNC_REDUCE_SCATTER;

	*item = (struct lag_launch){ .start_ns = part->from,
				     .end_ns = part->to,
				     .r = (uint32_t)part->r,
				     .comm = part->comm,
				     .first_op = (uint32_t)fake->ops.n - 1,
				     .n_ops = 1,
				     .gpu = -1 };
	*op = (struct lag_op){ .enter_ns = part->from - 40000,
			       .leave_ns = part->from - 30000,
			       .seq = (int64_t)fake->instances.n - 1,
			       .bytes = 32 << 20,
			       .r = (uint32_t)part->r,
			       .comm = part->comm,
			       .launch = (int32_t)fake->launches.n - 1,
			       .instance = (int32_t)fake->instances.n - 1,
			       .peer = -1,
			       .func = (uint8_t)part->func };
	*wait = (struct lag_wait){ .wait_ns = part->arrival > part->from
						      ? part->arrival - part->from
						      : 0,
				   .transfer_ns = part->to - part->arrival,
				   .arrival_ns = part->arrival,
				   .last = part->last,
				   .uncertainty_ns = 6000 };
	*member = (uint32_t)fake->ops.n - 1;
	event(fake, part->r, reduce ? 2 : 1, reduce ? NAME_REDUCE_SCATTER : NAME_SEND_RECV,
	      part->from, part->to);
}

static struct lag_instance *instance(struct fake *fake, uint32_t comm, int func, int n)
{
	struct lag_instance *item = push(&fake->instances);

	*item = (struct lag_instance){ .seq = (int64_t)fake->instances.n - 1,
				       .bytes = 32 << 20,
				       .comm = comm,
				       .first = (uint32_t)fake->instance_ops.n,
				       .n = (uint32_t)n,
				       .n_members = n,
				       .last = -1,
				       .src = -1,
				       .dst = -1,
				       .func = (uint8_t)func,
				       .complete = true };
	return item;
}

/* What a stage does in 1F1B: >= 0 forward of that microbatch, < 0 backward of ~it. */
static void order(int stage, int plan[2 * MICRO])
{
	int n = 0, warm = STAGES - 1 - stage, f = 0, b = 0;

	while (f < warm)
		plan[n++] = f++;
	while (f < MICRO) {
		plan[n++] = f++;
		plan[n++] = ~b++;
	}
	while (b < MICRO)
		plan[n++] = ~b++;
}

/* A forward (what >= 0) or backward (of ~what) of one stage. */
static void compute(struct fake *fake, int r, int step, int64_t from, int64_t to, int what)
{
	struct lag_block *block = push(&fake->blocks[r]);
	int64_t part = (to - from) / LAYERS;

	*block = (struct lag_block){ .start_ns = from,
				     .end_ns = to,
				     .busy_ns = to - from,
				     .r = (uint32_t)r,
				     .step = step,
				     .microbatch = what < 0 ? ~what : what,
				     .kind = what < 0 };
	for (int i = 0; i < LAYERS; i++) {
		int64_t at = from + part * i, end = i + 1 < LAYERS ? at + part : to;

		event(fake, r, 0, NAME_GEMM, at, at + part * 7 / 10);
		event(fake, r, 0, what < 0 ? NAME_NORM : NAME_ATTN, at + part * 7 / 10, end);
	}
	slice(fake, r, from, to, LAG_TIME_COMPUTE, step);
}

/* One transfer between neighbours: the receiver waits from when it became free. */
static void transfer(struct fake *fake, int from_r, int to_r, int64_t ready, int64_t sent)
{
	int low = (from_r < to_r ? from_r : to_r) / DP;
	uint32_t comm = (uint32_t)(from_r % DP * (STAGES - 1) + low);
	struct lag_instance *item = instance(fake, comm, LAG_FUNC_SEND_RECV, 2);
	int64_t posted = ready < sent ? ready : sent, end = sent + XFER_NS;
	int last = posted < sent - 6000 ? from_r : -1;

	item->src = from_r;
	item->dst = to_r;
	item->last = last;
	item->first_start_ns = posted;
	item->last_start_ns = sent;
	item->last_end_ns = item->first_end_ns = end;
	launch(fake, &(struct part){ from_r, comm, LAG_FUNC_SEND, sent, end, sent, last });
	launch(fake, &(struct part){ to_r, comm, LAG_FUNC_RECV, posted, end, sent, last });
}

struct pipe {
	int step, dp;
	int64_t ends[2][STAGES][MICRO]; /* of forwards, of backwards */
	int64_t free_at[STAGES];
	int plan[STAGES][2 * MICRO], at[STAGES];
};

/* The next block of a stage, if its input is there. */
static bool advance(struct fake *fake, struct pipe *pipe, int s)
{
	int what, micro, other, r = s * DP + pipe->dp;
	int64_t cost, sent = 0, from = pipe->free_at[s];

	if (pipe->at[s] == 2 * MICRO)
		return false;
	what = pipe->plan[s][pipe->at[s]];
	micro = what < 0 ? ~what : what;
	other = what < 0 ? s + 1 : s - 1;
	if (what < 0 && !pipe->ends[0][s][micro])
		return false;
	if (other >= 0 && other < STAGES) {
		sent = pipe->ends[what < 0][other][micro];
		if (!sent)
			return false;
		transfer(fake, other * DP + pipe->dp, r, from, sent);
		from = sent + XFER_NS > from ? sent + XFER_NS : from;
	}
	cost = what < 0 ? 14000000 : 7000000;
	cost = noisy(fake, s == STAGES - 1 ? cost * 112 / 100 : cost);
	cost = r == SLOW ? cost * 13 / 10 : cost;
	/* The receive, where there was one. */
	slice_in(fake, r, pipe->free_at[s], from, LAG_TIME_BUBBLE, pipe->step,
		 sent ? (int32_t)fake->launches.n - 1 : -1);
	compute(fake, r, pipe->step, from, from + cost, what);
	pipe->ends[what < 0][s][micro] = pipe->free_at[s] = from + cost;
	pipe->at[s]++;
	return true;
}

/* One pipeline through one step; fills when each stage is done. */
static void run_pipeline(struct fake *fake, int step, int dp, int64_t begin, int64_t done[STAGES])
{
	struct pipe pipe = { .step = step, .dp = dp };
	bool moved = true;

	for (int s = 0; s < STAGES; s++) {
		order(s, pipe.plan[s]);
		pipe.free_at[s] = begin;
	}
	while (moved) {
		moved = false;
		for (int s = 0; s < STAGES; s++)
			moved = advance(fake, &pipe, s) || moved;
	}
	for (int s = 0; s < STAGES; s++)
		done[s] = pipe.free_at[s];
}

/* Gradients of one stage over its replicas, then the optimizer and a copy for the next batch. */
static int64_t finish_stage(struct fake *fake, int step, int s, const int64_t done[DP])
{
	uint32_t comm = (uint32_t)(DP * (STAGES - 1) + s);
	int last = done[1] > done[0];
	int64_t arrival = done[last], end = arrival + 3100000, stop = 0;
	struct lag_instance *item = instance(fake, comm, LAG_FUNC_REDUCE_SCATTER, DP);

	item->first_start_ns = done[!last];
	item->last_start_ns = arrival;
	item->first_end_ns = item->last_end_ns = end;
	item->last = s * DP + last;
	for (int dp = 0; dp < DP; dp++) {
		int r = s * DP + dp;
		int64_t adam = noisy(fake, 2400000);

		launch(fake, &(struct part){ r, comm, LAG_FUNC_REDUCE_SCATTER, done[dp], end,
					     arrival, s * DP + last });
		slice_in(fake, r, done[dp], arrival, LAG_TIME_EXPOSED_WAIT, step,
			 (int32_t)fake->launches.n - 1);
		slice(fake, r, arrival, end, LAG_TIME_EXPOSED_TRANSFER, step);
		event(fake, r, 0, NAME_ADAM, end, end + adam);
		slice(fake, r, end, end + adam, LAG_TIME_COMPUTE, step);
		event(fake, r, 0, NAME_COPY, end + adam, end + adam + 700000);
		slice(fake, r, end + adam, end + adam + 700000, LAG_TIME_COPY, step);
		stop = end + adam + 700000 > stop ? end + adam + 700000 : stop;
	}
	return stop;
}

static int64_t run_step(struct fake *fake, int step, int64_t begin)
{
	int64_t done[DP][STAGES], per_stage[DP], stop = 0, start = begin + 1800000;

	for (int dp = 0; dp < DP; dp++) {
		struct lag_pipe_window *window = &fake->windows[step * DP + dp];

		run_pipeline(fake, step, dp, start, done[dp]);
		*window = (struct lag_pipe_window){ start, done[dp][0] };
	}
	for (int s = 0; s < STAGES; s++) {
		int64_t end;

		for (int dp = 0; dp < DP; dp++)
			per_stage[dp] = done[dp][s];
		end = finish_stage(fake, step, s, per_stage);
		stop = end > stop ? end : stop;
	}
	fake->step[step] = (struct lag_step){ step, begin, stop, true };
	for (int r = 0; r < RANKS; r++) {
		struct lag_vec *slices = &fake->slices[r];
		struct lag_time_slice *tail =
			&LAG_VEC_AT(slices, struct lag_time_slice, slices->n - 1);

		slice(fake, r, tail->end_ns, stop, LAG_TIME_HOST, step);
		fake->spans[step * RANKS + r] =
			(struct lag_step_span){ begin, stop, begin, stop, 0, 0, false };
	}
	return stop;
}

/* The host prepares the step before anything runs. */
static void begin_step(struct fake *fake, int step, int64_t begin)
{
	for (int r = 0; r < RANKS; r++)
		slice(fake, r, begin, begin + 1800000, LAG_TIME_HOST, step);
}

static int compare_gpu(const void *a, const void *b)
{
	const struct lag_gpu_event *x = a, *y = b;

	if (x->r != y->r)
		return x->r < y->r ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->lane < y->lane ? -1 : x->lane > y->lane;
}

static int compare_instance(const void *a, const void *b)
{
	const struct lag_instance *x = a, *y = b;

	return x->last_start_ns < y->last_start_ns ? -1 : x->last_start_ns > y->last_start_ns;
}

/* Sorts what the model promises sorted, and joins launches with their kernels. */
static void arrange(struct fake *fake)
{
	struct lag_gpu_event *gpu = fake->gpu.items;
	struct lag_launch *launches = fake->launches.items;
	struct lag_instance *instances = fake->instances.items;

	qsort(gpu, fake->gpu.n, sizeof(*gpu), compare_gpu);
	for (size_t i = 0; i < fake->gpu.n; i++) {
		for (size_t l = 0; gpu[i].class == LAG_CLASS_COMM && l < fake->launches.n; l++) {
			if (launches[l].r == gpu[i].r && launches[l].gpu < 0 &&
			    launches[l].start_ns == gpu[i].start_ns &&
			    launches[l].end_ns == gpu[i].end_ns) {
				launches[l].gpu = (int32_t)i;
				gpu[i].launch = (int32_t)l;
				break;
			}
		}
		fake->ranks[gpu[i].r].gpu_end = i + 1;
	}
	for (int r = 1; r < RANKS; r++)
		fake->ranks[r].gpu_begin = fake->ranks[r - 1].gpu_end;
	qsort(instances, fake->instances.n, sizeof(*instances), compare_instance);
	for (size_t i = 0; i < fake->instances.n; i++) {
		for (uint32_t m = 0; m < instances[i].n; m++) {
			uint32_t op =
				LAG_VEC_AT(&fake->instance_ops, uint32_t, instances[i].first + m);

			LAG_VEC_AT(&fake->ops, struct lag_op, op).instance = (int32_t)i;
		}
	}
}

static void join(struct fake *fake)
{
	size_t n_slices = 0, n_blocks = 0;

	for (int r = 0; r < RANKS; r++) {
		fake->slice_first[r] = n_slices;
		fake->block_first[r] = n_blocks;
		n_slices += fake->slices[r].n;
		n_blocks += fake->blocks[r].n;
	}
	fake->slice_first[RANKS] = n_slices;
	fake->block_first[RANKS] = n_blocks;
	fake->all_slices = lag_calloc(n_slices, sizeof(*fake->all_slices));
	fake->all_blocks = lag_calloc(n_blocks, sizeof(*fake->all_blocks));
	if (!fake->all_slices || !fake->all_blocks)
		abort();
	for (int r = 0; r < RANKS; r++) {
		memcpy(fake->all_slices + fake->slice_first[r], fake->slices[r].items,
		       fake->slices[r].n * sizeof(struct lag_time_slice));
		memcpy(fake->all_blocks + fake->block_first[r], fake->blocks[r].items,
		       fake->blocks[r].n * sizeof(struct lag_block));
	}
}

static void describe_ranks(struct fake *fake)
{
	static const char *const hosts[STAGES] = { "node0", "node1", "node2", "node3" };

	for (int r = 0; r < RANKS; r++) {
		fake->ranks[r] = (struct lag_rank){ .rank = r,
						    .host = r / DP,
						    .recorded = true,
						    .device = r % DP,
						    .local_rank = r % DP,
						    .uncertainty_ns = 4000 + 300 * r,
						    .clean_exit = 1 };
		fake->rank_roles[r] = (struct lag_rank_role){ r / DP, r % DP, 0, r % DP };
		fake->rank_of_stage[r % DP][r / DP] = r;
		fake->lanes[r * 3] = (struct lag_lane){ (uint32_t)r, r % DP, 1, 7 };
		fake->lanes[r * 3 + 1] = (struct lag_lane){ (uint32_t)r, r % DP, 1, 20 };
		fake->lanes[r * 3 + 2] = (struct lag_lane){ (uint32_t)r, r % DP, 1, 24 };
	}
	for (int s = 0; s < STAGES; s++)
		fake->hosts[s].name = hosts[s];
	for (int c = 0; c < COMMS; c++) {
		bool pipe = c < DP * (STAGES - 1);

		fake->comms[c] = (struct lag_comm){ .hash = 0x4be1 + c,
						    .nccl_hash = 0x4be1 + c,
						    .n_ranks = 2,
						    .complete = true,
						    .name = pipe ? "pp" : "dp",
						    .description = "" };
		fake->comm_roles[c] = pipe ? LAG_ROLE_PIPELINE : LAG_ROLE_DATA;
	}
	for (int dp = 0; dp < DP; dp++) {
		fake->groups[dp] = (struct lag_pipe_group){ fake->rank_of_stage[dp], STAGES, 1,
							    MICRO, LAG_SCHEDULE_1F1B };
	}
}

static enum lag_status table(void *self, const char *name, const struct lag_table **out,
			     struct lag_err *err)
{
	struct fake *fake = self;

	*out = fake_tables_find(fake->tables, name);
	return *out ? LAG_OK : lag_err_set(err, LAG_ERR_USAGE, "no such analysis");
}

static void fill_models(struct fake *fake)
{
	fake->trace = (struct lag_trace){ .path = NULL,
					  .origin_ns = INT64_C(1764460800000000000),
					  .span_ns = fake->step[STEPS - 1].end_ns,
					  .ranks = fake->ranks,
					  .n_ranks = RANKS,
					  .hosts = fake->hosts,
					  .n_hosts = STAGES,
					  .gpu = fake->gpu.items,
					  .n_gpu = fake->gpu.n,
					  .lanes = fake->lanes,
					  .n_lanes = RANKS * 3,
					  .launches = fake->launches.items,
					  .n_launches = fake->launches.n,
					  .ops = fake->ops.items,
					  .n_ops = fake->ops.n,
					  .instances = fake->instances.items,
					  .n_instances = fake->instances.n,
					  .instance_ops = fake->instance_ops.items,
					  .comms = fake->comms,
					  .n_comms = COMMS,
					  .world_size = RANKS,
					  .strings = fake->strings,
					  .n_strings = NAME_LIMIT };
	lag_window_widen(&fake->trace);
	fake->roles = (struct lag_roles){ .comm_role = fake->comm_roles,
					  .ranks = fake->rank_roles,
					  .n_stages = STAGES,
					  .n_dp = DP,
					  .n_tp = 1,
					  .n_pipelines = DP,
					  .confidence = 1,
					  .shape = "PP 4 x DP 2",
					  .why = "made up" };
	fake->steps = (struct lag_steps){ .source = LAG_STEPS_RANGE,
					  .label = "made up",
					  .steps = fake->step,
					  .n_steps = STEPS,
					  .spans = fake->spans,
					  .n_ranks = RANKS };
	fake->waits = (struct lag_waits){ .launch = fake->wait.items, .n = fake->wait.n };
	fake->pipeline = (struct lag_pipeline){ .groups = fake->groups,
						.n_groups = DP,
						.blocks = fake->all_blocks,
						.n_blocks = fake->block_first[RANKS],
						.first_block = fake->block_first,
						.windows = fake->windows,
						.n_steps = STEPS,
						.how = "made up" };
	fake->ledger = (struct lag_ledger){ .slices = fake->all_slices,
					    .first = fake->slice_first,
					    .n_ranks = RANKS,
					    .by_step = fake->by_step,
					    .n_steps = STEPS };
	fake->data = (struct lag_tui_data){ .title = "run.db",
					    .trace = &fake->trace,
					    .roles = &fake->roles,
					    .steps = &fake->steps,
					    .waits = &fake->waits,
					    .pipeline = &fake->pipeline,
					    .ledger = &fake->ledger,
					    .peers = &fake->peers,
					    .stragglers = &fake->stragglers,
					    .self = fake,
					    .table = table };
}

/* With two replicas a rank's only peer is the other one. */
static void judge(struct fake *fake)
{
	for (int step = 0; step < STEPS; step++) {
		for (int r = 0; r < RANKS; r++) {
			const int64_t *row = &fake->by_step[step * RANKS * LAG_TIME_LIMIT];
			int peer = r ^ 1;

			fake->step_ratio[step * RANKS + r] =
				(float)((double)row[r * LAG_TIME_LIMIT] /
					(double)row[peer * LAG_TIME_LIMIT]);
		}
	}
	for (int r = 0; r < RANKS; r++) {
		fake->judged[r] = (struct lag_straggler){ .step_cost_ns = LAG_NONE,
							  .waiting_caused_ns = 0,
							  .steps_seen = STEPS,
							  .ratio = 1 };
	}
	fake->judged[SLOW] = (struct lag_straggler){ .verdict = LAG_VERDICT_CHRONIC,
						     .cause = LAG_CAUSE_GPU,
						     .step_cost_ns = 26700000,
						     .step_cost_share = 0.094,
						     .waiting_caused_ns = 320000000,
						     .steps_last = STEPS,
						     .steps_slow = STEPS,
						     .steps_seen = STEPS,
						     .ratio = 1.31 };
	fake->judged[0].verdict = LAG_VERDICT_ONE_OFF;
	fake->judged[0].cause = LAG_CAUSE_HOST;
	fake->judged[0].step_cost_ns = 310000;
	fake->judged[0].waiting_caused_ns = 3100000;
	fake->judged[0].steps_last = fake->judged[0].steps_slow = 1;
	fake->peers = (struct lag_peers){ .step_ratio = fake->step_ratio,
					  .n_ranks = RANKS,
					  .n_steps = STEPS };
	fake->stragglers = (struct lag_stragglers){
		.ranks = fake->judged, .n_ranks = RANKS, .step_ns = 291000000, .n_accused = 2
	};
}

struct fake *fake_new(void)
{
	struct fake *fake = lag_calloc(1, sizeof(*fake));
	int64_t now = 2000000;

	if (!fake)
		abort();
	fake->seed = 7;
	fake->gpu.item_size = sizeof(struct lag_gpu_event);
	fake->launches.item_size = sizeof(struct lag_launch);
	fake->ops.item_size = sizeof(struct lag_op);
	fake->instances.item_size = sizeof(struct lag_instance);
	fake->instance_ops.item_size = sizeof(uint32_t);
	fake->wait.item_size = sizeof(struct lag_wait);
	for (int r = 0; r < RANKS; r++) {
		fake->slices[r].item_size = sizeof(struct lag_time_slice);
		fake->blocks[r].item_size = sizeof(struct lag_block);
	}
	memcpy(fake->strings, names, sizeof(names));
	describe_ranks(fake);
	for (int step = 0; step < STEPS; step++) {
		begin_step(fake, step, now);
		now = run_step(fake, step, now);
	}
	arrange(fake);
	join(fake);
	judge(fake);
	fill_models(fake);
	fake->tables = fake_tables_new(&fake->data);
	return fake;
}

void fake_free(struct fake *fake)
{
	fake_tables_free(fake->tables);
	lag_vec_release(&fake->gpu);
	lag_vec_release(&fake->launches);
	lag_vec_release(&fake->ops);
	lag_vec_release(&fake->instances);
	lag_vec_release(&fake->instance_ops);
	lag_vec_release(&fake->wait);
	for (int r = 0; r < RANKS; r++) {
		lag_vec_release(&fake->slices[r]);
		lag_vec_release(&fake->blocks[r]);
	}
	free(fake->all_slices);
	free(fake->all_blocks);
	free(fake);
}

const struct lag_tui_data *fake_data(const struct fake *fake)
{
	return &fake->data;
}

void fake_rename_kernels(struct fake *fake, const char *name)
{
	for (int i = 1; i < NAME_LIMIT; i++)
		fake->strings[i] = name;
}

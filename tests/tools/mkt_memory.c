/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a lag_trace from the engine's items, in true time. */
#include "tests/tools/mkt_memory.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/map.h"
#include "schema/base/strtab.h"
#include "viz/model/trace_build.h"

enum {
	TID_MAIN = 1000,
	TID_AUTOGRAD = 1001
};

struct builder {
	const struct mkt_run *run;
	struct lag_trace *trace;
	struct lag_strtab *texts;
	struct lag_vec gpu, ranges, api, syncs, launches, ops, instances, members;
	struct lag_map instance_of; /* communicator, sequence, direction -> 1 + instance */
	uint64_t sync_id[MKT_N_STREAMS];
	int64_t correlation;
	bool failed;

	/* Where rows go once memory is exhausted. */
	union {
		struct lag_gpu_event gpu;
		struct lag_range range;
		struct lag_sync sync;
		struct lag_op op;
		struct lag_instance instance;
	} nowhere;
};

static void *push(struct builder *b, struct lag_vec *v)
{
	void *item = lag_vec_push(v);

	if (item)
		return item;
	b->failed = true;
	return &b->nowhere;
}

static uint32_t text(struct builder *b, const char *s)
{
	uint32_t id = lag_strtab_add(b->texts, s, strlen(s));

	b->failed = b->failed || id == LAG_STR_NONE;
	return id;
}

static bool missing(const struct mkt_options *opt, int rank)
{
	for (int i = 0; i < opt->n_faults; i++) {
		if (opt->faults[i].kind == MKT_MISSING && opt->faults[i].a == rank)
			return true;
	}
	return false;
}

static void add_api(struct builder *b, const struct mkt_item *it, int rank, const char *name)
{
	struct lag_api *api = push(b, &b->api);

	*api = (struct lag_api){ it->call_ns,    it->leave_ns,
				 b->correlation, it->backward ? TID_AUTOGRAD : TID_MAIN,
				 (uint32_t)rank, text(b, name) };
}

static size_t add_gpu(struct builder *b, const struct mkt_item *it, int rank, const char *name,
		      enum lag_gpu_kind kind, enum lag_class class)
{
	struct lag_gpu_event *g = push(b, &b->gpu);

	*g = (struct lag_gpu_event){ .start_ns = it->start_ns,
				     .end_ns = it->end_ns,
				     .launch_start_ns = it->call_ns,
				     .launch_end_ns = it->leave_ns,
				     .bytes = it->bytes,
				     .r = (uint32_t)rank,
				     .name = text(b, name),
				     .full = text(b, name),
				     .lane = (uint32_t)(rank * MKT_N_STREAMS + it->stream),
				     .launch = -1,
				     .config = -1,
				     .launch_tid = it->backward ? TID_AUTOGRAD : TID_MAIN,
				     .correlation = b->correlation,
				     .kind = (uint8_t)kind,
				     .class = (uint8_t) class };
	add_api(b, it, rank, "cudaLaunchKernel");
	return b->gpu.n - 1;
}

static int32_t instance(struct builder *b, uint32_t comm, int32_t seq, uint8_t func, int src,
			int dst, int n_members, int64_t bytes)
{
	uint64_t key = lag_hash_pair(lag_hash_pair(comm, (uint64_t)(int64_t)seq),
				     (uint64_t)(src * 100000L + dst));
	struct lag_instance *in;
	uint64_t at;

	if (lag_map_find(&b->instance_of, key, &at))
		return (int32_t)at - 1;
	in = push(b, &b->instances);
	*in = (struct lag_instance){ .seq = seq,
				     .bytes = bytes,
				     .first_start_ns = INT64_MAX,
				     .last_start_ns = LAG_NONE,
				     .first_end_ns = INT64_MAX,
				     .last_end_ns = LAG_NONE,
				     .comm = comm,
				     .n_members = n_members,
				     .last = -1,
				     .src = src,
				     .dst = dst,
				     .func = func };
	b->failed = b->failed || lag_failed(lag_map_set(&b->instance_of, key, b->instances.n));
	return (int32_t)b->instances.n - 1;
}

static void add_op(struct builder *b, const struct mkt_item *it, int rank, int dir)
{
	struct lag_op *op = push(b, &b->ops);
	struct lag_instance *in;
	bool pair = it->kind == MKT_I_P2P;
	const struct mkt_conn *conn = pair ? &b->run->conns[it->conn[dir]] : NULL;
	uint32_t comm = (uint32_t)(pair ? conn->comm : it->comm);

	*op = (struct lag_op){ .enter_ns = it->call_ns,
			       .leave_ns = it->leave_ns,
			       .seq = it->seq[dir],
			       .count = it->bytes / 4,
			       .bytes = it->bytes,
			       .r = (uint32_t)rank,
			       .comm = comm,
			       .launch = (int32_t)b->launches.n - 1,
			       .peer = !pair ? -1
				       : dir ? conn->src_in_comm
					     : conn->dst_in_comm,
			       .func = !pair ? it->name
				       : dir ? (uint8_t)LAG_FUNC_RECV
					     : (uint8_t)LAG_FUNC_SEND,
			       .datatype = LAG_DT_FLOAT32,
			       .sources = LAG_OP_FROM_CALL };
	op->instance = pair ? instance(b, comm, it->seq[dir], LAG_FUNC_SEND_RECV, conn->src,
				       conn->dst, 2, it->bytes)
			    : instance(b, comm, it->seq[0], it->name, -1, -1, b->run->comms[comm].n,
				       it->bytes);
	if (b->failed)
		return;
	in = &LAG_VEC_AT(&b->instances, struct lag_instance, op->instance);
	in->n++;
	if (it->start_ns > in->last_start_ns) {
		in->last_start_ns = it->start_ns;
		in->last = rank;
	}
	if (it->start_ns < in->first_start_ns)
		in->first_start_ns = it->start_ns;
	if (it->end_ns < in->first_end_ns)
		in->first_end_ns = it->end_ns;
	if (it->end_ns > in->last_end_ns)
		in->last_end_ns = it->end_ns;
}

static void add_communication(struct builder *b, const struct mkt_item *it, int rank)
{
	size_t gpu = add_gpu(b, it, rank,
			     it->kind == MKT_I_P2P ? "ncclDevKernel_SendRecv" : "ncclDevKernel_Sum",
			     LAG_GPU_KERNEL, LAG_CLASS_COMM);
	struct lag_launch *launch = push(b, &b->launches);
	int conn = it->conn[0] >= 0 ? it->conn[0] : it->conn[1];

	*launch = (struct lag_launch){
		.start_ns = it->start_ns,
		.end_ns = it->end_ns,
		.r = (uint32_t)rank,
		.comm = (uint32_t)(it->kind == MKT_I_P2P ? b->run->conns[conn].comm : it->comm),
		.gpu = (int32_t)gpu
	};
	if (!b->failed)
		LAG_VEC_AT(&b->gpu, struct lag_gpu_event, gpu).launch = (int32_t)b->launches.n - 1;
	for (int dir = 0; dir < 2; dir++) {
		if (it->kind == MKT_I_P2P ? it->conn[dir] >= 0 : dir == 0)
			add_op(b, it, rank, dir);
	}
}

static void add_sync(struct builder *b, const struct mkt_item *it, int rank)
{
	struct lag_sync *s = push(b, &b->syncs);
	int event = it->kind == MKT_I_WAIT ? it->name : it->stream;

	if (it->kind == MKT_I_RECORD)
		b->sync_id[event]++;
	*s = (struct lag_sync){ .start_ns = it->call_ns,
				.end_ns = it->leave_ns,
				.r = (uint32_t)rank,
				.kind = it->kind == MKT_I_RECORD ? LAG_SYNC_EVENT_RECORD
					: it->kind == MKT_I_WAIT ? LAG_SYNC_STREAM_WAIT
								 : LAG_SYNC_STREAM,
				.context = 1,
				.stream = it->stream,
				.event_id = it->kind == MKT_I_SYNC ? LAG_NONE : event,
				.sync_id = (int64_t)b->sync_id[event] * MKT_N_STREAMS + event,
				.correlation = b->correlation,
				.record_correlation = LAG_NONE };
	add_api(b, it, rank, it->kind == MKT_I_SYNC ? "cudaStreamSynchronize" : "cudaEventRecord");
}

static void open_range(struct builder *b, const struct mkt_item *it, int rank, struct lag_vec *open)
{
	static const char *const names[] = { "step", "forward mb", "backward mb", "optimizer" };
	struct lag_range *range = push(b, &b->ranges);
	size_t *slot = push(b, open);
	char name[48];

	if (it->name == MKT_R_OPTIMIZER) {
		snprintf(name, sizeof(name), "optimizer");
	} else {
		snprintf(name, sizeof(name), "%s %d", names[it->name],
			 it->name == MKT_R_STEP ? b->run->step : it->mb);
	}
	*range = (struct lag_range){ .start_ns = it->call_ns,
				     .end_ns = LAG_NONE,
				     .r = (uint32_t)rank,
				     .name = text(b, name),
				     .tid = TID_MAIN,
				     .depth = (int32_t)open->n - 1,
				     .kind = LAG_RANGE_PUSH };
	*slot = b->ranges.n - 1;
}

static void add_rank(struct builder *b, int rank)
{
	const struct mkt_rank *r = &b->run->ranks[rank];
	struct lag_vec open = LAG_VEC_INIT(size_t);
	char name[16];

	for (size_t i = 0; i < r->items.n && !b->failed; i++) {
		const struct mkt_item *it = mkt_item_at(r, (int32_t)i);

		b->correlation++;
		switch ((enum mkt_item_kind)it->kind) {
		case MKT_I_KERNEL:
			snprintf(name, sizeof(name), "kernel_%d", it->name);
			add_gpu(b, it, rank, name, LAG_GPU_KERNEL, LAG_CLASS_COMPUTE);
			break;
		case MKT_I_COPY:
		case MKT_I_SET:
			add_gpu(b, it, rank, "copy", LAG_GPU_COPY, LAG_CLASS_COPY);
			break;
		case MKT_I_COLL:
		case MKT_I_P2P:
			add_communication(b, it, rank);
			break;
		case MKT_I_RECORD:
		case MKT_I_WAIT:
		case MKT_I_SYNC:
			add_sync(b, it, rank);
			break;
		case MKT_I_PUSH:
			open_range(b, it, rank, &open);
			break;
		case MKT_I_POP:
			if (open.n) {
				LAG_VEC_AT(&b->ranges, struct lag_range,
					   LAG_VEC_AT(&open, size_t, --open.n))
					.end_ns = it->call_ns;
			}
			break;
		}
	}
	lag_vec_release(&open);
}

static bool set_up(struct builder *b, const struct mkt_options *opt)
{
	struct lag_trace *t = lag_calloc(1, sizeof(*t));
	int n = b->run->n_ranks;

	b->trace = t;
	b->texts = lag_calloc(1, sizeof(*b->texts));
	if (!t || !b->texts || lag_failed(lag_strtab_init(b->texts)))
		return false;
	t->memory = b->texts;
	t->world_size = n;
	t->n_ranks = (size_t)n;
	t->n_hosts = (size_t)b->run->n_hosts;
	t->n_lanes = (size_t)n * MKT_N_STREAMS;
	t->n_comms = (size_t)b->run->n_comms;
	t->ranks = lag_calloc(t->n_ranks, sizeof(*t->ranks));
	t->hosts = lag_calloc(t->n_hosts, sizeof(*t->hosts));
	t->lanes = lag_calloc(t->n_lanes, sizeof(*t->lanes));
	t->comms = lag_calloc(t->n_comms, sizeof(*t->comms));
	if (!t->ranks || !t->hosts || !t->lanes || !t->comms)
		return false;
	for (int r = 0; r < n; r++) {
		t->ranks[r] = (struct lag_rank){ .rank = r,
						 .host = b->run->ranks[r].host,
						 .recorded = !missing(opt, r),
						 .uncertainty_ns = 5000,
						 .clean_exit = 1 };
		for (int s = 0; s < MKT_N_STREAMS; s++)
			t->lanes[r * MKT_N_STREAMS + s] = (struct lag_lane){ (uint32_t)r, 0, 1, s };
	}
	for (size_t h = 0; h < t->n_hosts; h++)
		t->hosts[h].name = "node";
	for (int c = 0; c < b->run->n_comms; c++) {
		const struct mkt_comm *comm = &b->run->comms[c];
		struct lag_comm *out = &t->comms[c];

		*out = (struct lag_comm){ .hash = c + 1,
					  .nccl_hash = LAG_NONE,
					  .n_ranks = comm->n,
					  .first_member = (uint32_t)b->members.n,
					  .n_members = (uint32_t)comm->n,
					  .complete = true,
					  .name = "",
					  .description = "" };
		for (int i = 0; i < comm->n; i++) {
			struct lag_member *m = push(b, &b->members);
			bool recorded = t->ranks[comm->ranks[i]].recorded;

			*m = (struct lag_member){ i, comm->ranks[i], recorded };
			out->complete = out->complete && recorded;
		}
	}
	return !b->failed;
}

static enum lag_status finish(struct builder *b, struct lag_err *err)
{
	struct lag_trace *t = b->trace;

	t->gpu = b->gpu.items, t->n_gpu = b->gpu.n;
	t->ranges = b->ranges.items, t->n_ranges = b->ranges.n;
	t->api = b->api.items, t->n_api = b->api.n;
	t->syncs = b->syncs.items, t->n_syncs = b->syncs.n;
	t->launches = b->launches.items, t->n_launches = b->launches.n;
	t->ops = b->ops.items, t->n_ops = b->ops.n;
	t->instances = b->instances.items, t->n_instances = b->instances.n;
	t->members = b->members.items;
	lag_map_release(&b->instance_of);
	for (size_t i = 0; i < t->n_instances; i++) {
		struct lag_instance *in = &t->instances[i];

		in->complete = (int32_t)in->n == in->n_members;
		in->last = in->complete ? in->last : -1;
	}
	t->n_strings = lag_strtab_count(b->texts);
	t->strings = lag_calloc(t->n_strings, sizeof(*t->strings));
	if (b->failed || !t->strings)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	for (size_t i = 0; i < t->n_strings; i++)
		t->strings[i] = lag_strtab_get(b->texts, (uint32_t)i);
	return lag_trace_arrange(t, err);
}

enum lag_status mkt_memory_trace(const struct mkt_options *opt, bool faults, struct lag_trace **out,
				 int64_t *step_ns, struct lag_err *err)
{
	struct mkt_run run;
	struct builder b = { .run = &run,
			     .gpu = LAG_VEC_INIT(struct lag_gpu_event),
			     .ranges = LAG_VEC_INIT(struct lag_range),
			     .api = LAG_VEC_INIT(struct lag_api),
			     .syncs = LAG_VEC_INIT(struct lag_sync),
			     .launches = LAG_VEC_INIT(struct lag_launch),
			     .ops = LAG_VEC_INIT(struct lag_op),
			     .instances = LAG_VEC_INIT(struct lag_instance),
			     .members = LAG_VEC_INIT(struct lag_member) };
	enum lag_status status = mkt_run_init(&run, opt, faults, err);
	int64_t last = 0;

	if (!lag_failed(status) && !set_up(&b, opt))
		status = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	for (int s = 0; s < opt->steps && !lag_failed(status); s++) {
		status = mkt_run_step(&run, err);
		for (int r = 0; r < run.n_ranks && !lag_failed(status); r++) {
			last = run.ranks[r].host_ns > last ? run.ranks[r].host_ns : last;
			if (b.trace->ranks[r].recorded)
				add_rank(&b, r);
		}
	}
	if (!lag_failed(status))
		status = finish(&b, err);
	mkt_run_release(&run);
	*out = b.trace;
	if (step_ns)
		*step_ns = last / opt->steps;
	return status;
}

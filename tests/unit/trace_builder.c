/* SPDX-License-Identifier: Apache-2.0 */
/* In-memory traces for tests. Operations are matched by communicator and sequence number, sends and
 * receives by communicator, source, destination and sequence number. */
#include "tests/unit/trace_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/model/trace_build.h"

#define STREAM_COMM 20 /* where communication kernels run */

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "trace builder: %s\n", what);
	abort();
}

static void *push(struct lag_vec *vec)
{
	void *item = lag_vec_push(vec);

	need(item != NULL, "no memory");
	return item;
}

static uint32_t text(struct trace_builder *tb, const char *s)
{
	uint32_t id = lag_strtab_add(tb->texts, s, strlen(s));

	need(id != LAG_STR_NONE, "no memory");
	return id;
}

void tb_init(struct trace_builder *tb, int n_ranks, int per_host)
{
	char name[32];

	*tb = (struct trace_builder){
		.trace = lag_calloc(1, sizeof(struct lag_trace)),
		.texts = lag_calloc(1, sizeof(struct lag_strtab)),
		.gpu = LAG_VEC_INIT(struct lag_gpu_event),
		.lanes = LAG_VEC_INIT(struct lag_lane),
		.ranges = LAG_VEC_INIT(struct lag_range),
		.api = LAG_VEC_INIT(struct lag_api),
		.syncs = LAG_VEC_INIT(struct lag_sync),
		.launches = LAG_VEC_INIT(struct lag_launch),
		.ops = LAG_VEC_INIT(struct lag_op),
		.comms = LAG_VEC_INIT(struct lag_comm),
		.members = LAG_VEC_INIT(struct lag_member),
		.next_correlation = 1,
	};
	need(tb->trace && tb->texts && n_ranks > 0 && per_host > 0, "no memory");
	need(lag_strtab_init(tb->texts) == LAG_OK, "no memory");
	tb->trace->memory = tb->texts;
	tb->trace->world_size = n_ranks;
	tb->trace->n_ranks = (size_t)n_ranks;
	tb->trace->n_hosts = (size_t)((n_ranks + per_host - 1) / per_host);
	tb->trace->ranks = lag_calloc((size_t)n_ranks, sizeof(struct lag_rank));
	tb->trace->hosts = lag_calloc(tb->trace->n_hosts, sizeof(struct lag_host));
	need(tb->trace->ranks && tb->trace->hosts, "no memory");
	for (int r = 0; r < n_ranks; r++) {
		tb->trace->ranks[r] = (struct lag_rank){ .rank = r,
							 .host = r / per_host,
							 .recorded = true,
							 .device = r % per_host,
							 .local_rank = r % per_host,
							 .started_ns = 0,
							 .clean_exit = 1 };
	}
	for (size_t h = 0; h < tb->trace->n_hosts; h++) {
		(void)snprintf(name, sizeof(name), "node%zu", h);
		tb->trace->hosts[h].name = lag_strtab_get(tb->texts, text(tb, name));
	}
}

void tb_missing(struct trace_builder *tb, int rank)
{
	tb->trace->ranks[rank].recorded = false;
	tb->trace->ranks[rank].host = -1;
}

static uint32_t lane(struct trace_builder *tb, int rank, int64_t stream)
{
	struct lag_lane *made;

	for (size_t i = 0; i < tb->lanes.n; i++) {
		made = &LAG_VEC_AT(&tb->lanes, struct lag_lane, i);
		if (made->r == (uint32_t)rank && made->stream == stream)
			return (uint32_t)i;
	}
	made = push(&tb->lanes);
	*made = (struct lag_lane){ (uint32_t)rank, tb->trace->ranks[rank].device, 1, stream };
	return (uint32_t)(tb->lanes.n - 1);
}

static size_t add_gpu(struct trace_builder *tb, int rank, int64_t stream, const char *name,
		      int64_t start_ns, int64_t end_ns, uint8_t kind, uint8_t class)
{
	struct lag_gpu_event *ev = push(&tb->gpu);

	*ev = (struct lag_gpu_event){ .start_ns = start_ns,
				      .end_ns = end_ns,
				      .launch_start_ns = LAG_NONE,
				      .launch_end_ns = LAG_NONE,
				      .bytes = LAG_NONE,
				      .r = (uint32_t)rank,
				      .name = text(tb, name),
				      .full = text(tb, name),
				      .launch = -1,
				      .config = -1,
				      .correlation = tb->next_correlation++,
				      .kind = kind,
				      .class = class };
	ev->lane = lane(tb, rank, stream);
	return tb->gpu.n - 1;
}

size_t tb_kernel(struct trace_builder *tb, int rank, int64_t stream, const char *name,
		 int64_t start_ns, int64_t end_ns)
{
	return add_gpu(tb, rank, stream, name, start_ns, end_ns, LAG_GPU_KERNEL, LAG_CLASS_COMPUTE);
}

size_t tb_copy(struct trace_builder *tb, int rank, int64_t stream, int64_t bytes, int64_t start_ns,
	       int64_t end_ns)
{
	size_t at = add_gpu(tb, rank, stream, "copy HtoD", start_ns, end_ns, LAG_GPU_COPY,
			    LAG_CLASS_COPY);

	LAG_VEC_AT(&tb->gpu, struct lag_gpu_event, at).bytes = bytes;
	return at;
}

void tb_launched(struct trace_builder *tb, size_t gpu, uint64_t tid, int64_t start_ns,
		 int64_t end_ns)
{
	struct lag_gpu_event *ev = &LAG_VEC_AT(&tb->gpu, struct lag_gpu_event, gpu);
	struct lag_api *api = push(&tb->api);

	ev->launch_start_ns = start_ns;
	ev->launch_end_ns = end_ns;
	ev->launch_tid = tid;
	*api = (struct lag_api){ start_ns, end_ns, ev->correlation,
				 tid,      ev->r,  text(tb, "cudaLaunchKernel") };
}

void tb_api(struct trace_builder *tb, int rank, uint64_t tid, const char *name, int64_t start_ns,
	    int64_t end_ns)
{
	struct lag_api *api = push(&tb->api);

	*api = (struct lag_api){ start_ns, end_ns,         tb->next_correlation++,
				 tid,      (uint32_t)rank, text(tb, name) };
}

void tb_range(struct trace_builder *tb, int rank, uint64_t tid, const char *name, int64_t start_ns,
	      int64_t end_ns)
{
	struct lag_range *range = push(&tb->ranges);

	*range = (struct lag_range){ .start_ns = start_ns,
				     .end_ns = end_ns,
				     .r = (uint32_t)rank,
				     .name = text(tb, name),
				     .tid = tid,
				     .kind = LAG_RANGE_PUSH };
}

uint32_t tb_comm(struct trace_builder *tb, const char *name, const int *ranks, int n)
{
	struct lag_comm *comm = push(&tb->comms);

	*comm = (struct lag_comm){ .hash = (int64_t)tb->comms.n,
				   .nccl_hash = LAG_NONE,
				   .n_ranks = n,
				   .first_member = (uint32_t)tb->members.n,
				   .n_members = (uint32_t)n,
				   .complete = true,
				   .name = lag_strtab_get(tb->texts, text(tb, name)),
				   .description = "" };
	for (int i = 0; i < n; i++) {
		struct lag_member *member = push(&tb->members);
		bool recorded = tb->trace->ranks[ranks[i]].recorded;

		*member = (struct lag_member){ i, ranks[i], recorded };
		comm->complete = comm->complete && recorded;
	}
	return (uint32_t)(tb->comms.n - 1);
}

int32_t tb_op(struct trace_builder *tb, uint32_t comm, int rank, enum lag_func func, int64_t seq,
	      int32_t peer, int64_t bytes, int64_t start_ns, int64_t end_ns)
{
	char name[64];
	struct lag_launch *launch;
	size_t gpu;

	(void)snprintf(name, sizeof(name), "ncclDevKernel_%s", lag_func_name(func));
	gpu = add_gpu(tb, rank, STREAM_COMM, name, start_ns, end_ns, LAG_GPU_KERNEL,
		      LAG_CLASS_COMM);
	launch = push(&tb->launches);
	*launch = (struct lag_launch){ .start_ns = start_ns,
				       .end_ns = end_ns,
				       .r = (uint32_t)rank,
				       .comm = comm,
				       .gpu = (int32_t)gpu };
	LAG_VEC_AT(&tb->gpu, struct lag_gpu_event, gpu).launch = (int32_t)(tb->launches.n - 1);
	tb_op_more(tb, (int32_t)(tb->launches.n - 1), func, seq, peer, bytes);
	return (int32_t)(tb->launches.n - 1);
}

void tb_op_more(struct trace_builder *tb, int32_t launch, enum lag_func func, int64_t seq,
		int32_t peer, int64_t bytes)
{
	const struct lag_launch *of = &LAG_VEC_AT(&tb->launches, struct lag_launch, launch);
	struct lag_op *op = push(&tb->ops);

	*op = (struct lag_op){ .enter_ns = of->start_ns,
			       .leave_ns = of->start_ns,
			       .seq = seq,
			       .count = bytes / 4,
			       .bytes = bytes,
			       .r = of->r,
			       .comm = of->comm,
			       .launch = launch,
			       .instance = -1,
			       .peer = peer,
			       .func = (uint8_t)func,
			       .datatype = LAG_DT_FLOAT32,
			       .sources = LAG_OP_FROM_CALL };
}

void tb_uncertainty(struct trace_builder *tb, int64_t ns)
{
	for (size_t r = 0; r < tb->trace->n_ranks; r++)
		tb->trace->ranks[r].uncertainty_ns = ns;
}

static int32_t comm_rank(const struct lag_trace *t, uint32_t comm, uint32_t r)
{
	for (uint32_t m = 0; m < t->comms[comm].n_members; m++) {
		if (t->members[t->comms[comm].first_member + m].r == (int32_t)r)
			return t->members[t->comms[comm].first_member + m].comm_rank;
	}
	need(false, "rank is no member of the communicator");
	return -1;
}

/* What makes two operations one instance: communicator, sequence, and for pairs who sends to whom. */
struct match {
	int32_t src, dst; /* communicator ranks, -1 */
};

static struct match match_of(const struct lag_trace *t, const struct lag_op *op)
{
	if (op->func == LAG_FUNC_SEND)
		return (struct match){ comm_rank(t, op->comm, op->r), op->peer };
	if (op->func == LAG_FUNC_RECV)
		return (struct match){ op->peer, comm_rank(t, op->comm, op->r) };
	return (struct match){ -1, -1 };
}

static int32_t find_instance(struct lag_trace *t, struct lag_vec *made, const struct lag_op *op)
{
	struct match match = match_of(t, op);
	const struct lag_comm *comm = &t->comms[op->comm];
	struct lag_instance *in;
	int32_t src = match.src < 0 ? -1 : t->members[comm->first_member + (uint32_t)match.src].r;
	int32_t dst = match.dst < 0 ? -1 : t->members[comm->first_member + (uint32_t)match.dst].r;

	for (size_t i = 0; i < made->n; i++) {
		in = &LAG_VEC_AT(made, struct lag_instance, i);
		if (in->comm == op->comm && in->seq == op->seq && in->src == src && in->dst == dst)
			return (int32_t)i;
	}
	in = push(made);
	*in = (struct lag_instance){ .seq = op->seq,
				     .bytes = op->bytes,
				     .first_start_ns = INT64_MAX,
				     .last_start_ns = LAG_NONE,
				     .first_end_ns = INT64_MAX,
				     .last_end_ns = LAG_NONE,
				     .comm = op->comm,
				     .n_members = src < 0 ? comm->n_ranks : 2,
				     .last = -1,
				     .src = src,
				     .dst = dst,
				     .func = src < 0 ? op->func : (uint8_t)LAG_FUNC_SEND_RECV };
	return (int32_t)made->n - 1;
}

static void match_ops(struct lag_trace *t, struct lag_vec *made)
{
	for (size_t i = 0; i < t->n_ops; i++) {
		struct lag_op *op = &t->ops[i];
		const struct lag_launch *launch = &t->launches[op->launch];
		struct lag_instance *in;

		op->instance = find_instance(t, made, op);
		in = &LAG_VEC_AT(made, struct lag_instance, op->instance);
		for (size_t k = 0; k < t->n_ops; k++)
			in->flags |= k != i && t->ops[k].launch == op->launch ? 4 : 0;
		in->n++;
		if (launch->start_ns < in->first_start_ns)
			in->first_start_ns = launch->start_ns;
		if (launch->start_ns > in->last_start_ns) {
			in->lead_ns = in->last_start_ns == LAG_NONE
					      ? 0
					      : launch->start_ns - in->last_start_ns;
			in->last_start_ns = launch->start_ns;
			in->last = (int32_t)op->r;
		}
		if (launch->end_ns < in->first_end_ns)
			in->first_end_ns = launch->end_ns;
		if (launch->end_ns > in->last_end_ns)
			in->last_end_ns = launch->end_ns;
	}
	for (size_t i = 0; i < made->n; i++) {
		struct lag_instance *in = &LAG_VEC_AT(made, struct lag_instance, i);

		/* The earliest end is unknown where any member did not end. */
		in->complete = (int32_t)in->n == in->n_members && in->first_end_ns != LAG_NONE;
		if (!in->complete)
			in->last = -1;
	}
}

struct lag_trace *tb_finish(struct trace_builder *tb)
{
	struct lag_trace *t = tb->trace;
	struct lag_vec instances = LAG_VEC_INIT(struct lag_instance);
	struct lag_err err;

	t->gpu = tb->gpu.items, t->n_gpu = tb->gpu.n;
	t->lanes = tb->lanes.items, t->n_lanes = tb->lanes.n;
	t->ranges = tb->ranges.items, t->n_ranges = tb->ranges.n;
	t->api = tb->api.items, t->n_api = tb->api.n;
	t->syncs = tb->syncs.items, t->n_syncs = tb->syncs.n;
	t->launches = tb->launches.items, t->n_launches = tb->launches.n;
	t->ops = tb->ops.items, t->n_ops = tb->ops.n;
	t->comms = tb->comms.items, t->n_comms = tb->comms.n;
	t->members = tb->members.items;
	match_ops(t, &instances);
	t->instances = instances.items, t->n_instances = instances.n;
	t->n_strings = lag_strtab_count(tb->texts);
	t->strings = lag_calloc(t->n_strings, sizeof(*t->strings));
	need(t->strings != NULL, "no memory");
	for (size_t i = 0; i < t->n_strings; i++)
		t->strings[i] = lag_strtab_get(tb->texts, (uint32_t)i);
	need(lag_trace_arrange(t, &err) == LAG_OK, "cannot arrange");
	*tb = (struct trace_builder){ 0 };
	return t;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of a rank: annotations, NCCL calls and CUDA calls, each on lanes of their thread. */
#include <stdlib.h>
#include <string.h>

#include "viz/export/chrome.h"

static bool host_wanted(const struct lag_chrome *c, int64_t start, int64_t end)
{
	return lag_chrome_in_time(c, start, end) && lag_chrome_in_steps(c, start, end);
}

static const char *range_cat(uint8_t kind)
{
	return kind == LAG_RANGE_GPU      ? "gpu_user_annotation"
	       : kind == LAG_RANGE_CPU_OP ? "cpu_op"
					  : "user_annotation";
}

static void write_range(struct lag_chrome *c, const struct lag_range *e)
{
	int64_t end = lag_chrome_end(c, e->start_ns, e->end_ns);
	const char *domain = lag_trace_text(c->trace, e->domain);
	const char *category = lag_trace_text(c->trace, e->category);
	enum lag_chrome_track_kind kind =
		e->kind == LAG_RANGE_GPU ? LAG_CT_GPU_RANGES : LAG_CT_RANGES;
	uint32_t tid;

	if (e->kind == LAG_RANGE_MARK)
		end = e->start_ns;
	if (!host_wanted(c, e->start_ns, end))
		return;
	tid = lag_chrome_place(c, e->r, kind, (int64_t)e->tid, e->start_ns, end);
	if (!lag_chrome_begin_named(c, range_cat(e->kind), e->name, e->r, tid, e->start_ns, end,
				    domain[0] ? strlen(domain) + 12 : 0))
		return;
	if (domain[0])
		lag_chrome_arg_string(c, "domain", e->domain);
	if (category[0])
		lag_chrome_arg_string(c, "category", e->category);
	if (e->flags & 1)
		lag_chrome_arg_text(c, "state", "never closed");
	lag_chrome_end_event(c);
}

static int64_t api_start(const struct lag_chrome *c, size_t i)
{
	return c->trace->api[i].start_ns;
}

static int64_t api_end(const struct lag_chrome *c, size_t i)
{
	return lag_chrome_end(c, c->trace->api[i].start_ns, c->trace->api[i].end_ns);
}

static void write_api(struct lag_chrome *c, size_t i)
{
	const struct lag_api *e = &c->trace->api[i];
	const char *name = lag_trace_text(c->trace, e->name);
	bool driver = name[0] == 'c' && name[1] == 'u' && strncmp(name, "cuda", 4) != 0;
	int64_t end = api_end(c, i);
	uint32_t tid;

	if (!host_wanted(c, e->start_ns, end))
		return;
	tid = lag_chrome_place(c, e->r, LAG_CT_API, (int64_t)e->tid, e->start_ns, end);
	c->api_tid[i - c->trace->ranks[e->r].api_begin] = tid;
	if (!lag_chrome_begin_named(c, driver ? "cuda_driver" : "cuda_runtime", e->name, e->r, tid,
				    e->start_ns, end, 22))
		return;
	if (e->correlation != LAG_NONE)
		lag_chrome_arg_int(c, "correlation", e->correlation);
	lag_chrome_end_event(c);
}

static void write_apis(struct lag_chrome *c, uint32_t r)
{
	/* Calls nest (the runtime calls the driver): the outer one first. */
	static const struct lag_chrome_order order = { api_start, api_end, write_api, true };
	const struct lag_rank *rank = &c->trace->ranks[r];

	c->api_tid = lag_calloc(rank->api_end - rank->api_begin, sizeof(*c->api_tid));
	if (!c->api_tid) {
		lag_chrome_fail(c, lag_err_set(c->err, LAG_ERR_SYSTEM, "no memory"));
	} else {
		lag_chrome_in_order(c, &order, rank->api_begin, rank->api_end);
	}
}

static const char *call_name(uint8_t func)
{
	static const char *const names[LAG_FUNC_LIMIT] = {
		[LAG_FUNC_ALL_REDUCE] = "ncclAllReduce",
		[LAG_FUNC_ALL_GATHER] = "ncclAllGather",
		[LAG_FUNC_REDUCE_SCATTER] = "ncclReduceScatter",
		[LAG_FUNC_BROADCAST] = "ncclBroadcast",
		[LAG_FUNC_REDUCE] = "ncclReduce",
		[LAG_FUNC_ALL_TO_ALL] = "ncclAlltoAll",
		[LAG_FUNC_GATHER] = "ncclGather",
		[LAG_FUNC_SCATTER] = "ncclScatter",
		[LAG_FUNC_SEND] = "ncclSend",
		[LAG_FUNC_RECV] = "ncclRecv",
	};

	return func < LAG_FUNC_LIMIT && names[func] ? names[func] : "NCCL call";
}

struct call {
	int64_t start_ns, end_ns;
	uint32_t op;
};

static int by_start(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static void write_call(struct lag_chrome *c, const struct call *call)
{
	const struct lag_op *op = &c->trace->ops[call->op];
	uint32_t tid =
		lag_chrome_place(c, op->r, LAG_CT_NCCL_CALLS, 0, call->start_ns, call->end_ns);

	if (!lag_chrome_begin(c, "nccl_call", call_name(op->func), op->r, tid, call->start_ns,
			      call->end_ns, 110))
		return;
	lag_chrome_args_of(c, LAG_CX_CALL, op->comm);
	lag_chrome_arg_int(c, "Seq", op->seq);
	lag_chrome_arg_int(c, "count", op->count);
	lag_chrome_arg_int(c, "bytes", op->bytes);
	if (op->peer >= 0)
		lag_chrome_arg_int(c, "peer", op->peer);
	if (op->launch < 0 || c->trace->launches[op->launch].start_ns == LAG_NONE)
		lag_chrome_arg_text(c, "state", "its kernel is not on record");
	lag_chrome_end_event(c);
}

/* Calls as recorded where the program made them; what only a kernel's name or metadata told has its
 * launch call already. */
static void write_calls(struct lag_chrome *c, uint32_t r)
{
	const struct lag_rank *rank = &c->trace->ranks[r];
	struct lag_vec calls = LAG_VEC_INIT(struct call);

	for (size_t i = rank->op_begin; i < rank->op_end; i++) {
		const struct lag_op *op = &c->trace->ops[i];
		int64_t end = op->leave_ns == LAG_NONE ? op->enter_ns : op->leave_ns;
		struct call *call;

		if (!(op->sources & (LAG_OP_FROM_CALL | LAG_OP_FROM_NVTX | LAG_OP_FROM_PLUGIN)) ||
		    !host_wanted(c, op->enter_ns, end))
			continue;
		call = lag_vec_push(&calls);
		if (!call) {
			lag_chrome_fail(c, lag_err_set(c->err, LAG_ERR_SYSTEM, "no memory"));
			break;
		}
		*call = (struct call){ op->enter_ns, end, (uint32_t)i };
	}
	if (calls.n)
		qsort(calls.items, calls.n, sizeof(struct call), by_start);
	for (size_t i = 0; i < calls.n && !lag_failed(c->status); i++)
		write_call(c, &LAG_VEC_AT(&calls, struct call, i));
	lag_vec_release(&calls);
}

/* Records of events and waits for them, which tie streams and host together: with Kineto's names, and
 * with what it leaves out, so that a trace read back has them. */
static void write_sync(struct lag_chrome *c, const struct lag_sync *e)
{
	static const char *const names[] = { [LAG_SYNC_EVENT_RECORD] = "Event Record",
					     [LAG_SYNC_STREAM_WAIT] = "Stream Wait Event",
					     [LAG_SYNC_EVENT] = "Event Sync",
					     [LAG_SYNC_STREAM] = "Stream Sync",
					     [LAG_SYNC_CONTEXT] = "Context Sync" };

	const struct {
		const char *key;
		int64_t value;
	} args[] = { { "context", e->context },
		     { "stream", e->stream },
		     { "correlation", e->correlation },
		     { "wait_on_cuda_event_id", e->event_id },
		     { "wait_on_cuda_event_record_corr_id", e->record_correlation },
		     { "sync id", e->sync_id } };

	bool record = e->kind == LAG_SYNC_EVENT_RECORD;
	int64_t end = lag_chrome_end(c, e->start_ns, e->end_ns);
	uint32_t tid;

	if (e->kind < LAG_SYNC_EVENT_RECORD || e->kind > LAG_SYNC_CONTEXT ||
	    !host_wanted(c, e->start_ns, end))
		return;
	tid = lag_chrome_place(c, e->r, LAG_CT_SYNCS, 0, e->start_ns, end);
	if (!lag_chrome_begin(c, record ? "cuda_event" : "cuda_sync", names[e->kind], e->r, tid,
			      e->start_ns, end, 150))
		return;
	if (!record)
		lag_chrome_arg_text(c, "cuda_sync_kind", names[e->kind]);
	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
		if (args[i].value != LAG_NONE)
			lag_chrome_arg_int(c, args[i].key, args[i].value);
	}
	lag_chrome_end_event(c);
}

void lag_chrome_host(struct lag_chrome *c, uint32_t r)
{
	const struct lag_rank *rank = &c->trace->ranks[r];

	if (lag_chrome_wants(c, LAG_EXPORT_NVTX)) {
		for (size_t i = rank->range_begin; i < rank->range_end && !lag_failed(c->status);
		     i++)
			write_range(c, &c->trace->ranges[i]);
	}
	if (lag_chrome_wants(c, LAG_EXPORT_NCCL))
		write_calls(c, r);
	if (!lag_chrome_wants(c, LAG_EXPORT_API))
		return;
	write_apis(c, r);
	for (size_t i = rank->sync_begin; i < rank->sync_end && !lag_failed(c->status); i++)
		write_sync(c, &c->trace->syncs[i]);
}

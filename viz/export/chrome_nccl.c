/* SPDX-License-Identifier: Apache-2.0 */
/* A communication kernel's arguments, named as Kineto names them so that its readers find them, then
 * what only a merged trace can tell: who was waited for, and how long. */
#include <stdio.h>

#include "viz/export/chrome.h"
#include "viz/model/comm_text.h"

#define RANKS_LISTED 32

static const char *kineto_func(uint8_t func)
{
	static const char *const names[LAG_FUNC_LIMIT] = {
		[LAG_FUNC_ALL_REDUCE] = "allreduce",
		[LAG_FUNC_ALL_GATHER] = "allgather",
		[LAG_FUNC_REDUCE_SCATTER] = "reduce_scatter",
		[LAG_FUNC_BROADCAST] = "broadcast",
		[LAG_FUNC_REDUCE] = "reduce",
		[LAG_FUNC_ALL_TO_ALL] = "all_to_all",
		[LAG_FUNC_GATHER] = "gather",
		[LAG_FUNC_SCATTER] = "scatter",
		[LAG_FUNC_SEND] = "send",
		[LAG_FUNC_RECV] = "recv",
		[LAG_FUNC_SEND_RECV] = "sendrecv",
		[LAG_FUNC_BARRIER] = "barrier",
	};

	return func < LAG_FUNC_LIMIT && names[func] ? names[func] : "unknown";
}

static const char *kineto_dtype(uint8_t datatype)
{
	static const char *const names[LAG_DT_LIMIT] = {
		[LAG_DT_INT8] = "Char",
		[LAG_DT_UINT8] = "Byte",
		[LAG_DT_INT32] = "Int",
		[LAG_DT_UINT32] = "UInt32",
		[LAG_DT_INT64] = "Long",
		[LAG_DT_UINT64] = "UInt64",
		[LAG_DT_FLOAT16] = "Half",
		[LAG_DT_FLOAT32] = "Float",
		[LAG_DT_FLOAT64] = "Double",
		[LAG_DT_BFLOAT16] = "BFloat16",
		[LAG_DT_FLOAT8_E4M3] = "Float8_e4m3fn",
		[LAG_DT_FLOAT8_E5M2] = "Float8_e5m2",
	};

	return datatype < LAG_DT_LIMIT ? names[datatype] : NULL;
}

/* Elements that go in and come out on one rank, from the call's own count. */
static void element_args(struct lag_chrome *c, const struct lag_op *op, int32_t n_ranks)
{
	int64_t in = op->count, out = op->count, all;

	if (op->count == LAG_NONE)
		return;
	if (op->func == LAG_FUNC_ALL_GATHER || op->func == LAG_FUNC_REDUCE_SCATTER ||
	    op->func == LAG_FUNC_ALL_TO_ALL) {
		if (n_ranks <= 0 || __builtin_mul_overflow(op->count, n_ranks, &all))
			return;
		if (op->func != LAG_FUNC_ALL_GATHER)
			in = all;
		if (op->func != LAG_FUNC_REDUCE_SCATTER)
			out = all;
	}
	lag_chrome_arg_int(c, "In msg nelems", in);
	lag_chrome_arg_int(c, "Out msg nelems", out);
}

/* The job ranks of a communicator as a text, as Kineto has it: "[0, 1]". */
static void ranks_arg(struct lag_chrome *c, const struct lag_comm *comm)
{
	struct lag_buf text = { 0 };

	if (!comm->n_members)
		return;
	lag_buf_putc(&text, '[');
	for (uint32_t i = 0; i < comm->n_members && i < RANKS_LISTED; i++) {
		int32_t r = c->trace->members[comm->first_member + i].r;

		lag_buf_puts(&text, i ? ", " : "");
		if (r >= 0) {
			lag_buf_printf(&text, "%lld", (long long)c->trace->ranks[r].rank);
		} else {
			lag_buf_putc(&text, '?');
		}
	}
	lag_buf_puts(&text, comm->n_members > RANKS_LISTED ? ", ...]" : "]");
	if (!text.failed)
		lag_chrome_arg_text(c, "Process Group Ranks", text.text);
	lag_buf_release(&text);
}

static void peer_arg(struct lag_chrome *c, const struct lag_op *op)
{
	int32_t r = op->peer < 0 ? -1 : lag_trace_find_peer(c->trace, op->comm, op->peer);

	/* A rank of the job; the communicator's own number of it is another. */
	if (r >= 0) {
		lag_chrome_arg_int(c, op->func == LAG_FUNC_RECV ? "Src Rank" : "Dst Rank",
				   c->trace->ranks[r].rank);
	}
}

static void label_arg(struct lag_chrome *c, const char *key, size_t comm)
{
	struct lag_buf label = { 0 };

	lag_comm_label(c->trace, comm, &label);
	lag_chrome_arg_text(c, key, lag_buf_text(&label));
	lag_buf_release(&label);
}

void lag_chrome_call_args(struct lag_chrome *c, size_t comm)
{
	label_arg(c, "communicator", comm);
}

void lag_chrome_comm_args(struct lag_chrome *c, size_t comm)
{
	const struct lag_comm *row = &c->trace->comms[comm];
	enum lag_comm_role role = c->roles->comm_role[comm];

	label_arg(c, "Process Group Name", comm);
	if (row->description[0])
		lag_chrome_arg_text(c, "Process Group Description", row->description);
	if (role != LAG_ROLE_UNSURE)
		lag_chrome_arg_text(c, "role", lag_comm_role_name(role));
	ranks_arg(c, row);
}

static void wait_args(struct lag_chrome *c, int32_t launch)
{
	const struct lag_wait *w = &c->waits->launch[launch];

	lag_chrome_arg_us(c, "wait (us)", w->wait_ns);
	lag_chrome_arg_us(c, "transfer (us)", w->transfer_ns);
	if (w->last >= 0)
		lag_chrome_arg_int(c, "last rank", c->trace->ranks[w->last].rank);
	if (w->lower_bound)
		lag_chrome_arg_text(c, "wait is", "at least: members are not on record");
}

void lag_chrome_nccl_args(struct lag_chrome *c, int32_t launch)
{
	const struct lag_launch *l = &c->trace->launches[launch];
	const struct lag_comm *comm = &c->trace->comms[l->comm];
	const struct lag_op *op;
	const char *dtype;

	if (!l->n_ops)
		return;
	op = &c->trace->ops[l->first_op];
	dtype = kineto_dtype(op->datatype);
	lag_chrome_arg_text(c, "Collective name", kineto_func(op->func));
	element_args(c, op, comm->n_ranks);
	lag_chrome_arg_int(c, "Group size", comm->n_ranks > 0 ? comm->n_ranks : LAG_NONE);
	if (dtype)
		lag_chrome_arg_text(c, "dtype", dtype);
	peer_arg(c, op);
	lag_chrome_args_of(c, LAG_CX_COMM, l->comm);
	lag_chrome_arg_int(c, "Seq", op->seq);
	if (l->n_ops > 1)
		lag_chrome_arg_int(c, "operations in this kernel", l->n_ops);
	wait_args(c, launch);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: per thread, nothing happens before the outermost end. */
#include "tests/simgpu/nccl/nc.h"

#include <stdlib.h>

static _Thread_local struct {
	unsigned depth;
	struct nc_op *ops;
	size_t n, cap;
	struct ncclComm **joins;
	size_t n_joins;
} group;

bool nc_in_group(void)
{
	return group.depth > 0;
}

static void number(struct nc_op *o)
{
	struct ncclComm *c = o->comm;

	if (o->func == NC_SEND || o->func == NC_RECV) {
		o->seq = c->p2p_seq[o->func == NC_RECV][o->peer]++;
	} else {
		o->seq = c->seq++;
	}
}

ncclResult_t nc_enqueue(const struct nc_op *op)
{
	struct nc_op o = *op;

	number(&o);
	if (group.depth == 0) {
		return nc_launch(&o, 1);
	}
	if (group.n == group.cap) {
		group.cap = group.cap ? 2 * group.cap : 16;
		group.ops = realloc(group.ops, group.cap * sizeof *group.ops);
		if (!group.ops) {
			abort();
		}
	}
	group.ops[group.n++] = o;
	return ncclSuccess;
}

ncclResult_t nc_group_join_later(struct ncclComm *c)
{
	group.joins = realloc(group.joins, (group.n_joins + 1) * sizeof(ncclComm_t));
	if (!group.joins) {
		abort();
	}
	group.joins[group.n_joins++] = c;
	return ncclSuccess;
}

ncclResult_t pncclGroupStart(void)
{
	nc_nvtx_push_plain("ncclGroupStart");
	group.depth++;
	nc_nvtx_pop();
	return ncclSuccess;
}

static ncclResult_t group_finish(void)
{
	ncclResult_t r = ncclSuccess;

	for (size_t i = 0; i < group.n_joins; i++) {
		ncclResult_t one = nc_comm_open(group.joins[i]);
		r = one != ncclSuccess ? one : r;
	}
	for (size_t i = 0; i < group.n_joins; i++) {
		nc_comm_wait_open(group.joins[i]);
	}
	group.n_joins = 0;
	size_t n = group.n;
	group.n = 0;
	return r == ncclSuccess && n > 0 ? nc_launch(group.ops, n) : r;
}

ncclResult_t pncclGroupEnd(void)
{
	ncclResult_t r = ncclSuccess;

	nc_nvtx_push_plain("ncclGroupEnd");
	if (group.depth == 0) {
		r = ncclInvalidUsage;
	} else if (--group.depth == 0) {
		r = group_finish();
	}
	nc_nvtx_pop();
	return r;
}

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *info)
{
	if (!info || group.depth == 0) {
		return ncclInvalidUsage;
	}
	double ns = 0.0;
	for (size_t i = 0; i < group.n; i++) {
		const struct nc_op *o = &group.ops[i];
		int next = (o->comm->rank + 1) % o->comm->n;
		ns += o->comm->lag_ns[next] + (double)o->bytes * o->comm->ns_per_byte[next];
	}
	info->estimatedTime = (float)(ns / 1e3);
	group.n = 0;
	group.depth--;
	return ncclSuccess;
}

NC_ALIAS(ncclGroupStart);
NC_ALIAS(ncclGroupEnd);
NC_ALIAS(ncclGroupSimulateEnd);

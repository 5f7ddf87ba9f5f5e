/* SPDX-License-Identifier: Apache-2.0 */
/* From a finished group to kernels: all sends and receives of a communicator become one kernel,
 * collectives of one kind may share one. Kernels are launched as cuLaunchKernelEx calls. */
#include "tests/simgpu/nccl/nc.h"

#include <cupti_driver_cbid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FUSED 8

static const char *const func_names[] = {
	[NC_ALL_REDUCE] = "AllReduce",         [NC_REDUCE] = "Reduce",
	[NC_BROADCAST] = "Broadcast",          [NC_ALL_GATHER] = "AllGather",
	[NC_REDUCE_SCATTER] = "ReduceScatter",
};

static void kernel_base(const struct nc_op *o, char *out, size_t size)
{
	const char *algo = o->comm->tree && o->func == NC_ALL_REDUCE ? "TREE" : "RING";

	switch (o->func) {
	case NC_SEND:
	case NC_RECV:
		snprintf(out, size, "ncclDevKernel_SendRecv");
		break;
	case NC_BROADCAST:
	case NC_ALL_GATHER:
		snprintf(out, size, "ncclDevKernel_%s_RING_LL", func_names[o->func]);
		break;
	default:
		/* Only Sum is instantiated: the name says so whatever the reduction. */
		snprintf(out, size, "ncclDevKernel_%s_Sum_%s_%s_LL", func_names[o->func],
			 nc_type_name(o->type), algo);
	}
}

/* The mangled name, kept for ever: records point at it. */
static const char *kernel_name(const struct nc_op *o)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char *names[128];
	char base[96], mangled[192];
	size_t i;

	kernel_base(o, base, sizeof base);
	snprintf(mangled, sizeof mangled, "_Z%zu%s24ncclDevKernelArgsStorageILm4096EE",
		 strlen(base), base);
	pthread_mutex_lock(&lock);
	for (i = 0; i < 127 && names[i] && strcmp(names[i], mangled) != 0; i++) {
	}
	if (!names[i]) {
		names[i] = strdup(mangled);
	}
	const char *name = names[i];
	pthread_mutex_unlock(&lock);
	return name;
}

static uint32_t channels_for(uint64_t bytes)
{
	uint64_t n = bytes / (128 << 10);

	return n < 2 ? 2 : n > 24 ? 24 : (uint32_t)n;
}

static void stick(struct sim_stream *s)
{
	static struct sim_kernel stuck = { .name = "stuck_kernel" };
	uint64_t for_ever = INT64_MAX;
	void *params[] = { &for_ever };
	struct sim_launch l = {
		.kernel = &stuck, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = params
	};

	sim_launch(&l, s);
}

static void launch_kernel(const struct nc_op *ops, size_t n)
{
	struct ncclComm *c = ops[0].comm;
	enum nc_hang hang = NC_NO_HANG;
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		enum nc_hang h = nc_fault_next();
		hang = h != NC_NO_HANG ? h : hang;
		bytes += ops[i].bytes;
	}
	if (hang == NC_HANG_HOST) {
		nc_fault_block();
	}
	struct sim_api a = { .domain = SIM_DOMAIN_DRIVER,
			     .cbid = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
			     .function = "cuLaunchKernelEx",
			     .symbol = kernel_name(&ops[0]) };
	struct nc_work *w = nc_work_new(ops, n);
	for (size_t i = 0; hang == NC_HANG_LINK && i < w->n_lanes; i++) {
		w->lanes[i].stalled = true;
	}
	if (hang == NC_HANG_GPU) {
		stick(ops[0].stream);
	}
	sim_api_enter(&a);
	struct sim_op *op = sim_op_new(SIM_OP_COMM);
	op->name = a.symbol;
	op->corr = a.corr;
	op->grid = (struct sim_dim){ channels_for(bytes), 1, 1 };
	op->block = (struct sim_dim){ 544, 1, 1 };
	op->bytes = bytes;
	op->poll = nc_work_poll;
	op->release = nc_work_free;
	op->ctx = w;
	op->async = true;
	op->nth = sim_launch_number();
	if (c->last) {
		sim_op_after(op, c->last);
	}
	struct sim_op *mine = sim_enqueue(ops[0].stream, op, true);
	sim_op_unref(c->last);
	c->last = mine;
	sim_api_leave(&a, 0);
}

/* A communicator of one rank only copies, or does nothing. */
static void launch_alone(const struct nc_op *o)
{
	struct sim_api a = { .domain = SIM_DOMAIN_DRIVER,
			     .cbid = CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
			     .function = "cuMemcpyAsync" };

	if (o->recv == o->send || !o->send || !o->recv || o->bytes == 0) {
		return;
	}
	sim_api_enter(&a);
	struct sim_copy k = {
		.dst = o->recv, .src = o->send, .bytes = o->bytes, .corr = a.corr, .async = true
	};
	sim_copy(&k, o->stream);
	sim_api_leave(&a, 0);
}

static bool is_p2p(const struct nc_op *o)
{
	return o->func >= NC_SEND;
}

static bool fuses(const struct nc_op *a, const struct nc_op *b)
{
	if (is_p2p(a) || is_p2p(b)) {
		return is_p2p(a) && is_p2p(b);
	}
	return a->func == b->func && a->type == b->type && a->op == b->op &&
	       a->stream == b->stream && a->func != NC_REDUCE && a->func != NC_REDUCE_SCATTER;
}

/* Operations of one communicator, in order; collectives first, as NCCL plans them. */
static void launch_comm(struct nc_op *v, size_t n)
{
	for (int pass = 0; pass < 2; pass++) {
		struct nc_op fused[1024];
		size_t k = 0, most = pass ? sizeof fused / sizeof fused[0] : MAX_FUSED;
		for (size_t i = 0; i < n; i++) {
			if (is_p2p(&v[i]) != (pass == 1)) {
				continue;
			}
			if (!is_p2p(&v[i]) && v[i].comm->n == 1) {
				launch_alone(&v[i]);
				continue;
			}
			if (k > 0 && (k == most || !fuses(&fused[0], &v[i]))) {
				launch_kernel(fused, k);
				k = 0;
			}
			fused[k++] = v[i];
		}
		if (k > 0) {
			launch_kernel(fused, k);
		}
	}
}

ncclResult_t nc_launch(const struct nc_op *ops, size_t n)
{
	struct nc_op *mine = malloc((n + 1) * sizeof *mine);
	bool *taken = calloc(n + 1, sizeof *taken);

	if (!mine || !taken) {
		abort();
	}
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;
		if (taken[i]) {
			continue;
		}
		for (size_t j = i; j < n; j++) {
			if (ops[j].comm == ops[i].comm) {
				taken[j] = true;
				mine[k++] = ops[j];
			}
		}
		launch_comm(mine, k);
	}
	free(mine);
	free(taken);
	return ncclSuccess;
}

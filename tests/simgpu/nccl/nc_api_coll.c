/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that start work: argument checks, NVTX range, enqueue. */
#include "tests/simgpu/nccl/nc.h"

#include <stddef.h>

static ncclResult_t check(const struct nc_op *o)
{
	/* A communicator that is still being made cannot be used. */
	if (!o->comm || nc_comm_state(o->comm) != ncclSuccess) {
		return ncclInvalidArgument;
	}
	if ((unsigned)o->type >= ncclNumTypes ||
	    (o->func != NC_ALL_GATHER && o->peer >= o->comm->n)) {
		return ncclInvalidArgument;
	}
	if ((o->func == NC_SEND || o->func == NC_RECV || o->func == NC_BROADCAST ||
	     o->func == NC_REDUCE) &&
	    (o->peer < 0 || o->peer >= o->comm->n)) {
		return ncclInvalidArgument;
	}
	if (__atomic_load_n(&o->comm->shm->aborted, __ATOMIC_RELAXED)) {
		return ncclInvalidUsage;
	}
	return ncclSuccess;
}

static ncclResult_t begin(struct nc_op *o, cudaStream_t stream)
{
	ncclResult_t r = check(o);

	if (r == ncclSuccess) {
		o->stream = sim_stream_of(stream);
		o->bytes = o->count * nc_type_size(o->type);
	}
	nc_nvtx_push(o);
	/* Nothing to move is nothing to launch, for every rank alike. */
	if (r == ncclSuccess && o->count > 0) {
		r = nc_enqueue(o);
	}
	nc_nvtx_pop();
	return r;
}

ncclResult_t pncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			    ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = {
		NC_ALL_REDUCE, "ncclAllReduce", comm, send, recv, count, type, op, -1, NULL, 0, 0
	};

	return begin(&o, stream);
}

ncclResult_t pncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			 ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_REDUCE, "ncclReduce", comm, send, recv, count,
			   type,      op,           root, NULL, 0,    0 };

	return begin(&o, stream);
}

ncclResult_t pncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
			    int root, ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_BROADCAST, "ncclBroadcast", comm, send, recv, count,
			   type,         ncclSum,         root, NULL, 0,    0 };

	return begin(&o, stream);
}

ncclResult_t pncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
			    ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_ALL_GATHER, "ncclAllGather", comm, send, recv, count,
			   type,          ncclSum,         -1,   NULL, 0,    0 };

	return begin(&o, stream);
}

ncclResult_t pncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
				ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_REDUCE_SCATTER,
			   "ncclReduceScatter",
			   comm,
			   send,
			   recv,
			   count,
			   type,
			   op,
			   -1,
			   NULL,
			   0,
			   0 };

	return begin(&o, stream);
}

ncclResult_t pncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
		       ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_SEND, "ncclSend", comm, send, NULL, count,
			   type,    ncclSum,    peer, NULL, 0,    0 };

	return begin(&o, stream);
}

ncclResult_t pncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		       cudaStream_t stream)
{
	struct nc_op o = { NC_RECV, "ncclRecv", comm, NULL, recv, count,
			   type,    ncclSum,    peer, NULL, 0,    0 };

	return begin(&o, stream);
}

/* NCCL calls these through its own symbol table, so that interposers see the inner call. */
ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
			cudaStream_t stream)
{
	return ncclBroadcast(buff, buff, count, type, root, comm, stream);
}

/* One send or receive inside a call that is made of them. */
static ncclResult_t part(const char *api, bool send, void *buf, size_t count,
			 const struct nc_op *whole, int peer)
{
	struct nc_op o = *whole;

	o.func = send ? NC_SEND : NC_RECV;
	o.api = api;
	o.send = send ? buf : NULL;
	o.recv = send ? NULL : buf;
	o.count = count;
	o.bytes = count * nc_type_size(o.type);
	o.peer = peer;
	return nc_enqueue(&o);
}

static char *at(const void *base, size_t count, ncclDataType_t type, int i)
{
	return (char *)(uintptr_t)base + (size_t)i * count * nc_type_size(type);
}

static ncclResult_t compound(struct nc_op *o, cudaStream_t stream, bool scatter, bool gather)
{
	ncclResult_t r = check(o);
	struct ncclComm *c = o->comm;
	int root = o->peer;

	if (r == ncclSuccess) {
		o->bytes = o->count * nc_type_size(o->type);
	}

	nc_nvtx_push(o);
	if (r != ncclSuccess || o->count == 0) {
		nc_nvtx_pop();
		return r;
	}
	o->stream = sim_stream_of(stream);
	ncclGroupStart();
	for (int i = 0; i < c->n; i++) {
		bool sends = gather ? scatter || i == root : scatter && c->rank == root;
		bool recvs = gather ? scatter || c->rank == root : i == root;
		char *from = at(o->send, o->count, o->type, scatter ? i : 0);
		char *to = at(o->recv, o->count, o->type, gather ? i : 0);
		if (sends) {
			part(o->api, true, from, o->count, o, i);
		}
		if (recvs) {
			part(o->api, false, to, o->count, o, i);
		}
	}
	r = ncclGroupEnd();
	nc_nvtx_pop();
	return r;
}

ncclResult_t pncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_SEND, "ncclAlltoAll", comm, send, recv, count,
			   type,    ncclSum,        -1,   NULL, 0,    0 };

	if (!comm) {
		return ncclInvalidArgument;
	}
	o.peer = 0;
	return compound(&o, stream, true, true);
}

ncclResult_t pncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
			 ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_SEND, "ncclGather", comm, send, recv, count,
			   type,    ncclSum,      root, NULL, 0,    0 };

	return compound(&o, stream, false, true);
}

ncclResult_t pncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
			  ncclComm_t comm, cudaStream_t stream)
{
	struct nc_op o = { NC_SEND, "ncclScatter", comm, send, recv, count,
			   type,    ncclSum,       root, NULL, 0,    0 };

	return compound(&o, stream, true, false);
}

NC_ALIAS(ncclAllReduce);
NC_ALIAS(ncclReduce);
NC_ALIAS(ncclBroadcast);
NC_ALIAS(ncclAllGather);
NC_ALIAS(ncclReduceScatter);
NC_ALIAS(ncclSend);
NC_ALIAS(ncclRecv);
NC_ALIAS(ncclBcast);
NC_ALIAS(ncclAlltoAll);
NC_ALIAS(ncclGather);
NC_ALIAS(ncclScatter);

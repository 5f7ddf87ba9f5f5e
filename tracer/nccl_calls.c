/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's start-work calls and groups, interposed. Each passes its arguments on unchanged and returns
 * what the real function returned. */
#include "tracer/clock.h"
#include "tracer/config.h"
#include "tracer/export.h"
#include "tracer/nccl_internal.h"
#include "tracer/tracer.h"

/* A program can only get here without a real function if it asked for one that its NCCL lacks. */
#define ABSENT ncclInternalError

/* nccl.h declares these without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

LAG_EXPORT ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
				      ncclDataType_t datatype, ncclRedOp_t redop, ncclComm_t comm,
				      cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = {
		LAG_FUNC_ALL_REDUCE, count, datatype, redop, LAG_NONE, comm, stream, real, 0, false
	};
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclAllReduce)
		rc = real->ncclAllReduce(sendbuff, recvbuff, count, datatype, redop, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
				   ncclDataType_t datatype, ncclRedOp_t redop, int root,
				   ncclComm_t comm, cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_REDUCE, count, datatype, redop, root, comm,
				  stream,          real,  0,        false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclReduce) {
		rc = real->ncclReduce(sendbuff, recvbuff, count, datatype, redop, root, comm,
				      stream);
	}
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
				      ncclDataType_t datatype, int root, ncclComm_t comm,
				      cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = {
		LAG_FUNC_BROADCAST, count, datatype, LAG_NONE, root, comm, stream, real, 0, false
	};
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclBroadcast)
		rc = real->ncclBroadcast(sendbuff, recvbuff, count, datatype, root, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
				  ncclComm_t comm, cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = {
		LAG_FUNC_BROADCAST, count, datatype, LAG_NONE, root, comm, stream, real, 0, false
	};
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclBcast)
		rc = real->ncclBcast(buff, count, datatype, root, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
				      ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_ALL_GATHER,
				  sendcount,
				  datatype,
				  LAG_NONE,
				  LAG_NONE,
				  comm,
				  stream,
				  real,
				  0,
				  false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclAllGather)
		rc = real->ncclAllGather(sendbuff, recvbuff, sendcount, datatype, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
					  ncclDataType_t datatype, ncclRedOp_t redop,
					  ncclComm_t comm, cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_REDUCE_SCATTER,
				  recvcount,
				  datatype,
				  redop,
				  LAG_NONE,
				  comm,
				  stream,
				  real,
				  0,
				  false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclReduceScatter) {
		rc = real->ncclReduceScatter(sendbuff, recvbuff, recvcount, datatype, redop, comm,
					     stream);
	}
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
				     ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_ALL_TO_ALL,
				  count,
				  datatype,
				  LAG_NONE,
				  LAG_NONE,
				  comm,
				  stream,
				  real,
				  0,
				  false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclAlltoAll)
		rc = real->ncclAlltoAll(sendbuff, recvbuff, count, datatype, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
				   ncclDataType_t datatype, int root, ncclComm_t comm,
				   cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_GATHER, count, datatype, LAG_NONE, root, comm,
				  stream,          real,  0,        false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclGather)
		rc = real->ncclGather(sendbuff, recvbuff, count, datatype, root, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
				    ncclDataType_t datatype, int root, ncclComm_t comm,
				    cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_SCATTER, count, datatype, LAG_NONE, root, comm,
				  stream,           real,  0,        false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclScatter)
		rc = real->ncclScatter(sendbuff, recvbuff, count, datatype, root, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
				 int peer, ncclComm_t comm, cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_SEND, count,  datatype, LAG_NONE, peer,
				  comm,          stream, real,     0,        false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclSend)
		rc = real->ncclSend(sendbuff, count, datatype, peer, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
				 ncclComm_t comm, cudaStream_t stream)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(comm);
	struct lag_op_call op = { LAG_FUNC_RECV, count,  datatype, LAG_NONE, peer,
				  comm,          stream, real,     0,        false };
	ncclResult_t rc = ABSENT;

	lag_op_enter(&op);
	if (real->ncclRecv)
		rc = real->ncclRecv(recvbuff, count, datatype, peer, comm, stream);
	return lag_op_leave(&op, rc);
}

LAG_EXPORT ncclResult_t ncclGroupStart(void)
{
	const struct lag_nccl_real *real = LAG_NCCL_REAL(NULL);
	bool ours = lag_life_enter();
	ncclResult_t rc = real->ncclGroupStart ? real->ncclGroupStart() : ABSENT;

	lag_life_leave();
	if (ours)
		lag_group_start();
	return rc;
}

static ncclResult_t group_end(const struct lag_nccl_real *real, ncclSimInfo_t *simulate,
			      bool is_simulation)
{
	bool ours = lag_life_enter(), pushed = false;
	ncclResult_t rc = ABSENT;
	int64_t launch_ns = 0;

	if (ours)
		lag_group_end_enter(&pushed, &launch_ns);
	if (is_simulation && real->ncclGroupSimulateEnd) {
		rc = real->ncclGroupSimulateEnd(simulate);
	} else if (!is_simulation && real->ncclGroupEnd) {
		rc = real->ncclGroupEnd();
	}
	lag_life_leave();
	if (ours) {
		lag_group_end_leave(pushed, launch_ns, rc);
		lag_life_group_done();
	}
	return rc;
}

LAG_EXPORT ncclResult_t ncclGroupEnd(void)
{
	return group_end(LAG_NCCL_REAL(NULL), NULL, false);
}

LAG_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
	return group_end(LAG_NCCL_REAL(NULL), simInfo, true);
}

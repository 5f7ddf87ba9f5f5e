/* SPDX-License-Identifier: Apache-2.0 */
/* A second NCCL for processes that have two: of another version, and it accepts only communicators that
 * it has made itself. Nothing is communicated. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x66616b65

struct ncclComm {
	int magic, rank, n, n_calls;
};

ncclResult_t ncclGetVersion(int *version)
{
	*version = 21703;
	return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	memset(id, 7, sizeof(*id));
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
	(void)id;
	*comm = calloc(1, sizeof(**comm));
	if (!*comm)
		return ncclSystemError;
	(*comm)->magic = MAGIC;
	(*comm)->rank = rank;
	(*comm)->n = n;
	return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	*count = comm->magic == MAGIC ? comm->n : -1;
	return comm->magic == MAGIC ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	*rank = comm->rank;
	return comm->magic == MAGIC ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
			   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	(void)in;
	(void)out;
	(void)count;
	(void)type;
	(void)op;
	(void)stream;
	if (!comm || comm->magic != MAGIC)
		return ncclInvalidArgument;
	comm->n_calls++;
	return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (!comm || comm->magic != MAGIC)
		return ncclInvalidArgument;
	free(comm);
	return ncclSuccess;
}

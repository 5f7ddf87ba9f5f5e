/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into pipetrain to see that it notices: an all-reduce that does nothing, and says it did. */
#include <nccl.h>

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
			   ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
			   cudaStream_t stream)
{
	(void)sendbuff;
	(void)recvbuff;
	(void)count;
	(void)datatype;
	(void)op;
	(void)comm;
	(void)stream;
	return ncclSuccess;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, errors, questions about a communicator, memory, registration, user-made reductions. */
#include "tests/simgpu/nccl/nc.h"

#include <stdlib.h>
#include <string.h>

ncclResult_t pncclGetVersion(int *version)
{
	if (!version) {
		return ncclInvalidArgument;
	}
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

const char *pncclGetErrorString(ncclResult_t r)
{
	static const char *const text[] = {
		[ncclSuccess] = "no error",
		[ncclUnhandledCudaError] = "unhandled cuda error",
		[ncclSystemError] = "unhandled system error",
		[ncclInternalError] = "internal error",
		[ncclInvalidArgument] = "invalid argument",
		[ncclInvalidUsage] = "invalid usage",
		[ncclRemoteError] = "remote process exited or there was a network error",
		[ncclInProgress] = "NCCL operation in progress",
	};

	return (unsigned)r < ncclNumResults ? text[r] : "unknown result code";
}

const char *pncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return "";
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	if (!comm || !error) {
		return ncclInvalidArgument;
	}
	*error = nc_comm_state(comm);
	if (__atomic_load_n(&comm->shm->aborted, __ATOMIC_RELAXED)) {
		*error = ncclRemoteError;
	}
	return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
	if (!comm || !count) {
		return ncclInvalidArgument;
	}
	*count = comm->n;
	return ncclSuccess;
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
	if (!comm || !device) {
		return ncclInvalidArgument;
	}
	*device = comm->device;
	return ncclSuccess;
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
	if (!comm || !rank) {
		return ncclInvalidArgument;
	}
	*rank = comm->rank;
	return ncclSuccess;
}

ncclResult_t pncclMemAlloc(void **ptr, size_t size)
{
	if (!ptr) {
		return ncclInvalidArgument;
	}
	sim_init();
	*ptr = sim_mem_alloc(size, sim_device_current());
	return *ptr ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t pncclMemFree(void *ptr)
{
	return sim_mem_free(ptr) == 0 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	if (!comm || !buff || size == 0 || !handle) {
		return ncclInvalidArgument;
	}
	*handle = buff;
	return ncclSuccess;
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return comm && handle ? ncclSuccess : ncclInvalidArgument;
}

/* Windows are not supported, which NCCL says by a NULL window. */
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
				     int flags)
{
	(void)flags;
	if (!comm || !buff || size == 0 || !win) {
		return ncclInvalidArgument;
	}
	*win = NULL;
	return ncclSuccess;
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	(void)win;
	return comm ? ncclSuccess : ncclInvalidArgument;
}

static double scalar_value(const void *scalar, ncclDataType_t type)
{
	float f;
	double d;

	if (type == ncclFloat64) {
		memcpy(&d, scalar, sizeof d);
		return d;
	}
	memcpy(&f, scalar, sizeof f);
	return (double)f;
}

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
				       ncclScalarResidence_t residence, ncclComm_t comm)
{
	(void)residence;
	if (!op || !scalar || !comm || (type != ncclFloat32 && type != ncclFloat64)) {
		return ncclInvalidArgument;
	}
	size_t n = (size_t)comm->n_scales + 1;
	double *v = realloc(comm->scales, n * sizeof *v);
	if (!v) {
		return ncclSystemError;
	}
	comm->scales = v;
	v[comm->n_scales] = scalar_value(scalar, type);
	*op = (ncclRedOp_t)((int)ncclNumOps + comm->n_scales++);
	return ncclSuccess;
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	return comm && op >= ncclNumOps ? ncclSuccess : ncclInvalidArgument;
}

void pncclResetDebugInit(void);

void pncclResetDebugInit(void)
{
}

void ncclResetDebugInit(void) __attribute__((weak, alias("pncclResetDebugInit")));

NC_ALIAS(ncclGetVersion);
NC_ALIAS(ncclGetErrorString);
NC_ALIAS(ncclGetLastError);
NC_ALIAS(ncclCommGetAsyncError);
NC_ALIAS(ncclCommCount);
NC_ALIAS(ncclCommCuDevice);
NC_ALIAS(ncclCommUserRank);
NC_ALIAS(ncclMemAlloc);
NC_ALIAS(ncclMemFree);
NC_ALIAS(ncclCommRegister);
NC_ALIAS(ncclCommDeregister);
NC_ALIAS(ncclCommWindowRegister);
NC_ALIAS(ncclCommWindowDeregister);
NC_ALIAS(ncclRedOpCreatePreMulSum);
NC_ALIAS(ncclRedOpDestroy);

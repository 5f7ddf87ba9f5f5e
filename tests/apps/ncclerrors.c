/* SPDX-License-Identifier: Apache-2.0 */
/* Calls NCCL's functions with arguments that it must refuse, and prints each answer. The answers must
 * be the same with and without a tracer. Needs no GPU. With the argument "dlsym", the functions are
 * taken from a private handle, as Python's ctypes does. */
#include <dlfcn.h>
#include <errno.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>

/* errno, too: what a hook does must not show in it. */
#define TRY(call)                                                      \
	do {                                                           \
		int rc;                                                \
		errno = 4711;                                          \
		rc = (int)(call);                                      \
		(void)printf("%s = %d, errno %d\n", #call, rc, errno); \
	} while (0)

static int by_handle(void)
{
	void *lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
				   ncclComm_t, cudaStream_t);
	ncclResult_t (*get_version)(int *);
	void *p = lib ? dlsym(lib, "ncclAllReduce") : NULL,
	     *q = lib ? dlsym(lib, "ncclGetVersion") : NULL;
	int version = 0;

	if (!p || !q)
		return 1;
	memcpy(&all_reduce, &p, sizeof(p));
	memcpy(&get_version, &q, sizeof(q));
	TRY(get_version(&version));
	TRY(all_reduce(NULL, NULL, 4, ncclFloat, ncclSum, NULL, NULL));
	return version == 0;
}

int main(int argc, char **argv)
{
	ncclComm_t comm = NULL, none[2] = { NULL, NULL };
	ncclResult_t async;
	ncclUniqueId id;
	int n;

	(void)argv;
	if (argc > 1)
		return by_handle();
	TRY(ncclGetVersion(&n));
	(void)printf("version %d\n", n);
	TRY(ncclGetUniqueId(&id));
	TRY(ncclGetUniqueId(NULL));
	TRY(ncclCommInitRank(NULL, 1, id, 0));
	TRY(ncclCommInitRank(&comm, 1, id, 5));
	TRY(ncclCommInitAll(none, 0, NULL));
	TRY(ncclAllReduce(NULL, NULL, 4, ncclFloat, ncclSum, NULL, NULL));
	TRY(ncclReduce(NULL, NULL, 4, ncclFloat, ncclSum, 0, NULL, NULL));
	TRY(ncclBroadcast(NULL, NULL, 4, ncclFloat, 0, NULL, NULL));
	TRY(ncclBcast(NULL, 4, ncclFloat, 0, NULL, NULL));
	TRY(ncclAllGather(NULL, NULL, 4, ncclFloat, NULL, NULL));
	TRY(ncclReduceScatter(NULL, NULL, 4, ncclFloat, ncclSum, NULL, NULL));
	TRY(ncclSend(NULL, 4, ncclFloat, 0, NULL, NULL));
	TRY(ncclRecv(NULL, 4, ncclFloat, 0, NULL, NULL));
	TRY(ncclGroupStart());
	TRY(ncclSend(NULL, 4, ncclFloat, 0, NULL, NULL));
	TRY(ncclGroupEnd());
	TRY(ncclGroupEnd());
	TRY(ncclCommFinalize(NULL));
	TRY(ncclCommDestroy(NULL));
	TRY(ncclCommAbort(NULL));
	TRY(ncclCommGetAsyncError(NULL, &async));
	return 0;
}

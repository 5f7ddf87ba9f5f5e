/* SPDX-License-Identifier: Apache-2.0 */
/* The life of communicators, on all ranks of a job: non-blocking and grouped creation, splits with and
 * without this rank, shrinking, every kind of operation, orderly and other ends.
 * Argument: a folder all ranks share. */
#include "tests/apps/pt_gpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536

static ncclUniqueId share_id(const char *folder, const char *name, int rank)
{
	const struct timespec pause = { 0, 1000000 };
	char path[4096], tmp[4100];
	ncclUniqueId id;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.id", folder, name);
	snprintf(tmp, sizeof(tmp), "%s.t", path);
	if (rank == 0) {
		PT_NCCL(ncclGetUniqueId(&id));
		fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || write(fd, &id, sizeof(id)) != (ssize_t)sizeof(id) || close(fd) ||
		    rename(tmp, path))
			exit(3);
		return id;
	}
	while ((fd = open(path, O_RDONLY)) < 0)
		nanosleep(&pause, NULL);
	if (read(fd, &id, sizeof(id)) != (ssize_t)sizeof(id))
		exit(3);
	close(fd);
	return id;
}

static void wait_ready(ncclComm_t comm)
{
	const struct timespec pause = { 0, 1000000 };
	ncclResult_t state = ncclInProgress;

	for (;;) {
		PT_NCCL(ncclCommGetAsyncError(comm, &state));
		if (state != ncclInProgress)
			break;
		nanosleep(&pause, NULL);
	}
	PT_NCCL(state);
}

static void every_operation(ncclComm_t comm, int rank, int n, cudaStream_t stream)
{
	char *in = pt_gpu_alloc(BYTES), *out = pt_gpu_alloc(BYTES);
	size_t part = 64;

	PT_NCCL(ncclAllReduce(in, out, 256, ncclFloat32, ncclMax, comm, stream));
	PT_NCCL(ncclReduce(in, out, 100, ncclFloat64, ncclSum, 1, comm, stream));
	PT_NCCL(ncclBroadcast(in, out, 101, ncclInt8, 2, comm, stream));
	PT_NCCL(ncclBcast(out, 102, ncclUint8, 3, comm, stream));
	PT_NCCL(ncclAllGather(in, out, part, ncclBfloat16, comm, stream));
	PT_NCCL(ncclReduceScatter(in, out, part, ncclFloat16, ncclProd, comm, stream));
	PT_NCCL(ncclAlltoAll(in, out, part, ncclInt32, comm, stream));
	PT_NCCL(ncclGather(in, out, part, ncclInt64, 0, comm, stream));
	PT_NCCL(ncclScatter(in, out, part, ncclUint64, 0, comm, stream));
	PT_NCCL(ncclGroupStart());
	PT_NCCL(ncclGroupStart());
	PT_NCCL(ncclSend(in, 10, ncclUint32, (rank + 1) % n, comm, stream));
	PT_NCCL(ncclRecv(out, 10, ncclUint32, (rank + n - 1) % n, comm, stream));
	PT_NCCL(ncclGroupEnd());
	PT_NCCL(ncclSend(in, 20, ncclUint32, (rank + 1) % n, comm, stream));
	PT_NCCL(ncclRecv(out, 20, ncclUint32, (rank + n - 1) % n, comm, stream));
	PT_NCCL(ncclGroupEnd());
	PT_CUDA(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	int rank = atoi(getenv("RANK")), n = atoi(getenv("WORLD_SIZE")), last[] = { n - 1 };
	const char *folder = argc > 1 ? argv[1] : ".";
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t world, odd, half, some = NULL, grouped, fewer;
	cudaStream_t stream;
	ncclUniqueId id;

	PT_CUDA(cudaSetDevice(rank));
	PT_CUDA(cudaStreamCreate(&stream));
	config.blocking = 0;
	id = share_id(folder, "world", rank);
	(void)ncclCommInitRankConfig(&world, n, id, rank, &config);
	wait_ready(world);
	every_operation(world, rank, n, stream);
	(void)ncclCommSplit(world, rank % 2, rank, &odd, NULL);
	wait_ready(world);
	(void)ncclCommSplit(world, rank / 2, -rank, &half, NULL);
	wait_ready(world);
	(void)ncclCommSplit(world, rank == n - 1 ? NCCL_SPLIT_NOCOLOR : 0, rank, &some, NULL);
	wait_ready(world);
	id = share_id(folder, "grouped", rank);
	PT_NCCL(ncclGroupStart());
	PT_NCCL(ncclCommInitRank(&grouped, n, id, rank));
	PT_NCCL(ncclGroupEnd());
	every_operation(grouped, rank, n, stream);
	if (rank != n - 1) {
		PT_NCCL(ncclCommShrink(grouped, last, 1, &fewer, NULL, NCCL_SHRINK_DEFAULT));
		PT_NCCL(ncclCommDestroy(fewer));
	}
	PT_NCCL(ncclCommAbort(grouped));
	if (some)
		(void)ncclCommDestroy(some);
	(void)ncclCommDestroy(half);
	(void)ncclCommDestroy(odd);
	(void)ncclCommFinalize(world);
	wait_ready(world);
	(void)ncclCommDestroy(world);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a call costs the program that makes it: run plainly and recorded, the difference is the tracer's.
 * Prints ns of one ncclAllReduce that does nothing, of one NVTX push and pop, and of one clock reading;
 * the quickest of many batches, by this thread's own time. */
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N_BATCH   2000
#define N_BATCHES 400

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void reduce(ncclComm_t comm)
{
	(void)ncclAllReduce(NULL, NULL, 1, ncclFloat, ncclSum, comm, NULL);
}

static void annotate(ncclComm_t comm)
{
	(void)comm;
	nvtxRangePushA("forward micro-batch");
	nvtxRangePop();
}

static void read_clock(ncclComm_t comm)
{
	struct timespec ts;

	(void)comm;
	clock_gettime(CLOCK_REALTIME, &ts);
}

static double quickest(void (*call)(ncclComm_t), ncclComm_t comm)
{
	double best = 1e18;

	for (int b = 0; b < N_BATCHES; b++) {
		double t0 = cpu_ns(), took;

		for (int i = 0; i < N_BATCH; i++)
			call(comm);
		took = (cpu_ns() - t0) / N_BATCH;
		best = took < best ? took : best;
	}
	return best;
}

int main(void)
{
	ncclUniqueId id;
	ncclComm_t comm;

	if (ncclGetUniqueId(&id) || ncclCommInitRank(&comm, 1, id, 0))
		return 1;
	printf("%.1f %.1f %.1f\n", quickest(reduce, comm), quickest(annotate, comm),
	       quickest(read_clock, comm));
	return ncclCommDestroy(comm) ? 1 : 0;
}

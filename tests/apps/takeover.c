/* SPDX-License-Identifier: Apache-2.0 */
/* Works on the GPU, then takes CUPTI's buffers over as a framework's profiler does, and goes on working.
 * Argument: seconds to go on for. */
#include "tests/apps/pt_small.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_BUFFERS 64

static uint8_t buffers[N_BUFFERS][1 << 16] __attribute__((aligned(8)));
static _Atomic unsigned n_taken;

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = sizeof(buffers[0]);
	*buffer = buffers[n_taken++ % N_BUFFERS];
	*max_records = 0;
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			      size_t valid)
{
	/* What comes back first are the tracer's own: not ours to touch. */
	(void)context;
	(void)stream;
	(void)buffer;
	(void)size;
	(void)valid;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { 0, 100000000 };
	void *lib = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
	void *p = lib ? dlsym(lib, "cuptiActivityRegisterCallbacks") : NULL;
	CUptiResult (*take)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
	int rounds = 10 * (argc > 1 ? atoi(argv[1]) : 5);

	if (!p)
		return 2;
	memcpy(&take, &p, sizeof(p));
	pt_small_work(5);
	for (int i = 0; i < 8; i++)
		nanosleep(&pause, NULL);
	if (take(request, complete) != CUPTI_SUCCESS)
		return 3;
	for (int i = 0; i < rounds; i++) {
		pt_small_work(1);
		nanosleep(&pause, NULL);
	}
	puts("done");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A tool for the injection test: counts its calls in a variable, and uses CUDA from inside. */
#include <cuda.h>
#include <stdlib.h>

int InitializeInjection(void);

int InitializeInjection(void)
{
	const char *before = getenv("SIM_TEST_INJECTED");
	int n = 0;

	setenv("SIM_TEST_INJECTED", before ? "2" : "1", 1);
	return cuDeviceGetCount(&n) == CUDA_SUCCESS && cuInit(0) == CUDA_SUCCESS;
}

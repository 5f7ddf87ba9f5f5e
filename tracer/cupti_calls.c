/* SPDX-License-Identifier: Apache-2.0 */
/* Which CUDA calls are recorded: those that launch, copy, synchronise, order streams, or block. Decided
 * by name, since numbers differ between versions of the same call. */
#include "tracer/cupti_api.h"

#define N_CBIDS 2048u

enum verdict {
	UNKNOWN,
	WANTED,
	UNWANTED,
};

static struct {
	uint8_t verdict[2][N_CBIDS];
} calls;

static const char *const runtime[] = {
	"cudaLaunch",           "cudaMemcpy",
	"cudaMemset",           "cudaStreamSynchronize",
	"cudaStreamWaitEvent",  "cudaEventRecord",
	"cudaEventSynchronize", "cudaDeviceSynchronize",
	"cudaGraphLaunch",      "cudaThreadSynchronize",
	"cudaGraphInstantiate", NULL,
};

static const char *const driver[] = {
	"cuLaunch",           "cuMemcpy",
	"cuMemset",           "cuStreamSynchronize",
	"cuStreamWaitEvent",  "cuEventRecord",
	"cuEventSynchronize", "cuCtxSynchronize",
	"cuGraphLaunch",      "cuGraphInstantiate",
	"cuStreamBatchMemOp", "cuStreamWaitValue",
	"cuStreamWriteValue", NULL,
};

/* Whole names: allocation and release stop the device, their asynchronous siblings do not. */
static const char *const blocking[] = {
	"cudaMalloc", "cudaFree", "cuMemAlloc", "cuMemFree", NULL,
};

const char *lag_cupti_call_name(const struct lag_cupti_api *api, bool is_driver, uint32_t cbid,
				size_t *n)
{
	const char *name = NULL;
	size_t end;

	*n = 0;
	if (!api->get_callback_name ||
	    api->get_callback_name(is_driver ? CUPTI_CB_DOMAIN_DRIVER_API
					     : CUPTI_CB_DOMAIN_RUNTIME_API,
				   cbid, &name) ||
	    !name)
		return "";
	end = strlen(name);
	*n = end;
	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	if (end < *n && end > 2 && !memcmp(name + end - 2, "_v", 2))
		*n = end - 2;
	if (*n > 5 && (!memcmp(name + *n - 5, "_ptsz", 5) || !memcmp(name + *n - 5, "_ptds", 5)))
		*n -= 5;
	return name;
}

static bool listed(const char *const *list, const char *name, size_t n, bool whole)
{
	for (; *list; list++) {
		size_t len = strlen(*list);

		if (n >= len && !memcmp(name, *list, len) && (!whole || n == len))
			return true;
	}
	return false;
}

bool lag_cupti_call_wanted(const struct lag_cupti_api *api, bool is_driver, uint32_t cbid)
{
	const char *name;
	uint8_t *verdict;
	size_t n;

	if (cbid >= N_CBIDS)
		return true;
	verdict = &calls.verdict[is_driver][cbid];
	if (*verdict == UNKNOWN) {
		name = lag_cupti_call_name(api, is_driver, cbid, &n);
		/* A call without a name cannot be judged: better one record too many. */
		*verdict = !n || listed(is_driver ? driver : runtime, name, n, false) ||
					   listed(blocking, name, n, true)
				   ? WANTED
				   : UNWANTED;
	}
	return *verdict == WANTED;
}

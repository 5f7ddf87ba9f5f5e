/* SPDX-License-Identifier: Apache-2.0 */
/* The release that this CUPTI pretends to be, and the record sizes of it. Records only ever grew at
 * their end since CUDA 11, so an old one is the start of the newest. */
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/cupti/cu.h"

#include <stdio.h>
#include <string.h>

static int parse_release(void)
{
	const char *v = sim_env_text("SIMGPU_CUPTI_VERSION");
	int major, minor;

	if (!v || sscanf(v, "%d.%d", &major, &minor) != 2) {
		return 1300;
	}
	return major * 100 + minor;
}

int cu_release(void)
{
	static int release;

	if (!release) {
		release = parse_release();
	}
	return release;
}

enum cu_mode cu_mode(void)
{
	const char *m = sim_env_text("SIMGPU_CUPTI");

	if (m && strcmp(m, "nodriver") == 0) {
		return CU_NO_DRIVER;
	}
	return m && strcmp(m, "taken") == 0 ? CU_TAKEN : CU_NORMAL;
}

uint32_t cu_api_version(void)
{
	static const struct {
		int release;
		uint32_t version;
	} known[] = { { 1300, 130000 }, { 1209, 27 }, { 1208, 26 }, { 1206, 24 }, { 1205, 23 },
		      { 1204, 22 },     { 1203, 21 }, { 1202, 20 }, { 1200, 19 }, { 1108, 18 } };

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (cu_release() >= known[i].release) {
			return known[i].version;
		}
	}
	return 17;
}

/* Kinds whose record grew since 11.8: size from that release on, newest first. */
static const struct {
	uint32_t kind;
	int since;
	size_t bytes;
} grown[] = {
	{ CUPTI_ACTIVITY_KIND_KERNEL, 1300, sizeof(CUpti_ActivityKernel10) },
	{ CUPTI_ACTIVITY_KIND_KERNEL, 1200, sizeof(CUpti_ActivityKernel9) },
	{ CUPTI_ACTIVITY_KIND_KERNEL, 0, sizeof(CUpti_ActivityKernel8) },
	{ CUPTI_ACTIVITY_KIND_MEMCPY, 1208, sizeof(CUpti_ActivityMemcpy6) },
	{ CUPTI_ACTIVITY_KIND_MEMCPY, 0, sizeof(CUpti_ActivityMemcpy5) },
	{ CUPTI_ACTIVITY_KIND_OVERHEAD, 1204, sizeof(CUpti_ActivityOverhead3) },
	{ CUPTI_ACTIVITY_KIND_OVERHEAD, 1202, sizeof(CUpti_ActivityOverhead2) },
	{ CUPTI_ACTIVITY_KIND_OVERHEAD, 0, sizeof(CUpti_ActivityOverhead) },
	{ CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 1208, sizeof(CUpti_ActivitySynchronization2) },
	{ CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0, sizeof(CUpti_ActivitySynchronization) },
	{ CUPTI_ACTIVITY_KIND_CUDA_EVENT, 1208, sizeof(CUpti_ActivityCudaEvent2) },
	{ CUPTI_ACTIVITY_KIND_CUDA_EVENT, 0, sizeof(CUpti_ActivityCudaEvent) },
	{ CUPTI_ACTIVITY_KIND_CONTEXT, 1300, sizeof(CUpti_ActivityContext3) },
	{ CUPTI_ACTIVITY_KIND_CONTEXT, 1206, sizeof(CUpti_ActivityContext2) },
	{ CUPTI_ACTIVITY_KIND_CONTEXT, 0, sizeof(CUpti_ActivityContext) },
	{ CUPTI_ACTIVITY_KIND_DEVICE, 1206, sizeof(CUpti_ActivityDevice5) },
	{ CUPTI_ACTIVITY_KIND_DEVICE, 0, sizeof(CUpti_ActivityDevice4) },
};

size_t cu_record_size(uint32_t kind)
{
	if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
		kind = CUPTI_ACTIVITY_KIND_KERNEL;
	}
	for (size_t i = 0; i < sizeof grown / sizeof grown[0]; i++) {
		if (grown[i].kind == kind && cu_release() >= grown[i].since) {
			return grown[i].bytes;
		}
	}
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return sizeof(CUpti_ActivityMemset4);
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return sizeof(CUpti_ActivityMemcpyPtoP4);
	case CUPTI_ACTIVITY_KIND_DRIVER:
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
		return sizeof(CUpti_ActivityAPI);
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		return sizeof(CUpti_ActivityExternalCorrelation);
	case CUPTI_ACTIVITY_KIND_STREAM:
		return sizeof(CUpti_ActivityStream);
	case CUPTI_ACTIVITY_KIND_NAME:
		return sizeof(CUpti_ActivityName);
	case CUPTI_ACTIVITY_KIND_MARKER:
		return sizeof(CUpti_ActivityMarker2);
	case CUPTI_ACTIVITY_KIND_MARKER_DATA:
		return sizeof(CUpti_ActivityMarkerData);
	case CUPTI_ACTIVITY_KIND_MEMORY2:
		return sizeof(CUpti_ActivityMemory4);
	default:
		return 0;
	}
}

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
	if (!version) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	*version = cu_api_version();
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
						CUpti_Activity **record)
{
	uint32_t kind;

	if (!buffer || !record) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	uint8_t *at = buffer;
	if (*record) {
		memcpy(&kind, *record, sizeof kind);
		at = (uint8_t *)*record + cu_record_size(kind);
	}
	if (at + sizeof kind > buffer + valid) {
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	}
	memcpy(&kind, at, sizeof kind);
	if (cu_record_size(kind) == 0 || at + cu_record_size(kind) > buffer + valid) {
		return CUPTI_ERROR_INVALID_KIND;
	}
	*record = (CUpti_Activity *)(void *)at;
	return CUPTI_SUCCESS;
}

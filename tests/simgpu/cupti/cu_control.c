/* SPDX-License-Identifier: Apache-2.0 */
/* What is collected: kinds, API subsets, attributes; flushing; modes without CUPTI. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/cupti/cu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_CBID 1024

static bool kinds[CUPTI_ACTIVITY_KIND_COUNT];
static bool api_wanted[3][MAX_CBID];
static bool all_syncs = true, event_timestamps, latency_timestamps;
static int per_thread = -1; /* -1: this release's default */
static CUpti_ActivityThreadIdType thread_id_type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
static _Thread_local CUptiResult last_error;

CUptiResult cu_return(CUptiResult r)
{
	if (r != CUPTI_SUCCESS) {
		last_error = r;
	}
	return r;
}

CUptiResult cu_gate(void)
{
	switch (cu_mode()) {
	case CU_NO_DRIVER:
		return CUPTI_ERROR_UNKNOWN;
	case CU_TAKEN:
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	default:
		return CUPTI_SUCCESS;
	}
}

bool cu_enabled(CUpti_ActivityKind kind)
{
	return __atomic_load_n(&kinds[kind], __ATOMIC_RELAXED);
}

bool cu_api_enabled(enum sim_domain domain, uint32_t cbid)
{
	return cbid < MAX_CBID && __atomic_load_n(&api_wanted[domain][cbid], __ATOMIC_RELAXED);
}

bool cu_all_syncs(void)
{
	return all_syncs;
}

bool cu_event_timestamps(void)
{
	return event_timestamps;
}

bool cu_latency_timestamps(void)
{
	return latency_timestamps;
}

bool cu_per_thread(void)
{
	return per_thread < 0 ? cu_release() >= 1300 : per_thread > 0;
}

uint32_t cu_thread_id(void)
{
	static _Thread_local uint32_t tid;

	if (thread_id_type == CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT) {
		return (uint32_t)(uintptr_t)pthread_self();
	}
	if (!tid) {
		tid = (uint32_t)syscall(SYS_gettid);
	}
	return tid;
}

static CUptiResult set_kind(CUpti_ActivityKind kind, bool on)
{
	CUptiResult gate = cu_gate();

	if (gate != CUPTI_SUCCESS) {
		return gate;
	}
	if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT ||
	    cu_record_size(kind) == 0) {
		return CUPTI_ERROR_INVALID_KIND;
	}
	if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
		memset(api_wanted[SIM_DOMAIN_RUNTIME], on, MAX_CBID);
	} else if (kind == CUPTI_ACTIVITY_KIND_DRIVER) {
		memset(api_wanted[SIM_DOMAIN_DRIVER], on, MAX_CBID);
	}
	__atomic_store_n(&kinds[kind], on, __ATOMIC_RELAXED);
	cu_hooks_install();
	cu_worker_start();
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
	return cu_return(set_kind(kind, true));
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
	return cu_return(set_kind(kind, false));
}

CUptiResult CUPTIAPI cuptiActivityEnableContext(CUcontext ctx, CUpti_ActivityKind kind)
{
	return cu_return(ctx ? set_kind(kind, true) : CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext ctx, CUpti_ActivityKind kind)
{
	return cu_return(ctx ? set_kind(kind, false) : CUPTI_ERROR_INVALID_PARAMETER);
}

static CUptiResult set_api(enum sim_domain domain, CUpti_CallbackId cbid, uint8_t enable)
{
	CUptiResult gate = cu_gate();

	if (gate != CUPTI_SUCCESS) {
		return gate;
	}
	if (cu_release() < 1205) {
		return CUPTI_ERROR_API_NOT_IMPLEMENTED;
	}
	if (cbid == 0 || cbid >= MAX_CBID) {
		return CUPTI_ERROR_INVALID_PARAMETER;
	}
	__atomic_store_n(&api_wanted[domain][cbid], enable != 0, __ATOMIC_RELAXED);
	cu_hooks_install();
	cu_worker_start();
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	return cu_return(set_api(SIM_DOMAIN_RUNTIME, cbid, enable));
}

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	return cu_return(set_api(SIM_DOMAIN_DRIVER, cbid, enable));
}

CUptiResult CUPTIAPI cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
	CUptiResult gate = cu_gate();

	if (gate == CUPTI_SUCCESS) {
		all_syncs = enable != 0;
	}
	return cu_return(gate);
}

CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable)
{
	CUptiResult gate = cu_gate();

	if (gate == CUPTI_SUCCESS) {
		event_timestamps = enable != 0;
	}
	return cu_return(gate);
}

CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	CUptiResult gate = cu_gate();

	if (gate == CUPTI_SUCCESS) {
		latency_timestamps = enable != 0;
	}
	return cu_return(gate);
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
						    CUpti_BuffersCallbackCompleteFunc complete)
{
	if (!request || !complete) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	CUptiResult gate = cu_gate();
	if (gate == CUPTI_SUCCESS) {
		cu_buffer_callbacks(request, complete);
	}
	return cu_return(gate);
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
	if (cu_in_callback()) {
		fprintf(stderr, "simgpu: cuptiActivityFlushAll called inside a CUPTI callback\n");
		abort();
	}
	CUptiResult gate = cu_gate();
	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	if (!cu_buffer_registered()) {
		return cu_return(CUPTI_ERROR_INVALID_OPERATION);
	}
	int64_t start = sim_host_now();
	if (cu_flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0) > 0) {
		cu_note_flush(start);
	}
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t ms)
{
	CUptiResult gate = cu_gate();

	if (gate == CUPTI_SUCCESS) {
		cu_worker_start();
		cu_worker_period(ms);
	}
	return cu_return(gate);
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext ctx, uint32_t stream,
						       size_t *dropped)
{
	(void)ctx;
	(void)stream;
	if (!dropped) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	*dropped = cu_dropped_take();
	return CUPTI_SUCCESS;
}

static size_t attributes[16] = { 3200000, 8 << 20, 250, 65536, 10, 0, 3, 3, 0, 1, 0 };

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *size,
					       void *value)
{
	CUptiResult gate = cu_gate();

	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	if (!size || !value || (unsigned)attr >= 11) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	if (*size == 0 || *size > sizeof attributes[0]) {
		return cu_return(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
	}
	attributes[attr] = 0;
	memcpy(&attributes[attr], value, *size);
	if (attr == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) {
		per_thread = attributes[attr] != 0;
	}
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *size,
					       void *value)
{
	CUptiResult gate = cu_gate();

	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	if (!size || !value || (unsigned)attr >= 11) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	size_t n = *size < sizeof attributes[0] ? *size : sizeof attributes[0];
	memcpy(value, &attributes[attr], n);
	*size = n;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	CUptiResult gate = cu_gate();

	if (gate != CUPTI_SUCCESS) {
		return cu_return(gate);
	}
	if (type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE) {
		return cu_return(CUPTI_ERROR_NOT_SUPPORTED);
	}
	thread_id_type = type;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	if (!type) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	*type = thread_id_type;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetLastError(void)
{
	CUptiResult r = last_error;

	last_error = CUPTI_SUCCESS;
	return r;
}

CUptiResult CUPTIAPI cuptiFinalize(void)
{
	sim_hooks_set(NULL);
	return CUPTI_SUCCESS;
}

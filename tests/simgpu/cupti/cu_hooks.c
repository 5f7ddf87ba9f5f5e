/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks that the engine calls: API calls, finished device work, synchronisation, resources. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/cupti/cu.h"

#include <string.h>
#include <unistd.h>

#define RECORD_MAX 256

static void api_enter(struct sim_api *a)
{
	cu_call_api(a, true);
}

static void api_leave(struct sim_api *a)
{
	struct {
		CUpti_ActivityExternalCorrelation ext[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
		CUpti_ActivityAPI api;
	} r;

	size_t n = 0;

	if (cu_api_enabled(a->domain, a->cbid) && cu_buffer_registered()) {
		if (cu_enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) {
			n = cu_external_records(a->corr, r.ext, sizeof r.ext / sizeof r.ext[0]);
		}
		CUpti_ActivityAPI api = {
			.kind = a->domain == SIM_DOMAIN_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER
							       : CUPTI_ACTIVITY_KIND_RUNTIME,
			.cbid = a->cbid,
			.start = sim_report_host(a->t0_ns),
			.end = sim_report_host(sim_host_now()),
			.processId = (uint32_t)getpid(),
			.threadId = cu_thread_id(),
			.correlationId = a->corr,
			.returnValue = (uint32_t)a->result,
		};
		uint8_t *p = (uint8_t *)&r;
		memcpy(p + n * sizeof r.ext[0], &api, sizeof api);
		cu_put(p, n * sizeof r.ext[0] + sizeof api, (unsigned)n + 1);
	}
	cu_call_api(a, false);
}

static void op_started(struct sim_op *op)
{
	uint8_t record[RECORD_MAX];
	size_t n = cu_record_of(op, false, record, sizeof record);

	if (n > 0 && cu_buffer_registered()) {
		cu_slot_open(op, n);
	}
}

static void op_ended(struct sim_op *op)
{
	uint8_t record[RECORD_MAX];

	/* Reserved without a slot: refused then, or already handed out by a forced flush. */
	if (op->reserved && !op->cupti_slot) {
		return;
	}
	size_t n = cu_record_of(op, true, record, sizeof record);
	if (!op->reserved && n > 0 && cu_buffer_registered()) {
		cu_slot_open(op, n);
	}
	if (op->cupti_slot) {
		cu_slot_close(op, record, n);
	}
}

static void event_recorded(const struct sim_op *op, const struct sim_event *e, int64_t now_ns)
{
	CUpti_ActivityCudaEvent2 r = {
		.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
		.correlationId = op->corr,
		.contextId = (uint32_t)op->stream->device + 1,
		.streamId = op->stream->id,
		.eventId = e->id,
		.deviceId = (uint32_t)op->stream->device,
		.cudaEventSyncId = e->sync_id,
	};

	if (!cu_enabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT) || !cu_buffer_registered()) {
		return;
	}
	if (cu_event_timestamps()) {
		r.deviceTimestamp =
			sim_report_device(op->state >= SIM_OP_RESOLVED ? op->end_ns : now_ns);
	}
	cu_put(&r, cu_record_size(r.kind), 1);
}

static void synced(const struct sim_sync *s)
{
	CUpti_ActivitySynchronization2 r = {
		.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		.type = (CUpti_ActivitySynchronizationType)s->type,
		.start = sim_report_host(s->start_ns),
		.end = sim_report_host(s->end_ns),
		.correlationId = s->corr,
		.contextId = (uint32_t)s->device + 1,
		.streamId = s->stream_id,
		.cudaEventId = s->event_id,
		.cudaEventSyncId = s->event_sync_id,
		.returnValue = (uint32_t)s->result,
	};

	if (!cu_enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) || !cu_buffer_registered() ||
	    (s->query_pending && !cu_all_syncs())) {
		return;
	}
	cu_put(&r, cu_record_size(r.kind), 1);
}

/* What a flush cost; it comes with a later one. */
void cu_note_flush(int64_t start_ns)
{
	CUpti_ActivityOverhead3 r = {
		.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
		.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
		.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
		.start = sim_report_host(start_ns),
		.end = sim_report_host(sim_host_now()),
	};

	if (!cu_enabled(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
		return;
	}
	r.objectId.pt.processId = (uint32_t)getpid();
	r.objectId.pt.threadId = cu_thread_id();
	cu_put(&r, cu_record_size(r.kind), 1);
}

static void put_device(int device)
{
	CUpti_ActivityDevice5 r = {
		.kind = CUPTI_ACTIVITY_KIND_DEVICE,
		.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS,
		.globalMemorySize = 80ULL << 30,
		.numThreadsPerWarp = 32,
		.coreClockRate = 1980000,
		.numMultiprocessors = 132,
		.maxThreadsPerBlock = 1024,
		.computeCapabilityMajor = 9,
		.id = (uint32_t)device,
		.name = sim_device_name(),
		.isCudaVisible = 1,
	};

	sim_device_uuid(device, (uint8_t *)r.uuid.bytes);
	cu_put(&r, cu_record_size(r.kind), 1);
}

static void put_context(CUcontext ctx)
{
	CUpti_ActivityContext3 r = {
		.kind = CUPTI_ACTIVITY_KIND_CONTEXT,
		.contextId = sim_context_id(ctx),
		.deviceId = (uint32_t)sim_context_device(ctx),
		.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA,
		.nullStreamId = 7,
	};

	cu_put(&r, cu_record_size(r.kind), 1);
}

static void put_stream(CUcontext ctx, const struct sim_stream *s)
{
	CUpti_ActivityStream r = {
		.kind = CUPTI_ACTIVITY_KIND_STREAM,
		.contextId = sim_context_id(ctx),
		.streamId = s->id,
		.priority = (uint32_t)s->priority,
		.flag = s->blocking ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT
				    : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING,
	};

	cu_put(&r, cu_record_size(r.kind), 1);
}

static void resource(enum sim_resource what, CUcontext ctx, const void *handle)
{
	bool sink = cu_buffer_registered();

	if (what == SIM_RES_CONTEXT_CREATED) {
		if (sink && cu_enabled(CUPTI_ACTIVITY_KIND_DEVICE)) {
			put_device(sim_context_device(ctx));
		}
		if (sink && cu_enabled(CUPTI_ACTIVITY_KIND_CONTEXT)) {
			put_context(ctx);
		}
	} else if (what == SIM_RES_STREAM_CREATED && sink &&
		   cu_enabled(CUPTI_ACTIVITY_KIND_STREAM)) {
		put_stream(ctx, handle);
	}
	cu_call_resource(what, ctx, handle);
}

void cu_hooks_install(void)
{
	static const struct sim_hooks hooks = {
		.api_enter = api_enter,
		.api_leave = api_leave,
		.op_started = op_started,
		.op_ended = op_ended,
		.event_recorded = event_recorded,
		.synced = synced,
		.resource = resource,
		.in_callback = cu_in_callback,
	};

	if (sim_hooks_get() != &hooks) {
		sim_hooks_set(&hooks);
	}
}

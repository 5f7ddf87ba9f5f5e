/* SPDX-License-Identifier: Apache-2.0 */
/* From what the engine reports to activity records, in the newest layout, cut to the release. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/cupti/cu.h"

#include <string.h>
#include <unistd.h>

union record {
	CUpti_ActivityKernel10 kernel;
	CUpti_ActivityMemcpy6 copy;
	CUpti_ActivityMemcpyPtoP4 peer;
	CUpti_ActivityMemset4 set;
};

/* The lost-timestamp fault: this share of device records carries zero times. */
static bool times_lost(const struct sim_op *op)
{
	double p = sim_env_double("SIMGPU_CUPTI_LOST_TIMES", 0.0);

	return p > 0.0 && sim_rand_uniform(SIM_RAND_DROP, ~op->nth) < p;
}

static void times(const struct sim_op *op, bool ended, uint64_t *start, uint64_t *end)
{
	if (times_lost(op)) {
		*start = *end = 0;
		return;
	}
	*start = sim_report_device(op->start_ns);
	*end = ended ? sim_report_device(op->end_ns) : 0;
}

static uint32_t kernel_kind(void)
{
	if (cu_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
		return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	}
	return cu_enabled(CUPTI_ACTIVITY_KIND_KERNEL) ? CUPTI_ACTIVITY_KIND_KERNEL : 0;
}

/* Kind of the device record of op, 0 when it is not collected. */
static uint32_t op_kind(const struct sim_op *op)
{
	CUpti_ActivityKind k;

	switch (op->kind) {
	case SIM_OP_KERNEL:
	case SIM_OP_COMM:
		return kernel_kind();
	case SIM_OP_MEMCPY:
		k = op->copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP ? CUPTI_ACTIVITY_KIND_MEMCPY2
								     : CUPTI_ACTIVITY_KIND_MEMCPY;
		return cu_enabled(k) ? k : 0;
	case SIM_OP_MEMSET:
		return cu_enabled(CUPTI_ACTIVITY_KIND_MEMSET) ? CUPTI_ACTIVITY_KIND_MEMSET : 0;
	default:
		return 0;
	}
}

static void fill_kernel(const struct sim_op *op, bool ended, CUpti_ActivityKernel10 *k)
{
	uint64_t start, end;

	times(op, ended, &start, &end);
	k->start = start;
	k->end = end;
	k->completed = end;
	k->registersPerThread = 64;
	k->deviceId = (uint32_t)op->stream->device;
	k->contextId = (uint32_t)op->stream->device + 1;
	k->streamId = op->stream->id;
	k->gridX = (int32_t)op->grid.x;
	k->gridY = (int32_t)op->grid.y;
	k->gridZ = (int32_t)op->grid.z;
	k->blockX = (int32_t)op->block.x;
	k->blockY = (int32_t)op->block.y;
	k->blockZ = (int32_t)op->block.z;
	k->dynamicSharedMemory = (int32_t)op->shared_bytes;
	k->correlationId = op->corr;
	k->gridId = (int64_t)op->nth + 1;
	k->name = op->name;
	if (cu_latency_timestamps()) {
		k->queued = sim_report_host(op->enqueued_ns);
		k->submitted = k->queued + 500;
	}
	k->launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
	k->channelID = 1;
	k->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
	k->clusterX = k->clusterY = k->clusterZ = 1;
}

static uint8_t memory_kind(int device)
{
	return device < 0 ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

static void fill_copy(const struct sim_op *op, bool ended, CUpti_ActivityMemcpy6 *m)
{
	uint64_t start, end;

	times(op, ended, &start, &end);
	m->copyKind = (uint8_t)op->copy_kind;
	m->srcKind = memory_kind(op->src_device);
	m->dstKind = memory_kind(op->dst_device);
	m->flags = op->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	m->bytes = op->bytes;
	m->start = start;
	m->end = end;
	m->deviceId = (uint32_t)op->stream->device;
	m->contextId = (uint32_t)op->stream->device + 1;
	m->streamId = op->stream->id;
	m->correlationId = op->corr;
	m->channelID = 2;
	m->channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
	m->copyCount = 1;
}

static void fill_peer(const struct sim_op *op, bool ended, CUpti_ActivityMemcpyPtoP4 *m)
{
	uint64_t start, end;

	times(op, ended, &start, &end);
	m->copyKind = (uint8_t)op->copy_kind;
	m->srcKind = m->dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	m->flags = op->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	m->bytes = op->bytes;
	m->start = start;
	m->end = end;
	m->deviceId = (uint32_t)op->stream->device;
	m->contextId = (uint32_t)op->stream->device + 1;
	m->streamId = op->stream->id;
	m->srcDeviceId = (uint32_t)op->src_device;
	m->srcContextId = (uint32_t)op->src_device + 1;
	m->dstDeviceId = (uint32_t)op->dst_device;
	m->dstContextId = (uint32_t)op->dst_device + 1;
	m->correlationId = op->corr;
}

static void fill_set(const struct sim_op *op, bool ended, CUpti_ActivityMemset4 *m)
{
	uint64_t start, end;

	times(op, ended, &start, &end);
	m->value = op->value;
	m->bytes = op->bytes;
	m->start = start;
	m->end = end;
	m->deviceId = (uint32_t)op->stream->device;
	m->contextId = (uint32_t)op->stream->device + 1;
	m->streamId = op->stream->id;
	m->correlationId = op->corr;
	m->flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC;
	m->memoryKind = memory_kind(op->dst_device);
}

size_t cu_record_of(const struct sim_op *op, bool ended, void *out, size_t size)
{
	uint32_t kind = op_kind(op);
	size_t n = kind ? cu_record_size(kind) : 0;
	union record r;

	if (n == 0 || n > size || n > sizeof r) {
		return 0;
	}
	memset(&r, 0, sizeof r);
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		fill_copy(op, ended, &r.copy);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		fill_peer(op, ended, &r.peer);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		fill_set(op, ended, &r.set);
		break;
	default:
		fill_kernel(op, ended, &r.kernel);
	}
	memcpy(&r, &kind, sizeof kind);
	memcpy(out, &r, n);
	return n;
}

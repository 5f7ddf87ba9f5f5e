/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's own NVTX ranges: domain "NCCL", registered names, and since 2.25 a payload with the
 * communicator's hash, the bytes and, where there is one, reduction, root or peer. */
#include "tests/simgpu/nccl/nc.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SCHEMA (1ULL << 24)

struct payload {
	uint64_t comm, bytes;
	int32_t first, second; /* reduction, root or peer, as the schema says */
};

struct comm_payload {
	uint64_t comm;
	int32_t nranks, rank, device, pad;
};

#define ENTRY(kind, text, field)                                      \
	{                                                             \
		.type = NVTX_PAYLOAD_ENTRY_TYPE_##kind, .name = text, \
		.offset = offsetof(struct payload, field)             \
	}

static const nvtxPayloadSchemaEntry_t op_entries[][4] = {
	{ ENTRY(UINT64, "Communicator ID", comm), ENTRY(SIZE, "Message size [bytes]", bytes),
	  ENTRY(INT32, "Reduction operation", first) },
	{ ENTRY(UINT64, "Communicator ID", comm), ENTRY(SIZE, "Message size [bytes]", bytes),
	  ENTRY(INT32, "Root", first), ENTRY(INT32, "Reduction operation", second) },
	{ ENTRY(UINT64, "Communicator ID", comm), ENTRY(SIZE, "Message size [bytes]", bytes),
	  ENTRY(INT32, "Peer rank", first) },
};

/* Which schema each call has: its number, entries, and how many of them. */
static const struct {
	const char *api;
	uint64_t id;
	int entries;
	size_t n;
} schemas[] = {
	{ "ncclAllGather", 3, 0, 2 }, { "ncclAllReduce", 4, 0, 3 },
	{ "ncclBroadcast", 5, 1, 3 }, { "ncclReduceScatter", 6, 0, 3 },
	{ "ncclReduce", 7, 1, 4 },    { "ncclSend", 8, 2, 3 },
	{ "ncclRecv", 9, 2, 3 },      { "ncclAlltoAll", 16, 0, 2 },
	{ "ncclGather", 17, 1, 3 },   { "ncclScatter", 18, 1, 3 },
};

static const nvtxPayloadSchemaEntry_t comm_entries[] = {
	{ .type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "Communicator ID" },
	{ .type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "No. of ranks", .offset = 8 },
	{ .type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "Rank", .offset = 12 },
	{ .type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "CUDA device", .offset = 16 },
};

static struct {
	pthread_once_t once;
	nvtxDomainHandle_t domain;
	bool off;
	pthread_mutex_t lock;

	struct {
		const char *name;
		nvtxStringHandle_t handle;
	} names[64];

	size_t n_names;
} nvtx = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t payload_size(size_t n_entries)
{
	return n_entries > 2 ? sizeof(struct payload) : offsetof(struct payload, first);
}

static void schema_register(const char *name, uint64_t id, const nvtxPayloadSchemaEntry_t *entries,
			    size_t n, size_t size)
{
	nvtxPayloadSchemaAttr_t a = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
		.name = name,
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = entries,
		.numEntries = n,
		.payloadStaticSize = size,
		.schemaId = FIRST_SCHEMA + id,
	};

	nvtxPayloadSchemaRegister(nvtx.domain, &a);
}

static void domain_open(void)
{
	const char *off = getenv("NCCL_NVTX_DISABLE");

	nvtx.off = off && strcmp(off, "0") != 0;
	if (nvtx.off) {
		return;
	}
	nvtx.domain = nvtxDomainCreateA("NCCL");
	for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
		schema_register(schemas[i].api, schemas[i].id, op_entries[schemas[i].entries],
				schemas[i].n, payload_size(schemas[i].n));
	}
	schema_register("ncclCommInitRank", 0, comm_entries,
			sizeof comm_entries / sizeof comm_entries[0], sizeof(struct comm_payload));
}

static nvtxStringHandle_t name_handle(const char *name)
{
	nvtxStringHandle_t h = NULL;
	size_t i;

	pthread_mutex_lock(&nvtx.lock);
	for (i = 0; i < nvtx.n_names && strcmp(nvtx.names[i].name, name) != 0; i++) {
	}
	if (i == nvtx.n_names && i < sizeof nvtx.names / sizeof nvtx.names[0]) {
		nvtx.names[i].name = name;
		nvtx.names[i].handle = nvtxDomainRegisterStringA(nvtx.domain, name);
		nvtx.n_names++;
	}
	if (i < nvtx.n_names) {
		h = nvtx.names[i].handle;
	}
	pthread_mutex_unlock(&nvtx.lock);
	return h;
}

static bool ready(void)
{
	pthread_once(&nvtx.once, domain_open);
	return !nvtx.off;
}

static void push(const char *name, const nvtxPayloadData_t *data)
{
	nvtxEventAttributes_t e = {
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_REGISTERED,
	};

	e.message.registered = name_handle(name);
	if (data) {
		e.payloadType = (int32_t)NVTX_PAYLOAD_TYPE_EXT;
		e.reserved0 = 1;
		e.payload.ullValue = (uint64_t)(uintptr_t)data;
	}
	nvtxDomainRangePushEx(nvtx.domain, &e);
}

void nc_nvtx_push_plain(const char *name)
{
	if (ready()) {
		push(name, NULL);
	}
}

void nc_nvtx_push(const struct nc_op *op)
{
	struct payload p = { .comm = op->comm ? op->comm->hash : 0, .bytes = op->bytes };
	nvtxPayloadData_t data = { .payload = &p };

	if (!ready()) {
		return;
	}
	for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
		if (strcmp(schemas[i].api, op->api) == 0) {
			p.first = schemas[i].entries == 0 ? (int32_t)op->op : op->peer;
			p.second = (int32_t)op->op;
			data.schemaId = FIRST_SCHEMA + schemas[i].id;
			data.size = payload_size(schemas[i].n);
		}
	}
	push(op->api, data.size ? &data : NULL);
}

void nc_nvtx_pop(void)
{
	if (ready()) {
		nvtxDomainRangePop(nvtx.domain);
	}
}

/* A communicator's identity is known only at the end of the range that made it. */
void nc_nvtx_pop_comm(const struct ncclComm *c)
{
	struct comm_payload p = { .comm = c ? c->hash : 0,
				  .nranks = c ? c->n : 0,
				  .rank = c ? c->rank : 0,
				  .device = c ? c->device : 0 };
	nvtxPayloadData_t data = { FIRST_SCHEMA, sizeof p, &p };

	if (!ready()) {
		return;
	}
	if (c) {
		nvtxRangePopPayload(nvtx.domain, &data, 1);
	} else {
		nvtxDomainRangePop(nvtx.domain);
	}
}

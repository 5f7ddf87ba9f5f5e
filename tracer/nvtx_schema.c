/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL describes its payloads when it first uses them: which field is the communicator's hash, the size,
 * the peer. Field numbers differ between releases, so they are taken from there and not assumed. */
#include <stdatomic.h>
#include <string.h>

#include "schema/record/record.h"
#include "tracer/nvtx_internal.h"

#define N_SCHEMAS 64u
#define ABSENT    255u

static struct layout {
	_Atomic bool known;
	uint8_t comm_at, bytes_at, peer_at;
	size_t size;
} layouts[N_SCHEMAS];

static bool mentions(const char *name, const char *word)
{
	return name && strstr(name, word) != NULL;
}

void lag_nvtx_schema_learn(const nvtxPayloadSchemaAttr_t *schema)
{
	uint64_t id = schema->schemaId - NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;
	struct layout *lay;

	if (!(schema->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) || id >= N_SCHEMAS ||
	    !schema->entries)
		return;
	lay = &layouts[id];
	if (atomic_load(&lay->known))
		return;
	lay->comm_at = lay->bytes_at = lay->peer_at = ABSENT;
	for (size_t i = 0; i < schema->numEntries; i++) {
		const nvtxPayloadSchemaEntry_t *e = &schema->entries[i];

		if (e->offset >= ABSENT)
			continue;
		if (mentions(e->name, "ommunicator ID"))
			lay->comm_at = (uint8_t)e->offset;
		else if (mentions(e->name, "essage size"))
			lay->bytes_at = (uint8_t)e->offset;
		else if (mentions(e->name, "Root") || mentions(e->name, "eer"))
			lay->peer_at = (uint8_t)e->offset;
	}
	lay->size = schema->payloadStaticSize;
	atomic_store_explicit(&lay->known, true, memory_order_release);
}

static bool read_at(const nvtxPayloadData_t *data, uint8_t at, void *out, size_t n)
{
	if (at == ABSENT || at + n > data->size)
		return false;
	memcpy(out, (const char *)data->payload + at, n);
	return true;
}

void lag_nvtx_schema_read(const nvtxPayloadData_t *data, uint64_t *comm_hash, int64_t *bytes,
			  int64_t *peer)
{
	uint64_t id = data->schemaId - NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;
	const struct layout *lay;
	uint64_t size;
	int32_t rank;

	if (id >= N_SCHEMAS || !data->payload)
		return;
	lay = &layouts[id];
	if (!atomic_load_explicit(&lay->known, memory_order_acquire))
		return;
	(void)read_at(data, lay->comm_at, comm_hash, sizeof(*comm_hash));
	if (read_at(data, lay->bytes_at, &size, sizeof(size)))
		*bytes = (int64_t)size;
	if (read_at(data, lay->peer_at, &rank, sizeof(rank)))
		*peer = rank;
}

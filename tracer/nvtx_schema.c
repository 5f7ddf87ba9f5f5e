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
	uint8_t comm_at, bytes_at, peer_at, n_ranks_at, rank_at, device_at;
} layouts[N_SCHEMAS];

static uint8_t *field_of(struct layout *lay, const char *name)
{
	if (!strcmp(name, "NCCL communicator ID") || !strcmp(name, "Communicator ID"))
		return &lay->comm_at;
	if (!strncmp(name, "Message size", 12))
		return &lay->bytes_at;
	if (!strcmp(name, "Root") || !strncmp(name, "Peer", 4))
		return &lay->peer_at;
	if (!strcmp(name, "No. of ranks"))
		return &lay->n_ranks_at;
	if (!strcmp(name, "Rank"))
		return &lay->rank_at;
	return !strcmp(name, "CUDA device") ? &lay->device_at : NULL;
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
	lay->n_ranks_at = lay->rank_at = lay->device_at = ABSENT;
	for (size_t i = 0; i < schema->numEntries; i++) {
		const nvtxPayloadSchemaEntry_t *e = &schema->entries[i];
		uint8_t *at = e->name && e->offset < ABSENT ? field_of(lay, e->name) : NULL;

		if (at)
			*at = (uint8_t)e->offset;
	}
	atomic_store_explicit(&lay->known, true, memory_order_release);
}

static bool read_at(const nvtxPayloadData_t *data, uint8_t at, void *out, size_t n)
{
	if (at == ABSENT || at + n > data->size)
		return false;
	memcpy(out, (const char *)data->payload + at, n);
	return true;
}

static int64_t read_int(const nvtxPayloadData_t *data, uint8_t at)
{
	int32_t v;

	return read_at(data, at, &v, sizeof(v)) ? v : LAG_NONE;
}

void lag_nvtx_schema_read(const nvtxPayloadData_t *data, struct lag_nccl_note *note)
{
	uint64_t id = data->schemaId - NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;
	const struct layout *lay;
	uint64_t size;

	*note = LAG_NVTX_NO_NOTE;
	if (id >= N_SCHEMAS || !data->payload)
		return;
	lay = &layouts[id];
	if (!atomic_load_explicit(&lay->known, memory_order_acquire))
		return;
	(void)read_at(data, lay->comm_at, &note->comm_hash, sizeof(note->comm_hash));
	if (read_at(data, lay->bytes_at, &size, sizeof(size)))
		note->bytes = (int64_t)size;
	note->peer = read_int(data, lay->peer_at);
	note->n_ranks = read_int(data, lay->n_ranks_at);
	note->rank = read_int(data, lay->rank_at);
	note->device = read_int(data, lay->device_at);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's records to ours, by offsets that have been the same since CUDA 11.0 (structures are only ever
 * appended to; what is beyond the measured size does not exist in this version). Writer thread. */
#include "tracer/cupti_api.h"
#include "tracer/names.h"

#define N_UNSTARTED 16384u /* power of two */

/* Shortest record that can be read, by kind. */
static const struct {
	CUpti_ActivityKind kind;
	size_t prefix;
} needed[] = {
	{ CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 160 },
	{ CUPTI_ACTIVITY_KIND_MEMCPY, 72 },
	{ CUPTI_ACTIVITY_KIND_MEMCPY2, 80 },
	{ CUPTI_ACTIVITY_KIND_MEMSET, 72 },
	{ CUPTI_ACTIVITY_KIND_DRIVER, 40 },
	{ CUPTI_ACTIVITY_KIND_RUNTIME, 40 },
	{ CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 24 },
	{ CUPTI_ACTIVITY_KIND_OVERHEAD, 40 },
	{ CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 40 },
	{ CUPTI_ACTIVITY_KIND_CUDA_EVENT, 24 },
};

/* Correlations of GPU work that was shown before it started; forgotten when it comes again. */
static struct {
	uint32_t correlation[N_UNSTARTED];
	uint64_t overflow;
} unstarted;

void lag_cupti_parser_init(struct lag_cupti_parser *ps, const struct lag_cupti_api *api)
{
	*ps = (struct lag_cupti_parser){ .api = api };
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		size_t stride = lag_cupti_stride(api, needed[i].kind);

		if (stride >= needed[i].prefix)
			ps->stride[needed[i].kind] = stride;
	}
}

static void remember_unstarted(uint32_t correlation)
{
	size_t slot = correlation % N_UNSTARTED;

	if (unstarted.correlation[slot] && unstarted.correlation[slot] != correlation)
		unstarted.overflow++;
	unstarted.correlation[slot] = correlation;
}

uint64_t lag_cupti_parser_unstarted(void)
{
	uint64_t n = unstarted.overflow;

	for (size_t i = 0; i < N_UNSTARTED; i++)
		n += unstarted.correlation[i] != 0;
	return n;
}

/* Start and end of GPU work. False when it has not started; *finished is set otherwise. */
static bool times(const uint8_t *p, uint32_t correlation, struct lag_record *rec, bool *finished)
{
	uint64_t start = lag_u64(p, 16), end = lag_u64(p, 24);
	size_t slot = correlation % N_UNSTARTED;

	if (!start) {
		remember_unstarted(correlation);
		return false;
	}
	if (unstarted.correlation[slot] == correlation)
		unstarted.correlation[slot] = 0;
	rec->field[0] = (int64_t)start;
	rec->field[1] = end ? (int64_t)end : LAG_NONE;
	*finished |= end != 0;
	return true;
}

static int64_t or_none(uint64_t v)
{
	return v ? (int64_t)v : LAG_NONE;
}

static bool kernel(struct lag_cupti_parser *ps, const uint8_t *p)
{
	const char *name = (const char *)(uintptr_t)lag_u64(p, 104);
	struct lag_rec_launch_config cfg = {
		.grid_x = lag_u32(p, 52),
		.grid_y = lag_u32(p, 56),
		.grid_z = lag_u32(p, 60),
		.block_x = lag_u32(p, 64),
		.block_y = lag_u32(p, 68),
		.block_z = lag_u32(p, 72),
		.static_smem_bytes = lag_u32(p, 76),
		.dynamic_smem_bytes = lag_u32(p, 80),
		.registers = p[6] | p[7] << 8,
	};
	struct lag_record rec;
	bool finished = false;

	lag_record_init(&rec, LAG_REC_kernel);
	if (!times(p, lag_u32(p, 92), &rec, &finished))
		return false;
	rec.kernel.device = lag_u32(p, 40);
	rec.kernel.context = lag_u32(p, 44);
	rec.kernel.stream = lag_u32(p, 48);
	rec.kernel.correlation = lag_u32(p, 92);
	rec.kernel.name = name ? lag_trace_string(ps->prod, name, strlen(name)) : 0;
	rec.kernel.config = lag_trace_config(ps->prod, &cfg);
	rec.kernel.graph_node_id = or_none(lag_u64(p, 144));
	rec.kernel.graph_id = or_none(lag_u32(p, 156));
	(void)lag_trace_append(ps->prod, &rec);
	return finished;
}

static bool copy(struct lag_cupti_parser *ps, const uint8_t *p, bool peer)
{
	size_t stride = ps->stride[peer ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY];
	uint32_t correlation = lag_u32(p, peer ? 60 : 44);
	size_t graph = peer ? 72 : 64;
	struct lag_record rec;
	bool finished = false;

	lag_record_init(&rec, LAG_REC_memcpy);
	if (!times(p, correlation, &rec, &finished))
		return false;
	rec.memcpy.device = lag_u32(p, 32);
	rec.memcpy.context = lag_u32(p, 36);
	rec.memcpy.stream = lag_u32(p, 40);
	rec.memcpy.correlation = correlation;
	rec.memcpy.bytes = (int64_t)lag_u64(p, 8);
	rec.memcpy.copy_kind = p[4];
	rec.memcpy.src_kind = p[5];
	rec.memcpy.dst_kind = p[6];
	if (peer) {
		rec.memcpy.peer_device =
			lag_u32(p, 44) == lag_u32(p, 32) ? lag_u32(p, 52) : lag_u32(p, 44);
	}
	rec.memcpy.graph_node_id = or_none(lag_u64(p, graph));
	if (stride >= graph + 12)
		rec.memcpy.graph_id = or_none(lag_u32(p, graph + 8));
	(void)lag_trace_append(ps->prod, &rec);
	return finished;
}

static bool set(struct lag_cupti_parser *ps, const uint8_t *p)
{
	struct lag_record rec;
	bool finished = false;

	lag_record_init(&rec, LAG_REC_memset);
	if (!times(p, lag_u32(p, 44), &rec, &finished))
		return false;
	rec.memset.device = lag_u32(p, 32);
	rec.memset.context = lag_u32(p, 36);
	rec.memset.stream = lag_u32(p, 40);
	rec.memset.correlation = lag_u32(p, 44);
	rec.memset.bytes = (int64_t)lag_u64(p, 8);
	rec.memset.graph_node_id = or_none(lag_u64(p, 64));
	if (ps->stride[CUPTI_ACTIVITY_KIND_MEMSET] >= 76)
		rec.memset.graph_id = or_none(lag_u32(p, 72));
	(void)lag_trace_append(ps->prod, &rec);
	return finished;
}

static void call(struct lag_cupti_parser *ps, const uint8_t *p, bool driver)
{
	uint32_t cbid = lag_u32(p, 4), correlation = lag_u32(p, 32);
	int64_t start = (int64_t)lag_u64(p, 8), end = (int64_t)lag_u64(p, 16);
	struct lag_record rec;
	const char *name;
	size_t n;

	if (!start || !lag_cupti_call_wanted(ps->api, driver, cbid))
		return;
	lag_cupti_see_call(ps->prod, correlation, start, end);
	name = lag_cupti_call_name(ps->api, driver, cbid, &n);
	lag_record_init(&rec, LAG_REC_api);
	rec.api.start_ns = start;
	rec.api.end_ns = end ? end : LAG_NONE;
	rec.api.tid = lag_u32(p, 28);
	lag_names_see(ps->prod, lag_u32(p, 28));
	rec.api.domain = driver ? LAG_API_DRIVER : LAG_API_RUNTIME;
	rec.api.cbid = cbid;
	rec.api.correlation = correlation;
	rec.api.name = lag_trace_string(ps->prod, name, n);
	rec.api.result = lag_u32(p, 36);
	(void)lag_trace_append(ps->prod, &rec);
}

static void external(struct lag_cupti_parser *ps, const uint8_t *p)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_external);
	rec.external.kind = lag_u32(p, 4);
	rec.external.id = (int64_t)lag_u64(p, 8);
	rec.external.correlation = lag_u32(p, 16);
	(void)lag_trace_append(ps->prod, &rec);
}

static void overhead(struct lag_cupti_parser *ps, const uint8_t *p)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_overhead);
	rec.overhead.start_ns = (int64_t)lag_u64(p, 24);
	rec.overhead.end_ns = (int64_t)lag_u64(p, 32);
	rec.overhead.kind = lag_u32(p, 4);
	(void)lag_trace_append(ps->prod, &rec);
}

static bool one(struct lag_cupti_parser *ps, const uint8_t *p)
{
	uint32_t kind = lag_u32(p, 0);

	if (kind >= CUPTI_ACTIVITY_KIND_COUNT || !ps->stride[kind]) {
		ps->n_bad++;
		return false;
	}
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return kernel(ps, p);
	case CUPTI_ACTIVITY_KIND_MEMCPY:
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return copy(ps, p, kind == CUPTI_ACTIVITY_KIND_MEMCPY2);
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return set(ps, p);
	case CUPTI_ACTIVITY_KIND_DRIVER:
	case CUPTI_ACTIVITY_KIND_RUNTIME:
		call(ps, p, kind == CUPTI_ACTIVITY_KIND_DRIVER);
		break;
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		external(ps, p);
		break;
	case CUPTI_ACTIVITY_KIND_OVERHEAD:
		overhead(ps, p);
		break;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		lag_cupti_see_sync(ps->prod, p, ps->stride[kind]);
		break;
	case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
		lag_cupti_see_event(ps->prod, p, ps->stride[kind]);
		break;
	default:
		break;
	}
	return false;
}

bool lag_cupti_parse(struct lag_cupti_parser *ps, uint8_t *buffer, size_t valid)
{
	CUpti_Activity *rec = NULL;
	bool finished = false;

	while (valid && ps->api->get_next_record(buffer, valid, &rec) == CUPTI_SUCCESS)
		finished |= one(ps, (const uint8_t *)rec);
	return finished;
}

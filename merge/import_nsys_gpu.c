/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, copies, sets and whole graphs of an Nsight Systems report. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "merge/names.h"
#include "merge/nsys.h"

#define DEVICES_MAX 4096

/* The columns that all GPU tables share stand first, in this order. */
enum gpu_column {
	C_START,
	C_END,
	C_DEVICE,
	C_CONTEXT,
	C_STREAM,
	C_CORRELATION,
	C_PID,
	C_GRAPH,
	C_GRAPH_NODE,
	C_COMMON,
};

#define COMMON_COLUMNS                                                                     \
	"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", \
		"graphId", "graphNodeId"

/* What every GPU record has. */
struct gpu_event {
	struct lag_nsys_proc *p;
	int64_t start_ns, end_ns, device, context, stream, correlation, graph, graph_node;
};

static enum lag_status use_device(struct lag_nsys_proc *p, int64_t device, struct lag_err *err)
{
	int64_t *slot;

	p->n_gpu++;
	for (size_t i = 0; i < p->devices.n; i++) {
		if (LAG_VEC_AT(&p->devices, int64_t, i) == device)
			return LAG_OK;
	}
	if (p->devices.n == DEVICES_MAX)
		return LAG_OK;
	slot = lag_vec_push(&p->devices);
	if (!slot)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more devices");
	*slot = device;
	return LAG_OK;
}

/* LAG_END: the row has no time. Zeros are how CUPTI says that it has none either: such an event keeps
 * them, and is put aside later like any other that cannot be true. */
static enum lag_status read_event(struct lag_nsys *s, struct lag_foreign_rows *r,
				  struct gpu_event *e, struct lag_err *err)
{
	int64_t start = lag_foreign_int(r, C_START), end = lag_foreign_int(r, C_END);
	enum lag_status st;

	if (start == LAG_NONE) {
		s->n_bad++;
		return LAG_END;
	}
	st = lag_nsys_proc(s, lag_foreign_int(r, C_PID), &e->p, err);
	if (st != LAG_OK)
		return st;
	e->start_ns = start || end ? lag_nsys_time(s, start) : 0;
	e->end_ns = start || end ? lag_nsys_time(s, end) : 0;
	e->device = lag_or(lag_foreign_int(r, C_DEVICE), 0);
	e->context = lag_or(lag_foreign_int(r, C_CONTEXT), 0);
	e->stream = lag_or(lag_foreign_int(r, C_STREAM), 0);
	e->correlation = lag_or(lag_foreign_int(r, C_CORRELATION), 0);
	e->graph = lag_positive(lag_foreign_int(r, C_GRAPH));
	e->graph_node = lag_positive(lag_foreign_int(r, C_GRAPH_NODE));
	return use_device(e->p, e->device, err);
}

/* ---- kernels ---- */

enum kernel_column {
	K_MANGLED = C_COMMON,
	K_DEMANGLED,
	K_SHORT,
	K_GRID,
	K_BLOCK = K_GRID + 3,
	K_STATIC = K_BLOCK + 3,
	K_DYNAMIC,
	K_REGISTERS,
};

static int64_t config_of(struct lag_nsys *s, const struct lag_foreign_rows *r)
{
	struct lag_rec_launch_config cfg = { .grid_x = lag_foreign_int(r, K_GRID),
					     .grid_y = lag_foreign_int(r, K_GRID + 1),
					     .grid_z = lag_foreign_int(r, K_GRID + 2),
					     .block_x = lag_foreign_int(r, K_BLOCK),
					     .block_y = lag_foreign_int(r, K_BLOCK + 1),
					     .block_z = lag_foreign_int(r, K_BLOCK + 2),
					     .static_smem_bytes = lag_foreign_int(r, K_STATIC),
					     .dynamic_smem_bytes = lag_foreign_int(r, K_DYNAMIC),
					     .registers = lag_foreign_int(r, K_REGISTERS) };

	return cfg.grid_x == LAG_NONE ? LAG_NONE : lag_pool_config(s->pool, &cfg);
}

/* Reads once what the name of a kernel says: whether this reader can demangle it, and what NCCL calls the
 * function that it executes. */
static enum lag_status look_at_name(struct lag_nsys *s, size_t index, struct lag_err *err)
{
	struct lag_nsys_name *name = &LAG_VEC_AT(&s->names, struct lag_nsys_name, index);
	const char *text = lag_strtab_get(&s->pool->strings, name->id), *plain = text;

	if (name->looked_at)
		return LAG_OK;
	name->looked_at = true;
	lag_buf_clear(&s->scratch);
	name->mangled = strncmp(text, "_Z", 2) == 0;
	if (name->mangled && lag_demangle(text, &s->scratch)) {
		name->readable = true;
		plain = lag_buf_text(&s->scratch);
	}
	name->nccl = strcasestr(plain, "nccl") != NULL;
	if (name->nccl)
		name->func = lag_func_parse(plain, strcspn(plain, "("));
	return s->scratch.failed ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for names") : LAG_OK;
}

/* The mangled name where there is one that can be read, as from other sources; else what there is. */
static enum lag_status name_of(struct lag_nsys *s, const struct lag_foreign_rows *r, size_t *index,
			       struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	*index = 0;
	for (size_t i = K_MANGLED; i <= K_SHORT && !lag_failed(st); i++) {
		int64_t id = lag_foreign_int(r, i);
		size_t at;

		if (id == LAG_NONE)
			continue;
		st = lag_nsys_name(s, id, &at, err);
		if (!lag_failed(st))
			st = look_at_name(s, at, err);
		if (lag_failed(st) || !lag_nsys_name_at(s, at)->id)
			continue;
		*index = at;
		if (!lag_nsys_name_at(s, at)->mangled || lag_nsys_name_at(s, at)->readable)
			break;
	}
	return st;
}

static enum lag_status keep_carrier(const struct gpu_event *e, size_t name, struct lag_err *err)
{
	struct lag_nsys_carrier *c = lag_vec_push(&e->p->carriers);

	if (!c)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
	*c = (struct lag_nsys_carrier){ e->start_ns, e->correlation, e->stream, e->device,
					(uint32_t)name };
	return LAG_OK;
}

static void fill_kernel(struct lag_record *rec, const struct gpu_event *e)
{
	lag_record_init(rec, LAG_REC_kernel);
	rec->kernel.start_ns = e->start_ns;
	rec->kernel.end_ns = e->end_ns;
	rec->kernel.device = e->device;
	rec->kernel.context = e->context;
	rec->kernel.stream = e->stream;
	rec->kernel.correlation = e->correlation;
	rec->kernel.graph_id = e->graph;
	rec->kernel.graph_node_id = e->graph_node;
}

static enum lag_status take_kernel(struct lag_nsys *s, struct lag_foreign_rows *r,
				   struct lag_err *err)
{
	struct lag_record rec;
	struct gpu_event e;
	enum lag_status st = read_event(s, r, &e, err);
	size_t name = 0;

	if (st != LAG_OK)
		return st == LAG_END ? LAG_OK : st;
	st = name_of(s, r, &name, err);
	if (lag_failed(st))
		return st;
	fill_kernel(&rec, &e);
	rec.kernel.config = config_of(s, r);
	rec.kernel.name = lag_nsys_name_at(s, name)->id;
	st = lag_part_add(&e.p->part, &rec, err);
	return lag_failed(st) || !lag_nsys_name_at(s, name)->nccl ? st
								  : keep_carrier(&e, name, err);
}

/* ---- graphs that are recorded as a whole ---- */

static enum lag_status take_graph(struct lag_nsys *s, struct lag_foreign_rows *r,
				  struct lag_err *err)
{
	char text[64] = "CUDA graph";
	struct lag_record rec;
	struct gpu_event e;
	enum lag_status st = read_event(s, r, &e, err);

	if (st != LAG_OK)
		return st == LAG_END ? LAG_OK : st;
	e.p->n_graphs++;
	fill_kernel(&rec, &e);
	if (e.graph != LAG_NONE)
		(void)snprintf(text, sizeof(text), "CUDA graph %lld", (long long)e.graph);
	st = lag_nsys_string(s, text, strlen(text), &rec.kernel.name, err);
	return lag_failed(st) ? st : lag_part_add(&e.p->part, &rec, err);
}

/* ---- copies and sets ---- */

enum memory_column {
	M_BYTES = C_COMMON,
	M_KIND,
	M_SRC_KIND,
	M_DST_KIND,
	M_SRC_DEVICE,
	M_DST_DEVICE,
	M_SRC_ID,
	M_DST_ID,
};

/* CUPTI's numbers; nsys has its own for pages that move by themselves. */
static int64_t copy_kind(int64_t kind)
{
	static const int64_t unified[] = { 1, 2, 8 };

	return kind >= 11 && kind <= 13 ? unified[kind - 11] : kind;
}

/* CUPTI counts from 1 where nsys counts from 0, and what nsys calls 7 is unknown. */
static int64_t memory_kind(int64_t kind)
{
	return kind >= 0 && kind < 7 ? kind + 1 : LAG_NONE;
}

static enum lag_status take_copy(struct lag_nsys *s, struct lag_foreign_rows *r,
				 struct lag_err *err)
{
	int64_t src = lag_or(lag_foreign_int(r, M_SRC_DEVICE), lag_foreign_int(r, M_SRC_ID));
	int64_t dst = lag_or(lag_foreign_int(r, M_DST_DEVICE), lag_foreign_int(r, M_DST_ID));
	struct lag_record rec;
	struct gpu_event e;
	enum lag_status st = read_event(s, r, &e, err);

	if (st != LAG_OK)
		return st == LAG_END ? LAG_OK : st;
	lag_record_init(&rec, LAG_REC_memcpy);
	rec.memcpy.start_ns = e.start_ns;
	rec.memcpy.end_ns = e.end_ns;
	rec.memcpy.device = e.device;
	rec.memcpy.context = e.context;
	rec.memcpy.stream = e.stream;
	rec.memcpy.correlation = e.correlation;
	rec.memcpy.bytes = lag_foreign_int(r, M_BYTES);
	rec.memcpy.copy_kind = copy_kind(lag_foreign_int(r, M_KIND));
	rec.memcpy.src_kind = memory_kind(lag_foreign_int(r, M_SRC_KIND));
	rec.memcpy.dst_kind = memory_kind(lag_foreign_int(r, M_DST_KIND));
	if (rec.memcpy.copy_kind == 10)
		rec.memcpy.peer_device = dst != e.device ? dst : src;
	rec.memcpy.graph_id = e.graph;
	rec.memcpy.graph_node_id = e.graph_node;
	return lag_part_add(&e.p->part, &rec, err);
}

static enum lag_status take_set(struct lag_nsys *s, struct lag_foreign_rows *r, struct lag_err *err)
{
	struct lag_record rec;
	struct gpu_event e;
	enum lag_status st = read_event(s, r, &e, err);

	if (st != LAG_OK)
		return st == LAG_END ? LAG_OK : st;
	lag_record_init(&rec, LAG_REC_memset);
	rec.memset.start_ns = e.start_ns;
	rec.memset.end_ns = e.end_ns;
	rec.memset.device = e.device;
	rec.memset.context = e.context;
	rec.memset.stream = e.stream;
	rec.memset.correlation = e.correlation;
	rec.memset.bytes = lag_foreign_int(r, M_BYTES);
	rec.memset.graph_id = e.graph;
	rec.memset.graph_node_id = e.graph_node;
	return lag_part_add(&e.p->part, &rec, err);
}

enum lag_status lag_nsys_read_gpu(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const kernel[] = { COMMON_COLUMNS,
					      "mangledName",
					      "demangledName",
					      "shortName",
					      "gridX",
					      "gridY",
					      "gridZ",
					      "blockX",
					      "blockY",
					      "blockZ",
					      "staticSharedMemory",
					      "dynamicSharedMemory",
					      "registersPerThread" };
	static const char *const graph[] = { COMMON_COLUMNS };
	static const char *const copy[] = { COMMON_COLUMNS, "bytes",   "copyKind",
					    "srcKind",      "dstKind", "srcDeviceId",
					    "dstDeviceId",  "srcId",   "dstId" };
	static const char *const set[] = { COMMON_COLUMNS, "bytes" };
	enum lag_status st;

	st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_KERNEL", kernel, take_kernel, err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph, take_graph, err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_MEMCPY", copy, take_copy, err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_MEMSET", set, take_set, err);
	return st;
}

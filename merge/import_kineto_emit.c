/* SPDX-License-Identifier: Apache-2.0 */
/* From a Kineto event to the records a tracer would have written. Events that say too little are
 * counted as bad; kinds that laggard has no use for are passed over. */
#include <string.h>
#include <strings.h>

#include "merge/kineto.h"

/* Start, duration and base (at most INT64_MAX / 2) add up without leaving int64. */
#define TIME_LIMIT ((int64_t)2200000000000000000)

static const char *text_of(const struct lag_kineto_event *e, enum lag_kineto_slot slot)
{
	return lag_buf_text(&e->text[slot]);
}

enum lag_status lag_kineto_string(struct lag_kineto *k, const char *text, size_t n, uint32_t *id,
				  struct lag_err *err)
{
	*id = lag_strtab_add(&k->pool->strings, text, n);
	if (*id == LAG_STR_NONE)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more names");
	return LAG_OK;
}

static enum lag_status intern(struct lag_kineto *k, enum lag_kineto_slot slot, int64_t *id,
			      struct lag_err *err)
{
	const struct lag_buf *buf = &k->event.text[slot];
	uint32_t v = 0;
	enum lag_status st = lag_kineto_string(k, lag_buf_text(buf), buf->n, &v, err);

	*id = v;
	return st;
}

static int64_t end_of(const struct lag_kineto_event *e)
{
	return e->dur_ns == LAG_NONE ? LAG_NONE : e->ts_ns + e->dur_ns;
}

static int64_t device_of(const struct lag_kineto_event *e)
{
	return e->legacy_gpu ? lag_kineto_or(e->tid, 0)
			     : lag_kineto_or(e->i[LAG_KI_DEVICE], lag_kineto_or(e->pid, 0));
}

static int64_t stream_of(const struct lag_kineto_event *e)
{
	return e->legacy_gpu ? 0 : lag_kineto_or(e->i[LAG_KI_STREAM], lag_kineto_or(e->tid, 0));
}

static void use_device(struct lag_kineto *k, int64_t device)
{
	struct lag_kineto_device *d;

	k->n_gpu++;
	for (size_t i = 0; i < k->devices.n; i++) {
		d = &LAG_VEC_AT(&k->devices, struct lag_kineto_device, i);
		if (d->id == device) {
			d->used = true;
			return;
		}
	}
	d = lag_vec_push(&k->devices);
	if (d) {
		*d = (struct lag_kineto_device){ .id = device,
						 .cc_major = LAG_NONE,
						 .cc_minor = LAG_NONE,
						 .sm_count = LAG_NONE,
						 .memory_bytes = LAG_NONE,
						 .used = true };
	}
}

/* Kineto adds static and dynamic shared memory up; the sum stands as dynamic, static is unknown. */
static int64_t config_of(struct lag_kineto *k)
{
	const struct lag_kineto_event *e = &k->event;
	struct lag_rec_launch_config cfg = { .id = 0,
					     .grid_x = e->grid[0],
					     .grid_y = e->grid[1],
					     .grid_z = e->grid[2],
					     .block_x = e->block[0],
					     .block_y = e->block[1],
					     .block_z = e->block[2],
					     .static_smem_bytes = LAG_NONE,
					     .dynamic_smem_bytes = e->i[LAG_KI_SHARED],
					     .registers = e->i[LAG_KI_REGISTERS] };

	return cfg.grid_x == LAG_NONE ? LAG_NONE : lag_pool_config(k->pool, &cfg);
}

static bool names_nccl(const char *name)
{
	return strcasestr(name, "nccl") != NULL;
}

/* Remembers that the record just added carries communication, with what the event says about it. */
static enum lag_status keep_carrier(struct lag_kineto *k, enum lag_record_kind kind,
				    struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->event;
	struct lag_kineto_carrier *c = lag_vec_push(&k->carriers);

	if (!c)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
	*c = (struct lag_kineto_carrier){ .kind = kind,
					  .index = k->part.records[kind].n - 1,
					  .coll = -1,
					  .external = e->i[LAG_KI_EXTERNAL] };
	if (!e->text[LAG_KT_COLLECTIVE].n)
		return LAG_OK;
	c->coll = (int64_t)k->colls.n;
	return lag_kineto_keep_coll(k, &k->colls, err);
}

static enum lag_status emit_kernel(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->event;
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_kernel);
	rec.kernel.start_ns = e->ts_ns;
	rec.kernel.end_ns = end_of(e);
	rec.kernel.device = device_of(e);
	rec.kernel.context = lag_kineto_or(e->i[LAG_KI_CONTEXT], 0);
	rec.kernel.stream = stream_of(e);
	rec.kernel.correlation = lag_kineto_or(e->i[LAG_KI_CORRELATION], 0);
	rec.kernel.config = config_of(k);
	rec.kernel.graph_id = e->i[LAG_KI_GRAPH] > 0 ? e->i[LAG_KI_GRAPH] : LAG_NONE;
	rec.kernel.graph_node_id = e->i[LAG_KI_GRAPH_NODE] > 0 ? e->i[LAG_KI_GRAPH_NODE] : LAG_NONE;
	use_device(k, rec.kernel.device);
	st = intern(k, LAG_KT_NAME, &rec.kernel.name, err);
	if (!lag_failed(st))
		st = lag_part_add(&k->part, &rec, err);
	if (!lag_failed(st) &&
	    (e->text[LAG_KT_COLLECTIVE].n || names_nccl(text_of(e, LAG_KT_NAME))))
		st = keep_carrier(k, LAG_REC_kernel, err);
	return st;
}

/* CUPTI's numbers from "Memcpy HtoD (Pinned -> Device)" and, on AMD, kind "HtoD". */
static void copy_kinds(const struct lag_kineto_event *e, struct lag_rec_memcpy *rec)
{
	static const char *const copies[] = { "",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					      "AtoD", "DtoA", "DtoD", "HtoH", "PtoP" };
	static const char *const memories[] = { "",       "Pageable", "Pinned",
						"Device", "Array",    "Managed" };
	const char *name = text_of(e, LAG_KT_NAME), *kind = text_of(e, LAG_KT_COPY_KIND);
	const char *paren = strchr(name, '('), *arrow = paren ? strstr(paren, " -> ") : NULL;

	for (int i = 1; i < (int)(sizeof(copies) / sizeof(copies[0])); i++) {
		if (strstr(name, copies[i]) || strcmp(kind, copies[i]) == 0)
			rec->copy_kind = i;
	}
	if (!arrow)
		return;
	for (int i = 1; i < (int)(sizeof(memories) / sizeof(memories[0])); i++) {
		size_t n = strlen(memories[i]);

		if (strncmp(paren + 1, memories[i], n) == 0)
			rec->src_kind = i;
		if (strncmp(arrow + 4, memories[i], n) == 0)
			rec->dst_kind = i;
	}
}

static enum lag_status emit_copy(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->event;
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_memcpy);
	rec.memcpy.start_ns = e->ts_ns;
	rec.memcpy.end_ns = end_of(e);
	rec.memcpy.device = device_of(e);
	rec.memcpy.context = lag_kineto_or(e->i[LAG_KI_CONTEXT], 0);
	rec.memcpy.stream = stream_of(e);
	rec.memcpy.correlation = lag_kineto_or(e->i[LAG_KI_CORRELATION], 0);
	rec.memcpy.bytes = e->i[LAG_KI_BYTES];
	rec.memcpy.peer_device = e->i[LAG_KI_PEER_DEVICE];
	rec.memcpy.graph_id = e->i[LAG_KI_GRAPH] > 0 ? e->i[LAG_KI_GRAPH] : LAG_NONE;
	rec.memcpy.graph_node_id = e->i[LAG_KI_GRAPH_NODE] > 0 ? e->i[LAG_KI_GRAPH_NODE] : LAG_NONE;
	copy_kinds(e, &rec.memcpy);
	use_device(k, rec.memcpy.device);
	st = lag_part_add(&k->part, &rec, err);
	if (!lag_failed(st) && e->text[LAG_KT_COLLECTIVE].n)
		st = keep_carrier(k, LAG_REC_memcpy, err);
	return st;
}

static enum lag_status emit_set(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->event;
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_memset);
	rec.memset.start_ns = e->ts_ns;
	rec.memset.end_ns = end_of(e);
	rec.memset.device = device_of(e);
	rec.memset.context = lag_kineto_or(e->i[LAG_KI_CONTEXT], 0);
	rec.memset.stream = stream_of(e);
	rec.memset.correlation = lag_kineto_or(e->i[LAG_KI_CORRELATION], 0);
	rec.memset.bytes = e->i[LAG_KI_BYTES];
	use_device(k, rec.memset.device);
	return lag_part_add(&k->part, &rec, err);
}

static void saw_pid(struct lag_kineto *k)
{
	if (k->part.process.pid == LAG_NONE && k->event.pid > 0)
		k->part.process.pid = k->event.pid;
}

static enum lag_status emit_api(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->event;
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_api);
	rec.api.start_ns = e->ts_ns;
	rec.api.end_ns = end_of(e);
	rec.api.tid = lag_kineto_or(e->tid, 0);
	rec.api.domain = e->cat == LAG_KC_DRIVER ? LAG_API_DRIVER : LAG_API_RUNTIME;
	rec.api.cbid = lag_kineto_not_negative(e->i[LAG_KI_CBID]);
	rec.api.correlation = lag_kineto_or(e->i[LAG_KI_CORRELATION], 0);
	saw_pid(k);
	st = intern(k, LAG_KT_NAME, &rec.api.name, err);
	return lag_failed(st) ? st : lag_part_add(&k->part, &rec, err);
}

static enum lag_status emit_range(struct lag_kineto *k, enum lag_range_kind kind,
				  struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->event;
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_range);
	rec.range.start_ns = e->ts_ns;
	rec.range.end_ns = end_of(e);
	rec.range.tid = kind == LAG_RANGE_GPU ? stream_of(e) : lag_kineto_or(e->tid, 0);
	rec.range.kind = kind;
	if (kind != LAG_RANGE_GPU)
		saw_pid(k);
	st = intern(k, LAG_KT_NAME, &rec.range.name, err);
	return lag_failed(st) ? st : lag_part_add(&k->part, &rec, err);
}

static enum lag_status emit_overhead(struct lag_kineto *k, struct lag_err *err)
{
	/* CUPTI's kinds. */
	static const struct {
		const char *name;
		int64_t kind;
	} kinds[] = { { "Driver", 1 },
		      { "Flush", 1 << 16 },
		      { "Instrumentation", 2 << 16 },
		      { "Resource", 3 << 16 } };

	const char *name = text_of(&k->event, LAG_KT_NAME);
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_overhead);
	rec.overhead.start_ns = k->event.ts_ns;
	rec.overhead.end_ns = end_of(&k->event);
	rec.overhead.kind = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strstr(name, kinds[i].name))
			rec.overhead.kind = kinds[i].kind;
	}
	return lag_part_add(&k->part, &rec, err);
}

static enum lag_status emit_cpu_op(struct lag_kineto *k, struct lag_err *err)
{
	saw_pid(k);
	if (strcmp(text_of(&k->event, LAG_KT_NAME), "record_param_comms") == 0) {
		enum lag_status st = lag_kineto_keep_coll(k, &k->cpu_colls, err);

		if (lag_failed(st))
			return st;
	}
	return k->opts && k->opts->cpu_ops ? emit_range(k, LAG_RANGE_CPU_OP, err) : LAG_OK;
}

static enum lag_status emit_annotation(struct lag_kineto *k, struct lag_err *err)
{
	if (strncmp(text_of(&k->event, LAG_KT_NAME), "nccl:", 5) == 0) {
		enum lag_status st = lag_kineto_keep_coll(k, &k->cpu_colls, err);

		if (lag_failed(st))
			return st;
	}
	return emit_range(k, LAG_RANGE_PUSH, err);
}

/* Names of the process and of its threads. The entries of GPUs look the same but for their names. */
static enum lag_status emit_meta(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->event;
	const char *what = text_of(e, LAG_KT_NAME), *name = text_of(e, LAG_KT_META_NAME);
	struct lag_record rec;
	enum lag_status st;

	if (strcmp(what, "process_labels") == 0 && strcmp(text_of(e, LAG_KT_LABELS), "CPU") == 0 &&
	    e->pid > 0)
		k->part.process.pid = e->pid;
	if (strcmp(what, "thread_name") != 0 || !name[0] || strncmp(name, "stream ", 7) == 0 ||
	    e->tid == LAG_NONE || e->tid < 0)
		return LAG_OK;
	lag_record_init(&rec, LAG_REC_thread);
	rec.thread.tid = e->tid;
	st = intern(k, LAG_KT_META_NAME, &rec.thread.name, err);
	return lag_failed(st) ? st : lag_part_add(&k->part, &rec, err);
}

static enum lag_status emit_complete(struct lag_kineto *k, struct lag_err *err)
{
	switch (k->event.cat) {
	case LAG_KC_KERNEL:
		return emit_kernel(k, err);
	case LAG_KC_MEMCPY:
		return emit_copy(k, err);
	case LAG_KC_MEMSET:
		return emit_set(k, err);
	case LAG_KC_RUNTIME:
	case LAG_KC_DRIVER:
		return emit_api(k, err);
	case LAG_KC_CPU_OP:
		return emit_cpu_op(k, err);
	case LAG_KC_PYTHON:
		return k->opts && k->opts->cpu_ops ? emit_range(k, LAG_RANGE_CPU_OP, err) : LAG_OK;
	case LAG_KC_ANNOTATION:
		return emit_annotation(k, err);
	case LAG_KC_GPU_ANNOTATION:
		return emit_range(k, LAG_RANGE_GPU, err);
	case LAG_KC_SYNC:
	case LAG_KC_EVENT:
		return lag_kineto_emit_sync(k, err);
	case LAG_KC_OVERHEAD:
		return emit_overhead(k, err);
	case LAG_KC_TRACE:
		k->part.process.start_ns = k->event.ts_ns;
		return LAG_OK;
	case LAG_KC_OTHER:
		break;
	}
	/* The autograd profiler of 2020 had no categories. */
	if (k->event.legacy_gpu)
		return emit_kernel(k, err);
	k->part.n_unknown++;
	return LAG_OK;
}

enum lag_status lag_kineto_emit(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_kineto_event *e = &k->event;

	k->n_events++;
	for (size_t i = 0; i < LAG_KT_LIMIT; i++) {
		if (e->text[i].failed)
			return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	}
	if (e->phase == 'M') {
		k->n_meta++;
		return emit_meta(k, err);
	}
	if (e->phase != 'X')
		return LAG_OK;
	if (e->ts_ns == LAG_NONE || e->ts_ns > TIME_LIMIT || e->ts_ns < -TIME_LIMIT ||
	    (e->dur_ns != LAG_NONE && (e->dur_ns > TIME_LIMIT || e->dur_ns < -TIME_LIMIT))) {
		if (!k->part.n_bad++)
			k->first_bad_at = k->json.at;
		return LAG_OK;
	}
	return emit_complete(k, err);
}

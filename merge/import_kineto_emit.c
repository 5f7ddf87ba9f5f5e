/* SPDX-License-Identifier: Apache-2.0 */
/* From a Kineto event to the records a tracer would have written. Events that say too little are
 * counted as bad; kinds that laggard has no use for are passed over. */
#include <string.h>

#include "merge/kineto.h"

/* Start, duration and base (at most INT64_MAX / 2) add up without leaving int64. */
#define TIME_LIMIT ((int64_t)2200000000000000000)

static struct lag_span text_of(const struct lag_kineto *k, enum lag_kineto_slot slot)
{
	return k->scan.event.text[slot];
}

static bool holds(struct lag_span text, const char *part)
{
	return memmem(text.text, text.n, part, strlen(part)) != NULL;
}

static enum lag_status intern(struct lag_kineto *k, enum lag_kineto_slot slot, int64_t *id,
			      struct lag_err *err)
{
	uint32_t v = 0;
	enum lag_status st = lag_kineto_string(k, text_of(k, slot), &v, err);

	*id = v;
	return st;
}

static int64_t end_of(const struct lag_kineto_event *e)
{
	return e->dur_ns == LAG_NONE ? LAG_NONE : e->ts_ns + e->dur_ns;
}

static int64_t device_of(const struct lag_kineto_event *e)
{
	return e->legacy_gpu ? lag_or(e->tid, 0) : lag_or(e->i[LAG_KI_DEVICE], lag_or(e->pid, 0));
}

static int64_t stream_of(const struct lag_kineto_event *e)
{
	return e->legacy_gpu ? 0 : lag_or(e->i[LAG_KI_STREAM], lag_or(e->tid, 0));
}

/* A record whose first fields are start and end. */
static void begin(const struct lag_kineto *k, struct lag_record *rec, enum lag_record_kind kind)
{
	lag_record_init(rec, kind);
	rec->field[0] = k->scan.event.ts_ns;
	rec->field[1] = end_of(&k->scan.event);
}

/* Records of GPU work begin alike. */
#define SAME_PLACE(field)                                                        \
	_Static_assert(offsetof(struct lag_rec_kernel, field) ==                 \
				       offsetof(struct lag_rec_memcpy, field) && \
			       offsetof(struct lag_rec_kernel, field) ==         \
				       offsetof(struct lag_rec_memset, field),   \
		       #field " stands at one place in all records of GPU work")
SAME_PLACE(device);
SAME_PLACE(context);
SAME_PLACE(stream);
SAME_PLACE(correlation);

static void begin_gpu(struct lag_kineto *k, struct lag_record *rec, enum lag_record_kind kind)
{
	const struct lag_kineto_event *e = &k->scan.event;

	begin(k, rec, kind);
	rec->kernel.device = device_of(e);
	rec->kernel.context = lag_or(e->i[LAG_KI_CONTEXT], 0);
	rec->kernel.stream = stream_of(e);
	rec->kernel.correlation = lag_or(e->i[LAG_KI_CORRELATION], 0);
	lag_kineto_use_device(k, rec->kernel.device);
}

/* Adds rec; where it carries communication, remembers it with what the event says about it. */
static enum lag_status add_gpu(struct lag_kineto *k, const struct lag_record *rec, bool names_nccl,
			       struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	enum lag_status st = lag_part_add(&k->p->part, rec, err);
	struct lag_kineto_carrier *c;

	if (lag_failed(st) || (!names_nccl && !e->text[LAG_KT_COLLECTIVE].n))
		return st;
	c = lag_vec_push(&k->p->carriers);
	if (!c)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
	*c = (struct lag_kineto_carrier){ .kind = rec->kind,
					  .index = k->p->part.records[rec->kind].n - 1,
					  .coll = -1,
					  .external = e->i[LAG_KI_EXTERNAL] };
	if (!e->text[LAG_KT_COLLECTIVE].n)
		return LAG_OK;
	c->coll = (int64_t)k->p->colls.n;
	return lag_kineto_keep_coll(k, &k->p->colls, err);
}

static enum lag_status emit_kernel(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_kineto_known name;
	struct lag_record rec;
	bool whole = k->exported && e->text[LAG_KT_KERNEL].n;
	enum lag_status st =
		lag_kineto_name(k, e->text[whole ? LAG_KT_KERNEL : LAG_KT_NAME], &name, err);

	if (lag_failed(st))
		return st;
	begin_gpu(k, &rec, LAG_REC_kernel);
	rec.kernel.name = name.id;
	rec.kernel.config = lag_kineto_config(k);
	rec.kernel.graph_id = lag_positive(e->i[LAG_KI_GRAPH]);
	rec.kernel.graph_node_id = lag_positive(e->i[LAG_KI_GRAPH_NODE]);
	return add_gpu(k, &rec, name.names_nccl, err);
}

/* CUPTI's numbers from "Memcpy HtoD (Pinned -> Device)" and, on AMD, kind "HtoD". */
static void copy_kinds(const struct lag_kineto *k, struct lag_rec_memcpy *rec)
{
	static const char *const copies[] = { "",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					      "AtoD", "DtoA", "DtoD", "HtoH", "PtoP" };
	static const char *const memories[] = { "",       "Pageable", "Pinned",
						"Device", "Array",    "Managed" };
	struct lag_span name = text_of(k, LAG_KT_NAME), kind = text_of(k, LAG_KT_COPY_KIND);
	const char *from = memchr(name.text, '(', name.n), *to = NULL;

	for (int i = 1; i < (int)(sizeof(copies) / sizeof(copies[0])); i++) {
		if (holds(name, copies[i]) || (kind.n == 4 && memcmp(kind.text, copies[i], 4) == 0))
			rec->copy_kind = i;
	}
	if (from)
		to = memmem(from, name.n - (size_t)(from - name.text), " -> ", 4);
	if (!to)
		return;
	for (int i = 1; i < (int)(sizeof(memories) / sizeof(memories[0])); i++) {
		size_t n = strlen(memories[i]);

		if ((size_t)(to - from) > n && memcmp(from + 1, memories[i], n) == 0)
			rec->src_kind = i;
		if (name.n - (size_t)(to - name.text) >= n + 4 &&
		    memcmp(to + 4, memories[i], n) == 0)
			rec->dst_kind = i;
	}
}

static enum lag_status emit_copy(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_record rec;

	begin_gpu(k, &rec, LAG_REC_memcpy);
	rec.memcpy.bytes = e->i[LAG_KI_BYTES];
	rec.memcpy.peer_device = e->i[LAG_KI_PEER_DEVICE];
	rec.memcpy.graph_id = lag_positive(e->i[LAG_KI_GRAPH]);
	rec.memcpy.graph_node_id = lag_positive(e->i[LAG_KI_GRAPH_NODE]);
	copy_kinds(k, &rec.memcpy);
	return add_gpu(k, &rec, false, err);
}

static enum lag_status emit_set(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_record rec;

	begin_gpu(k, &rec, LAG_REC_memset);
	rec.memset.bytes = e->i[LAG_KI_BYTES];
	rec.memset.graph_id = lag_positive(e->i[LAG_KI_GRAPH]);
	rec.memset.graph_node_id = lag_positive(e->i[LAG_KI_GRAPH_NODE]);
	return lag_part_add(&k->p->part, &rec, err);
}

static void saw_pid(struct lag_kineto *k)
{
	if (k->p->part.process.pid == LAG_NONE && k->scan.event.pid > 0)
		k->p->part.process.pid = k->scan.event.pid;
}

static enum lag_status emit_api(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_record rec;
	enum lag_status st;

	begin(k, &rec, LAG_REC_api);
	rec.api.tid = lag_or(e->tid, 0);
	rec.api.domain = e->cat == LAG_KC_DRIVER ? LAG_API_DRIVER : LAG_API_RUNTIME;
	rec.api.cbid = lag_kineto_not_negative(e->i[LAG_KI_CBID]);
	rec.api.correlation = lag_or(e->i[LAG_KI_CORRELATION], 0);
	saw_pid(k);
	st = intern(k, LAG_KT_NAME, &rec.api.name, err);
	return lag_failed(st) ? st : lag_part_add(&k->p->part, &rec, err);
}

static enum lag_status emit_range(struct lag_kineto *k, enum lag_range_kind kind,
				  struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_record rec;
	enum lag_status st;

	begin(k, &rec, LAG_REC_range);
	rec.range.tid = kind == LAG_RANGE_GPU ? stream_of(e) : lag_or(e->tid, 0);
	rec.range.kind = kind;
	if (kind != LAG_RANGE_GPU)
		saw_pid(k);
	st = intern(k, LAG_KT_NAME, &rec.range.name, err);
	return lag_failed(st) ? st : lag_part_add(&k->p->part, &rec, err);
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

	struct lag_span name = text_of(k, LAG_KT_NAME);
	struct lag_record rec;

	begin(k, &rec, LAG_REC_overhead);
	rec.overhead.kind = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (holds(name, kinds[i].name))
			rec.overhead.kind = kinds[i].kind;
	}
	return lag_part_add(&k->p->part, &rec, err);
}

static enum lag_status emit_cpu_op(struct lag_kineto *k, struct lag_err *err)
{
	saw_pid(k);
	if (lag_span_is(text_of(k, LAG_KT_NAME), LAG_SPAN("record_param_comms"))) {
		enum lag_status st = lag_kineto_keep_coll(k, &k->p->cpu_colls, err);

		if (lag_failed(st))
			return st;
	}
	return k->opts && k->opts->cpu_ops ? emit_range(k, LAG_RANGE_CPU_OP, err) : LAG_OK;
}

static enum lag_status emit_annotation(struct lag_kineto *k, struct lag_err *err)
{
	if (lag_span_begins(text_of(k, LAG_KT_NAME), LAG_SPAN("nccl:"))) {
		enum lag_status st = lag_kineto_keep_coll(k, &k->p->cpu_colls, err);

		if (lag_failed(st))
			return st;
	}
	return emit_range(k, LAG_RANGE_PUSH, err);
}

/* Names of the process and of its threads. The entries of GPUs look the same but for their names. */
static enum lag_status emit_meta(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_span what = text_of(k, LAG_KT_NAME), name = text_of(k, LAG_KT_META_NAME);
	struct lag_record rec;
	enum lag_status st;

	if (lag_span_is(what, LAG_SPAN("process_labels")) &&
	    lag_span_is(text_of(k, LAG_KT_LABELS), LAG_SPAN("CPU")) && e->pid > 0)
		k->p->part.process.pid = e->pid;
	if (!lag_span_is(what, LAG_SPAN("thread_name")) || !name.n ||
	    lag_span_begins(name, LAG_SPAN("stream ")) || e->tid < 0)
		return LAG_OK;
	lag_record_init(&rec, LAG_REC_thread);
	rec.thread.tid = e->tid;
	st = intern(k, LAG_KT_META_NAME, &rec.thread.name, err);
	return lag_failed(st) ? st : lag_part_add(&k->p->part, &rec, err);
}

enum lag_status lag_kineto_emit_complete(struct lag_kineto *k, struct lag_err *err)
{
	switch (k->scan.event.cat) {
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
		/* In 2021 annotations were operators. */
		return lag_span_begins(text_of(k, LAG_KT_NAME), LAG_SPAN("ProfilerStep#"))
			       ? emit_annotation(k, err)
			       : emit_cpu_op(k, err);
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
		k->p->part.process.start_ns = k->scan.event.ts_ns;
		return LAG_OK;
	case LAG_KC_OTHER:
	case LAG_KC_LIMIT:
		break;
	}
	/* The autograd profiler of 2020 had no categories. */
	if (k->scan.event.legacy_gpu)
		return emit_kernel(k, err);
	/* Of an exported trace, what laggard concluded: it will conclude it again. */
	k->p->part.n_unknown += !k->exported;
	return LAG_OK;
}

enum lag_status lag_kineto_emit(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_kineto_event *e = &k->scan.event;
	int64_t end_ns;

	k->n_events++;
	if (!lag_kineto_set_proc(k)) {
		k->n_strange += e->phase == 'X' || e->phase == 'B' || e->phase == 'E';
		return LAG_OK;
	}
	if (e->phase == 'M') {
		k->n_meta++;
		return emit_meta(k, err);
	}
	if (e->phase != 'X' && e->phase != 'B' && e->phase != 'E')
		return LAG_OK;
	if (e->ts_ns == LAG_NONE || e->ts_ns > TIME_LIMIT || e->ts_ns < -TIME_LIMIT) {
		if (!k->p->part.n_bad++)
			k->p->first_bad_at = k->scan.json.at;
		return LAG_OK;
	}
	/* However long it says it was: the merge puts aside what cannot be, and shows it. */
	if (e->dur_ns != LAG_NONE && __builtin_add_overflow(e->ts_ns, e->dur_ns, &end_ns))
		e->dur_ns = e->dur_ns > 0 ? TIME_LIMIT : -TIME_LIMIT;
	return e->phase == 'X' ? lag_kineto_emit_complete(k, err) : lag_kineto_emit_half(k, err);
}

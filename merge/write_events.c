/* SPDX-License-Identifier: Apache-2.0 */
/* Events as rows: each function fills the columns after the id, in the schema's order. */
#include "merge/write.h"

/* Columns that may not be NULL, should a record of an older writer lack the field. */
static int64_t told(int64_t value)
{
	return value == LAG_NONE ? 0 : value;
}

static int64_t host_time(struct lag_fill *f, int64_t raw)
{
	return lag_merge_corrected_at(f->w->m, f->wp->p, &f->host, LAG_HOST_CLOCK, raw);
}

static int64_t gpu_time(struct lag_fill *f, uint32_t device, int64_t raw)
{
	return lag_merge_corrected_at(f->w->m, f->wp->p, &f->gpu, device, raw);
}

/* ---- GPU events ---- */

static size_t count_gpu(const struct lag_writer *w, const struct lag_write_proc *wp)
{
	(void)w;
	return wp->p->gpu.n;
}

static int64_t name_of(const struct lag_writer *w, const struct lag_proc *p,
		       const struct lag_gpu *g)
{
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(p, g);
	int64_t kind = shape->copy_kind;

	if (shape->kind == LAG_GPU_KERNEL)
		return LAG_GPU_SLOT(p, g, name);
	if (shape->kind == LAG_GPU_SET)
		return w->set_name;
	return w->copy_names[kind >= 0 && kind < LAG_COPY_KINDS ? kind : 0];
}

static void fill_gpu(struct lag_fill *f, size_t i, int64_t *row)
{
	const struct lag_proc *p = f->wp->p;
	size_t at = f->wp->gpu_order.n ? LAG_VEC_AT(&f->wp->gpu_order, uint32_t, i) : i;
	const struct lag_gpu *g = LAG_GPU_AT(p, at);
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(p, g);
	bool kernel = shape->kind == LAG_GPU_KERNEL;
	int64_t config = LAG_GPU_SLOT(p, g, config), end_ns = LAG_GPU_END(p, g);

	row[1] = p->rank;
	row[2] = shape->kind;
	row[3] = told(shape->device);
	row[4] = shape->context;
	row[5] = told(shape->stream);
	row[6] = gpu_time(f, shape->dense, g->start_ns);
	row[7] = gpu_time(f, shape->dense, end_ns);
	row[8] = g->start_ns;
	row[9] = end_ns;
	row[10] = name_of(f->w, p, g);
	row[11] = LAG_GPU_SLOT(p, g, correlation);
	row[12] = g->api_ref ? f->wp->first_id[LAG_ROWS_API] + g->api_ref - 1 : LAG_NONE;
	row[13] = !kernel || config == LAG_NONE ? LAG_NONE : config + 1;
	row[14] = kernel ? LAG_NONE : config;
	row[15] = shape->copy_kind;
	row[16] = shape->peer;
	row[17] = shape->graph_id;
	row[18] = shape->graph_node_id;
	row[19] = g->launch_ref ? f->wp->first_id[LAG_ROWS_LAUNCH] + g->launch_ref - 1 : LAG_NONE;
	row[20] = g->api_ref == 0;
}

/* ---- host events; all by their start ---- */

static size_t count_api(const struct lag_writer *w, const struct lag_write_proc *wp)
{
	(void)w;
	return LAG_PART_COUNT(&wp->p->part, api);
}

static void fill_api(struct lag_fill *f, size_t i, int64_t *row)
{
	const struct lag_part *part = &f->wp->p->part;
	const struct lag_compact *a = LAG_PART_COMPACT(part, api, i);
	const struct lag_rec_api *shape = lag_shape_at(&part->shapes[LAG_REC_api], a->shape);
	int64_t end_ns = lag_slot_end(a->slot[LAG_SLOT_END], a->start_ns, shape->end_ns);

	row[1] = f->wp->p->rank;
	row[2] = told(shape->tid);
	row[3] = told(shape->domain);
	row[4] = lag_slot_value(a->slot[LAG_SLOT_NAME], shape->name);
	row[5] = host_time(f, a->start_ns);
	row[6] = host_time(f, end_ns);
	row[7] = a->start_ns;
	row[8] = end_ns;
	row[9] = lag_slot_value(a->slot[LAG_SLOT_CORRELATION], shape->correlation);
	row[10] = shape->result;
}

static size_t count_sync(const struct lag_writer *w, const struct lag_write_proc *wp)
{
	(void)w;
	return LAG_PART_COUNT(&wp->p->part, sync);
}

static void fill_sync(struct lag_fill *f, size_t i, int64_t *row)
{
	struct lag_rec_sync s = LAG_PART_GET(&f->wp->p->part, sync, i);

	row[1] = f->wp->p->rank;
	row[2] = told(s.kind);
	row[3] = host_time(f, s.start_ns);
	row[4] = host_time(f, s.end_ns);
	row[5] = s.start_ns;
	row[6] = s.end_ns;
	row[7] = s.context;
	row[8] = s.stream;
	row[9] = s.event_id;
	row[10] = s.sync_id;
	row[11] = s.correlation;
	row[12] = s.record_correlation;
}

static size_t count_range(const struct lag_writer *w, const struct lag_write_proc *wp)
{
	(void)w;
	return LAG_PART_COUNT(&wp->p->part, range);
}

static void fill_range(struct lag_fill *f, size_t i, int64_t *row)
{
	struct lag_rec_range r = LAG_PART_GET(&f->wp->p->part, range, i);
	struct lag_range_link link = LAG_VEC_AT(&f->wp->p->range_links, struct lag_range_link, i);

	row[1] = f->wp->p->rank;
	row[2] = told(r.tid);
	row[3] = told(r.kind);
	row[4] = r.domain;
	row[5] = r.category;
	row[6] = r.name;
	row[7] = host_time(f, r.start_ns);
	row[8] = host_time(f, r.end_ns);
	row[9] = r.start_ns;
	row[10] = r.end_ns;
	row[11] = link.depth_ref ? (int64_t)link.depth_ref - 1 : LAG_NONE;
	row[12] = r.color;
	row[13] = r.payload;
	row[14] = link.unclosed;
}

/* ---- communication ---- */

static size_t count_launches(const struct lag_writer *w, const struct lag_write_proc *wp)
{
	(void)w;
	return wp->p->launches.n;
}

static void fill_launch(struct lag_fill *f, size_t i, int64_t *row)
{
	const struct lag_launch *l = LAG_LAUNCH_AT(f->wp->p, i);
	uint32_t place = l->gpu_ref;

	if (place && f->wp->gpu_place.n)
		place = LAG_VEC_AT(&f->wp->gpu_place, uint32_t, place - 1) + 1;
	row[1] = f->wp->p->rank;
	row[2] = (int64_t)l->comm + 1;
	row[3] = l->group_id;
	row[4] = l->n_ops;
	row[5] = l->stream;
	row[6] = gpu_time(f, l->device, l->start_ns);
	row[7] = gpu_time(f, l->device, l->end_ns);
	row[8] = l->start_ns;
	row[9] = l->end_ns;
	row[10] = place ? f->wp->first_id[LAG_ROWS_GPU] + place - 1 : LAG_NONE;
}

static int64_t bytes_of(const struct lag_rec_op *op)
{
	int64_t size = (int64_t)lag_datatype_size(op->datatype), bytes;

	if (op->count < 0 || !size || __builtin_mul_overflow(op->count, size, &bytes))
		return LAG_NONE;
	return bytes;
}

static size_t count_ops(const struct lag_writer *w, const struct lag_write_proc *wp)
{
	(void)w;
	return LAG_PART_COUNT(&wp->p->part, op);
}

static void fill_op(struct lag_fill *f, size_t i, int64_t *row)
{
	const struct lag_rec_op *o = &LAG_PART_AT(&f->wp->p->part, op, i);
	const struct lag_op_link *link = LAG_OP_LINK_AT(f->wp->p, i);

	row[1] = f->wp->p->rank;
	row[2] = (int64_t)link->comm + 1;
	row[3] = told(o->func);
	row[4] = link->seq;
	row[5] = o->peer;
	row[6] = o->count;
	row[7] = o->datatype;
	row[8] = o->redop;
	row[9] = bytes_of(o);
	row[10] = o->tid;
	row[11] = host_time(f, o->enter_ns);
	row[12] = host_time(f, o->leave_ns);
	row[13] = o->enter_ns;
	row[14] = o->leave_ns;
	row[15] = o->group_id;
	row[16] = link->launch_ref ? f->wp->first_id[LAG_ROWS_LAUNCH] + link->launch_ref - 1
				   : LAG_NONE;
	row[17] = link->instance_ref ? (int64_t)link->instance_ref : LAG_NONE;
	row[18] = told(o->sources);
	row[19] = o->result;
}

static size_t count_instances(const struct lag_writer *w, const struct lag_write_proc *wp)
{
	(void)wp;
	return w->m->instances.n;
}

static void fill_instance(struct lag_fill *f, size_t i, int64_t *row)
{
	const struct lag_instance_row *r = LAG_INSTANCE_AT(f->w->m, i);

	row[1] = (int64_t)r->comm + 1;
	row[2] = r->func;
	row[3] = r->seq;
	row[4] = r->src;
	row[5] = r->dst;
	row[6] = r->bytes;
	row[7] = r->datatype;
	row[8] = r->n_members;
	row[9] = r->n_recorded;
	row[10] = r->n_started;
	row[11] = r->n_finished;
	row[12] = r->first_start_ns;
	row[13] = r->last_start_ns;
	row[14] = r->first_end_ns;
	row[15] = r->last_end_ns;
	row[16] = r->last_rank;
	row[17] = r->lead_ns;
	row[18] = (int64_t)r->flags;
}

const struct lag_row_source lag_row_sources[LAG_ROWS_LIMIT] = {
	[LAG_ROWS_GPU] = { 21, count_gpu, fill_gpu, LAG_TABLE_gpu_event, true },
	[LAG_ROWS_API] = { 11, count_api, fill_api, LAG_TABLE_api_call, true },
	[LAG_ROWS_SYNC] = { 13, count_sync, fill_sync, LAG_TABLE_gpu_sync, true },
	[LAG_ROWS_RANGE] = { 15, count_range, fill_range, LAG_TABLE_nvtx_range, true },
	[LAG_ROWS_LAUNCH] = { 11, count_launches, fill_launch, LAG_TABLE_nccl_launch, false },
	[LAG_ROWS_OP] = { 20, count_ops, fill_op, LAG_TABLE_nccl_op, true },
	[LAG_ROWS_INSTANCE] = { 19, count_instances, fill_instance, LAG_TABLE_instance, false },
};

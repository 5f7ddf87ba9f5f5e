/* SPDX-License-Identifier: Apache-2.0 */
/* One process's events as rows: ordered by corrected start, ids counting up over ranks and time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/write.h"

struct order {
	int64_t at_ns;
	uint32_t index;
};

static int by_time(const void *left, const void *right)
{
	const struct order *a = left, *b = right;

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static void sort_order(struct order *at, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (by_time(&at[i - 1], &at[i]) > 0) {
			qsort(at, n, sizeof(*at), by_time);
			return;
		}
	}
}

/* Columns that may not be NULL, should a record of an older writer lack the field. */
static int64_t told(int64_t value)
{
	return value == LAG_NONE ? 0 : value;
}

/* Orders and ids of one process's tables. */
struct plan {
	struct lag_writer *w;
	struct lag_proc *p;
	struct order *gpu;
	int64_t *gpu_id; /* by index */
};

static int64_t corrected(const struct plan *pl, uint32_t device, int64_t raw)
{
	return lag_merge_corrected(pl->w->m, pl->p, device, raw);
}

static void release_plan(struct plan *pl)
{
	free(pl->gpu);
	free(pl->gpu_id);
}

static enum lag_status make_plan(struct plan *pl)
{
	pl->gpu = lag_calloc(pl->p->gpu.n, sizeof(*pl->gpu));
	pl->gpu_id = lag_calloc(pl->p->gpu.n, sizeof(*pl->gpu_id));
	if (!pl->gpu || !pl->gpu_id)
		return LAG_ERR_SYSTEM;
	for (uint32_t i = 0; i < pl->p->gpu.n; i++) {
		const struct lag_gpu *g = LAG_GPU_AT(pl->p, i);

		pl->gpu[i].at_ns = corrected(pl, LAG_GPU_SHAPE_AT(pl->p, g)->dense, g->start_ns);
		pl->gpu[i].index = i;
	}
	sort_order(pl->gpu, pl->p->gpu.n);
	for (size_t i = 0; i < pl->p->gpu.n; i++)
		pl->gpu_id[pl->gpu[i].index] = pl->w->gpu_id + 1 + (int64_t)i;
	return LAG_OK;
}

static int64_t intern(struct lag_writer *w, const char *text, size_t n)
{
	uint32_t id = lag_strtab_add(&w->m->pool.strings, text, n);

	return id == LAG_STR_NONE ? LAG_NONE : id;
}

/* Kernel names get their readable forms at first sight. */
static enum lag_status name_kernel(struct lag_writer *w, int64_t name, struct lag_err *err)
{
	const char *text = lag_merge_text(w->m, name);
	struct lag_buf full = { 0 }, brief = { 0 };
	int64_t row[4] = { name, name, name, lag_name_is_communication(text) };
	enum lag_status st;
	uint64_t seen;

	if (lag_map_find(&w->kernel_names, (uint64_t)name, &seen))
		return LAG_OK;
	if (lag_demangle(text, &full)) {
		row[1] = intern(w, full.text, full.n);
	} else {
		lag_buf_puts(&full, text);
	}
	if (!lag_renames_apply(&w->renames, lag_buf_text(&full), &brief))
		lag_name_short(lag_buf_text(&full), &brief);
	if (brief.n)
		row[2] = intern(w, brief.text, brief.n);
	st = full.failed || brief.failed || row[1] == LAG_NONE || row[2] == LAG_NONE ||
			     lag_failed(lag_map_set(&w->kernel_names, (uint64_t)name, 1))
		     ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for kernel names")
		     : lag_db_insert_ints(w->db, LAG_TABLE_kernel_name, row, 4, err);
	lag_buf_release(&full);
	lag_buf_release(&brief);
	return st;
}

/* CUPTI's copy kinds. */
static const char *copy_kind_name(int64_t kind)
{
	static const char *const names[] = { "copy",      "copy HtoD", "copy DtoH", "copy HtoA",
					     "copy AtoH", "copy AtoA", "copy AtoD", "copy DtoA",
					     "copy DtoD", "copy HtoH", "copy PtoP" };

	return names[kind >= 0 && kind <= 10 ? kind : 0];
}

static int64_t name_of(const struct plan *pl, const struct lag_gpu *g)
{
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(pl->p, g);
	const char *name = shape->kind == LAG_GPU_SET ? "set" : copy_kind_name(shape->copy_kind);

	return shape->kind == LAG_GPU_KERNEL ? LAG_GPU_SLOT(pl->p, g, name)
					     : intern(pl->w, name, strlen(name));
}

static enum lag_status write_gpu_event(struct plan *pl, const struct order *at, struct lag_err *err)
{
	struct lag_writer *w = pl->w;
	const struct lag_gpu *g = LAG_GPU_AT(pl->p, at->index);
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(pl->p, g);
	bool kernel = shape->kind == LAG_GPU_KERNEL;
	int64_t config = LAG_GPU_SLOT(pl->p, g, config), end_ns = LAG_GPU_END(pl->p, g);
	enum lag_status st = LAG_OK;
	int64_t row[21] = {
		++w->gpu_id,
		pl->p->rank,
		shape->kind,
		told(shape->device),
		shape->context,
		told(shape->stream),
		at->at_ns,
		corrected(pl, shape->dense, end_ns),
		g->start_ns,
		end_ns,
		name_of(pl, g),
		LAG_GPU_SLOT(pl->p, g, correlation),
		g->api_ref ? w->api_id + g->api_ref : LAG_NONE,
		!kernel || config == LAG_NONE ? LAG_NONE : config + 1,
		kernel ? LAG_NONE : config,
		shape->copy_kind,
		shape->peer,
		shape->graph_id,
		shape->graph_node_id,
		g->launch_ref ? w->launch_id + g->launch_ref : LAG_NONE,
		g->api_ref == 0,
	};

	if (kernel)
		st = name_kernel(w, row[10], err);
	return st == LAG_OK ? lag_db_insert_ints(w->db, LAG_TABLE_gpu_event, row, 21, err) : st;
}

static enum lag_status write_gpu(struct plan *pl, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < pl->p->gpu.n && st == LAG_OK; i++) {
		st = write_gpu_event(pl, &pl->gpu[i], err);
		if (st == LAG_OK)
			st = lag_writer_count(pl->w, err);
	}
	return st;
}

/* Calls are by start already: their ids are their places. */
static enum lag_status write_api(struct plan *pl, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(&pl->p->part, api) && st == LAG_OK; i++) {
		struct lag_rec_api a = LAG_PART_GET(&pl->p->part, api, i);
		int64_t row[11] = { ++pl->w->api_id,
				    pl->p->rank,
				    told(a.tid),
				    told(a.domain),
				    a.name,
				    corrected(pl, LAG_HOST_CLOCK, a.start_ns),
				    corrected(pl, LAG_HOST_CLOCK, a.end_ns),
				    a.start_ns,
				    a.end_ns,
				    a.correlation,
				    a.result };

		st = lag_db_insert_ints(pl->w->db, LAG_TABLE_api_call, row, 11, err);
		if (st == LAG_OK)
			st = lag_writer_count(pl->w, err);
	}
	return st;
}

/* Records in order of their first field, a time. NULL without memory. */
static struct order *order_records(const struct lag_vec *vec)
{
	struct order *order = lag_calloc(vec->n, sizeof(*order));

	for (size_t i = 0; order && i < vec->n; i++) {
		const void *rec = (const char *)vec->items + i * vec->item_size;

		memcpy(&order[i].at_ns, rec, sizeof(order[i].at_ns));
		order[i].index = (uint32_t)i;
	}
	if (order)
		sort_order(order, vec->n);
	return order;
}

static enum lag_status write_syncs(struct plan *pl, struct lag_err *err)
{
	const struct lag_vec *vec = LAG_PART_VEC(&pl->p->part, sync);
	struct order *order = order_records(vec);
	enum lag_status st = LAG_OK;

	if (!order)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to order events");
	for (size_t i = 0; i < vec->n && st == LAG_OK; i++) {
		struct lag_rec_sync s = LAG_PART_GET(&pl->p->part, sync, order[i].index);
		int64_t row[13] = { ++pl->w->sync_id,
				    pl->p->rank,
				    told(s.kind),
				    corrected(pl, LAG_HOST_CLOCK, s.start_ns),
				    corrected(pl, LAG_HOST_CLOCK, s.end_ns),
				    s.start_ns,
				    s.end_ns,
				    s.context,
				    s.stream,
				    s.event_id,
				    s.sync_id,
				    s.correlation,
				    s.record_correlation };

		st = lag_db_insert_ints(pl->w->db, LAG_TABLE_gpu_sync, row, 13, err);
		if (st == LAG_OK)
			st = lag_writer_count(pl->w, err);
	}
	free(order);
	return st;
}

static enum lag_status write_ranges(struct plan *pl, struct lag_err *err)
{
	const struct lag_vec *vec = LAG_PART_VEC(&pl->p->part, range);
	struct order *order = order_records(vec);
	enum lag_status st = LAG_OK;

	if (!order)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to order events");
	for (size_t i = 0; i < vec->n && st == LAG_OK; i++) {
		struct lag_rec_range r = LAG_PART_GET(&pl->p->part, range, order[i].index);
		const struct lag_range_link *link =
			&LAG_VEC_AT(&pl->p->range_links, struct lag_range_link, order[i].index);
		int64_t row[15] = { ++pl->w->range_id,
				    pl->p->rank,
				    told(r.tid),
				    told(r.kind),
				    r.domain,
				    r.category,
				    r.name,
				    corrected(pl, LAG_HOST_CLOCK, r.start_ns),
				    corrected(pl, LAG_HOST_CLOCK, r.end_ns),
				    r.start_ns,
				    r.end_ns,
				    link->depth_ref ? (int64_t)link->depth_ref - 1 : LAG_NONE,
				    r.color,
				    r.payload,
				    link->unclosed };

		st = lag_db_insert_ints(pl->w->db, LAG_TABLE_nvtx_range, row, 15, err);
		if (st == LAG_OK)
			st = lag_writer_count(pl->w, err);
	}
	free(order);
	return st;
}

static enum lag_status write_launches(struct plan *pl, int64_t first_id, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < pl->p->launches.n && st == LAG_OK; i++) {
		const struct lag_launch *l = LAG_LAUNCH_AT(pl->p, i);
		int64_t row[11] = { first_id + (int64_t)i,
				    pl->p->rank,
				    (int64_t)l->comm + 1,
				    l->group_id,
				    l->n_ops,
				    l->stream,
				    corrected(pl, l->device, l->start_ns),
				    corrected(pl, l->device, l->end_ns),
				    l->start_ns,
				    l->end_ns,
				    l->gpu_ref ? pl->gpu_id[l->gpu_ref - 1] : LAG_NONE };

		st = lag_db_insert_ints(pl->w->db, LAG_TABLE_nccl_launch, row, 11, err);
	}
	return st;
}

static int64_t bytes_of(const struct lag_rec_op *op)
{
	int64_t size = (int64_t)lag_datatype_size(op->datatype), bytes;

	if (op->count < 0 || !size || __builtin_mul_overflow(op->count, size, &bytes))
		return LAG_NONE;
	return bytes;
}

static enum lag_status write_ops(struct plan *pl, int64_t first_launch, struct lag_err *err)
{
	const struct lag_vec *vec = LAG_PART_VEC(&pl->p->part, op);
	struct order *order = order_records(vec);
	enum lag_status st = LAG_OK;

	if (!order)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to order events");
	for (size_t i = 0; i < vec->n && st == LAG_OK; i++) {
		const struct lag_rec_op *o = &LAG_PART_AT(&pl->p->part, op, order[i].index);
		const struct lag_op_link *link = LAG_OP_LINK_AT(pl->p, order[i].index);
		int64_t row[20] = {
			++pl->w->op_id,
			pl->p->rank,
			(int64_t)link->comm + 1,
			told(o->func),
			link->seq,
			o->peer,
			o->count,
			o->datatype,
			o->redop,
			bytes_of(o),
			o->tid,
			corrected(pl, LAG_HOST_CLOCK, o->enter_ns),
			corrected(pl, LAG_HOST_CLOCK, o->leave_ns),
			o->enter_ns,
			o->leave_ns,
			o->group_id,
			link->launch_ref ? first_launch + link->launch_ref - 1 : LAG_NONE,
			link->instance_ref ? (int64_t)link->instance_ref : LAG_NONE,
			told(o->sources),
			o->result,
		};

		st = lag_db_insert_ints(pl->w->db, LAG_TABLE_nccl_op, row, 20, err);
		if (st == LAG_OK && link->seen_ref)
			st = lag_write_seen(pl->w, pl->p, link->seen_ref - 1, err);
		if (st == LAG_OK)
			st = lag_writer_count(pl->w, err);
	}
	free(order);
	return st;
}

enum lag_status lag_write_events(struct lag_writer *w, struct lag_proc *p, struct lag_err *err)
{
	struct plan pl = { .w = w, .p = p };
	int64_t first_launch = w->launch_id + 1;
	enum lag_status st = make_plan(&pl);

	if (st != LAG_OK) {
		release_plan(&pl);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to order events");
	}
	st = write_gpu(&pl, err);
	w->launch_id += (int64_t)p->launches.n;
	if (st == LAG_OK)
		st = write_api(&pl, err);
	if (st == LAG_OK)
		st = write_syncs(&pl, err);
	if (st == LAG_OK)
		st = write_ranges(&pl, err);
	if (st == LAG_OK)
		st = write_launches(&pl, first_launch, err);
	if (st == LAG_OK)
		st = write_ops(&pl, first_launch, err);
	release_plan(&pl);
	return st;
}

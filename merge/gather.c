/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, copies and sets of a process become one array by start; the devices are counted and
 * numbered. */
#include <stdlib.h>

#include "merge/state.h"
#include "schema/base/sort.h"

#define DEVICES_MAX 4096

/* Kinds of which the array is made, each sorted by itself. */
static const struct taken {
	enum lag_record_kind record;
	enum lag_gpu_kind kind;
} taken[] = {
	{ LAG_REC_kernel, LAG_GPU_KERNEL },
	{ LAG_REC_memcpy, LAG_GPU_COPY },
	{ LAG_REC_memset, LAG_GPU_SET },
};

#define N_TAKEN (sizeof(taken) / sizeof(taken[0]))

/* Where the next event of each kind lies, and what is added to the numbers of its shapes. */
struct gather {
	struct lag_proc *p;
	size_t at[N_TAKEN];
	uint32_t first_shape[N_TAKEN];
};

static struct lag_gpu_shape shape_of(const struct lag_shapes *from, enum lag_record_kind kind,
				     uint32_t i)
{
	const void *record = (const char *)from->records.items + i * from->records.item_size;
	const struct lag_rec_kernel *k = record;
	const struct lag_rec_memcpy *c = record;
	const struct lag_rec_memset *s = record;

	if (kind == LAG_REC_kernel) {
		return (struct lag_gpu_shape){ k->device,
					       k->context,
					       k->stream,
					       k->graph_id,
					       k->graph_node_id,
					       LAG_NONE,
					       LAG_NONE,
					       k->end_ns,
					       k->correlation,
					       k->name,
					       k->config,
					       k->op_id,
					       .kind = LAG_GPU_KERNEL };
	}
	if (kind == LAG_REC_memcpy) {
		return (struct lag_gpu_shape){
			c->device,           c->context,   c->stream,      c->graph_id,
			c->graph_node_id,    c->copy_kind, c->peer_device, c->end_ns,
			c->correlation,      LAG_NONE,     c->bytes,       c->op_id,
			.kind = LAG_GPU_COPY
		};
	}
	return (struct lag_gpu_shape){ s->device,          s->context, s->stream, s->graph_id,
				       s->graph_node_id,   LAG_NONE,   LAG_NONE,  s->end_ns,
				       s->correlation,     LAG_NONE,   s->bytes,  LAG_NONE,
				       .kind = LAG_GPU_SET };
}

static struct lag_gpu event_of(const struct gather *ga, size_t k)
{
	const struct lag_compact *item =
		lag_part_compact(&ga->p->part.records[taken[k].record], ga->at[k]);
	struct lag_gpu g = { .start_ns = item->start_ns,
			     .end = item->slot[LAG_SLOT_END],
			     .correlation = item->slot[LAG_SLOT_CORRELATION],
			     .shape = ga->first_shape[k] + item->shape };

	if (taken[k].kind == LAG_GPU_KERNEL) {
		g.name = item->slot[LAG_SLOT_NAME];
		g.config = item->slot[LAG_SLOT_CONFIG];
		g.op_id = item->slot[LAG_SLOT_OP];
	} else {
		g.config = item->slot[LAG_SLOT_BYTES];
		g.op_id = lag_slot_of(LAG_GPU_SHAPE_AT(ga->p, &g)->op_id);
	}
	return g;
}

static int by_start(const struct lag_proc *p, const struct lag_gpu *a, const struct lag_gpu *b)
{
	int64_t x, y;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	x = LAG_GPU_SHAPE_AT(p, a)->stream;
	y = LAG_GPU_SHAPE_AT(p, b)->stream;
	if (x == y) {
		x = LAG_GPU_SLOT(p, a, correlation);
		y = LAG_GPU_SLOT(p, b, correlation);
	}
	return x < y ? -1 : x > y;
}

/* Items of one kind and their shapes, in the order of by_start. */
struct kind_order {
	const struct lag_shapes *shapes;
	size_t stream, correlation; /* fields */
};

static int by_item_start(const void *left, const void *right, void *state)
{
	const struct lag_compact *a = left, *b = right;
	const struct kind_order *order = state;
	int64_t x, y;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	x = lag_shape_field(order->shapes, a->shape, order->stream);
	y = lag_shape_field(order->shapes, b->shape, order->stream);
	if (x == y) {
		x = lag_slot_value(a->slot[LAG_SLOT_CORRELATION],
				   lag_shape_field(order->shapes, a->shape, order->correlation));
		y = lag_slot_value(b->slot[LAG_SLOT_CORRELATION],
				   lag_shape_field(order->shapes, b->shape, order->correlation));
	}
	return x < y ? -1 : x > y;
}

static int by_item_moment(const void *left, const void *right, void *state)
{
	const struct lag_compact *a = left, *b = right;

	(void)state;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static enum lag_status sort_kind(struct lag_part *part, enum lag_record_kind kind,
				 struct lag_vec *scratch)
{
	struct lag_vec *vec = &part->records[kind];
	struct kind_order order = { &part->shapes[kind],
				    offsetof(struct lag_rec_kernel, stream) / sizeof(int64_t),
				    offsetof(struct lag_rec_kernel, correlation) /
					    sizeof(int64_t) };

	return lag_sort(vec->items, vec->n, vec->item_size,
			kind > LAG_REC_memset ? by_item_moment : by_item_start, &order, scratch);
}

_Static_assert(offsetof(struct lag_rec_kernel, stream) == offsetof(struct lag_rec_memcpy, stream) &&
		       offsetof(struct lag_rec_kernel, stream) ==
			       offsetof(struct lag_rec_memset, stream) &&
		       offsetof(struct lag_rec_kernel, correlation) ==
			       offsetof(struct lag_rec_memcpy, correlation) &&
		       offsetof(struct lag_rec_kernel, correlation) ==
			       offsetof(struct lag_rec_memset, correlation),
	       "one order serves all three kinds");

/* Streams get numbers of their own, by (device, context, stream). */
static enum lag_status number_queues(struct lag_proc *p)
{
	struct lag_map known = { .spill = p->part.spill };
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < p->gpu_shapes.n && st == LAG_OK; i++) {
		struct lag_gpu_shape *s = &LAG_VEC_AT(&p->gpu_shapes, struct lag_gpu_shape, i);
		uint64_t key =
			lag_hash_pair((uint64_t)s->device,
				      lag_hash_pair((uint64_t)s->context, (uint64_t)s->stream));
		uint64_t at = known.n;

		if (!lag_map_find(&known, key, &at))
			st = lag_map_set(&known, key, at);
		s->queue = (uint32_t)at;
	}
	lag_map_release(&known);
	return st;
}

static enum lag_status take_shapes(struct gather *ga)
{
	struct lag_proc *p = ga->p;

	for (size_t k = 0; k < N_TAKEN; k++) {
		const struct lag_shapes *from = &p->part.shapes[taken[k].record];

		ga->first_shape[k] = (uint32_t)p->gpu_shapes.n;
		for (uint32_t i = 0; i < from->records.n; i++) {
			struct lag_gpu_shape *to = lag_vec_push(&p->gpu_shapes);

			if (!to)
				return LAG_ERR_SYSTEM;
			*to = shape_of(from, taken[k].record, i);
		}
	}
	return number_queues(p);
}

/* The sorted kinds, merged. */
static enum lag_status take_events(struct lag_merge *m, struct gather *ga)
{
	struct lag_proc *p = ga->p;
	struct lag_gpu head[N_TAKEN];
	size_t n = 0, left[N_TAKEN];

	for (size_t k = 0; k < N_TAKEN; k++) {
		left[k] = p->part.records[taken[k].record].n;
		n += left[k];
		if (left[k])
			head[k] = event_of(ga, k);
	}
	if (lag_failed(lag_vec_reserve(&p->gpu, n)))
		return LAG_ERR_SYSTEM;
	for (; p->gpu.n < n; p->gpu.n++) {
		size_t first = N_TAKEN;

		if (lag_merge_cancelled(m, p->gpu.n))
			return LAG_ERR_LIMIT;
		for (size_t k = 0; k < N_TAKEN; k++) {
			if (left[k] &&
			    (first == N_TAKEN || by_start(p, &head[k], &head[first]) < 0))
				first = k;
		}
		*LAG_GPU_AT(p, p->gpu.n) = head[first];
		ga->at[first]++;
		if (--left[first])
			head[first] = event_of(ga, first);
	}
	for (size_t k = 0; k < N_TAKEN; k++) {
		lag_vec_release(&p->part.records[taken[k].record]);
		lag_shapes_release(&p->part.shapes[taken[k].record]);
	}
	return LAG_OK;
}

static struct lag_device_row *device_row(struct lag_proc *p, int64_t device)
{
	struct lag_device_row *row;

	for (size_t i = 0; i < p->devices.n; i++) {
		row = &LAG_VEC_AT(&p->devices, struct lag_device_row, i);
		if (row->device == device)
			return row;
	}
	row = lag_vec_push(&p->devices);
	if (row)
		row->device = device;
	return row;
}

static int busiest_first(const void *left, const void *right)
{
	const struct lag_device_row *a = left, *b = right;

	if (a->n_events != b->n_events)
		return a->n_events > b->n_events ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

/* Every rank has a device, be it one that nothing was recorded on. */
static enum lag_status count_devices(struct lag_proc *p)
{
	struct lag_vec counts = LAG_VEC_SPILLED(uint64_t, p->part.spill);
	enum lag_status st = lag_vec_resize(&counts, p->gpu_shapes.n);
	uint64_t *n_events = counts.items;

	for (size_t i = 0; i < p->gpu.n && st == LAG_OK; i++)
		n_events[LAG_GPU_AT(p, i)->shape]++;
	p->devices.max = DEVICES_MAX;
	for (size_t i = 0; i < p->gpu_shapes.n && st == LAG_OK; i++) {
		struct lag_device_row *row = NULL;

		if (!n_events[i])
			continue;
		row = device_row(p, LAG_VEC_AT(&p->gpu_shapes, struct lag_gpu_shape, i).device);
		st = row ? LAG_OK : p->devices.n == DEVICES_MAX ? LAG_ERR_LIMIT : LAG_ERR_SYSTEM;
		if (row)
			row->n_events += n_events[i];
	}
	lag_vec_release(&counts);
	if (st == LAG_OK && !p->devices.n) {
		int64_t device = LAG_PART_COUNT(&p->part, device)
					 ? LAG_PART_AT(&p->part, device, 0).device
					 : 0;

		st = device_row(p, device) ? LAG_OK : LAG_ERR_SYSTEM;
	}
	if (st == LAG_OK)
		qsort(p->devices.items, p->devices.n, sizeof(struct lag_device_row), busiest_first);
	return st;
}

enum lag_status lag_merge_gather(struct lag_merge *m, uint32_t proc, struct lag_err *err)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	struct gather ga = { .p = p };
	struct lag_vec scratch = { .item_size = 1, .max = SIZE_MAX, .spill = m->spill };
	enum lag_status st = LAG_OK;

	p->gpu.max = UINT32_MAX - 1;
	for (size_t k = 0; k < N_TAKEN && st == LAG_OK; k++)
		st = sort_kind(&p->part, taken[k].record, &scratch);
	if (st == LAG_OK)
		st = sort_kind(&p->part, LAG_REC_api, &scratch);
	if (st == LAG_OK)
		st = sort_kind(&p->part, LAG_REC_sync, &scratch);
	lag_vec_release(&scratch);
	if (st == LAG_OK)
		st = take_shapes(&ga);
	if (st == LAG_OK)
		st = take_events(m, &ga);
	if (st == LAG_OK)
		st = lag_merge_overruns(m, proc, err);
	if (st == LAG_OK)
		st = lag_merge_tie(m, p);
	if (st == LAG_OK)
		st = count_devices(p);
	if (atomic_load(&m->cancelled))
		return lag_merge_interrupted(err);
	if (st == LAG_ERR_LIMIT && p->devices.n == DEVICES_MAX) {
		return lag_err_set(err, st, "%s: events of more than %d devices in one process",
				   p->part.path, DEVICES_MAX);
	}
	if (st != LAG_OK) {
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory for its GPU events",
				   p->part.path);
	}
	return LAG_OK;
}

enum lag_status lag_merge_devices(struct lag_merge *m, struct lag_err *err)
{
	for (uint32_t i = 0; i < m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		for (size_t d = 0; d < p->devices.n; d++) {
			uint32_t *host = lag_vec_push(&m->device_host);
			uint32_t *owner = lag_vec_push(&m->device_proc);

			if (!host || !owner)
				return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for devices");
			*host = p->host;
			*owner = i;
			LAG_VEC_AT(&p->devices, struct lag_device_row, d).dense = m->n_devices++;
		}
		for (size_t s = 0; s < p->gpu_shapes.n; s++) {
			struct lag_gpu_shape *shape =
				&LAG_VEC_AT(&p->gpu_shapes, struct lag_gpu_shape, s);

			shape->dense = lag_merge_device(p, shape->device);
		}
	}
	return LAG_OK;
}

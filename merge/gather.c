/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, copies and sets of a process become one array by start, each tied to the host call that
 * launched it; the devices are numbered. */
#include <stdlib.h>

#include "merge/state.h"

struct call {
	int64_t correlation, start_ns;
	uint32_t index;
};

static enum lag_status take_kernels(struct lag_proc *p)
{
	struct lag_vec *vec = LAG_PART_VEC(&p->part, kernel);

	for (size_t i = 0; i < vec->n; i++) {
		const struct lag_rec_kernel *k = &LAG_PART_AT(&p->part, kernel, i);
		struct lag_gpu *g = lag_vec_push(&p->gpu);

		if (!g)
			return LAG_ERR_SYSTEM;
		*g = (struct lag_gpu){ .start_ns = k->start_ns,
				       .end_ns = k->end_ns,
				       .device = k->device,
				       .context = k->context,
				       .stream = k->stream,
				       .correlation = k->correlation,
				       .name = k->name,
				       .config = k->config,
				       .op_id = k->op_id,
				       .graph_id = k->graph_id,
				       .graph_node_id = k->graph_node_id,
				       .bytes = LAG_NONE,
				       .copy_kind = LAG_NONE,
				       .peer = LAG_NONE,
				       .kind = LAG_GPU_KERNEL };
	}
	lag_vec_release(vec);
	return LAG_OK;
}

static enum lag_status take_copies(struct lag_proc *p)
{
	struct lag_vec *vec = LAG_PART_VEC(&p->part, memcpy);

	for (size_t i = 0; i < vec->n; i++) {
		const struct lag_rec_memcpy *c = &LAG_PART_AT(&p->part, memcpy, i);
		struct lag_gpu *g = lag_vec_push(&p->gpu);

		if (!g)
			return LAG_ERR_SYSTEM;
		*g = (struct lag_gpu){ .start_ns = c->start_ns,
				       .end_ns = c->end_ns,
				       .device = c->device,
				       .context = c->context,
				       .stream = c->stream,
				       .correlation = c->correlation,
				       .config = LAG_NONE,
				       .op_id = c->op_id,
				       .graph_id = c->graph_id,
				       .graph_node_id = c->graph_node_id,
				       .bytes = c->bytes,
				       .copy_kind = c->copy_kind,
				       .peer = c->peer_device,
				       .kind = LAG_GPU_COPY };
	}
	lag_vec_release(vec);
	return LAG_OK;
}

static enum lag_status take_sets(struct lag_proc *p)
{
	struct lag_vec *vec = LAG_PART_VEC(&p->part, memset);

	for (size_t i = 0; i < vec->n; i++) {
		const struct lag_rec_memset *s = &LAG_PART_AT(&p->part, memset, i);
		struct lag_gpu *g = lag_vec_push(&p->gpu);

		if (!g)
			return LAG_ERR_SYSTEM;
		*g = (struct lag_gpu){ .start_ns = s->start_ns,
				       .end_ns = s->end_ns,
				       .device = s->device,
				       .context = s->context,
				       .stream = s->stream,
				       .correlation = s->correlation,
				       .config = LAG_NONE,
				       .op_id = LAG_NONE,
				       .graph_id = s->graph_id,
				       .graph_node_id = s->graph_node_id,
				       .bytes = s->bytes,
				       .copy_kind = LAG_NONE,
				       .peer = LAG_NONE,
				       .kind = LAG_GPU_SET };
	}
	lag_vec_release(vec);
	return LAG_OK;
}

static int by_start(const void *left, const void *right)
{
	const struct lag_gpu *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->correlation < b->correlation ? -1 : a->correlation > b->correlation;
}

static int by_correlation(const void *left, const void *right)
{
	const struct call *a = left, *b = right;

	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Of the calls with one correlation: the last that began before the event, and of a runtime call and
 * the driver call inside it the outer one. */
static uint32_t call_of(const struct lag_proc *p, const struct call *calls, size_t n, size_t first,
			const struct lag_gpu *g)
{
	const struct lag_rec_api *outer, *inner;
	size_t at = first;

	while (at + 1 < n && calls[at + 1].correlation == g->correlation &&
	       calls[at + 1].start_ns <= g->start_ns)
		at++;
	while (at > first) {
		outer = &LAG_PART_AT(&p->part, api, calls[at - 1].index);
		inner = &LAG_PART_AT(&p->part, api, calls[at].index);
		if (outer->tid != inner->tid || outer->end_ns == LAG_NONE ||
		    outer->end_ns < inner->end_ns || inner->end_ns == LAG_NONE)
			break;
		at--;
	}
	return calls[at].index + 1;
}

static enum lag_status tie_calls(struct lag_proc *p)
{
	size_t n_api = LAG_PART_COUNT(&p->part, api), n = 0;
	struct call *calls = lag_calloc(n_api, sizeof(*calls));
	struct lag_map first = { 0 };
	enum lag_status st = calls ? LAG_OK : LAG_ERR_SYSTEM;
	uint64_t at;

	for (size_t i = 0; i < n_api && st == LAG_OK; i++) {
		const struct lag_rec_api *a = &LAG_PART_AT(&p->part, api, i);

		if (a->correlation > 0)
			calls[n++] = (struct call){ a->correlation, a->start_ns, (uint32_t)i };
	}
	if (n)
		qsort(calls, n, sizeof(*calls), by_correlation);
	for (size_t i = 0; i < n && st == LAG_OK; i++) {
		if (!i || calls[i - 1].correlation != calls[i].correlation)
			st = lag_map_set(&first, (uint64_t)calls[i].correlation, i);
	}
	for (size_t i = 0; i < p->gpu.n && st == LAG_OK; i++) {
		struct lag_gpu *g = LAG_GPU_AT(p, i);

		if (g->correlation > 0 && lag_map_find(&first, (uint64_t)g->correlation, &at))
			g->api_ref = call_of(p, calls, n, at, g);
	}
	lag_map_release(&first);
	free(calls);
	return st;
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
static enum lag_status number_devices(struct lag_merge *m, uint32_t proc)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	struct lag_device_row *row = NULL;

	p->devices.max = 4096;
	for (size_t i = 0; i < p->gpu.n; i++) {
		if (!row || row->device != LAG_GPU_AT(p, i)->device)
			row = device_row(p, LAG_GPU_AT(p, i)->device);
		if (!row)
			return LAG_ERR_SYSTEM;
		row->n_events++;
	}
	if (!p->devices.n) {
		int64_t device = LAG_PART_COUNT(&p->part, device)
					 ? LAG_PART_AT(&p->part, device, 0).device
					 : 0;

		if (!device_row(p, device))
			return LAG_ERR_SYSTEM;
	}
	qsort(p->devices.items, p->devices.n, sizeof(struct lag_device_row), busiest_first);
	for (size_t i = 0; i < p->devices.n; i++) {
		uint32_t *host = lag_vec_push(&m->device_host);
		uint32_t *owner = lag_vec_push(&m->device_proc);

		if (!host || !owner)
			return LAG_ERR_SYSTEM;
		*host = p->host;
		*owner = proc;
		LAG_VEC_AT(&p->devices, struct lag_device_row, i).dense = m->n_devices++;
	}
	return LAG_OK;
}

enum lag_status lag_merge_gather(struct lag_merge *m, uint32_t proc, struct lag_err *err)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	enum lag_status st;

	p->gpu.max = UINT32_MAX - 1;
	st = lag_vec_reserve(&p->gpu, LAG_PART_COUNT(&p->part, kernel) +
					      LAG_PART_COUNT(&p->part, memcpy) +
					      LAG_PART_COUNT(&p->part, memset));
	if (st == LAG_OK)
		st = take_kernels(p);
	if (st == LAG_OK)
		st = take_copies(p);
	if (st == LAG_OK)
		st = take_sets(p);
	if (st == LAG_OK && p->gpu.n)
		qsort(p->gpu.items, p->gpu.n, sizeof(struct lag_gpu), by_start);
	if (st == LAG_OK)
		st = lag_merge_overruns(m, proc, err);
	if (st == LAG_OK)
		st = tie_calls(p);
	if (st == LAG_OK)
		st = number_devices(m, proc);
	if (st != LAG_OK) {
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory for its GPU events",
				   p->part.path);
	}
	return LAG_OK;
}

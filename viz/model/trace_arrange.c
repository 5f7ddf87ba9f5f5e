/* SPDX-License-Identifier: Apache-2.0 */
/* Order and cross references of a loaded trace. Sorting is skipped where rows already are in order,
 * which the merge's own files always are. */
#include <stdlib.h>
#include <string.h>

#include "viz/model/interval.h"
#include "viz/model/trace_build.h"

/* A sortable stand-in for a row whose position others refer to. */
struct key {
	int64_t a, b, c;
	size_t index;
};

static int by_key(const void *x, const void *y)
{
	const struct key *p = x, *q = y;

	if (p->a != q->a)
		return p->a < q->a ? -1 : 1;
	if (p->b != q->b)
		return p->b < q->b ? -1 : 1;
	if (p->c != q->c)
		return p->c < q->c ? -1 : 1;
	return (p->index > q->index) - (p->index < q->index);
}

/* Sorts keys, moves n rows of `size` bytes at *rows accordingly and gives the new position of each
 * old one in *where (owned by the caller; NULL when nothing moved). */
static enum lag_status reorder(struct key *keys, size_t n, void *rows, size_t size,
			       uint32_t **where)
{
	char *from = rows, *copy;
	size_t i;

	*where = NULL;
	for (i = 1; i < n; i++) {
		if (by_key(&keys[i - 1], &keys[i]) > 0)
			break;
	}
	if (i >= n)
		return LAG_OK;
	qsort(keys, n, sizeof(*keys), by_key);
	copy = lag_calloc(n, size);
	*where = lag_calloc(n, sizeof(**where));
	if (!copy || !*where) {
		free(copy);
		return LAG_ERR_SYSTEM;
	}
	for (i = 0; i < n; i++) {
		memcpy(copy + i * size, from + keys[i].index * size, size);
		(*where)[keys[i].index] = (uint32_t)i;
	}
	memcpy(rows, copy, n * size);
	free(copy);
	return LAG_OK;
}

static enum lag_status sort_lanes(struct lag_trace *t)
{
	struct key *keys = lag_calloc(t->n_lanes, sizeof(*keys));
	uint32_t *where = NULL;
	enum lag_status status;

	if (!keys)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < t->n_lanes; i++)
		keys[i] = (struct key){ t->lanes[i].r, t->lanes[i].device, t->lanes[i].stream, i };
	status = reorder(keys, t->n_lanes, t->lanes, sizeof(*t->lanes), &where);
	for (size_t i = 0; where && i < t->n_gpu; i++)
		t->gpu[i].lane = where[t->gpu[i].lane];
	free(where);
	free(keys);
	return status;
}

static enum lag_status sort_gpu(struct lag_trace *t)
{
	struct key *keys = lag_calloc(t->n_gpu, sizeof(*keys));
	uint32_t *where = NULL;
	enum lag_status status;

	if (!keys)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < t->n_gpu; i++)
		keys[i] = (struct key){ t->gpu[i].r, t->gpu[i].start_ns, 0, i };
	status = reorder(keys, t->n_gpu, t->gpu, sizeof(*t->gpu), &where);
	for (size_t i = 0; where && i < t->n_launches; i++) {
		if (t->launches[i].gpu >= 0)
			t->launches[i].gpu = (int32_t)where[t->launches[i].gpu];
	}
	free(where);
	free(keys);
	return status;
}

static enum lag_status sort_instances(struct lag_trace *t)
{
	struct key *keys = lag_calloc(t->n_instances, sizeof(*keys));
	uint32_t *where = NULL;
	enum lag_status status;

	if (!keys)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < t->n_instances; i++) {
		keys[i] = (struct key){ t->instances[i].last_start_ns == LAG_NONE,
					t->instances[i].last_start_ns, 0, i };
	}
	status = reorder(keys, t->n_instances, t->instances, sizeof(*t->instances), &where);
	for (size_t i = 0; where && i < t->n_ops; i++) {
		if (t->ops[i].instance >= 0)
			t->ops[i].instance = (int32_t)where[t->ops[i].instance];
	}
	free(where);
	free(keys);
	return status;
}

/* Ops by rank and time, but all of one launch together, at the place of the first. */
static enum lag_status sort_ops(struct lag_trace *t)
{
	struct key *keys = lag_calloc(t->n_ops, sizeof(*keys));
	int64_t *first = lag_calloc(t->n_launches, sizeof(*first));
	uint32_t *where = NULL;
	enum lag_status status = LAG_ERR_SYSTEM;

	if (!keys || !first)
		goto out;
	for (size_t i = 0; i < t->n_launches; i++)
		first[i] = INT64_MAX;
	for (size_t i = 0; i < t->n_ops; i++) {
		const struct lag_op *op = &t->ops[i];

		if (op->launch >= 0 && op->enter_ns < first[op->launch])
			first[op->launch] = op->enter_ns;
	}
	for (size_t i = 0; i < t->n_ops; i++) {
		const struct lag_op *op = &t->ops[i];

		keys[i] = (struct key){ op->r, op->launch >= 0 ? first[op->launch] : op->enter_ns,
					op->launch, i };
	}
	status = reorder(keys, t->n_ops, t->ops, sizeof(*t->ops), &where);
	free(where);
out:
	free(first);
	free(keys);
	return status;
}

static void link_ops(struct lag_trace *t)
{
	for (size_t i = 0; i < t->n_launches; i++)
		t->launches[i].first_op = t->launches[i].n_ops = 0;
	for (size_t i = 0; i < t->n_ops; i++) {
		struct lag_launch *launch;

		if (t->ops[i].launch < 0)
			continue;
		launch = &t->launches[t->ops[i].launch];
		if (!launch->n_ops++)
			launch->first_op = (uint32_t)i;
	}
}

static enum lag_status link_instances(struct lag_trace *t)
{
	uint32_t at = 0;

	free(t->instance_ops);
	t->instance_ops = lag_calloc(t->n_ops, sizeof(*t->instance_ops));
	if (!t->instance_ops)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < t->n_instances; i++)
		t->instances[i].n = 0;
	for (size_t i = 0; i < t->n_ops; i++) {
		if (t->ops[i].instance >= 0)
			t->instances[t->ops[i].instance].n++;
	}
	for (size_t i = 0; i < t->n_instances; i++) {
		t->instances[i].first = at;
		at += t->instances[i].n;
		t->instances[i].n = 0;
	}
	for (size_t i = 0; i < t->n_ops; i++) {
		struct lag_instance *in;

		if (t->ops[i].instance < 0)
			continue;
		in = &t->instances[t->ops[i].instance];
		t->instance_ops[in->first + in->n++] = (uint32_t)i;
	}
	return LAG_OK;
}

static int range_order(const void *x, const void *y)
{
	const struct lag_range *p = x, *q = y;

	if (p->r != q->r)
		return p->r < q->r ? -1 : 1;
	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	if (p->end_ns != q->end_ns)
		return p->end_ns > q->end_ns ? -1 : 1;
	return (p->depth > q->depth) - (p->depth < q->depth);
}

static int api_order(const void *x, const void *y)
{
	const struct lag_api *p = x, *q = y;

	if (p->r != q->r)
		return p->r < q->r ? -1 : 1;
	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	return (p->correlation > q->correlation) - (p->correlation < q->correlation);
}

static int sync_order(const void *x, const void *y)
{
	const struct lag_sync *p = x, *q = y;

	if (p->r != q->r)
		return p->r < q->r ? -1 : 1;
	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	return (p->correlation > q->correlation) - (p->correlation < q->correlation);
}

static void sort_plain(void *rows, size_t n, size_t size, int (*order)(const void *, const void *))
{
	char *at = rows;

	for (size_t i = 1; i < n; i++) {
		if (order(at + (i - 1) * size, at + i * size) > 0) {
			qsort(rows, n, size, order);
			return;
		}
	}
}

static void widen(struct lag_rank *rank, int64_t start_ns, int64_t end_ns)
{
	if (start_ns != LAG_NONE && (rank->first_ns == LAG_NONE || start_ns < rank->first_ns))
		rank->first_ns = start_ns;
	if (end_ns == LAG_NONE)
		end_ns = start_ns;
	if (end_ns != LAG_NONE && (rank->last_ns == LAG_NONE || end_ns > rank->last_ns))
		rank->last_ns = end_ns;
}

/* Where one kind of row keeps what link_rows needs. */
struct rows {
	const void *at;
	size_t n, size, r, start_ns, end_ns; /* offsets within a row */
	size_t begin, end;                   /* offsets within lag_rank */
};

/* Finds the run of rows that belong to each rank: rows are sorted by rank. */
static void link_rows(struct lag_trace *t, const struct rows *rows)
{
	size_t i = 0;

	for (size_t r = 0; r < t->n_ranks; r++) {
		char *rank = (char *)&t->ranks[r];

		memcpy(rank + rows->begin, &i, sizeof(i));
		for (; i < rows->n; i++) {
			const char *row = (const char *)rows->at + i * rows->size;
			int64_t start_ns, end_ns;
			uint32_t of;

			memcpy(&of, row + rows->r, sizeof(of));
			if (of != r)
				break;
			memcpy(&start_ns, row + rows->start_ns, sizeof(start_ns));
			memcpy(&end_ns, row + rows->end_ns, sizeof(end_ns));
			widen(&t->ranks[r], start_ns, end_ns);
		}
		memcpy(rank + rows->end, &i, sizeof(i));
	}
}

static void link_ranks(struct lag_trace *t)
{
	const struct rows kinds[] = {
		{ t->gpu, t->n_gpu, sizeof(*t->gpu), offsetof(struct lag_gpu_event, r),
		  offsetof(struct lag_gpu_event, start_ns), offsetof(struct lag_gpu_event, end_ns),
		  offsetof(struct lag_rank, gpu_begin), offsetof(struct lag_rank, gpu_end) },
		{ t->ranges, t->n_ranges, sizeof(*t->ranges), offsetof(struct lag_range, r),
		  offsetof(struct lag_range, start_ns), offsetof(struct lag_range, end_ns),
		  offsetof(struct lag_rank, range_begin), offsetof(struct lag_rank, range_end) },
		{ t->api, t->n_api, sizeof(*t->api), offsetof(struct lag_api, r),
		  offsetof(struct lag_api, start_ns), offsetof(struct lag_api, end_ns),
		  offsetof(struct lag_rank, api_begin), offsetof(struct lag_rank, api_end) },
		{ t->syncs, t->n_syncs, sizeof(*t->syncs), offsetof(struct lag_sync, r),
		  offsetof(struct lag_sync, start_ns), offsetof(struct lag_sync, end_ns),
		  offsetof(struct lag_rank, sync_begin), offsetof(struct lag_rank, sync_end) },
		{ t->ops, t->n_ops, sizeof(*t->ops), offsetof(struct lag_op, r),
		  offsetof(struct lag_op, enter_ns), offsetof(struct lag_op, leave_ns),
		  offsetof(struct lag_rank, op_begin), offsetof(struct lag_rank, op_end) },
	};

	for (size_t r = 0; r < t->n_ranks; r++)
		t->ranks[r].first_ns = t->ranks[r].last_ns = LAG_NONE;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		link_rows(t, &kinds[k]);
}

static void shift(int64_t *ns, int64_t by)
{
	if (*ns != LAG_NONE)
		*ns = lag_ns_sub(*ns, by);
}

void lag_trace_rebase(struct lag_trace *t)
{
	int64_t first = LAG_NONE, last = LAG_NONE;

	for (size_t r = 0; r < t->n_ranks; r++) {
		if (t->ranks[r].first_ns == LAG_NONE)
			continue;
		if (first == LAG_NONE || t->ranks[r].first_ns < first)
			first = t->ranks[r].first_ns;
		if (last == LAG_NONE || t->ranks[r].last_ns > last)
			last = t->ranks[r].last_ns;
	}
	t->origin_ns = first == LAG_NONE ? 0 : first;
	t->span_ns = first == LAG_NONE ? 0 : last - first;
	first = t->origin_ns;
	for (size_t r = 0; r < t->n_ranks; r++) {
		shift(&t->ranks[r].first_ns, first);
		shift(&t->ranks[r].last_ns, first);
		shift(&t->ranks[r].started_ns, first);
	}
	for (size_t i = 0; i < t->n_gpu; i++) {
		shift(&t->gpu[i].start_ns, first);
		shift(&t->gpu[i].end_ns, first);
		shift(&t->gpu[i].launch_start_ns, first);
		shift(&t->gpu[i].launch_end_ns, first);
	}
	for (size_t i = 0; i < t->n_ranges; i++) {
		shift(&t->ranges[i].start_ns, first);
		shift(&t->ranges[i].end_ns, first);
	}
	for (size_t i = 0; i < t->n_api; i++) {
		shift(&t->api[i].start_ns, first);
		shift(&t->api[i].end_ns, first);
	}
	for (size_t i = 0; i < t->n_syncs; i++) {
		shift(&t->syncs[i].start_ns, first);
		shift(&t->syncs[i].end_ns, first);
	}
	for (size_t i = 0; i < t->n_launches; i++) {
		shift(&t->launches[i].start_ns, first);
		shift(&t->launches[i].end_ns, first);
	}
	for (size_t i = 0; i < t->n_ops; i++) {
		shift(&t->ops[i].enter_ns, first);
		shift(&t->ops[i].leave_ns, first);
	}
	for (size_t i = 0; i < t->n_instances; i++) {
		shift(&t->instances[i].first_start_ns, first);
		shift(&t->instances[i].last_start_ns, first);
		shift(&t->instances[i].first_end_ns, first);
		shift(&t->instances[i].last_end_ns, first);
	}
	for (size_t i = 0; i < t->n_gaps; i++) {
		shift(&t->gaps[i].from_ns, first);
		shift(&t->gaps[i].until_ns, first);
	}
	for (size_t i = 0; i < t->n_clock; i++) {
		shift(&t->clock[i].from_ns, first);
		shift(&t->clock[i].at_ns, first);
	}
}

enum lag_status lag_trace_arrange(struct lag_trace *trace, struct lag_err *err)
{
	if (trace->n_gpu > INT32_MAX || trace->n_ops > INT32_MAX || trace->n_launches > INT32_MAX ||
	    trace->n_instances > INT32_MAX)
		return lag_err_set(err, LAG_ERR_LIMIT, "more than 2^31 events of one kind");
	if (lag_failed(sort_lanes(trace)) || lag_failed(sort_gpu(trace)) ||
	    lag_failed(sort_ops(trace)) || lag_failed(sort_instances(trace)) ||
	    lag_failed(link_instances(trace)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the trace");
	sort_plain(trace->ranges, trace->n_ranges, sizeof(*trace->ranges), range_order);
	sort_plain(trace->api, trace->n_api, sizeof(*trace->api), api_order);
	sort_plain(trace->syncs, trace->n_syncs, sizeof(*trace->syncs), sync_order);
	link_ops(trace);
	link_ranks(trace);
	lag_trace_rebase(trace);
	trace->window = lag_window_of(trace);
	return LAG_OK;
}

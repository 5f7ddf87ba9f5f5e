/* SPDX-License-Identifier: Apache-2.0 */
/* Joins beginnings with ends: annotations per thread and domain, or by id; operations by id; kernels
 * that were reported once while running and again when done. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "merge/state.h"
#include "schema/base/fmt.h"
#include "schema/base/sort.h"

/* A push or a pop, or a whole range when depths are counted. */
struct mark {
	int64_t tid, domain, time, end;
	uint32_t index;
	bool is_end;
};

static int by_place(const struct mark *a, const struct mark *b)
{
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return 0;
}

/* At one moment the end of an old range comes before the beginning of a new one. */
static int by_moment(const void *left, const void *right, void *state)
{
	const struct mark *a = left, *b = right;
	int order = by_place(a, b);

	(void)state;
	if (order || a->is_end != b->is_end)
		return order ? order : a->is_end ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int outer_first(const void *left, const void *right, void *state)
{
	const struct mark *a = left, *b = right;
	int order = by_place(a, b);

	(void)state;
	if (order)
		return order;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Records, and what stands for them, begin with their start. */
static int by_start(const void *left, const void *right, void *state)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	(void)state;
	return a < b ? -1 : a > b;
}

static bool same_stack(const struct mark *a, const struct mark *b)
{
	return a->tid == b->tid && a->domain == b->domain;
}

static enum lag_status list_marks(const struct lag_part *part, struct lag_vec *marks)
{
	for (size_t i = 0; i < LAG_PART_COUNT(part, range); i++) {
		struct lag_rec_range r = LAG_PART_GET(part, range, i);
		struct mark *mark;

		if (r.kind != LAG_RANGE_PUSH || r.end_ns != LAG_NONE)
			continue;
		mark = lag_vec_push(marks);
		if (!mark)
			return LAG_ERR_SYSTEM;
		*mark = (struct mark){ r.tid, r.domain, r.start_ns, 0, (uint32_t)i, false };
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, range_end); i++) {
		const struct lag_rec_range_end *e = &LAG_PART_AT(part, range_end, i);
		struct mark *mark;

		if (e->kind != LAG_RANGE_PUSH)
			continue;
		mark = lag_vec_push(marks);
		if (!mark)
			return LAG_ERR_SYSTEM;
		*mark = (struct mark){ e->tid, e->domain, e->end_ns, 0, (uint32_t)i, true };
	}
	return lag_vec_sort(marks, by_moment, NULL);
}

static enum lag_status end_range(struct lag_part *part, size_t i, int64_t end_ns)
{
	struct lag_record rec = lag_part_get(part, LAG_REC_range, i);

	rec.range.end_ns = end_ns;
	return lag_part_set(part, i, &rec);
}

/* Counts the ends that had no beginning. */
static enum lag_status close_stacks(struct lag_part *part, const struct mark *marks, size_t n,
				    uint32_t *stack, uint64_t *orphans)
{
	enum lag_status st = LAG_OK;
	size_t depth = 0;

	for (size_t i = 0; i < n && st == LAG_OK; i++) {
		if (i && !same_stack(&marks[i - 1], &marks[i]))
			depth = 0;
		if (!marks[i].is_end) {
			stack[depth++] = marks[i].index;
		} else if (depth) {
			st = end_range(part, stack[--depth], marks[i].time);
		} else if (i + 1 < n && !marks[i + 1].is_end &&
			   same_stack(&marks[i], &marks[i + 1]) &&
			   marks[i + 1].time == marks[i].time) {
			/* Begun and ended at one moment. */
			st = end_range(part, marks[i + 1].index, marks[i].time);
			i++;
		} else {
			++*orphans;
		}
	}
	return st;
}

static enum lag_status pair_pushes(struct lag_part *part, uint64_t *orphans)
{
	struct lag_vec marks = LAG_VEC_SPILLED(struct mark, part->spill);
	struct lag_vec stack = LAG_VEC_SPILLED(uint32_t, part->spill);
	enum lag_status st = list_marks(part, &marks);

	if (st == LAG_OK)
		st = lag_vec_resize(&stack, marks.n);
	if (st == LAG_OK)
		st = close_stacks(part, marks.items, marks.n, stack.items, orphans);
	lag_vec_release(&stack);
	lag_vec_release(&marks);
	return st;
}

static enum lag_status pair_starts(struct lag_part *part, uint64_t *orphans)
{
	struct lag_map open = { .spill = part->spill };
	enum lag_status st = LAG_OK;
	uint64_t at;

	for (size_t i = 0; i < LAG_PART_COUNT(part, range) && st == LAG_OK; i++) {
		struct lag_rec_range r = LAG_PART_GET(part, range, i);

		if (r.kind == LAG_RANGE_START && r.end_ns == LAG_NONE)
			st = lag_map_set(&open, (uint64_t)r.id, i);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, range_end) && st == LAG_OK; i++) {
		const struct lag_rec_range_end *e = &LAG_PART_AT(part, range_end, i);
		struct lag_times open_at = { INT64_MAX, 0 };

		if (e->kind != LAG_RANGE_START)
			continue;
		if (lag_map_find(&open, (uint64_t)e->id, &at))
			open_at = lag_part_times(part, LAG_REC_range, at);
		if (open_at.start_ns <= e->end_ns && open_at.end_ns == LAG_NONE) {
			st = end_range(part, at, e->end_ns);
		} else {
			++*orphans;
		}
	}
	lag_map_release(&open);
	return st;
}

/* Ranges that nobody closed end with the recording, and say so. */
static enum lag_status close_rest(struct lag_proc *p, uint64_t *unclosed)
{
	size_t n = LAG_PART_COUNT(&p->part, range);

	if (lag_failed(lag_vec_reserve(&p->range_links, n)))
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < n; i++) {
		struct lag_rec_range r = LAG_PART_GET(&p->part, range, i);
		struct lag_range_link *link = lag_vec_push(&p->range_links);

		if (!link)
			return LAG_ERR_SYSTEM;
		if (r.end_ns != LAG_NONE || r.kind == LAG_RANGE_MARK)
			continue;
		if (lag_failed(end_range(&p->part, i,
					 p->last_ns > r.start_ns ? p->last_ns : r.start_ns)))
			return LAG_ERR_SYSTEM;
		link->unclosed = true;
		++*unclosed;
	}
	return LAG_OK;
}

static void nest(struct lag_proc *p, const struct mark *marks, size_t n, int64_t *ends)
{
	size_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		if (i && !same_stack(&marks[i - 1], &marks[i]))
			depth = 0;
		while (depth && ends[depth - 1] <= marks[i].time &&
		       !(ends[depth - 1] == marks[i].time && marks[i].end == marks[i].time))
			depth--;
		LAG_VEC_AT(&p->range_links, struct lag_range_link, marks[i].index).depth_ref =
			(uint32_t)(depth + 1) & 0x7fffffffu;
		ends[depth++] = marks[i].end;
	}
}

/* Nesting depth of pushed ranges per thread and domain, and of framework operators per thread. */
static enum lag_status count_depths(struct lag_proc *p)
{
	struct lag_vec marks = LAG_VEC_SPILLED(struct mark, p->part.spill);
	struct lag_vec ends = LAG_VEC_SPILLED(int64_t, p->part.spill);
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, range) && st == LAG_OK; i++) {
		struct lag_rec_range r = LAG_PART_GET(&p->part, range, i);
		struct mark *mark;

		if (r.kind != LAG_RANGE_PUSH && r.kind != LAG_RANGE_CPU_OP)
			continue;
		mark = lag_vec_push(&marks);
		if (!mark) {
			st = LAG_ERR_SYSTEM;
			break;
		}
		*mark = (struct mark){ r.tid,       r.kind == LAG_RANGE_CPU_OP ? -1 : r.domain,
				       r.start_ns,  r.end_ns,
				       (uint32_t)i, false };
	}
	if (st == LAG_OK)
		st = lag_vec_resize(&ends, marks.n);
	if (st == LAG_OK)
		st = lag_vec_sort(&marks, outer_first, NULL);
	if (st == LAG_OK)
		nest(p, marks.items, marks.n, ends.items);
	lag_vec_release(&ends);
	lag_vec_release(&marks);
	return st;
}

static enum lag_status pair_ops(struct lag_part *part)
{
	struct lag_map by_id = { .spill = part->spill };
	enum lag_status st = LAG_OK;
	uint64_t at;

	for (size_t i = 0; i < LAG_PART_COUNT(part, op) && st == LAG_OK; i++)
		st = lag_map_set(&by_id, (uint64_t)LAG_PART_AT(part, op, i).op_id, i);
	for (size_t i = 0; i < LAG_PART_COUNT(part, op_end) && st == LAG_OK; i++) {
		const struct lag_rec_op_end *e = &LAG_PART_AT(part, op_end, i);
		struct lag_rec_op *op;

		if (!lag_map_find(&by_id, (uint64_t)e->op_id, &at))
			continue;
		op = &LAG_PART_AT(part, op, at);
		if (op->leave_ns == LAG_NONE && e->leave_ns >= op->enter_ns)
			op->leave_ns = e->leave_ns;
		if (op->result == LAG_NONE)
			op->result = e->result;
	}
	lag_map_release(&by_id);
	return st;
}

static uint64_t kernel_key(const struct lag_rec_kernel *k)
{
	uint64_t key = lag_hash_pair((uint64_t)k->correlation, (uint64_t)k->graph_node_id);

	return k->correlation ? key : lag_hash_pair(key, (uint64_t)k->start_ns);
}

/* Kernels that were reported while running, by key: 1, or 0 once the finished record was seen. */
static enum lag_status list_running(const struct lag_part *part, struct lag_map *running)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(part, kernel) && st == LAG_OK; i++) {
		struct lag_rec_kernel k;

		if (LAG_PART_COMPACT(part, kernel, i)->slot[LAG_SLOT_END])
			continue;
		k = LAG_PART_GET(part, kernel, i);
		if (k.end_ns == LAG_NONE)
			st = lag_map_set(running, kernel_key(&k), 1);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, kernel) && running->n && st == LAG_OK; i++) {
		struct lag_rec_kernel k = LAG_PART_GET(part, kernel, i);
		uint64_t seen;

		if (k.end_ns != LAG_NONE && lag_map_find(running, kernel_key(&k), &seen))
			st = lag_map_set(running, kernel_key(&k), 0);
	}
	return st;
}

/* A kernel is reported while it runs when the tracer forces CUPTI's buffers out, and again when it is
 * done: the record with the end is the one to keep, and of several without an end the first. */
static enum lag_status drop_running_twins(struct lag_part *part)
{
	struct lag_vec *vec = LAG_PART_VEC(part, kernel);
	struct lag_map running = { .spill = part->spill };
	enum lag_status st = list_running(part, &running);
	size_t kept = 0;
	uint64_t keep;

	for (size_t i = 0; i < vec->n && st == LAG_OK && running.n; i++) {
		const struct lag_compact *item = LAG_PART_COMPACT(part, kernel, i);

		if (!item->slot[LAG_SLOT_END]) {
			struct lag_rec_kernel k = LAG_PART_GET(part, kernel, i);

			if (lag_map_find(&running, kernel_key(&k), &keep) && !keep)
				continue;
			st = lag_map_set(&running, kernel_key(&k), 0);
		}
		if (kept != i)
			memcpy(LAG_PART_COMPACT(part, kernel, kept), item, vec->item_size);
		kept++;
	}
	if (running.n && st == LAG_OK)
		vec->n = kept;
	lag_map_release(&running);
	return st;
}

enum lag_status lag_merge_pair(struct lag_proc *p, struct lag_err *err)
{
	uint64_t orphans = 0, unclosed = 0;
	enum lag_status st = lag_vec_sort(LAG_PART_VEC(&p->part, range), by_start, NULL);

	if (st == LAG_OK)
		st = lag_vec_sort(LAG_PART_VEC(&p->part, op), by_start, NULL);
	if (st == LAG_OK)
		st = pair_pushes(&p->part, &orphans);
	if (st == LAG_OK)
		st = pair_starts(&p->part, &orphans);
	if (st == LAG_OK)
		st = close_rest(p, &unclosed);
	if (st == LAG_OK)
		st = count_depths(p);
	if (st == LAG_OK)
		st = pair_ops(&p->part);
	if (st == LAG_OK)
		st = drop_running_twins(&p->part);
	if (st != LAG_OK) {
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory to pair events",
				   p->part.path);
	}
	lag_vec_release(LAG_PART_VEC(&p->part, range_end));
	lag_vec_release(LAG_PART_VEC(&p->part, op_end));
	if (unclosed) {
		lag_proc_find(
			p, 0, "unclosed_range", LAG_ABOUT(p->part.process.rank, LAG_NONE, unclosed),
			"%s: %" PRIu64 " %s were never closed; they end with the recording",
			p->part.path, unclosed, LAG_PLURAL(unclosed, "annotation", "annotations"));
	}
	if (orphans) {
		lag_proc_find(p, 0, "unopened_range",
			      LAG_ABOUT(p->part.process.rank, LAG_NONE, orphans),
			      "%s: %" PRIu64 " ends of annotations that began before the recording",
			      p->part.path, orphans);
	}
	return LAG_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Before rows are made: the order of GPU events on the common clock, and readable forms of the names they
 * use. */
#include <string.h>

#include "merge/write.h"
#include "schema/base/sort.h"

struct place {
	int64_t at_ns;
	uint32_t index;
};

static int by_time(const void *left, const void *right, void *state)
{
	const struct place *a = left, *b = right;

	(void)state;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int64_t start_of(const struct lag_writer *w, struct lag_align_at *clock,
			const struct lag_proc *p, size_t i)
{
	const struct lag_gpu *g = LAG_GPU_AT(p, i);

	return lag_merge_corrected_at(w->m, p, clock, LAG_GPU_SHAPE_AT(p, g)->dense, g->start_ns);
}

/* Devices of a process are corrected each by itself, so that their order may change. */
static enum lag_status order_gpu(struct lag_writer *w, struct lag_write_proc *wp)
{
	struct lag_vec places = LAG_VEC_SPILLED(struct place, w->m->spill);
	struct lag_align_at clock = { 0 };
	size_t n = wp->p->gpu.n;
	int64_t last = INT64_MIN;
	bool sorted = true;
	enum lag_status st;

	for (size_t i = 0; i < n && sorted; i++) {
		int64_t at = start_of(w, &clock, wp->p, i);

		if (lag_merge_cancelled(w->m, i))
			break;
		sorted = at >= last;
		last = at;
	}
	if (sorted)
		return LAG_OK;
	st = lag_vec_resize(&places, n);
	for (size_t i = 0; i < n && st == LAG_OK; i++) {
		LAG_VEC_AT(&places, struct place, i) =
			(struct place){ start_of(w, &clock, wp->p, i), (uint32_t)i };
	}
	if (st == LAG_OK)
		st = lag_vec_sort(&places, by_time, NULL);
	if (st == LAG_OK)
		st = lag_vec_resize(&wp->gpu_order, n);
	if (st == LAG_OK)
		st = lag_vec_resize(&wp->gpu_place, n);
	for (size_t i = 0; i < n && st == LAG_OK; i++) {
		uint32_t index = LAG_VEC_AT(&places, struct place, i).index;

		LAG_VEC_AT(&wp->gpu_order, uint32_t, i) = index;
		LAG_VEC_AT(&wp->gpu_place, uint32_t, index) = (uint32_t)i;
	}
	lag_vec_release(&places);
	return st;
}

/* ---- names ---- */

/* What stands in a list of names for the name that a copy or set gets. */
#define COPY_NAME 0x80000000u
#define SET_NAME  (COPY_NAME + LAG_COPY_KINDS)

/* CUPTI's copy kinds. */
static const char *const copy_kinds[LAG_COPY_KINDS] = { "copy",      "copy HtoD", "copy DtoH",
							"copy HtoA", "copy AtoH", "copy AtoA",
							"copy AtoD", "copy DtoA", "copy DtoD",
							"copy HtoH", "copy PtoP" };

static uint32_t name_of(const struct lag_proc *p, const struct lag_gpu *g)
{
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(p, g);
	int64_t kind = shape->copy_kind;

	if (shape->kind == LAG_GPU_KERNEL)
		return (uint32_t)LAG_GPU_SLOT(p, g, name);
	if (shape->kind == LAG_GPU_SET)
		return SET_NAME;
	return COPY_NAME + (uint32_t)(kind >= 0 && kind < LAG_COPY_KINDS ? kind : 0);
}

/* seen: a byte for each string, then for each kind of copy, then for sets. */
static size_t seen_at(uint32_t name, size_t n_strings)
{
	return name < COPY_NAME ? name : n_strings + (name - COPY_NAME);
}

static enum lag_status list_names(struct lag_writer *w, struct lag_write_proc *wp)
{
	size_t n_strings = lag_strtab_count(&w->m->pool.strings);
	struct lag_vec seen = { .item_size = 1, .spill = w->m->spill };
	enum lag_status st = lag_vec_resize(&seen, n_strings + LAG_COPY_KINDS + 1);

	for (size_t i = 0; i < wp->p->gpu.n && st == LAG_OK; i++) {
		size_t at = wp->gpu_order.n ? LAG_VEC_AT(&wp->gpu_order, uint32_t, i) : i;
		uint32_t name = name_of(wp->p, LAG_GPU_AT(wp->p, at)), *slot;
		uint8_t *mark = &LAG_VEC_AT(&seen, uint8_t, seen_at(name, n_strings));

		if (*mark)
			continue;
		*mark = 1;
		slot = lag_vec_push(&wp->names);
		if (!slot) {
			st = LAG_ERR_SYSTEM;
			break;
		}
		*slot = name;
	}
	lag_vec_release(&seen);
	return st;
}

enum lag_status lag_write_plan(struct lag_writer *w, struct lag_write_proc *wp, struct lag_err *err)
{
	enum lag_status st = order_gpu(w, wp);

	if (st == LAG_OK)
		st = list_names(w, wp);
	if (st == LAG_OK)
		return lag_merge_advance(w->m, 0, err);
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to order events");
}

static int64_t intern(struct lag_writer *w, const char *text, size_t n)
{
	uint32_t id = lag_strtab_add(&w->m->pool.strings, text, n);

	return id == LAG_STR_NONE ? LAG_NONE : id;
}

static enum lag_status name_kernel(struct lag_writer *w, int64_t name, struct lag_err *err)
{
	const char *text = lag_merge_text(w->m, name);
	struct lag_buf full = { 0 }, brief = { 0 };
	int64_t row[4] = { name, name, name, lag_name_is_communication(text) };
	enum lag_status st;

	if (lag_demangle(text, &full)) {
		row[1] = intern(w, full.text, full.n);
	} else {
		lag_buf_puts(&full, text);
	}
	if (!lag_renames_apply(&w->renames, lag_buf_text(&full), &brief))
		lag_name_short(lag_buf_text(&full), &brief);
	if (brief.n)
		row[2] = intern(w, brief.text, brief.n);
	st = full.failed || brief.failed || row[1] == LAG_NONE || row[2] == LAG_NONE
		     ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for kernel names")
		     : lag_db_insert_ints(w->db, LAG_TABLE_kernel_name, row, 4, err);
	lag_buf_release(&full);
	lag_buf_release(&brief);
	return st;
}

static enum lag_status name_copy(struct lag_writer *w, uint32_t name, struct lag_err *err)
{
	bool set = name == SET_NAME;
	const char *text = set ? "set" : copy_kinds[name - COPY_NAME];
	int64_t id = intern(w, text, strlen(text));

	*(set ? &w->set_name : &w->copy_names[name - COPY_NAME]) = id;
	return id == LAG_NONE ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for names") : LAG_OK;
}

enum lag_status lag_write_names(struct lag_writer *w, struct lag_err *err)
{
	struct lag_map done = { 0 };
	enum lag_status st = LAG_OK;
	size_t n = 0;

	for (size_t i = 0; i < w->procs.n && st == LAG_OK; i++) {
		const struct lag_vec *names = &LAG_WRITE_PROC_AT(w, i)->names;

		for (size_t k = 0; k < names->n && st == LAG_OK; k++) {
			uint32_t name = LAG_VEC_AT(names, uint32_t, k);
			uint64_t seen;

			if (lag_map_find(&done, name, &seen) ||
			    lag_map_find(&w->m->old.named, name, &seen))
				continue;
			st = lag_map_set(&done, name, 1);
			if (st != LAG_OK) {
				(void)lag_err_set(err, st, "no memory for names");
			} else if (name < COPY_NAME) {
				st = name_kernel(w, name, err);
			} else {
				st = name_copy(w, name, err);
			}
			if (st == LAG_OK && lag_merge_cancelled(w->m, n++))
				st = lag_merge_interrupted(err);
		}
	}
	lag_map_release(&done);
	return st;
}

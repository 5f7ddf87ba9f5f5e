/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and keeps changes; matches the rows of tables by their keys. */
#include "viz/model/diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/strtab.h"

#define KEYS_MAX 8
#define SPARE    256 /* changes kept above n_top before the small ones go */

void lag_diff_init(struct lag_diff *diff, const struct lag_diff_opts *opts)
{
	*diff = (struct lag_diff){ .opts = *opts,
				   .views = LAG_VEC_INIT(struct lag_diff_view),
				   .changes = LAG_VEC_INIT(struct lag_diff_change) };
	if (!diff->opts.n_top || diff->opts.n_top > LAG_DIFF_CHANGES_MAX)
		diff->opts.n_top = LAG_DIFF_CHANGES_MAX;
}

static void release_change(struct lag_diff_change *change)
{
	free(change->row);
	if (lag_unit_is_text(change->unit)) {
		free(change->a.null ? NULL : change->a.text);
		free(change->b.null ? NULL : change->b.text);
	}
}

void lag_diff_release(struct lag_diff *diff)
{
	for (size_t i = 0; i < diff->changes.n; i++)
		release_change(&LAG_VEC_AT(&diff->changes, struct lag_diff_change, i));
	lag_vec_release(&diff->changes);
	lag_vec_release(&diff->views);
}

uint32_t lag_diff_begin(struct lag_diff *diff, const char *name)
{
	struct lag_diff_view *view = lag_vec_push(&diff->views);

	if (!view) {
		diff->failed = true;
		return 0;
	}
	view->name = name;
	return (uint32_t)diff->views.n - 1;
}

static struct lag_diff_view *current(struct lag_diff *diff)
{
	return &LAG_VEC_AT(&diff->views, struct lag_diff_view, diff->views.n - 1);
}

bool lag_diff_names(const char *entry, size_t n, const char *view, const char *column)
{
	size_t n_view = strlen(view), n_column = strlen(column);

	return (n == n_column && memcmp(entry, column, n) == 0) ||
	       (n == n_view + 1 + n_column && memcmp(entry, view, n_view) == 0 &&
		entry[n_view] == '.' && memcmp(entry + n_view + 1, column, n_column) == 0);
}

bool lag_diff_ignores(const struct lag_diff *diff, const char *column)
{
	const char *view = LAG_VEC_AT(&diff->views, struct lag_diff_view, diff->views.n - 1).name;

	for (const char *p = diff->opts.ignore; p && *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");

		if (lag_diff_names(p, n, view, column))
			return true;
		p += n;
	}
	return false;
}

double lag_diff_number(const struct lag_cell *cell, enum lag_unit unit)
{
	if (cell->null || lag_unit_is_text(unit))
		return 0;
	return unit >= LAG_UNIT_SHARE ? cell->d : (double)cell->i;
}

bool lag_diff_cells_equal(const struct lag_diff *diff, const struct lag_cell *a,
			  const struct lag_cell *b, enum lag_unit unit)
{
	double x, y;

	if (a->null || b->null)
		return a->null && b->null;
	if (lag_unit_is_text(unit))
		return strcmp(a->text, b->text) == 0;
	if (unit < LAG_UNIT_SHARE && a->i == b->i)
		return true;
	if (unit == LAG_UNIT_ID)
		return false;
	x = lag_diff_number(a, unit);
	y = lag_diff_number(b, unit);
	/* Reals that went through the same sums in another order. */
	if (unit >= LAG_UNIT_SHARE && fabs(x - y) <= 1e-12 * fmax(fabs(x), fabs(y)))
		return true;
	return diff->opts.tolerance > 0 &&
	       fabs(x - y) <= diff->opts.tolerance * fmax(fabs(x), fabs(y));
}

static int by_weight(const void *left, const void *right)
{
	const struct lag_diff_change *a = left, *b = right;

	if (a->tier != b->tier)
		return a->tier < b->tier ? -1 : 1;
	if (a->weight > b->weight || a->weight < b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void drop_small(struct lag_diff *diff)
{
	struct lag_diff_change *at = diff->changes.items;

	if (diff->changes.n)
		qsort(at, diff->changes.n, sizeof(*at), by_weight);
	while (diff->changes.n > diff->opts.n_top)
		release_change(&at[--diff->changes.n]);
}

static bool copy_text(struct lag_cell *cell, enum lag_unit unit)
{
	if (cell->null || !lag_unit_is_text(unit))
		return true;
	cell->text = strdup(cell->text);
	cell->null = !cell->text;
	return !cell->null;
}

void lag_diff_add(struct lag_diff *diff, const struct lag_diff_change *change)
{
	struct lag_diff_change *kept = lag_vec_push(&diff->changes);

	diff->n_found++;
	if (!kept) {
		diff->failed = true;
		return;
	}
	*kept = *change;
	kept->view = (uint32_t)diff->views.n - 1;
	kept->order = diff->n_found;
	kept->row = strdup(change->row);
	/* All three, so that each owns its text. */
	if (!copy_text(&kept->a, kept->unit))
		diff->failed = true;
	if (!copy_text(&kept->b, kept->unit) || !kept->row)
		diff->failed = true;
	if (diff->changes.n >= diff->opts.n_top * 2 + SPARE)
		drop_small(diff);
}

enum lag_status lag_diff_finish(struct lag_diff *diff, struct lag_err *err)
{
	drop_small(diff);
	return diff->failed ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory to compare") : LAG_OK;
}

/* ---- tables ---- */

struct match {
	struct lag_diff *diff;
	const struct lag_table *a, *b;
	int keys[KEYS_MAX];
	size_t n_keys;
	const char *skip;
	double *sums;          /* by column, of both sides */
	bool *compared;        /* by column */
	struct lag_strtab ids; /* of keys, with a number that tells repeated ones apart */
	struct lag_map rows;   /* id of a key -> row of B */
	bool *found;           /* rows of B */
};

static enum lag_status find_keys(struct match *m, const char *keys, struct lag_err *err)
{
	for (const char *p = keys + strspn(keys, " "); *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		char name[64];

		(void)snprintf(name, sizeof(name), "%.*s", (int)n, p);
		if (m->n_keys == KEYS_MAX || lag_table_find_column(m->a, name) < 0) {
			return lag_err_set(err, LAG_ERR_USAGE, "%s: no column '%s'", m->a->analysis,
					   name);
		}
		m->keys[m->n_keys++] = lag_table_find_column(m->a, name);
		p += n;
	}
	return LAG_OK;
}

/* The key as bytes of its own, not as people read it: two values may look alike. */
static void write_key(const struct match *m, const struct lag_table *t, size_t row,
		      struct lag_buf *out)
{
	lag_buf_clear(out);
	for (size_t k = 0; k < m->n_keys; k++) {
		const struct lag_cell *cell = lag_table_cell(t, row, (size_t)m->keys[k]);

		if (cell->null) {
			lag_buf_putc(out, '-');
		} else if (lag_unit_is_text(t->columns[m->keys[k]].unit)) {
			lag_buf_printf(out, "%zu:%s", strlen(cell->text), cell->text);
		} else {
			lag_buf_printf(out, "%lld,", (long long)cell->i);
		}
	}
}

/* "rank 3, step 7"; a name stands for itself. */
static void write_label(const struct match *m, const struct lag_table *t, size_t row,
			struct lag_buf *out)
{
	lag_buf_clear(out);
	for (size_t k = 0; k < m->n_keys; k++) {
		size_t c = (size_t)m->keys[k];

		if (lag_table_cell(t, row, c)->null)
			continue;
		if (out->n)
			lag_buf_puts(out, ", ");
		if (!lag_unit_is_text(t->columns[c].unit))
			lag_buf_printf(out, "%s ", t->columns[c].title);
		lag_table_format(t, row, c, out);
	}
}

/* Id of the row's key; the second row of the same key has another one. seen counts by the plain key. */
static uint64_t key_id(struct match *m, const struct lag_table *t, size_t row, struct lag_map *seen,
		       struct lag_buf *key)
{
	uint64_t n = 0;
	uint32_t id;

	write_key(m, t, row, key);
	id = lag_strtab_add(&m->ids, lag_buf_text(key), key->n);
	(void)lag_map_find(seen, id, &n);
	if (id == LAG_STR_NONE || key->failed || lag_failed(lag_map_set(seen, id, n + 1)))
		m->diff->failed = true;
	return lag_hash_pair(id, n);
}

static void index_rows(struct match *m)
{
	struct lag_map seen = { 0 };
	struct lag_buf key = { 0 };

	for (size_t row = 0; row < m->b->n_rows; row++) {
		uint64_t id = key_id(m, m->b, row, &seen, &key);

		if (lag_failed(lag_map_set(&m->rows, id, row)))
			m->diff->failed = true;
	}
	lag_buf_release(&key);
	lag_map_release(&seen);
}

static bool is_among(const char *names, const char *name)
{
	for (const char *p = names; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");

		if (n == strlen(name) && memcmp(p, name, n) == 0)
			return true;
		p += n;
	}
	return false;
}

static void sum_columns(struct match *m)
{
	for (size_t c = 0; c < m->a->n_columns; c++) {
		enum lag_unit unit = m->a->columns[c].unit;
		bool is_key = false;

		for (size_t k = 0; k < m->n_keys; k++)
			is_key = is_key || (size_t)m->keys[k] == c;
		m->compared[c] = !is_key && !is_among(m->skip, m->a->columns[c].name) &&
				 !lag_diff_ignores(m->diff, m->a->columns[c].name);
		if (lag_unit_is_text(unit) || unit == LAG_UNIT_ID)
			continue;
		for (size_t row = 0; row < m->a->n_rows; row++)
			m->sums[c] += fabs(lag_diff_number(lag_table_cell(m->a, row, c), unit));
		for (size_t row = 0; row < m->b->n_rows; row++)
			m->sums[c] += fabs(lag_diff_number(lag_table_cell(m->b, row, c), unit));
	}
}

/* By what a column says: verdicts first; how well something is known never hides what it is. */
static int tier_of(const struct match *m, const char *column)
{
	static const char *const vague[] = { "error", "uncertainty", "bound_", "sigma" };
	const char *view = current(m->diff)->name;

	if (strcmp(column, "verdict") == 0)
		return 0;
	if (strcmp(view, "clock") == 0 || strcmp(view, "trust") == 0)
		return 2;
	for (size_t i = 0; i < sizeof(vague) / sizeof(vague[0]); i++) {
		if (strstr(column, vague[i]))
			return 2;
	}
	return 1;
}

/* A time that is nothing beside a step is no large change, though it be all of its column. */
static double weigh(const struct match *m, double change, size_t column)
{
	double floor = (double)m->diff->opts.step_ns / 1000;

	if (!(m->sums[column] > 0))
		return 0;
	if (m->a->columns[column].unit != LAG_UNIT_NS)
		floor = 0;
	return change / m->sums[column] * (change > 0 ? change / (change + floor) : 0);
}

static void add_row(struct match *m, enum lag_diff_kind kind, const struct lag_table *t, size_t row)
{
	struct lag_diff_change change = {
		.kind = kind, .a = { .null = true }, .b = { .null = true }, .tier = tier_of(m, "")
	};
	struct lag_buf label = { 0 };

	for (size_t c = 0; c < t->n_columns; c++) {
		double x = fabs(lag_diff_number(lag_table_cell(t, row, c), t->columns[c].unit));

		if (m->compared[c] && weigh(m, x, c) > change.weight)
			change.weight = weigh(m, x, c);
	}
	write_label(m, t, row, &label);
	change.row = label.text;
	if (label.failed || !label.text) {
		m->diff->failed = m->diff->failed || label.failed;
		change.row = (char[]){ "" };
	}
	lag_diff_add(m->diff, &change);
	lag_buf_release(&label);
}

/* True when no compared cell differs. */
static bool compare_rows(struct match *m, size_t row_a, size_t row_b)
{
	struct lag_buf label = { 0 };
	bool same = true;

	for (size_t c = 0; c < m->a->n_columns; c++) {
		const struct lag_cell *a = lag_table_cell(m->a, row_a, c);
		const struct lag_cell *b = lag_table_cell(m->b, row_b, c);
		enum lag_unit unit = m->a->columns[c].unit;
		struct lag_diff_change change = { .column = m->a->columns[c].name,
						  .title = m->a->columns[c].title,
						  .tier = tier_of(m, m->a->columns[c].name),
						  .unit = unit,
						  .a = *a,
						  .b = *b };

		if (!m->compared[c] || lag_diff_cells_equal(m->diff, a, b, unit))
			continue;
		if (same)
			write_label(m, m->a, row_a, &label);
		same = false;
		change.row = label.text ? label.text : (char[]){ "" };
		change.weight =
			weigh(m, fabs(lag_diff_number(a, unit) - lag_diff_number(b, unit)), c);
		lag_diff_add(m->diff, &change);
	}
	m->diff->failed = m->diff->failed || label.failed;
	lag_buf_release(&label);
	return same;
}

static void match_rows(struct match *m)
{
	struct lag_diff_view *view = current(m->diff);
	struct lag_map seen = { 0 };
	struct lag_buf key = { 0 };

	view->n_a += m->a->n_rows;
	view->n_b += m->b->n_rows;
	for (size_t row = 0; row < m->a->n_rows; row++) {
		uint64_t other;

		if (!lag_map_find(&m->rows, key_id(m, m->a, row, &seen, &key), &other)) {
			view->n_removed++;
			add_row(m, LAG_DIFF_REMOVED, m->a, row);
			continue;
		}
		m->found[other] = true;
		if (compare_rows(m, row, (size_t)other)) {
			view->n_same++;
		} else {
			view->n_changed++;
		}
	}
	for (size_t row = 0; row < m->b->n_rows; row++) {
		if (!m->found[row]) {
			view->n_added++;
			add_row(m, LAG_DIFF_ADDED, m->b, row);
		}
	}
	lag_buf_release(&key);
	lag_map_release(&seen);
}

enum lag_status lag_diff_tables(struct lag_diff *diff, const struct lag_table *a,
				const struct lag_table *b, const struct lag_diff_keys *keys,
				struct lag_err *err)
{
	struct match m = { .diff = diff, .a = a, .b = b, .skip = keys->skip };
	enum lag_status st;

	if (a->columns != b->columns || a->n_columns != b->n_columns)
		return lag_err_set(err, LAG_ERR_USAGE, "tables of different columns");
	st = find_keys(&m, keys->keys, err);
	if (st != LAG_OK)
		return st;
	m.sums = lag_calloc(a->n_columns, sizeof(*m.sums));
	m.compared = lag_calloc(a->n_columns, sizeof(*m.compared));
	m.found = lag_calloc(b->n_rows, sizeof(*m.found));
	if (!m.sums || !m.compared || !m.found || lag_failed(lag_strtab_init(&m.ids))) {
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory to compare");
	} else {
		sum_columns(&m);
		index_rows(&m);
		match_rows(&m);
	}
	lag_map_release(&m.rows);
	lag_strtab_release(&m.ids);
	free(m.sums);
	free(m.compared);
	free(m.found);
	return st;
}

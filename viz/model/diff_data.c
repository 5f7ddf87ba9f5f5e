/* SPDX-License-Identifier: Apache-2.0 */
/* Two sorted streams of events side by side. Where names differ, the nearest pair of equal names within
 * a window says which events one side has alone. */
#include "viz/model/diff_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/map.h"
#include "viz/model/diff_api.sql.h"
#include "viz/model/diff_gpu.sql.h"
#include "viz/model/diff_op.sql.h"
#include "viz/model/diff_range.sql.h"
#include "viz/model/diff_sync.sql.h"
#include "viz/model/interval.h"

#define CELLS_MAX 10
#define RUN       8 /* equal names in a row that are no accident: layers repeat each other */
#define FIRST     3 /* of the statement's columns: rank, lane and name come before the cells */

/* The first two are made from start and duration. */
#define TIMES                                                               \
	{ "since_previous_ns", "since the one before", LAG_UNIT_NS, NULL }, \
	{                                                                   \
		"duration_ns", "duration", LAG_UNIT_NS, NULL                \
	}

static const struct lag_column gpu_columns[] = {
	TIMES,
	{ "bytes", "bytes", LAG_UNIT_BYTES, NULL },
	{ "copy_kind", "kind of copy", LAG_UNIT_ID, NULL },
	{ "blocks", "blocks", LAG_UNIT_COUNT, NULL },
	{ "threads", "threads of a block", LAG_UNIT_COUNT, NULL },
	{ "communication", "communication", LAG_UNIT_ID, NULL },
};
static const struct lag_column api_columns[] = {
	TIMES,
	{ "domain", "domain", LAG_UNIT_ID, NULL },
	{ "result", "result", LAG_UNIT_ID, NULL },
};
static const struct lag_column sync_columns[] = { TIMES, { "kind", "kind", LAG_UNIT_ID, NULL } };
static const struct lag_column range_columns[] = {
	TIMES,
	{ "kind", "kind", LAG_UNIT_ID, NULL },
	{ "depth", "depth", LAG_UNIT_ID, NULL },
	{ "payload", "payload", LAG_UNIT_COUNT, NULL },
	{ "unclosed", "unclosed", LAG_UNIT_ID, NULL },
};
static const struct lag_column op_columns[] = {
	TIMES,
	{ "bytes", "bytes", LAG_UNIT_BYTES, NULL },
	{ "count", "count", LAG_UNIT_COUNT, NULL },
	{ "datatype", "datatype", LAG_UNIT_ID, NULL },
	{ "redop", "operator", LAG_UNIT_ID, NULL },
	{ "peer", "peer", LAG_UNIT_ID, NULL },
	{ "seq", "sequence", LAG_UNIT_ID, NULL },
	{ "result", "result", LAG_UNIT_ID, NULL },
};

struct view {
	const char *name, *lane, *sql; /* lane NULL: a communication function */
	const struct lag_column *columns;
	size_t n_columns;
};

#define VIEW(name, lane, sql, columns)                                           \
	{                                                                        \
		name, lane, sql, columns, sizeof(columns) / sizeof((columns)[0]) \
	}

static const struct view views[] = {
	VIEW("data.gpu_event", "stream", lag_sql_diff_gpu, gpu_columns),
	VIEW("data.api_call", "thread", lag_sql_diff_api, api_columns),
	VIEW("data.gpu_sync", "stream", lag_sql_diff_sync, sync_columns),
	VIEW("data.nvtx_range", "thread", lag_sql_diff_range, range_columns),
	VIEW("data.nccl_op", NULL, lag_sql_diff_op, op_columns),
};

bool lag_diff_data_has_column(const char *entry, size_t n)
{
	for (size_t v = 0; v < sizeof(views) / sizeof(views[0]); v++) {
		for (size_t c = 0; c < views[v].n_columns; c++) {
			if (lag_diff_names(entry, n, views[v].name, views[v].columns[c].name))
				return true;
		}
	}
	return false;
}

struct row {
	int64_t rank, lane, number; /* number: in its lane, from 1 */
	char *name;
	uint64_t hash;
	struct lag_cell cells[CELLS_MAX];
};

/* One side: a ring of the rows that are looked at. */
struct side {
	struct lag_stmt *stmt;
	struct row rows[LAG_DIFF_WINDOW];
	size_t first, n;
	bool at_end;
	int64_t rank, lane, number, start_ns; /* of the row read last */
	uint64_t n_rows;
};

struct pairing {
	struct lag_diff *diff;
	const struct view *view;
	struct side a, b;
	double sums[CELLS_MAX];
	bool ignored[CELLS_MAX];
};

static struct row *row_at(struct side *side, size_t i)
{
	return &side->rows[(side->first + i) % LAG_DIFF_WINDOW];
}

static void take_cells(struct side *side, const struct view *view, struct row *row)
{
	int64_t start_ns = lag_stmt_int(side->stmt, FIRST);

	for (size_t c = 0; c < view->n_columns; c++) {
		int64_t v = lag_stmt_int(side->stmt, FIRST + (int)c);

		if (c == 0) {
			bool known = row->number > 1 && start_ns != LAG_NONE &&
				     side->start_ns != LAG_NONE;

			v = known ? lag_ns_sub(start_ns, side->start_ns) : LAG_NONE;
		}
		row->cells[c] = (struct lag_cell){ .null = v == LAG_NONE };
		if (v != LAG_NONE)
			row->cells[c].i = v;
	}
	side->start_ns = start_ns;
}

/* LAG_END: no more. */
static enum lag_status read_row(struct side *side, const struct view *view, struct row *row,
				struct lag_err *err)
{
	enum lag_status st = side->at_end ? LAG_END : lag_stmt_step(side->stmt, err);
	const char *name;

	if (st != LAG_OK) {
		side->at_end = true;
		return st;
	}
	row->rank = lag_stmt_int(side->stmt, 0);
	row->lane = lag_stmt_int(side->stmt, 1);
	if (!side->n_rows || row->rank != side->rank || row->lane != side->lane)
		side->number = 0;
	side->rank = row->rank;
	side->lane = row->lane;
	side->n_rows++;
	row->number = ++side->number;
	name = lag_stmt_text(side->stmt, 2);
	row->hash = lag_hash_bytes(name, strlen(name));
	row->name = strdup(name);
	take_cells(side, view, row);
	return row->name ? LAG_OK : lag_err_set(err, LAG_ERR_SYSTEM, "no memory to compare");
}

static enum lag_status fill(struct pairing *p, struct side *side, struct lag_err *err)
{
	while (side->n < LAG_DIFF_WINDOW && !side->at_end) {
		enum lag_status st = read_row(side, p->view, row_at(side, side->n), err);

		if (lag_failed(st))
			return st;
		side->n += st == LAG_OK;
	}
	return LAG_OK;
}

static void drop(struct side *side)
{
	struct row *row = row_at(side, 0);

	free(row->name);
	row->name = NULL;
	side->first = (side->first + 1) % LAG_DIFF_WINDOW;
	side->n--;
}

static void write_label(const struct pairing *p, const struct row *row, struct lag_buf *out)
{
	lag_buf_printf(out, "rank %lld, ", (long long)row->rank);
	if (p->view->lane) {
		lag_buf_printf(out, "%s %lld, ", p->view->lane, (long long)row->lane);
	} else {
		lag_buf_printf(out, "%s ", lag_func_name((unsigned)row->lane));
	}
	lag_buf_printf(out, "#%lld %s", (long long)row->number, row->name);
}

static void add_change(struct pairing *p, struct lag_diff_change *change, const struct row *row)
{
	struct lag_buf label = { 0 };

	write_label(p, row, &label);
	if (label.failed) {
		p->diff->failed = true;
	} else {
		change->row = label.text;
		lag_diff_add(p->diff, change);
	}
	lag_buf_release(&label);
}

static struct lag_diff_view *counts(struct pairing *p)
{
	return &LAG_VEC_AT(&p->diff->views, struct lag_diff_view, p->diff->views.n - 1);
}

static void one_side(struct pairing *p, struct side *side, enum lag_diff_kind kind)
{
	struct lag_diff_change change = { .kind = kind,
					  .a = { .null = true },
					  .b = { .null = true } };
	const struct row *row = row_at(side, 0);

	for (size_t c = 0; c < p->view->n_columns; c++) {
		double x = fabs(lag_diff_number(&row->cells[c], p->view->columns[c].unit));

		if (p->sums[c] > 0 && !p->ignored[c] && x / p->sums[c] > change.weight)
			change.weight = x / p->sums[c];
	}
	if (kind == LAG_DIFF_ADDED) {
		counts(p)->n_added++;
	} else {
		counts(p)->n_removed++;
	}
	add_change(p, &change, row);
	drop(side);
}

static void both_sides(struct pairing *p)
{
	const struct row *a = row_at(&p->a, 0), *b = row_at(&p->b, 0);
	bool same = true;

	for (size_t c = 0; c < p->view->n_columns; c++) {
		enum lag_unit unit = p->view->columns[c].unit;
		struct lag_diff_change change = { .column = p->view->columns[c].name,
						  .unit = unit,
						  .a = a->cells[c],
						  .b = b->cells[c] };

		if (p->ignored[c] ||
		    lag_diff_cells_equal(p->diff, &a->cells[c], &b->cells[c], unit))
			continue;
		same = false;
		if (p->sums[c] > 0) {
			change.weight = fabs(lag_diff_number(&change.a, unit) -
					     lag_diff_number(&change.b, unit)) /
					p->sums[c];
		}
		add_change(p, &change, a);
	}
	counts(p)->n_same += same;
	counts(p)->n_changed += !same;
	drop(&p->a);
	drop(&p->b);
}

/* <0: a's lane comes first. */
static int by_lane(const struct row *a, const struct row *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->lane < b->lane ? -1 : a->lane > b->lane;
}

static bool same_event(const struct row *a, const struct row *b)
{
	return a->hash == b->hash && by_lane(a, b) == 0 && strcmp(a->name, b->name) == 0;
}

/* Pairs of equal names from here on, at most RUN; the end of what is known counts as equal. */
static size_t run_length(struct pairing *p, size_t i, size_t j)
{
	size_t n = 0;

	while (n < RUN && i + n < p->a.n && j + n < p->b.n &&
	       same_event(row_at(&p->a, i + n), row_at(&p->b, j + n)))
		n++;
	return n && (i + n == p->a.n || j + n == p->b.n) ? RUN : n;
}

/* How many rows of each side come before both go on alike: the nearest place from which RUN names are
 * equal, else the one with most. False: no two names are equal. */
static bool find_pair(struct pairing *p, size_t *skip_a, size_t *skip_b)
{
	size_t best = 0;

	for (size_t d = 1; d < p->a.n + p->b.n && best < RUN; d++) {
		for (size_t i = 0; i <= d && i < p->a.n; i++) {
			size_t n = d - i < p->b.n ? run_length(p, i, d - i) : 0;

			if (n > best) {
				best = n;
				*skip_a = i;
				*skip_b = d - i;
			}
		}
	}
	return best > 0;
}

static void step(struct pairing *p)
{
	size_t skip_a = 1, skip_b = 1;
	int order = !p->b.n ? -1 : !p->a.n ? 1 : by_lane(row_at(&p->a, 0), row_at(&p->b, 0));

	if (order < 0) {
		one_side(p, &p->a, LAG_DIFF_REMOVED);
	} else if (order > 0) {
		one_side(p, &p->b, LAG_DIFF_ADDED);
	} else if (same_event(row_at(&p->a, 0), row_at(&p->b, 0))) {
		both_sides(p);
	} else {
		(void)find_pair(p, &skip_a, &skip_b);
		for (size_t i = 0; i < skip_a; i++)
			one_side(p, &p->a, LAG_DIFF_REMOVED);
		for (size_t i = 0; i < skip_b; i++)
			one_side(p, &p->b, LAG_DIFF_ADDED);
	}
}

/* Sums of the columns, for the weight of a change; then the statement runs once more. */
static enum lag_status add_up(struct pairing *p, struct side *side, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	while (st == LAG_OK) {
		struct row row = { 0 };

		st = read_row(side, p->view, &row, err);
		for (size_t c = 0; st == LAG_OK && c < p->view->n_columns; c++) {
			enum lag_unit unit = p->view->columns[c].unit;

			if (unit != LAG_UNIT_ID) /* a name, no quantity */
				p->sums[c] += fabs(lag_diff_number(&row.cells[c], unit));
		}
		free(row.name);
	}
	lag_stmt_reset(side->stmt);
	*side = (struct side){ .stmt = side->stmt };
	return lag_failed(st) ? st : LAG_OK;
}

static enum lag_status pair_up(struct pairing *p, struct lag_err *err)
{
	enum lag_status st = add_up(p, &p->a, err);

	if (st == LAG_OK)
		st = add_up(p, &p->b, err);
	for (size_t c = 0; c < p->view->n_columns; c++)
		p->ignored[c] = lag_diff_ignores(p->diff, p->view->columns[c].name);
	while (st == LAG_OK) {
		st = fill(p, &p->a, err);
		if (st == LAG_OK)
			st = fill(p, &p->b, err);
		if (st == LAG_OK && !p->a.n && !p->b.n)
			break;
		if (st == LAG_OK)
			step(p);
	}
	counts(p)->n_a = p->a.n_rows;
	counts(p)->n_b = p->b.n_rows;
	while (p->a.n)
		drop(&p->a);
	while (p->b.n)
		drop(&p->b);
	return st;
}

enum lag_status lag_diff_data(struct lag_diff *diff, struct lag_db *a, struct lag_db *b,
			      struct lag_err *err)
{
	struct pairing *p = lag_calloc(1, sizeof(*p));
	enum lag_status st = LAG_OK;

	if (!p)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to compare");
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]) && st == LAG_OK; i++) {
		*p = (struct pairing){ .diff = diff, .view = &views[i] };
		(void)lag_diff_begin(diff, views[i].name);
		if (diff->failed)
			break;
		st = lag_stmt_prepare(a, views[i].sql, NULL, &p->a.stmt, err);
		if (st == LAG_OK)
			st = lag_stmt_prepare(b, views[i].sql, NULL, &p->b.stmt, err);
		if (st == LAG_OK)
			st = pair_up(p, err);
		lag_stmt_free(p->a.stmt);
		lag_stmt_free(p->b.stmt);
	}
	free(p);
	return st;
}

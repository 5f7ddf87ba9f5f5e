/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every analysis on both traces, has their tables compared, and tells the outcome as tables. */
#include "viz/analysis/diff_runs.h"
#include "schema/base/fmt.h"

#include <math.h>
#include <string.h>

static const struct {
	const struct lag_analysis *analysis;
	struct lag_diff_keys keys;
} views[] = {

#define LAG_DIFF_VIEW(id, keys, skip) { &lag_analysis_##id, { keys, skip } },
#include "viz/analysis/diff_views.def"
};

#define N_VIEWS (sizeof(views) / sizeof(views[0]))

static enum lag_status same_ranks(const struct lag_trace *a, const struct lag_trace *b,
				  struct lag_err *err)
{
	if (a->world_size != b->world_size) {
		return lag_err_set(
			err, LAG_WARN, "not comparable: %lld %s and %lld %s",
			(long long)a->world_size, LAG_PLURAL(a->world_size, "rank", "ranks"),
			(long long)b->world_size, LAG_PLURAL(b->world_size, "rank", "ranks"));
	}
	for (size_t i = 0; i < a->n_ranks || i < b->n_ranks; i++) {
		bool in_a = i < a->n_ranks && a->ranks[i].recorded;
		bool in_b = i < b->n_ranks && b->ranks[i].recorded;
		int64_t rank = i < a->n_ranks ? a->ranks[i].rank : b->ranks[i].rank;

		if (in_a != in_b) {
			return lag_err_set(err, LAG_WARN,
					   "not comparable: rank %lld is recorded in %s alone",
					   (long long)rank, in_a ? "the first" : "the second");
		}
		if (i < a->n_ranks && i < b->n_ranks && a->ranks[i].rank != b->ranks[i].rank)
			return lag_err_set(err, LAG_WARN, "not comparable: other ranks");
	}
	return LAG_OK;
}

enum lag_status lag_diff_comparable(struct lag_context *a, struct lag_context *b,
				    struct lag_err *err)
{
	enum lag_status st = same_ranks(lag_context_trace(a), lag_context_trace(b), err);
	const struct lag_roles *ra, *rb;

	if (st != LAG_OK)
		return st;
	ra = lag_context_roles(a, err);
	rb = ra ? lag_context_roles(b, err) : NULL;
	if (!rb)
		return err->status;
	/* What was not found out in one of them does not speak against it. */
	if ((ra->n_stages > 0 && rb->n_stages > 0 && ra->n_stages != rb->n_stages) ||
	    (ra->n_dp > 0 && rb->n_dp > 0 && ra->n_dp != rb->n_dp) ||
	    (ra->n_tp > 0 && rb->n_tp > 0 && ra->n_tp != rb->n_tp)) {
		return lag_err_set(err, LAG_WARN, "not comparable: laid out as %s and as %s",
				   ra->shape, rb->shape);
	}
	return LAG_OK;
}

static enum lag_status compare(struct lag_diff *diff, size_t v, struct lag_context *a,
			       struct lag_context *b, struct lag_err *err)
{
	struct lag_table left, right;
	enum lag_status st = lag_analysis_run(views[v].analysis, a, &left, err);

	if (lag_failed(st)) {
		lag_table_release(&left);
		return lag_err_wrap(err, "%s", views[v].analysis->name);
	}
	st = lag_analysis_run(views[v].analysis, b, &right, err);
	(void)lag_diff_begin(diff, views[v].analysis->name);
	if (!lag_failed(st) && !diff->failed)
		st = lag_diff_tables(diff, &left, &right, &views[v].keys, err);
	lag_table_release(&left);
	lag_table_release(&right);
	return lag_failed(st) ? lag_err_wrap(err, "%s", views[v].analysis->name) : LAG_OK;
}

/* Is the analysis named in a list? NULL names all. */
static bool chosen(const char *list, const struct lag_analysis *analysis)
{
	for (const char *p = list; p && *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");
		char name[64] = "";

		memcpy(name, p, n < sizeof(name) ? n : sizeof(name) - 1);
		if (lag_analysis_find(name) == analysis)
			return true;
		p += n;
	}
	return !list;
}

bool lag_diff_has_column(const char *entry, size_t n)
{
	for (size_t v = 0; v < N_VIEWS; v++) {
		const struct lag_analysis *a = views[v].analysis;

		for (size_t c = 0; c < a->n_columns; c++) {
			if (lag_diff_names(entry, n, a->name, a->columns[c].name))
				return true;
		}
	}
	return false;
}

static enum lag_status check_list(const char *list, struct lag_err *err)
{
	if (list && !list[strspn(list, ",")])
		return lag_err_set(err, LAG_ERR_USAGE, "the list of views names none");
	for (const char *p = list; p && *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");
		bool known = false;

		for (size_t v = 0; v < N_VIEWS; v++) {
			char name[64] = "";

			memcpy(name, p, n < sizeof(name) ? n : sizeof(name) - 1);
			known = known || lag_analysis_find(name) == views[v].analysis;
		}
		if (!known) {
			return lag_err_set(err, LAG_ERR_USAGE, "there is no view '%.*s' to compare",
					   (int)(n < 64 ? n : 64), p);
		}
		p += n;
	}
	return LAG_OK;
}

enum lag_status lag_diff_runs(struct lag_diff *diff, struct lag_context *a, struct lag_context *b,
			      const char *names, struct lag_err *err)
{
	enum lag_status st = check_list(names, err);

	for (size_t v = 0; v < N_VIEWS && st == LAG_OK; v++) {
		if (chosen(names, views[v].analysis))
			st = compare(diff, v, a, b, err);
	}
	return st;
}

static const struct lag_column summary_columns[] = {
	{ "view", "view", LAG_UNIT_TEXT, NULL },
	{ "rows_a", "rows in A", LAG_UNIT_COUNT, NULL },
	{ "rows_b", "in B", LAG_UNIT_COUNT, NULL },
	{ "same", "same", LAG_UNIT_COUNT, NULL },
	{ "changed", "changed", LAG_UNIT_COUNT, NULL },
	{ "removed", "removed", LAG_UNIT_COUNT, "rows in A alone" },
	{ "added", "added", LAG_UNIT_COUNT, "rows in B alone" },
};

enum lag_status lag_diff_summary_table(const struct lag_diff *diff, struct lag_table *out,
				       struct lag_err *err)
{
	uint64_t n = 0;

	lag_table_init(out, "diff", summary_columns,
		       sizeof(summary_columns) / sizeof(summary_columns[0]));
	for (size_t i = 0; i < diff->views.n; i++) {
		const struct lag_diff_view *v = &LAG_VEC_AT(&diff->views, struct lag_diff_view, i);

		lag_table_row(out);
		lag_table_text(out, v->name);
		lag_table_int(out, (int64_t)v->n_a);
		lag_table_int(out, (int64_t)v->n_b);
		lag_table_int(out, (int64_t)v->n_same);
		lag_table_int(out, (int64_t)v->n_changed);
		lag_table_int(out, (int64_t)v->n_removed);
		lag_table_int(out, (int64_t)v->n_added);
		n += v->n_changed + v->n_removed + v->n_added;
	}
	if (diff->opts.tolerance > 0) {
		lag_table_note(out, "numbers that differ by at most %.3g %% count as equal",
			       100 * diff->opts.tolerance);
	}
	if (diff->opts.ignore)
		lag_table_note(out, "not compared: %.200s", diff->opts.ignore);
	out->outcome = n ? LAG_OUTCOME_FINDING : LAG_OUTCOME_FINE;
	return lag_table_finish(out, err);
}

static const struct lag_column people_columns[] = {
	{ "view", "view", LAG_UNIT_TEXT, NULL },
	{ "row", "row", LAG_UNIT_TEXT, NULL },
	{ "change", "change", LAG_UNIT_TEXT, NULL },
	{ "a", "A", LAG_UNIT_TEXT, NULL },
	{ "b", "B", LAG_UNIT_TEXT, NULL },
	{ "difference", "difference", LAG_UNIT_TEXT, NULL },
	{ "relative", "relative", LAG_UNIT_SHARE, "A" },
};
static const struct lag_column exact_columns[] = {
	{ "view", "view", LAG_UNIT_TEXT, NULL },
	{ "row", "row", LAG_UNIT_TEXT, NULL },
	{ "change", "change", LAG_UNIT_TEXT, NULL },
	{ "column", "column", LAG_UNIT_TEXT, NULL },
	{ "a", "A", LAG_UNIT_NUMBER, NULL },
	{ "b", "B", LAG_UNIT_NUMBER, NULL },
	{ "difference", "difference", LAG_UNIT_NUMBER, NULL },
	{ "relative", "relative", LAG_UNIT_SHARE, "A" },
	{ "a_text", "A", LAG_UNIT_TEXT, NULL },
	{ "b_text", "B", LAG_UNIT_TEXT, NULL },
};

/* Difference in the column's own unit; null where there is none. */
static struct lag_cell difference(const struct lag_diff_change *c)
{
	struct lag_cell cell = { .null = lag_unit_is_text(c->unit) || c->unit == LAG_UNIT_ID ||
					 c->a.null || c->b.null };

	if (cell.null)
		return cell;
	if (c->unit >= LAG_UNIT_SHARE) {
		cell.d = c->b.d - c->a.d;
	} else {
		cell.i = (int64_t)((uint64_t)c->b.i - (uint64_t)c->a.i);
	}
	return cell;
}

static void put_relative(struct lag_table *out, const struct lag_diff_change *c)
{
	struct lag_cell d = difference(c);
	double a = lag_diff_number(&c->a, c->unit);

	lag_table_real(out,
		       d.null || !(fabs(a) > 0) ? NAN : lag_diff_number(&d, c->unit) / fabs(a));
}

static void put_formatted(struct lag_table *out, const struct lag_diff_change *c,
			  const struct lag_cell *cell, bool sign)
{
	struct lag_buf text = { 0 };

	if (c->kind != LAG_DIFF_CHANGED || (sign && cell->null)) {
		lag_table_null(out);
		return;
	}
	if (sign && lag_diff_number(cell, c->unit) > 0)
		lag_buf_putc(&text, '+');
	lag_cell_format(cell, c->unit, &text);
	lag_table_text(out, lag_buf_text(&text));
	lag_buf_release(&text);
}

static void put_for_people(struct lag_table *out, const struct lag_diff_change *c, const char *what)
{
	struct lag_cell d = difference(c);

	lag_table_text(out, c->kind != LAG_DIFF_CHANGED ? what
			    : c->title && c->title[0]   ? c->title
							: c->column);
	put_formatted(out, c, &c->a, false);
	put_formatted(out, c, &c->b, false);
	put_formatted(out, c, &d, true);
	put_relative(out, c);
}

static void put_number(struct lag_table *out, const struct lag_diff_change *c,
		       const struct lag_cell *cell)
{
	lag_table_real(out, cell->null || lag_unit_is_text(c->unit)
				    ? NAN
				    : lag_diff_number(cell, c->unit));
}

static void put_exact(struct lag_table *out, const struct lag_diff_change *c, const char *what)
{
	struct lag_cell d = difference(c);
	bool text = c->kind == LAG_DIFF_CHANGED && lag_unit_is_text(c->unit);

	lag_table_text(out, what);
	lag_table_text(out, c->column);
	put_number(out, c, &c->a);
	put_number(out, c, &c->b);
	put_number(out, c, &d);
	put_relative(out, c);
	lag_table_text(out, text && !c->a.null ? c->a.text : NULL);
	lag_table_text(out, text && !c->b.null ? c->b.text : NULL);
}

enum lag_status lag_diff_changes_table(const struct lag_diff *diff, bool exact,
				       struct lag_table *out, struct lag_err *err)
{
	static const char *const kinds[] = { "changed", "added", "removed" };
	const struct lag_column *columns = exact ? exact_columns : people_columns;
	size_t n = exact ? sizeof(exact_columns) / sizeof(exact_columns[0])
			 : sizeof(people_columns) / sizeof(people_columns[0]);

	lag_table_init(out, "changes", columns, n);
	for (size_t i = 0; i < diff->changes.n; i++) {
		const struct lag_diff_change *c =
			&LAG_VEC_AT(&diff->changes, struct lag_diff_change, i);

		lag_table_row(out);
		lag_table_text(out, LAG_VEC_AT(&diff->views, struct lag_diff_view, c->view).name);
		lag_table_text(out, c->row);
		if (exact) {
			put_exact(out, c, kinds[c->kind]);
		} else {
			put_for_people(out, c, kinds[c->kind]);
		}
	}
	if (diff->n_found > diff->changes.n) {
		lag_table_note(out, "the %zu biggest of %llu %s (--top shows more)",
			       diff->changes.n, (unsigned long long)diff->n_found,
			       LAG_PLURAL(diff->n_found, "change", "changes"));
	}
	out->outcome = diff->n_found ? LAG_OUTCOME_FINDING : LAG_OUTCOME_FINE;
	return lag_table_finish(out, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the summaries and the verdicts of two runs say, side by side: read by column name from the tables of
 * those analyses. */
#include "viz/analysis/diff_headline.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"

static const struct lag_column people_columns[] = {
	{ "what", "", LAG_UNIT_TEXT, NULL },
	{ "a", "A", LAG_UNIT_TEXT, NULL },
	{ "b", "B", LAG_UNIT_TEXT, NULL },
	{ "difference", "difference", LAG_UNIT_TEXT, NULL },
	{ "relative", "relative", LAG_UNIT_SHARE, "A" },
};

static const struct lag_column exact_columns[] = {
	{ "kind", "kind", LAG_UNIT_TEXT, NULL },
	{ "what", "what", LAG_UNIT_TEXT, NULL },
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "a_ns", "A", LAG_UNIT_NS, NULL },
	{ "b_ns", "B", LAG_UNIT_NS, NULL },
	{ "difference_ns", "difference", LAG_UNIT_NS, NULL },
	{ "relative", "relative", LAG_UNIT_SHARE, "A" },
	{ "a_text", "A", LAG_UNIT_TEXT, NULL },
	{ "b_text", "B", LAG_UNIT_TEXT, NULL },
};

struct headline {
	struct lag_table *out;
	bool exact;
	struct lag_table summary[2], stragglers[2]; /* of A and B */
};

/* One line: a number of each side, or a text where there is none. */
struct line {
	const char *kind, *what;
	int64_t rank, ns[2];
	const char *text[2];
};

static void put_people(struct lag_table *out, const struct line *l, int64_t difference)
{
	struct lag_buf text = { 0 };

	lag_table_text(out, l->what);
	for (int side = 0; side < 2; side++) {
		lag_buf_clear(&text);
		if (l->ns[side] != LAG_NONE)
			lag_fmt_ns(&text, l->ns[side]);
		lag_table_text(out, l->ns[side] != LAG_NONE ? lag_buf_text(&text) : l->text[side]);
	}
	lag_buf_clear(&text);
	if (difference != LAG_NONE && difference > 0)
		lag_buf_putc(&text, '+');
	if (difference != LAG_NONE)
		lag_fmt_ns(&text, difference);
	lag_table_text(out, difference != LAG_NONE ? lag_buf_text(&text) : NULL);
	lag_buf_release(&text);
}

static void put_exact(struct lag_table *out, const struct line *l, int64_t difference)
{
	lag_table_text(out, l->kind);
	lag_table_text(out, l->what);
	lag_table_int(out, l->rank);
	lag_table_int(out, l->ns[0]);
	lag_table_int(out, l->ns[1]);
	lag_table_int(out, difference);
}

static void put(struct headline *h, const struct line *l)
{
	bool both = l->ns[0] != LAG_NONE && l->ns[1] != LAG_NONE;
	int64_t difference = both ? l->ns[1] - l->ns[0] : LAG_NONE;

	lag_table_row(h->out);
	(h->exact ? put_exact : put_people)(h->out, l, difference);
	lag_table_real(h->out,
		       both && l->ns[0] ? (double)difference / fabs((double)l->ns[0]) : NAN);
	if (h->exact) {
		lag_table_text(h->out, l->text[0]);
		lag_table_text(h->out, l->text[1]);
	}
}

static const char *text_of(const struct lag_table *t, size_t row, const char *column)
{
	int c = lag_table_find_column(t, column);
	const struct lag_cell *cell = c < 0 ? NULL : lag_table_cell(t, row, (size_t)c);

	return cell && !cell->null ? cell->text : "";
}

static int64_t int_of(const struct lag_table *t, size_t row, const char *column)
{
	int c = lag_table_find_column(t, column);
	const struct lag_cell *cell = c < 0 ? NULL : lag_table_cell(t, row, (size_t)c);

	return cell && !cell->null ? cell->i : LAG_NONE;
}

static bool is_of(const struct lag_table *t, size_t row, const char *section)
{
	return strcmp(text_of(t, row, "section"), section) == 0;
}

/* Row of the summary with that section and item. */
static int64_t value_of(const struct lag_table *t, const char *section, const char *item)
{
	for (size_t row = 0; row < t->n_rows; row++) {
		if (is_of(t, row, section) && strcmp(text_of(t, row, "item"), item) == 0)
			return int_of(t, row, "value_ns");
	}
	return LAG_NONE;
}

/* ---- the step, and where its time goes ---- */

static void put_times(struct headline *h)
{
	const struct lag_table *a = &h->summary[0], *b = &h->summary[1];
	struct line l = { .kind = "step", .what = "step, mean", .rank = LAG_NONE };

	l.ns[0] = value_of(a, "step", "mean");
	l.ns[1] = value_of(b, "step", "mean");
	if (l.ns[0] != LAG_NONE || l.ns[1] != LAG_NONE)
		put(h, &l);
	for (int c = 0; c < LAG_TIME_LIMIT; c++) {
		const char *item = lag_time_class_name((enum lag_time_class)c);
		char what[80];

		(void)snprintf(what, sizeof(what), "  %s",
			       lag_time_class_title((enum lag_time_class)c));
		l = (struct line){ .kind = "time",
				   .what = h->exact ? item : what,
				   .rank = LAG_NONE };
		l.ns[0] = value_of(a, "time", item);
		l.ns[1] = value_of(b, "time", item);
		if (l.ns[0] != l.ns[1])
			put(h, &l);
	}
}

/* ---- who is slow ---- */

static size_t row_of_rank(const struct lag_table *t, int64_t rank)
{
	size_t row = 0;

	while (row < t->n_rows && int_of(t, row, "rank") != rank)
		row++;
	return row;
}

/* "chronic, 1.25x its peers", "not slow" */
static void describe(const struct lag_table *t, size_t row, struct lag_buf *out)
{
	const char *verdict = row < t->n_rows ? text_of(t, row, "verdict") : "";
	int c = lag_table_find_column(t, "compute_ratio");

	lag_buf_puts(out, !verdict[0]                    ? "not known"
			  : strcmp(verdict, "none") == 0 ? "not slow"
							 : verdict);
	if (!verdict[0] || strcmp(verdict, "none") == 0 || c < 0 ||
	    lag_table_cell(t, row, (size_t)c)->null)
		return;
	lag_buf_puts(out, ", ");
	lag_table_format(t, row, (size_t)c, out);
	lag_buf_puts(out, " its peers");
}

static void put_verdicts(struct headline *h)
{
	const struct lag_table *a = &h->stragglers[0], *b = &h->stragglers[1];

	for (size_t row = 0; row < a->n_rows; row++) {
		int64_t rank = int_of(a, row, "rank");
		size_t other = row_of_rank(b, rank);
		struct lag_buf what = { 0 }, of_a = { 0 }, of_b = { 0 };

		if (other < b->n_rows &&
		    strcmp(text_of(a, row, "verdict"), text_of(b, other, "verdict")) == 0)
			continue;
		lag_buf_printf(&what, "rank %" PRId64, rank);
		describe(a, row, &of_a);
		describe(b, other, &of_b);
		put(h, &(struct line){ "verdict",
				       lag_buf_text(&what),
				       rank,
				       { LAG_NONE, LAG_NONE },
				       { lag_buf_text(&of_a), lag_buf_text(&of_b) } });
		lag_buf_release(&what);
		lag_buf_release(&of_a);
		lag_buf_release(&of_b);
	}
}

/* ---- findings ---- */

/* The same but for its numbers. */
static bool same_text(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (isdigit((unsigned char)*a) || *a == '.')
			a++;
		while (isdigit((unsigned char)*b) || *b == '.')
			b++;
		if (*a != *b || !*a)
			return *a == *b;
	}
}

static bool is_finding(const struct lag_table *t, size_t row)
{
	const char *item = text_of(t, row, "item");

	/* Verdicts have lines of their own. */
	return is_of(t, row, "finding") && strcmp(item, "straggler") != 0 &&
	       strcmp(item, "nobody_late") != 0 && strcmp(item, "not_compared") != 0 &&
	       strcmp(item, "one_rank") != 0;
}

static size_t find_same(const struct lag_table *a, size_t row, const struct lag_table *b)
{
	size_t i = 0;

	while (i < b->n_rows &&
	       !(is_finding(b, i) && strcmp(text_of(a, row, "item"), text_of(b, i, "item")) == 0 &&
		 int_of(a, row, "rank") == int_of(b, i, "rank") &&
		 same_text(text_of(a, row, "text"), text_of(b, i, "text"))))
		i++;
	return i;
}

static void put_finding(struct headline *h, int side, size_t row, size_t other)
{
	const struct lag_table *t = &h->summary[side], *u = &h->summary[!side];
	bool in_both = other < u->n_rows;
	struct lag_buf what = { 0 };
	struct line l = { .kind = "finding", .rank = int_of(t, row, "rank") };

	lag_buf_printf(&what, "%s%s", h->exact ? "" : "finding: ", text_of(t, row, "text"));
	l.what = lag_buf_text(&what);
	l.ns[side] = int_of(t, row, "value_ns");
	l.ns[!side] = in_both ? int_of(u, other, "value_ns") : LAG_NONE;
	l.text[side] = "found";
	l.text[!side] = in_both ? "found" : "not found";
	if (!in_both || l.ns[0] != l.ns[1])
		put(h, &l);
	lag_buf_release(&what);
}

static void put_findings(struct headline *h)
{
	for (int side = 0; side < 2; side++) {
		const struct lag_table *t = &h->summary[side], *u = &h->summary[!side];

		for (size_t row = 0; row < t->n_rows; row++) {
			size_t other = is_finding(t, row) ? find_same(t, row, u) : 0;

			if (is_finding(t, row) && (side == 0 || other == u->n_rows))
				put_finding(h, side, row, other);
		}
	}
}

enum lag_status lag_diff_headline(struct lag_context *a, struct lag_context *b, bool exact,
				  struct lag_table *out, int64_t *step_ns, struct lag_err *err)
{
	struct headline h = { .out = out, .exact = exact };
	struct lag_context *const sides[] = { a, b };
	enum lag_status st = LAG_OK;

	*step_ns = 0;
	lag_table_init(out, "headline", exact ? exact_columns : people_columns,
		       exact ? sizeof(exact_columns) / sizeof(exact_columns[0])
			     : sizeof(people_columns) / sizeof(people_columns[0]));
	for (int side = 0; side < 2 && !lag_failed(st); side++) {
		st = lag_analysis_run(&lag_analysis_summary, sides[side], &h.summary[side], err);
		if (!lag_failed(st)) {
			st = lag_analysis_run(&lag_analysis_stragglers, sides[side],
					      &h.stragglers[side], err);
		}
	}
	if (!lag_failed(st)) {
		int64_t step = value_of(&h.summary[0], "step", "mean");

		*step_ns = step == LAG_NONE ? 0 : step;
		if (!exact) {
			lag_table_note(out, "A is %.300s, B is %.300s", lag_context_trace(a)->path,
				       lag_context_trace(b)->path);
		}
		put_times(&h);
		put_verdicts(&h);
		put_findings(&h);
		st = lag_table_finish(out, err);
	}
	for (int side = 0; side < 2; side++) {
		lag_table_release(&h.summary[side]);
		lag_table_release(&h.stragglers[side]);
	}
	return st;
}

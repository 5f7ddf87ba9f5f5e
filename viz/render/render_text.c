/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns for people. Where the terminal is narrow, names shorten first, numbers never do, and
 * sentences are folded: in their column, or below their row with what else has no room beside it. What
 * is still too wide is printed in blocks, one below the other. Where the width is not known (a pipe, a
 * file) no sentence is cut or folded: a row is a line. */
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "viz/render/render.h"

#define TEXT_MIN  8  /* columns that a name keeps */
#define TEXT_MAX  60 /* where the width is not known */
#define TEXT_WIDE 24 /* where even the shortest names would not make the table fit */
#define PROSE_MIN 40 /* that a sentence needs to be folded in its column */
#define INDENT    4  /* of what stands below its row */
#define GAP_WIDTH 2

/* Where the columns of a table go on a terminal. */
struct plan {
	size_t *widths;
	bool *below; /* by column: has a line of its own below its row */
	int width;   /* 0: not known */
	bool placed; /* sentences have found their room: what is left fits */
	bool fold;   /* the last column is folded in its place */
	bool utf8;
};

static bool is_text(const struct lag_table *table, size_t c)
{
	return lag_unit_is_text(table->columns[c].unit);
}

static bool is_prose(const struct lag_table *table, size_t c)
{
	return table->columns[c].unit == LAG_UNIT_PROSE;
}

static void rule(struct lag_buf *out, size_t width, bool utf8)
{
	for (size_t i = 0; i < width; i++)
		lag_buf_puts(out, utf8 ? "\xe2\x94\x80" : "-");
	lag_buf_putc(out, '\n');
}

static void measure(const struct lag_table *table, size_t *widths)
{
	struct lag_buf cell = { 0 };

	for (size_t c = 0; c < table->n_columns; c++)
		widths[c] = lag_fmt_width(table->columns[c].title);
	for (size_t r = 0; r < table->n_rows; r++) {
		for (size_t c = 0; c < table->n_columns; c++) {
			size_t w;

			lag_buf_clear(&cell);
			lag_table_format(table, r, c, &cell);
			w = lag_fmt_width(lag_buf_text(&cell));
			if (w > widths[c])
				widths[c] = w;
		}
	}
	lag_buf_release(&cell);
}

static size_t total(const size_t *widths, size_t n)
{
	size_t sum = n ? GAP_WIDTH * (n - 1) : 0;

	for (size_t c = 0; c < n; c++)
		sum += widths[c];
	return sum;
}

/* Whether the table fits once every name is as short as it may get. */
static bool can_fit(const struct lag_table *table, const size_t *widths, size_t room)
{
	size_t sum = total(widths, table->n_columns);

	for (size_t c = 0; c < table->n_columns; c++) {
		if (table->columns[c].unit == LAG_UNIT_TEXT && widths[c] > TEXT_MIN)
			sum -= widths[c] - TEXT_MIN;
	}
	return sum <= room;
}

/* Takes columns away from the widest name until the table fits. Lines that must wrap anyway keep
 * names that can be read. */
static void fit(const struct lag_table *table, struct plan *plan)
{
	size_t room = (size_t)plan->width, *widths = plan->widths;
	size_t keep = !room ? TEXT_MAX : can_fit(table, widths, room) ? TEXT_MIN : TEXT_WIDE;

	for (;;) {
		size_t widest = table->n_columns;

		for (size_t c = 0; c < table->n_columns; c++) {
			if (table->columns[c].unit == LAG_UNIT_TEXT && widths[c] > keep &&
			    (widest == table->n_columns || widths[c] > widths[widest]))
				widest = c;
		}
		if (widest == table->n_columns || (room && total(widths, table->n_columns) <= room))
			return;
		widths[widest]--;
	}
}

/* Sentences that do not fit beside the rest: the last column is folded where it stands if that leaves it
 * room to be read; else sentences go below their row, and with them each column that does not fit. */
static void place_prose(const struct lag_table *table, struct plan *plan)
{
	size_t n = table->n_columns, room = (size_t)plan->width, n_prose = 0, used = 0;
	size_t others = total(plan->widths, n), *last = &plan->widths[n - 1];

	for (size_t c = 0; c < n; c++)
		n_prose += is_prose(table, c);
	if (!n_prose || !room || others <= room)
		return;
	plan->placed = true;
	others -= *last;
	plan->fold = n_prose == 1 && is_prose(table, n - 1) && others + PROSE_MIN <= room;
	if (plan->fold) {
		*last = room - others;
		return;
	}
	for (size_t c = 0; c < n; c++) {
		size_t more = plan->widths[c] + (used ? GAP_WIDTH : 0);

		plan->below[c] = is_prose(table, c) || (used && used + more > room);
		if (plan->below[c])
			continue;
		if (more > room)
			more = plan->widths[c] = room;
		used += more;
	}
}

/* Columns of a block: those that name the row, then [from, to), without those below their rows. */
struct block {
	size_t n_keys, from, to;
};

/* The column of a block behind c that stands beside the others; its `to` behind the last. */
static size_t next(const struct plan *plan, const struct block *b, size_t c)
{
	do {
		c = c + 1 == b->n_keys ? b->from : c + 1;
	} while (c < b->to && plan->below[c]);
	return c < b->to ? c : b->to;
}

static size_t first(const struct plan *plan, const struct block *b)
{
	size_t c = b->n_keys ? 0 : b->from;

	return c < b->to && plan->below[c] ? next(plan, b, c) : c;
}

static void headings(const struct lag_table *table, const struct plan *plan,
		     const struct block *block, struct lag_buf *out)
{
	size_t sum = 0, most = plan->width ? (size_t)plan->width : SIZE_MAX;

	for (size_t c = first(plan, block); c < block->to; c = next(plan, block, c)) {
		bool last = next(plan, block, c) >= block->to;
		size_t title = lag_fmt_width(table->columns[c].title), width = plan->widths[c];

		lag_render_pad(out, table->columns[c].title,
			       last && is_text(table, c) && title < width ? title : width,
			       !is_text(table, c), plan->utf8);
		lag_buf_puts(out, last ? "\n" : "  ");
		/* As long as a sentence may be, its line is not. */
		if (!plan->width && is_prose(table, c) && width > TEXT_MAX)
			width = TEXT_MAX;
		sum += width + (last ? 0 : GAP_WIDTH);
	}
	rule(out, sum < most ? sum : most, plan->utf8);
}

/* The sentences of a row, then what else had no room: "finished 2, started 0". */
static void below(const struct lag_table *table, const struct plan *plan, size_t row,
		  struct lag_buf *out)
{
	struct lag_buf rest = { 0 }, cell = { 0 };
	int indent = plan->width < 4 * INDENT ? 1 : INDENT;
	size_t room = (size_t)(plan->width - indent), used = 0;

	for (size_t c = 0; c < table->n_columns; c++) {
		if (!plan->below[c] || lag_table_cell(table, row, c)->null)
			continue;
		lag_buf_clear(&cell);
		lag_table_format(table, row, c, &cell);
		if (is_prose(table, c)) {
			lag_buf_printf(out, "%*s", indent, "");
			lag_render_wrap(out, lag_buf_text(&cell), plan->width, indent);
		} else {
			size_t need = lag_fmt_width(table->columns[c].title) + 3 +
				      lag_fmt_width(lag_buf_text(&cell));

			/* A name and its value stay together. */
			if (used && used + need > room) {
				lag_buf_printf(&rest, ",\n%*s", indent, "");
				used = 0;
			}
			lag_buf_printf(&rest, "%s%s %s", used ? ", " : "", table->columns[c].title,
				       lag_buf_text(&cell));
			used += need;
		}
	}
	if (rest.n) {
		lag_buf_printf(out, "%*s%s\n", indent, "", lag_buf_text(&rest));
	}
	if (rest.failed || cell.failed)
		out->failed = true;
	lag_buf_release(&rest);
	lag_buf_release(&cell);
}

/* A row's cells in their columns, the last of them folded where the plan says so. */
static void cells(const struct lag_table *table, const struct plan *plan, const struct block *block,
		  size_t row, struct lag_buf *out)
{
	struct lag_buf cell = { 0 };
	size_t x = 0;

	for (size_t c = first(plan, block); c < block->to; c = next(plan, block, c)) {
		bool last = next(plan, block, c) >= block->to, text = is_text(table, c);
		size_t width = plan->widths[c];

		lag_buf_clear(&cell);
		lag_table_format(table, row, c, &cell);
		if (last && plan->fold) {
			lag_render_wrap(out, lag_buf_text(&cell), plan->width, (int)x);
			break;
		}
		if (last && text && lag_fmt_width(lag_buf_text(&cell)) < width)
			width = lag_fmt_width(lag_buf_text(&cell));
		lag_render_pad(out, lag_buf_text(&cell), width, !text, plan->utf8);
		lag_buf_puts(out, last ? "\n" : "  ");
		x += width + GAP_WIDTH;
	}
	lag_buf_release(&cell);
}

static void rows(const struct lag_table *table, const struct plan *plan, const struct block *block,
		 struct lag_buf *out)
{
	headings(table, plan, block, out);
	for (size_t r = 0; r < table->n_rows; r++) {
		cells(table, plan, block, r, out);
		below(table, plan, r, out);
	}
}

/* Leading columns that name a row: its numbers of rank, stage, step, else its first. */
static size_t count_keys(const struct lag_table *table)
{
	size_t n = 0;

	while (n < table->n_columns && table->columns[n].unit == LAG_UNIT_ID)
		n++;
	return n || !table->n_columns ? n : 1;
}

/* One table below the other where one is wider than the terminal, the columns that name a row in each:
 * lines that wrap cannot be read. */
static void blocks(const struct lag_table *table, const struct plan *plan, struct lag_buf *out)
{
	size_t n_keys = count_keys(table), keys = total(plan->widths, n_keys);
	struct block block = { .n_keys = n_keys, .from = n_keys, .to = table->n_columns };

	if (plan->placed || !plan->width || n_keys == table->n_columns ||
	    total(plan->widths, table->n_columns) <= (size_t)plan->width) {
		block = (struct block){ .to = table->n_columns };
		rows(table, plan, &block, out);
		return;
	}
	for (; block.from < table->n_columns; block.from = block.to) {
		size_t sum = keys;

		for (block.to = block.from; block.to < table->n_columns; block.to++) {
			sum += GAP_WIDTH + plan->widths[block.to];
			if (sum > (size_t)plan->width && block.to > block.from)
				break;
		}
		if (block.from > n_keys)
			lag_buf_putc(out, '\n');
		rows(table, plan, &block, out);
	}
}

static void foot(const struct lag_table *table, int width, struct lag_buf *out)
{
	struct lag_buf text = { 0 };

	for (size_t c = 0; c < table->n_columns; c++) {
		if (table->columns[c].unit == LAG_UNIT_SHARE && table->columns[c].of) {
			lag_buf_printf(out, "%s: share of %s\n", table->columns[c].title,
				       table->columns[c].of);
		}
	}
	for (size_t i = 0; i < table->n_notes; i++) {
		lag_buf_clear(&text);
		lag_fmt_name(&text, lag_buf_text(&table->notes[i]));
		lag_render_wrap(out, lag_buf_text(&text), width, 0);
	}
	if (text.failed)
		out->failed = true;
	lag_buf_release(&text);
}

static void write_text(const struct lag_table *table, const struct lag_trace *trace,
		       const struct lag_render_opts *opts, struct lag_buf *out)
{
	struct plan plan = { .width = opts->width > 0 ? opts->width : 0, .utf8 = opts->utf8 };

	if (lag_render_is_page(table)) {
		lag_render_page(table, trace, opts, out);
		return;
	}
	plan.widths = lag_calloc(table->n_columns, sizeof(*plan.widths));
	plan.below = lag_calloc(table->n_columns, sizeof(*plan.below));
	if (!plan.widths || !plan.below) {
		out->failed = true;
	} else if (table->n_rows) {
		measure(table, plan.widths);
		place_prose(table, &plan);
		if (!plan.placed)
			fit(table, &plan);
		blocks(table, &plan, out);
		lag_buf_putc(out, '\n');
		foot(table, plan.width, out);
	} else {
		lag_buf_printf(out, "%s: nothing to show\n", table->analysis);
		foot(table, plan.width, out);
	}
	free(plan.widths);
	free(plan.below);
}

static void render(const struct lag_table *table, const struct lag_trace *trace,
		   const struct lag_render_opts *opts, struct lag_buf *out)
{
	lag_render_people(write_text, table, trace, opts, out);
}

const struct lag_renderer lag_renderer_text = { "text", render };

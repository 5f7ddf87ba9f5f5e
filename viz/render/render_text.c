/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns for people. Where the terminal is narrow, texts shorten first, numbers never do; what
 * is still too wide is printed in blocks, one below the other. */
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "viz/render/render.h"

#define TEXT_MIN  8  /* columns that a text keeps */
#define TEXT_MAX  60 /* where the width is not known */
#define TEXT_WIDE 24 /* where even the shortest texts would not make the table fit */
#define GAP_WIDTH 2

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

/* Whether the table fits once every text is as short as it may get. */
static bool can_fit(const struct lag_table *table, const size_t *widths, size_t room)
{
	size_t sum = total(widths, table->n_columns);

	for (size_t c = 0; c < table->n_columns; c++) {
		if (table->columns[c].unit == LAG_UNIT_TEXT && widths[c] > TEXT_MIN)
			sum -= widths[c] - TEXT_MIN;
	}
	return sum <= room;
}

/* Takes columns away from the widest text until the table fits. Lines that must wrap anyway keep
 * texts that can be read. */
static void fit(const struct lag_table *table, size_t *widths, int width)
{
	size_t room = width > 0 ? (size_t)width : 0;
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

/* Columns of a block: those that name the row, then [from, to). */
struct block {
	size_t n_keys, from, to;
};

/* The next column of a block; its `to` behind the last. */
static size_t next(const struct block *b, size_t c)
{
	return c + 1 == b->n_keys ? b->from : c + 1;
}

static void rows(const struct lag_table *table, const size_t *widths, const struct block *block,
		 bool utf8, struct lag_buf *out)
{
	struct lag_buf cell = { 0 };
	size_t sum = 0;

	for (size_t c = block->n_keys ? 0 : block->from; c < block->to; c = next(block, c)) {
		bool last = next(block, c) >= block->to;
		bool text = table->columns[c].unit == LAG_UNIT_TEXT;

		lag_render_pad(out, table->columns[c].title,
			       last && text ? lag_fmt_width(table->columns[c].title) : widths[c],
			       !text, utf8);
		lag_buf_puts(out, last ? "\n" : "  ");
		sum += widths[c] + (last ? 0 : GAP_WIDTH);
	}
	rule(out, sum, utf8);
	for (size_t r = 0; r < table->n_rows; r++) {
		for (size_t c = block->n_keys ? 0 : block->from; c < block->to;
		     c = next(block, c)) {
			bool last = next(block, c) >= block->to;
			bool text = table->columns[c].unit == LAG_UNIT_TEXT;
			size_t width = widths[c];

			lag_buf_clear(&cell);
			lag_table_format(table, r, c, &cell);
			if (last && text && lag_fmt_width(lag_buf_text(&cell)) < width)
				width = lag_fmt_width(lag_buf_text(&cell));
			lag_render_pad(out, lag_buf_text(&cell), width, !text, utf8);
			lag_buf_puts(out, last ? "\n" : "  ");
		}
	}
	lag_buf_release(&cell);
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
static void blocks(const struct lag_table *table, const size_t *widths, int width, bool utf8,
		   struct lag_buf *out)
{
	size_t n_keys = count_keys(table), keys = total(widths, n_keys);
	struct block block = { .n_keys = n_keys, .from = n_keys, .to = table->n_columns };

	if (width <= 0 || total(widths, table->n_columns) <= (size_t)width ||
	    n_keys == table->n_columns) {
		block = (struct block){ .to = table->n_columns };
		rows(table, widths, &block, utf8, out);
		return;
	}
	for (; block.from < table->n_columns; block.from = block.to) {
		size_t sum = keys;

		for (block.to = block.from; block.to < table->n_columns; block.to++) {
			sum += GAP_WIDTH + widths[block.to];
			if (sum > (size_t)width && block.to > block.from)
				break;
		}
		if (block.from > n_keys)
			lag_buf_putc(out, '\n');
		rows(table, widths, &block, utf8, out);
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

static void render(const struct lag_table *table, const struct lag_trace *trace,
		   const struct lag_render_opts *opts, struct lag_buf *out)
{
	size_t *widths;

	if (lag_render_is_page(table)) {
		lag_render_page(table, trace, opts, out);
		return;
	}
	widths = lag_calloc(table->n_columns, sizeof(*widths));
	if (!widths) {
		out->failed = true;
		return;
	}
	measure(table, widths);
	fit(table, widths, opts->width);
	if (table->n_rows) {
		blocks(table, widths, opts->width, opts->utf8, out);
	} else {
		lag_buf_printf(out, "%s: nothing to show\n", table->analysis);
	}
	if (table->n_rows && (table->n_notes || total(widths, table->n_columns)))
		lag_buf_putc(out, '\n');
	foot(table, opts->width, out);
	free(widths);
}

const struct lag_renderer lag_renderer_text = { "text", render };

/* SPDX-License-Identifier: Apache-2.0 */
/* Pages for people: a heading per section, then a line per row with its text, value, share and, where
 * the row is a class of time, a bar in that class's glyph. */
#include <math.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "viz/render/render.h"

#define BAR_WIDTH  30
#define TEXT_WIDTH 78 /* texts with a value; longer ones push the value to the right */

static const struct {
	const char *section, *heading;
} headings[] = {
	{ "run", NULL },
	{ "step", "Step" },
	{ "time", "Where the GPU time goes (mean of ranks and steps, share of the step)" },
	{ "finding", "Findings (what fixing each would win, per step)" },
	{ "trust", "Can this be trusted" },
};

static const struct {
	const char *item, *glyph, *ascii;
} glyphs[] = {
	{ "compute", "\xe2\x96\x88", "#" },      { "copy", "\xe2\x96\x9a", "c" },
	{ "bubble", "\xc2\xb7", "." },           { "exposed_transfer", "\xe2\x96\x93", "=" },
	{ "exposed_wait", "\xe2\x96\x92", "-" }, { "host_bound", "\xe2\x96\x91", "h" },
	{ "idle", "\xe2\x96\x91", "i" },
};

static const struct lag_cell *cell(const struct lag_table *table, size_t row, const char *name)
{
	static const struct lag_cell none = { .null = true };
	int at = lag_table_find_column(table, name);

	return at < 0 ? &none : lag_table_cell(table, row, (size_t)at);
}

static const char *text_of(const struct lag_table *table, size_t row, const char *name)
{
	const struct lag_cell *c = cell(table, row, name);

	return c->null ? "" : c->text;
}

static void bar(const char *item, double share, bool utf8, struct lag_buf *out)
{
	for (size_t i = 0; i < sizeof(glyphs) / sizeof(glyphs[0]); i++) {
		long n = lround(share * BAR_WIDTH);

		if (strcmp(glyphs[i].item, item) != 0)
			continue;
		if (n > 0)
			lag_buf_puts(out, "  ");
		for (long k = 0; k < n && k < BAR_WIDTH; k++)
			lag_buf_puts(out, utf8 ? glyphs[i].glyph : glyphs[i].ascii);
	}
}

static void value(const struct lag_table *table, size_t row, bool utf8, struct lag_buf *out)
{
	const struct lag_cell *share = cell(table, row, "share");
	struct lag_buf number = { 0 };

	lag_fmt_ns(&number, cell(table, row, "value_ns")->i);
	lag_buf_puts(out, "  ");
	lag_render_pad(out, lag_buf_text(&number), 10, true, utf8);
	if (!share->null) {
		lag_buf_clear(&number);
		lag_fmt_share(&number, share->d);
		lag_buf_puts(out, "  ");
		lag_render_pad(out, lag_buf_text(&number), 7, true, utf8);
		if (!strcmp(text_of(table, row, "section"), "time"))
			bar(text_of(table, row, "item"), share->d, utf8, out);
	}
	lag_buf_release(&number);
}

static void line(const struct lag_table *table, size_t row, size_t text_width, bool utf8,
		 struct lag_buf *out)
{
	struct lag_buf text = { 0 };
	bool has_value = !cell(table, row, "value_ns")->null;
	size_t width;

	lag_fmt_name(&text, text_of(table, row, "text"));
	width = lag_fmt_width(lag_buf_text(&text));
	lag_buf_puts(out, "  ");
	lag_render_pad(out, lag_buf_text(&text),
		       has_value && width < text_width ? text_width : width, false, utf8);
	if (has_value)
		value(table, row, utf8, out);
	lag_buf_putc(out, '\n');
	lag_buf_release(&text);
}

static void heading(const char *section, struct lag_buf *out)
{
	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++)
		if (!strcmp(headings[i].section, section)) {
			if (headings[i].heading)
				lag_buf_printf(out, "\n%s\n", headings[i].heading);
			return;
		}
	lag_buf_putc(out, '\n');
	lag_fmt_name(out, section);
	lag_buf_putc(out, '\n');
}

/* Width of the texts with a value in the section that begins at row. */
static size_t text_width(const struct lag_table *table, size_t row)
{
	const char *section = text_of(table, row, "section");
	size_t widest = 20;

	for (; row < table->n_rows && !strcmp(text_of(table, row, "section"), section); row++) {
		size_t w = lag_fmt_width(text_of(table, row, "text"));

		if (!cell(table, row, "value_ns")->null && w > widest)
			widest = w;
	}
	return widest;
}

void lag_render_page(const struct lag_table *table, const struct lag_trace *trace,
		     const struct lag_render_opts *opts, struct lag_buf *out)
{
	const char *section = "";
	size_t width = 0, limit = TEXT_WIDTH;

	if (opts->width > 40)
		limit = (size_t)opts->width - 24;
	if (trace && trace->path) {
		lag_fmt_name(out, trace->path);
		lag_buf_putc(out, '\n');
	}
	for (size_t r = 0; r < table->n_rows; r++) {
		if (strcmp(text_of(table, r, "section"), section) != 0) {
			section = text_of(table, r, "section");
			heading(section, out);
			width = text_width(table, r);
			if (width > limit)
				width = limit;
		}
		line(table, r, width, opts->utf8, out);
	}
	if (table->n_notes)
		lag_buf_putc(out, '\n');
	for (size_t i = 0; i < table->n_notes; i++) {
		lag_fmt_name(out, lag_buf_text(&table->notes[i]));
		lag_buf_putc(out, '\n');
	}
}

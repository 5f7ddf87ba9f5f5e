/* SPDX-License-Identifier: Apache-2.0 */
/* Pages for people: a heading per section, then a line per row with its text, value, share and, where
 * the row is a class of time, a bar in that class's glyph. */
#include <math.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "viz/render/render.h"

#define TEXT_AT   23 /* column of a text behind its numbers */
#define BAR_WIDTH 30

static const struct {
	const char *section, *heading;
} headings[] = {
	{ "run", NULL },
	{ "step", "Step" },
	{ "time", "Where the GPU time goes (mean of ranks and steps, share of the step)" },
	{ "finding", "Findings (what fixing each would win at most, per step)" },
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

/* With room for a step's whole in `full` cells. */
static void bar(const char *item, double share, int full, bool utf8, struct lag_buf *out)
{
	for (size_t i = 0; i < sizeof(glyphs) / sizeof(glyphs[0]); i++) {
		long n = lround(share * full);

		if (strcmp(glyphs[i].item, item) != 0)
			continue;
		if (n > 0)
			lag_buf_puts(out, "  ");
		for (long k = 0; k < n && k < full; k++)
			lag_buf_puts(out, utf8 ? glyphs[i].glyph : glyphs[i].ascii);
	}
}

/* The numbers of a row, or blanks of the same width where it has none. */
static void value(const struct lag_table *table, size_t row, bool utf8, struct lag_buf *out)
{
	const struct lag_cell *ns = cell(table, row, "value_ns"),
			      *share = cell(table, row, "share");
	struct lag_buf number = { 0 };

	if (!ns->null)
		lag_fmt_ns(&number, ns->i);
	lag_render_pad(out, lag_buf_text(&number), 10, true, utf8);
	lag_buf_clear(&number);
	if (!share->null)
		lag_fmt_share(&number, share->d);
	lag_buf_puts(out, "  ");
	lag_render_pad(out, lag_buf_text(&number), 7, true, utf8);
	lag_buf_release(&number);
}

/* How the section that begins at a row is laid out. */
struct layout {
	size_t text_width; /* of its texts, where those come first */
	bool has_shares;
	bool values_first; /* long texts: numbers stand in a column before them */
};

static struct layout layout_of(const struct lag_table *table, size_t row)
{
	const char *section = text_of(table, row, "section");
	struct layout layout = { .text_width = 20 };

	for (; row < table->n_rows && !strcmp(text_of(table, row, "section"), section); row++) {
		size_t w = lag_fmt_width(text_of(table, row, "text"));

		layout.has_shares |= !cell(table, row, "share")->null;
		if (cell(table, row, "value_ns")->null)
			continue;
		if (w > layout.text_width)
			layout.text_width = w;
	}
	layout.values_first = layout.has_shares && strcmp(section, "time") != 0;
	return layout;
}

static void line(const struct lag_table *table, size_t row, const struct layout *layout,
		 const struct lag_render_opts *opts, struct lag_buf *out)
{
	bool utf8 = opts->utf8;
	/* Two blanks between and before, 10 and 7 columns of numbers. */
	int room = opts->width > 0 ? opts->width - (int)layout->text_width - 25 : BAR_WIDTH;
	const struct lag_cell *share = cell(table, row, "share");
	bool has_value = !cell(table, row, "value_ns")->null;
	struct lag_buf text = { 0 }, number = { 0 };

	lag_fmt_name(&text, text_of(table, row, "text"));
	lag_buf_puts(out, "  ");
	if (layout->values_first && (has_value || !share->null)) {
		value(table, row, utf8, out);
		lag_buf_puts(out, "  ");
		lag_render_wrap(out, lag_buf_text(&text), opts->width, TEXT_AT);
	} else if (!has_value) {
		lag_render_wrap(out, lag_buf_text(&text), opts->width, 2);
	} else {
		lag_render_pad(out, lag_buf_text(&text), layout->text_width, false, utf8);
		lag_buf_puts(out, "  ");
		if (layout->has_shares) {
			value(table, row, utf8, out);
		} else {
			lag_fmt_ns(&number, cell(table, row, "value_ns")->i);
			lag_render_pad(out, lag_buf_text(&number), 10, true, utf8);
		}
		if (!share->null && !strcmp(text_of(table, row, "section"), "time")) {
			bar(text_of(table, row, "item"), share->d,
			    room < BAR_WIDTH ? room : BAR_WIDTH, utf8, out);
		}
		lag_buf_putc(out, '\n');
	}
	lag_buf_release(&text);
	lag_buf_release(&number);
}

static void heading(const char *section, struct lag_buf *out)
{
	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++) {
		if (!strcmp(headings[i].section, section)) {
			if (headings[i].heading)
				lag_buf_printf(out, "\n%s\n", headings[i].heading);
			return;
		}
	}
	lag_buf_putc(out, '\n');
	lag_fmt_name(out, section);
	lag_buf_putc(out, '\n');
}

void lag_render_page(const struct lag_table *table, const struct lag_trace *trace,
		     const struct lag_render_opts *opts, struct lag_buf *out)
{
	const char *section = "";
	struct layout layout = { 0 };

	if (trace && trace->path) {
		lag_fmt_name(out, trace->path);
		lag_buf_putc(out, '\n');
	}
	for (size_t r = 0; r < table->n_rows; r++) {
		if (strcmp(text_of(table, r, "section"), section) != 0) {
			section = text_of(table, r, "section");
			heading(section, out);
			layout = layout_of(table, r);
		}
		line(table, r, &layout, opts, out);
	}
	if (table->n_notes)
		lag_buf_putc(out, '\n');
	for (size_t i = 0; i < table->n_notes; i++) {
		struct lag_buf text = { 0 };

		lag_fmt_name(&text, lag_buf_text(&table->notes[i]));
		lag_render_wrap(out, lag_buf_text(&text), opts->width, 0);
		lag_buf_release(&text);
	}
}

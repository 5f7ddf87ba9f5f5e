/* SPDX-License-Identifier: Apache-2.0 */
/* A Markdown table, for issues and pull requests. Names are made safe and cannot end a cell. */
#include "viz/render/render.h"

static void escaped(struct lag_buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '\\' || *text == '`' || *text == '<' || *text == '*' ||
		    *text == '_')
			lag_buf_putc(out, '\\');
		lag_buf_putc(out, *text);
	}
}

static void write_md(const struct lag_table *table, const struct lag_trace *trace,
		     const struct lag_render_opts *opts, struct lag_buf *out)
{
	struct lag_buf cell = { 0 };

	(void)trace;
	(void)opts;
	for (size_t c = 0; c < table->n_columns; c++) {
		const char *title = table->columns[c].title[0] ? table->columns[c].title
							       : table->columns[c].name;

		lag_buf_puts(out, c ? " | " : "| ");
		escaped(out, title);
	}
	lag_buf_puts(out, " |\n|");
	for (size_t c = 0; c < table->n_columns; c++)
		lag_buf_puts(out, lag_unit_is_text(table->columns[c].unit) ? " :--- |" : " ---: |");
	lag_buf_putc(out, '\n');
	for (size_t r = 0; r < table->n_rows; r++) {
		for (size_t c = 0; c < table->n_columns; c++) {
			lag_buf_clear(&cell);
			lag_table_format(table, r, c, &cell);
			lag_buf_puts(out, c ? " | " : "| ");
			escaped(out, lag_buf_text(&cell));
		}
		lag_buf_puts(out, " |\n");
	}
	for (size_t i = 0; i < table->n_notes; i++) {
		lag_buf_puts(out, i ? "" : "\n");
		escaped(out, lag_buf_text(&table->notes[i]));
		lag_buf_puts(out, "  \n");
	}
	lag_buf_release(&cell);
}

static void render(const struct lag_table *table, const struct lag_trace *trace,
		   const struct lag_render_opts *opts, struct lag_buf *out)
{
	lag_render_people(write_md, table, trace, opts, out);
}

const struct lag_renderer lag_renderer_md = { "md", render };

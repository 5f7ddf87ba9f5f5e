/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as RFC 4180 has it: a header of column names, raw numbers, empty for unknown, quotes doubled. */
#include <inttypes.h>
#include <string.h>

#include "viz/render/render.h"

static void quoted(struct lag_buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		lag_buf_puts(out, text);
		return;
	}
	lag_buf_putc(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			lag_buf_putc(out, '"');
		lag_buf_putc(out, *text);
	}
	lag_buf_putc(out, '"');
}

static void render(const struct lag_table *table, const struct lag_trace *trace,
		   const struct lag_render_opts *opts, struct lag_buf *out)
{
	(void)trace;
	(void)opts;
	for (size_t c = 0; c < table->n_columns; c++) {
		quoted(out, table->columns[c].name);
		lag_buf_putc(out, c + 1 < table->n_columns ? ',' : '\n');
	}
	for (size_t r = 0; r < table->n_rows; r++) {
		for (size_t c = 0; c < table->n_columns; c++) {
			const struct lag_cell *cell = lag_table_cell(table, r, c);

			if (!cell->null && table->columns[c].unit == LAG_UNIT_TEXT) {
				quoted(out, cell->text);
			} else if (!cell->null && table->columns[c].unit >= LAG_UNIT_SHARE) {
				lag_buf_printf(out, "%.9g", cell->d);
			} else if (!cell->null) {
				lag_buf_printf(out, "%" PRId64, cell->i);
			}
			lag_buf_putc(out, c + 1 < table->n_columns ? ',' : '\n');
		}
	}
}

const struct lag_renderer lag_renderer_csv = { "csv", render };

/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as RFC 4180 has it: a header of column names, raw numbers, empty for unknown, quotes doubled.
 * Control characters of names are written as \x1b: a record is a line. */
#include <inttypes.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "viz/render/render.h"

static void quoted(struct lag_buf *out, const char *text)
{
	struct lag_buf name = { 0 };
	const char *at;

	/* A file may be shown in a terminal, and names may hold what commands one. */
	lag_fmt_name(&name, text);
	at = lag_buf_text(&name);
	if (strpbrk(at, ",\"")) {
		lag_buf_putc(out, '"');
		for (; *at; at++) {
			if (*at == '"')
				lag_buf_putc(out, '"');
			lag_buf_putc(out, *at);
		}
		lag_buf_putc(out, '"');
	} else {
		lag_buf_puts(out, at);
	}
	if (name.failed)
		out->failed = true;
	lag_buf_release(&name);
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

			if (!cell->null && lag_unit_is_text(table->columns[c].unit)) {
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

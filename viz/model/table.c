/* SPDX-License-Identifier: Apache-2.0 */
/* Table cells are filled in order, so that an analysis reads like the row it writes. A mistake in the
 * number of cells shows as an error of lag_table_finish, not as shifted columns. */
#include "viz/model/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "schema/record/record.h"

#define TABLE_ROWS_MAX  ((size_t)64 << 20)
#define TABLE_NOTES_MAX 256

void lag_table_init(struct lag_table *table, const char *analysis, const struct lag_column *columns,
		    size_t n)
{
	*table = (struct lag_table){
		.analysis = analysis, .columns = columns, .n_columns = n, .next_column = n
	};
}

void lag_table_release(struct lag_table *table)
{
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++) {
		if (lag_unit_is_text(table->columns[i % table->n_columns].unit) &&
		    !table->cells[i].null)
			free(table->cells[i].text);
	}
	for (size_t i = 0; i < table->n_notes; i++)
		lag_buf_release(&table->notes[i]);
	free(table->notes);
	free(table->cells);
	*table = (struct lag_table){ 0 };
}

void lag_table_row(struct lag_table *table)
{
	struct lag_cell *cells;
	size_t cap;

	if (table->failed)
		return;
	if (table->next_column != table->n_columns || table->n_rows >= TABLE_ROWS_MAX) {
		table->failed = true;
		return;
	}
	if (table->n_rows == table->cap_rows) {
		cap = table->cap_rows + table->cap_rows / 2 + 16;
		cells = realloc(table->cells, cap * table->n_columns * sizeof(*cells));
		if (!cells) {
			table->failed = true;
			return;
		}
		table->cells = cells;
		table->cap_rows = cap;
	}
	cells = table->cells + table->n_rows++ * table->n_columns;
	for (size_t i = 0; i < table->n_columns; i++)
		cells[i] = (struct lag_cell){ .null = true };
	table->next_column = 0;
}

/* The next cell to fill; NULL (and failed) when the row is full or the unit's type is another. */
static struct lag_cell *next(struct lag_table *table, bool text, bool real)
{
	enum lag_unit unit;
	bool is_real;

	if (table->failed)
		return NULL;
	if (!table->n_rows || table->next_column >= table->n_columns) {
		table->failed = true;
		return NULL;
	}
	unit = table->columns[table->next_column].unit;
	is_real = unit >= LAG_UNIT_SHARE;
	if (text != lag_unit_is_text(unit) || (!text && real != is_real)) {
		table->failed = true;
		return NULL;
	}
	return &table->cells[(table->n_rows - 1) * table->n_columns + table->next_column++];
}

void lag_table_int(struct lag_table *table, int64_t value)
{
	struct lag_cell *cell = next(table, false, false);

	if (cell && value != LAG_NONE)
		*cell = (struct lag_cell){ .i = value };
}

void lag_table_real(struct lag_table *table, double value)
{
	struct lag_cell *cell = next(table, false, true);

	if (cell && isfinite(value))
		*cell = (struct lag_cell){ .d = value };
}

void lag_table_text(struct lag_table *table, const char *text)
{
	struct lag_cell *cell = next(table, true, false);
	char *copy;

	if (!cell || !text)
		return;
	copy = strdup(text);
	if (!copy) {
		table->failed = true;
		return;
	}
	*cell = (struct lag_cell){ .text = copy };
}

void lag_table_null(struct lag_table *table)
{
	if (table->failed || !table->n_rows || table->next_column >= table->n_columns) {
		table->failed = true;
	} else {
		table->next_column++;
	}
}

/* What is beyond the most that a table keeps is counted in its last note. */
static void count_note(struct lag_table *table)
{
	struct lag_buf *last = &table->notes[TABLE_NOTES_MAX - 1];

	lag_buf_clear(last);
	table->n_notes_more++;
	lag_buf_printf(last, "and %zu more, not shown", table->n_notes_more);
}

void lag_table_note(struct lag_table *table, const char *fmt, ...)
{
	char line[LAG_ERR_TEXT_MAX];
	struct lag_buf *notes;
	va_list ap;

	if (!table->failed && table->n_notes == TABLE_NOTES_MAX)
		count_note(table);
	if (table->failed || table->n_notes == TABLE_NOTES_MAX)
		return;
	notes = realloc(table->notes, (table->n_notes + 1) * sizeof(*notes));
	if (!notes) {
		table->failed = true;
		return;
	}
	table->notes = notes;
	notes[table->n_notes] = (struct lag_buf){ 0 };
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	lag_buf_puts(&notes[table->n_notes], line);
	if (notes[table->n_notes++].failed)
		table->failed = true;
	if (table->n_notes == TABLE_NOTES_MAX)
		count_note(table);
}

void lag_table_units(struct lag_table *table)
{
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++) {
		struct lag_cell *cell = &table->cells[i];
		struct lag_buf text = { 0 };
		char *copy;

		if (cell->null || !lag_unit_is_text(table->columns[i % table->n_columns].unit) ||
		    !strstr(cell->text, " us"))
			continue;
		lag_fmt_units(&text, cell->text, true);
		copy = text.failed ? NULL : strdup(lag_buf_text(&text));
		if (copy) {
			free(cell->text);
			cell->text = copy;
		}
		lag_buf_release(&text);
	}
	for (size_t i = 0; i < table->n_notes; i++) {
		struct lag_buf text = { 0 };

		lag_fmt_units(&text, lag_buf_text(&table->notes[i]), true);
		lag_buf_release(&table->notes[i]);
		table->notes[i] = text;
	}
}

const struct lag_cell *lag_table_cell(const struct lag_table *table, size_t row, size_t column)
{
	return &table->cells[row * table->n_columns + column];
}

int lag_table_find_column(const struct lag_table *table, const char *name)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		if (!strcmp(table->columns[i].name, name))
			return (int)i;
	}
	return -1;
}

void lag_table_format(const struct lag_table *table, size_t row, size_t column, struct lag_buf *out)
{
	lag_cell_format(lag_table_cell(table, row, column), table->columns[column].unit, out);
}

void lag_cell_format(const struct lag_cell *cell, enum lag_unit unit, struct lag_buf *out)
{
	if (cell->null) {
		lag_buf_putc(out, '-');
		return;
	}
	switch (unit) {
	case LAG_UNIT_TEXT:
	case LAG_UNIT_PROSE:
		lag_fmt_name(out, cell->text);
		break;
	case LAG_UNIT_ID:
		lag_buf_printf(out, "%lld", (long long)cell->i);
		break;
	case LAG_UNIT_COUNT:
		lag_fmt_count(out, cell->i);
		break;
	case LAG_UNIT_NS:
		lag_fmt_ns(out, cell->i);
		break;
	case LAG_UNIT_BYTES:
		lag_fmt_bytes(out, cell->i);
		break;
	case LAG_UNIT_SHARE:
		lag_fmt_share(out, cell->d);
		break;
	case LAG_UNIT_RATIO:
		lag_fmt_ratio(out, cell->d);
		break;
	case LAG_UNIT_GBPS:
		lag_buf_printf(out, "%.1f GB/s", cell->d);
		break;
	case LAG_UNIT_PPM:
		lag_buf_printf(out, "%.3f ppm", cell->d);
		break;
	case LAG_UNIT_NUMBER:
		lag_buf_printf(out, "%.9g", cell->d);
		break;
	}
}

enum lag_status lag_table_finish(struct lag_table *table, struct lag_err *err)
{
	if (table->failed || table->next_column != table->n_columns) {
		return lag_err_set(err, LAG_ERR_SYSTEM,
				   "%s: out of memory, or a row without all its cells",
				   table->analysis);
	}
	return LAG_OK;
}

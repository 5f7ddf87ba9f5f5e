/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of any shape in any width: names shorten first, then columns go from the right; a number is
 * shown whole or not at all; sentences are folded. */
#include "viz/tui/table_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "viz/tui/layout.h"
#include "viz/tui/text.h"

#define COLUMNS_MAX 64
#define TEXT_LEAST  10
#define WORD_MOST   16
#define GAP         2
#define PROSE_LEAST 36 /* cells that a sentence needs beside its row */
#define PROSE_LINES 3  /* of the selected row's sentence, below a list */
#define INDENT      4  /* of a sentence below its row */

/* Rows that are looked at for the width of a column. */
#define MEASURE_MAX 5000

static void cell_text(const struct lag_table *table, size_t row, size_t column, struct lag_buf *buf)
{
	const struct lag_cell *cell = lag_table_cell(table, row, column);
	char number[LAG_NUM_MAX];

	lag_buf_clear(buf);
	/* The screen takes hostile names apart itself. */
	if (lag_unit_is_text(table->columns[column].unit) && !cell->null) {
		lag_buf_puts(buf, cell->text);
	} else if (table->columns[column].unit == LAG_UNIT_NS && !cell->null) {
		lag_buf_puts(buf, lag_num_ns(number, cell->i));
	} else {
		lag_table_format(table, row, column, buf);
	}
}

/* "share of the step" where that fits, else "share". */
static void heading(const struct lag_column *column, int width, char out[160])
{
	snprintf(out, 160, "%s", column->title);
	if (column->of && column->unit == LAG_UNIT_SHARE && !strstr(column->title, " of ")) {
		snprintf(out, 160, "%s of %s", column->title, column->of);
		if (lag_text_width(out, false) > width)
			snprintf(out, 160, "%s", column->title);
	}
}

/* The column of sentences, always the last one; n_columns = there is none. */
static size_t prose_column(const struct lag_table *table)
{
	size_t n = table->n_columns;

	return n > 1 && table->columns[n - 1].unit == LAG_UNIT_PROSE ? n - 1 : n;
}

/* Columns of the grid: sentences stand beside or below it. */
static size_t n_columns(const struct lag_table *table)
{
	size_t n = prose_column(table);

	return n < COLUMNS_MAX ? n : COLUMNS_MAX;
}

/* A row's sentence, "" without one. */
static const char *prose_of(const struct lag_table *table, size_t row)
{
	size_t c = prose_column(table);
	const struct lag_cell *cell =
		c < table->n_columns && row < table->n_rows ? lag_table_cell(table, row, c) : NULL;

	return cell && !cell->null ? cell->text : "";
}

/* Cells of each column's widest value and heading. */
static void measure(const struct lag_table *table, int *need)
{
	struct lag_buf buf = { 0 };

	for (size_t c = 0; c < n_columns(table); c++) {
		/* One more for the mark of the order. */
		need[c] = lag_text_width(table->columns[c].title, false) + 1;
		for (size_t row = 0; row < table->n_rows && row < MEASURE_MAX; row++) {
			int width;

			cell_text(table, row, c, &buf);
			width = lag_text_width(lag_buf_text(&buf), false);
			need[c] = width > need[c] ? width : need[c];
		}
	}
	lag_buf_release(&buf);
}

/* Place of a name in a list of names, counted from the end; 0 = not in it. */
static int rank_in(const char *list, const char *name)
{
	size_t n = strlen(name);
	int left = 0;

	while (list && *list) {
		size_t len = strcspn(list, " ");

		if (left || (len == n && memcmp(list, name, n) == 0))
			left++;
		list += len + strspn(list + len, " ");
	}
	return left;
}

/* Text shortens, the first one (what the row is about) to two fifths of the line: kernels' names begin
 * alike. Numbers do not. The column that gives the order stays. */
static void fit(const struct lag_table *table, const int *need, const char *keep, int sort,
		int width, struct lag_fit *fits)
{
	size_t n = n_columns(table);
	bool first = true;

	for (size_t c = 0; c < n; c++) {
		bool text = table->columns[c].unit == LAG_UNIT_TEXT;
		int least = first && width * 2 / 5 > TEXT_LEAST ? width * 2 / 5 : TEXT_LEAST;
		int kept = rank_in(keep, table->columns[c].name);

		/* A short word loses its meaning sooner than the table a column. */
		if (!first && need[c] <= WORD_MOST)
			least = need[c];
		fits[c] = (struct lag_fit){ .need = need[c],
					    .least = text ? least : need[c],
					    .weight = kept ? (int)n + kept : (int)(n - c) };
		if (c == 0 || (int)c == sort)
			fits[c].weight = 0;
		first = first && !text;
	}
	lag_layout_fit(fits, (int)n, width, GAP);
}

static void draw_headings(const struct lag_table *table, const struct lag_fit *fits, int sort,
			  bool ascending, struct lag_canvas *line)
{
	int x = 1;

	for (size_t c = 0; c < n_columns(table); c++) {
		char title[164];

		if (!fits[c].got)
			continue;
		heading(&table->columns[c], fits[c].got, title);
		if ((int)c == sort)
			strncat(title, ascending ? "▲" : "▾", sizeof(title) - strlen(title) - 1);
		if (table->columns[c].unit == LAG_UNIT_TEXT ||
		    lag_canvas_text_width(line, title) > fits[c].got) {
			lag_draw_field(line, x, 0, fits[c].got, LAG_STYLE_TITLE, title);
		} else {
			lag_draw_right(line, x, 0, fits[c].got, LAG_STYLE_TITLE, title);
		}
		x += fits[c].got + GAP;
	}
}

static unsigned style_of(const struct lag_column *column, bool sorted)
{
	if (sorted)
		return LAG_STYLE_NUMBER;
	return column->unit == LAG_UNIT_TEXT || column->unit == LAG_UNIT_NS ? LAG_STYLE_TEXT
									    : LAG_STYLE_DIM;
}

/* Returns the x behind the last column. */
static int draw_row(const struct lag_table *table, size_t row, const struct lag_fit *fits, int sort,
		    bool late, struct lag_canvas *line)
{
	struct lag_buf buf = { 0 };
	int x = 1;

	for (size_t c = 0; c < n_columns(table); c++) {
		unsigned style =
			late ? LAG_STYLE_LATE : style_of(&table->columns[c], (int)c == sort);

		if (!fits[c].got)
			continue;
		cell_text(table, row, c, &buf);
		if (lag_unit_is_text(table->columns[c].unit)) {
			lag_draw_field(line, x, 0, fits[c].got, style, lag_buf_text(&buf));
		} else {
			lag_draw_right(line, x, 0, fits[c].got, style, lag_buf_text(&buf));
		}
		x += fits[c].got + GAP;
	}
	lag_buf_release(&buf);
	return x;
}

/* The share a row's bar shows: the first share column; -1 = the table has none. */
static int share_column(const struct lag_table *table)
{
	for (size_t c = 0; c < n_columns(table); c++) {
		if (table->columns[c].unit == LAG_UNIT_SHARE)
			return (int)c;
	}
	return -1;
}

/* ------------------------------------------------------------------ the sorted list */

struct sort_by {
	const struct lag_table *table;
	size_t column;
	bool ascending;
};

static int compare(const struct sort_by *by, size_t a, size_t b)
{
	const struct lag_cell *x = lag_table_cell(by->table, a, by->column);
	const struct lag_cell *y = lag_table_cell(by->table, b, by->column);
	enum lag_unit unit = by->table->columns[by->column].unit;
	int order;

	if (x->null || y->null) /* unknown comes last either way */
		return x->null == y->null ? (a > b) - (a < b) : x->null ? 1 : -1;
	if (lag_unit_is_text(unit)) {
		order = strcmp(x->text, y->text);
	} else if (unit >= LAG_UNIT_SHARE) {
		order = (x->d > y->d) - (x->d < y->d);
	} else {
		order = (x->i > y->i) - (x->i < y->i);
	}
	if (!order)
		return (a > b) - (a < b);
	return by->ascending ? order : -order;
}

static int compare_rows(const void *a, const void *b, void *by)
{
	const size_t *x = a, *y = b;

	return compare(by, *x, *y);
}

static void sort_rows(struct lag_table_list *view)
{
	struct sort_by by = { view->table, (size_t)view->sort, view->ascending };

	for (size_t i = 0; i < view->table->n_rows; i++)
		view->order[i] = i;
	if (view->sort >= 0)
		qsort_r(view->order, view->table->n_rows, sizeof(*view->order), compare_rows, &by);
}

enum lag_status lag_table_list_init(struct lag_table_list *view, const struct lag_table *table,
				    const char *sort, const char *keep, struct lag_err *err)
{
	*view = (struct lag_table_list){ .table = table, .keep = keep };
	view->order = lag_calloc(table->n_rows, sizeof(*view->order));
	view->need = lag_calloc(table->n_columns, sizeof(*view->need));
	if (!view->order || !view->need) {
		lag_table_list_release(view);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu rows", table->n_rows);
	}
	measure(table, view->need);
	view->sort = lag_table_find_column(table, sort);
	sort_rows(view);
	return LAG_OK;
}

void lag_table_list_release(struct lag_table_list *view)
{
	free(view->order);
	free(view->need);
	*view = (struct lag_table_list){ 0 };
}

size_t lag_table_list_row(const struct lag_table_list *view)
{
	if (view->list.selected < 0 || (size_t)view->list.selected >= view->table->n_rows)
		return view->table->n_rows;
	return view->order[view->list.selected];
}

/* Returns the line below. */
static int draw_notes(const struct lag_table *table, struct lag_canvas *canvas, int y)
{
	for (size_t i = 0; i < table->n_notes; i++) {
		y += lag_draw_folded(canvas, 1, y, canvas->width - 2, LAG_STYLE_DIM,
				     lag_buf_text(&table->notes[i]));
	}
	return y;
}

/* Lines below a list: a blank one, the selected row's sentence, notes as far as three lines go. */
static int foot_lines(const struct lag_table *table, struct lag_canvas *canvas)
{
	struct lag_canvas none = lag_canvas_part(canvas, 0, 0, canvas->width, 0);
	int notes = draw_notes(table, &none, 0);
	int prose = prose_column(table) < table->n_columns ? PROSE_LINES : 0;

	notes = notes > 3 ? 3 : notes;
	return notes + prose > 0 ? notes + prose + 1 : 0;
}

static void draw_foot(const struct lag_table_list *view, struct lag_canvas *canvas, int y)
{
	const char *prose = prose_of(view->table, lag_table_list_row(view));

	if (prose[0])
		y += lag_draw_folded(canvas, 1, y, canvas->width - 2, LAG_STYLE_TEXT, prose);
	draw_notes(view->table, canvas, y);
}

void lag_table_list_draw(const struct lag_scene *scene, struct lag_table_list *view,
			 struct lag_canvas *canvas)
{
	const struct lag_ink bar = { 0x2588, LAG_STYLE_COMPUTE };
	struct lag_fit fits[COLUMNS_MAX];
	int share = share_column(view->table), rows = canvas->height - 1, bar_x;
	int n = (int)view->table->n_rows;

	if (canvas->height >= 10)
		rows -= foot_lines(view->table, canvas);
	fit(view->table, view->need, view->keep, view->sort, canvas->width - 1, fits);
	lag_list_fit(&view->list, n, rows);
	draw_headings(view->table, fits, view->sort, view->ascending, canvas);
	for (int i = 0; i < rows && view->list.top + i < n; i++) {
		struct lag_canvas line = lag_canvas_part(canvas, 0, 1 + i, canvas->width, 1);
		size_t row = view->order[view->list.top + i];

		bar_x = draw_row(view->table, row, fits, view->sort,
				 view->late && view->late(view->table, row), &line);
		if (share >= 0 && canvas->width - bar_x >= 10) {
			lag_draw_bar(
				&line, bar_x, 0,
				canvas->width - bar_x - 1 > 40 ? 40 : canvas->width - bar_x - 1,
				lag_cell_real(view->table, row, view->table->columns[share].name),
				&bar);
		}
		if (!scene->printing && view->list.top + i == view->list.selected)
			lag_draw_mark(&line, 0, 0, line.width, LAG_STYLE_SELECTED);
	}
	if (n == 0)
		lag_draw_text(canvas, 1, 1, LAG_STYLE_DIM, "nothing to show");
	draw_foot(view, canvas, 1 + (n < rows ? n : rows) + 1);
}

bool lag_table_list_act(struct lag_table_list *view, enum lag_intent intent)
{
	int n = (int)n_columns(view->table);

	view->list.n = (int)view->table->n_rows;
	if (lag_list_act(&view->list, intent))
		return true;
	switch (intent) {
	case LAG_INTENT_SORT:
	case LAG_INTENT_SORT_RIGHT:
		view->sort = (view->sort + 1) % n;
		break;
	case LAG_INTENT_SORT_LEFT:
		view->sort = (view->sort + n - 1) % n;
		break;
	case LAG_INTENT_SORT_TURN:
		view->ascending = !view->ascending;
		break;
	default:
		return false;
	}
	sort_rows(view);
	view->list.selected = view->list.top = 0;
	return true;
}

void lag_table_list_click(struct lag_table_list *view, int y)
{
	/* The heading stands in line 0; below the page may stand a row's sentence. */
	if (y >= 1 && y - 1 < view->list.page && view->list.top + y - 1 < view->list.n)
		view->list.selected = view->list.top + y - 1;
}

bool lag_table_list_find(const struct lag_scene *scene, struct lag_table_list *view)
{
	size_t n = view->table->n_rows;

	for (size_t i = 1; i <= n; i++) {
		size_t at = ((size_t)view->list.selected + i) % n;

		for (size_t c = 0; c < view->table->n_columns; c++) {
			const struct lag_cell *cell =
				lag_table_cell(view->table, view->order[at], c);

			if (lag_unit_is_text(view->table->columns[c].unit) && !cell->null &&
			    lag_text_has(cell->text, scene->find)) {
				view->list.selected = (int)at;
				return true;
			}
		}
	}
	return false;
}

/* A row and its sentence: beside the grid where that leaves it room, else below. Returns the lines. */
static int draw_whole_row(const struct lag_table *table, size_t row, const struct lag_fit *fits,
			  int beside, struct lag_canvas *canvas, int y)
{
	const char *prose = prose_of(table, row);
	int lines;

	if (y >= 0 && y < canvas->height) {
		struct lag_canvas line = lag_canvas_part(canvas, 0, y, canvas->width, 1);

		draw_row(table, row, fits, -1, false, &line);
	}
	if (beside) {
		lines = lag_draw_folded(canvas, beside, y, canvas->width - beside - 1,
					LAG_STYLE_TEXT, prose);
		return lines > 1 ? lines : 1;
	}
	return 1 + lag_draw_folded(canvas, INDENT, y + 1, canvas->width - INDENT - 1,
				   LAG_STYLE_TEXT, prose);
}

int lag_table_draw_all(const struct lag_table *table, struct lag_canvas *canvas, int y)
{
	struct lag_fit fits[COLUMNS_MAX];
	int need[COLUMNS_MAX] = { 0 }, beside = 1;

	measure(table, need);
	fit(table, need, NULL, -1, canvas->width - 1, fits);
	for (size_t c = 0; c < n_columns(table); c++)
		beside += fits[c].got ? fits[c].got + GAP : 0;
	if (beside + PROSE_LEAST >= canvas->width)
		beside = 0;
	if (y >= 0 && y < canvas->height) {
		struct lag_canvas line = lag_canvas_part(canvas, 0, y, canvas->width, 1);

		draw_headings(table, fits, -1, false, &line);
		if (beside && prose_column(table) < table->n_columns) {
			lag_draw_text(&line, beside, 0, LAG_STYLE_TITLE,
				      table->columns[prose_column(table)].title);
		}
	}
	y++;
	for (size_t row = 0; row < table->n_rows; row++)
		y += draw_whole_row(table, row, fits, beside, canvas, y);
	return draw_notes(table, canvas, y);
}

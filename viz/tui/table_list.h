/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis' table on a canvas: columns that fit, sorted by any of them, scrolled. */
#ifndef VIZ_TUI_TABLE_LIST_H
#define VIZ_TUI_TABLE_LIST_H

#include "viz/tui/list.h"
#include "viz/tui/scene.h"
#include "viz/tui/screen.h"

struct lag_table_list {
	const struct lag_table *table; /* borrowed */
	size_t *order;                 /* rows as shown; owned */
	int *need;                     /* cells by column; owned */
	const char *keep;              /* borrowed */
	int sort;                      /* column */
	bool ascending;
	struct lag_list list;
	/* Whether a row names a culprit; NULL = none does. */
	bool (*late)(const struct lag_table *table, size_t row);
};

/* Sorted by the largest of `sort` first; a column that is not there leaves the table's own order. keep:
 * names of columns separated by blanks, most important first; the others go before them when room is
 * short. Borrowed. */
enum lag_status lag_table_list_init(struct lag_table_list *view, const struct lag_table *table,
				    const char *sort, const char *keep,
				    struct lag_err *err) LAG_MUST_USE;
void lag_table_list_release(struct lag_table_list *view);

void lag_table_list_draw(const struct lag_scene *scene, struct lag_table_list *view,
			 struct lag_canvas *canvas);

/* Moving and sorting; false for other intents. */
bool lag_table_list_act(struct lag_table_list *view, enum lag_intent intent);

/* Selects the row at line y of the view, if there is one. */
void lag_table_list_click(struct lag_table_list *view, int y);

/* Next row with a text cell that holds scene->find. */
bool lag_table_list_find(const struct lag_scene *scene, struct lag_table_list *view);

/* Row of the table that is selected; n_rows when it has none. */
size_t lag_table_list_row(const struct lag_table_list *view);

/* A whole table, unsorted, from line y on (which may lie above the canvas); returns the line below. */
int lag_table_draw_all(const struct lag_table *table, struct lag_canvas *canvas, int y);

#endif

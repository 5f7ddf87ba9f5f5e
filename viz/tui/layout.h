/* SPDX-License-Identifier: Apache-2.0 */
/* Where things go on a screen of a given size. Pure functions of their arguments. */
#ifndef VIZ_TUI_LAYOUT_H
#define VIZ_TUI_LAYOUT_H

#include <stdbool.h>

#define LAG_LAYOUT_MIN_WIDTH  20
#define LAG_LAYOUT_MIN_HEIGHT 5

struct lag_box {
	int x, y, width, height;
};

struct lag_layout {
	bool too_small; /* nothing fits: one message instead */
	bool rules;     /* thin lines above and below the body */
	struct lag_box top, body, bottom;
};

/* keys: whether the last line shows the keys (not when a view is printed). */
struct lag_layout lag_layout_screen(int width, int height, bool keys);

/* One column of a table that has to fit into a width. */
struct lag_fit {
	int need;   /* cells its widest cell takes */
	int least;  /* may be shortened to this; a number's least is its need */
	int weight; /* lower goes first when even the least does not fit; 0 = never dropped */
	int got;    /* result: cells, 0 = dropped */
};

/* Shares out `width` among n columns with `gap` cells between them: all as wide as needed, else names
 * shrink towards their least, else the column of the lowest weight is dropped, and again.
 * Returns the cells used; a first column that is never dropped may be cut below its least. */
int lag_layout_fit(struct lag_fit *columns, int n, int width, int gap);

/* The timeline's parts. */
struct lag_timeline_layout {
	int label;  /* cells for group, rank and place */
	int chart;  /* cells for the time axis */
	int remark; /* cells right of it, 0 = none */
	int rows;   /* lines for ranks */
	int detail; /* lines that explain what the cursor stands on */
};

/* n_rows: rows there are to show; want_label, want_remark: cells their widest text takes. */
struct lag_timeline_layout lag_layout_timeline(int width, int height, int n_rows, int want_label,
					       int want_remark);

#endif

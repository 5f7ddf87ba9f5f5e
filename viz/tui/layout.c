/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of screens: what is dropped first when room gets short. */
#include "viz/tui/layout.h"

#include <stddef.h>

static int least_of(int a, int b)
{
	return a < b ? a : b;
}

struct lag_layout lag_layout_screen(int width, int height, bool keys)
{
	struct lag_layout out = { 0 };
	int y = 1, below = keys ? 1 : 0;

	if (width < LAG_LAYOUT_MIN_WIDTH || height < LAG_LAYOUT_MIN_HEIGHT) {
		out.too_small = true;
		return out;
	}
	out.top = (struct lag_box){ 0, 0, width, 1 };
	out.rules = height >= 12;
	if (out.rules) {
		y++;
		below += keys ? 1 : 0;
	}
	out.body = (struct lag_box){ 0, y, width, height - y - below };
	out.bottom = (struct lag_box){ 0, height - 1, width, keys ? 1 : 0 };
	return out;
}

static int total_of(const struct lag_fit *columns, int n, int gap, bool least)
{
	int total = 0, shown = 0;

	for (int i = 0; i < n; i++) {
		if (!columns[i].got)
			continue;
		total += least ? least_of(columns[i].least, columns[i].need) : columns[i].need;
		shown++;
	}
	return total + (shown > 1 ? (shown - 1) * gap : 0);
}

/* The column that goes next: lowest weight, the rightmost of equals; NULL = none may go. */
static struct lag_fit *next_to_drop(struct lag_fit *columns, int n)
{
	struct lag_fit *drop = NULL;

	for (int i = 0; i < n; i++) {
		if (columns[i].got && columns[i].weight > 0 &&
		    (!drop || columns[i].weight <= drop->weight))
			drop = &columns[i];
	}
	return drop;
}

/* Cuts the columns that never go, when even they are too wide. */
static void cut_rest(struct lag_fit *columns, int n, int width, int gap)
{
	for (int i = n - 1; i >= 0; i--) {
		int over = -width, shown = 0;

		for (int j = 0; j < n; j++) {
			over += columns[j].got;
			shown += columns[j].got > 0;
		}
		over += shown > 1 ? (shown - 1) * gap : 0;
		if (over <= 0)
			return;
		columns[i].got = over >= columns[i].got ? 0 : columns[i].got - over;
	}
}

int lag_layout_fit(struct lag_fit *columns, int n, int width, int gap)
{
	struct lag_fit *drop;
	int spare, used = 0, shown = 0;

	for (int i = 0; i < n; i++)
		columns[i].got = 1;
	while (total_of(columns, n, gap, true) > width && (drop = next_to_drop(columns, n)))
		drop->got = 0;
	spare = width - total_of(columns, n, gap, true);
	for (int i = 0; i < n; i++) {
		int least = least_of(columns[i].least, columns[i].need);
		int more = columns[i].need - least;

		if (!columns[i].got)
			continue;
		/* Room goes to the columns from left to right: names stand on the left. */
		if (more > spare)
			more = spare > 0 ? spare : 0;
		spare -= more;
		columns[i].got = least + more;
	}
	cut_rest(columns, n, width, gap);
	for (int i = 0; i < n; i++) {
		used += columns[i].got;
		shown += columns[i].got > 0;
	}
	return used + (shown > 1 ? (shown - 1) * gap : 0);
}

struct lag_timeline_layout lag_layout_timeline(int width, int height, int n_rows, int want_label,
					       int want_remark)
{
	struct lag_timeline_layout out = { 0 };
	int detail = height >= 9 ? 3 : height >= 6 ? 2 : height >= 4 ? 1 : 0;

	out.detail = detail;
	out.rows = height - 1 - detail; /* the axis takes a line */
	if (out.rows < 1)
		out.rows = 1;
	if (n_rows > 0 && out.rows > n_rows)
		out.rows = n_rows;
	/* Names first give way to the chart, never below what tells ranks apart. */
	out.label = least_of(want_label, width >= 60 ? width * 2 / 5 : width / 3);
	if (want_remark > 0 && width - out.label - want_remark - 2 >= 50) {
		out.remark = want_remark;
	} else if (want_remark > 0 && width >= 40) {
		out.remark = 1; /* the mark without its words */
	}
	out.chart = width - out.label - 1 - (out.remark ? out.remark + 1 : 0);
	if (out.chart < 1)
		out.chart = 1;
	return out;
}

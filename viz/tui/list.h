/* SPDX-License-Identifier: Apache-2.0 */
/* A scrolling list: which row is selected, which is the first shown. */
#ifndef VIZ_TUI_LIST_H
#define VIZ_TUI_LIST_H

#include <stdbool.h>

#include "viz/tui/keymap.h"

struct lag_list {
	int n;        /* rows */
	int selected; /* 0..n-1; 0 when empty */
	int top;      /* first row shown */
	int page;     /* rows that fit, as last drawn */
};

/* Up, down, page, first, last; false for other intents. */
bool lag_list_act(struct lag_list *list, enum lag_intent intent);

/* Called when drawing, with the rows there are and the lines there are for them: keeps the selected
 * row in sight and the page full. */
void lag_list_fit(struct lag_list *list, int n, int page);

#endif

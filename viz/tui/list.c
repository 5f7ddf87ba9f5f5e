/* SPDX-License-Identifier: Apache-2.0 */
/* Selection and scrolling, the same in every view that has rows. */
#include "viz/tui/list.h"

static void clamp(struct lag_list *list)
{
	if (list->selected >= list->n)
		list->selected = list->n - 1;
	if (list->selected < 0)
		list->selected = 0;
}

bool lag_list_act(struct lag_list *list, enum lag_intent intent)
{
	int page = list->page > 1 ? list->page - 1 : 1;

	switch (intent) {
	case LAG_INTENT_UP:
		list->selected--;
		break;
	case LAG_INTENT_DOWN:
		list->selected++;
		break;
	case LAG_INTENT_PAGE_UP:
		list->selected -= page;
		break;
	case LAG_INTENT_PAGE_DOWN:
		list->selected += page;
		break;
	case LAG_INTENT_FIRST:
		list->selected = 0;
		break;
	case LAG_INTENT_LAST:
		list->selected = list->n - 1;
		break;
	default:
		return false;
	}
	clamp(list);
	return true;
}

void lag_list_fit(struct lag_list *list, int n, int page)
{
	list->n = n;
	list->page = page > 0 ? page : 1;
	clamp(list);
	if (list->top > list->selected)
		list->top = list->selected;
	if (list->top < list->selected - list->page + 1)
		list->top = list->selected - list->page + 1;
	if (list->top > n - list->page)
		list->top = n - list->page;
	if (list->top < 0)
		list->top = 0;
}

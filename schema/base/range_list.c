/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of number lists; nothing but digits, commas and dashes is taken. */
#include "schema/base/range_list.h"

#include <ctype.h>
#include <string.h>

/* Reads digits at *p; false when there are none or too many. */
static bool number(const char **p, int64_t *out)
{
	int64_t v = 0;
	int digits = 0;

	for (; isdigit((unsigned char)**p); (*p)++, digits++) {
		if (digits == 18)
			return false;
		v = v * 10 + (**p - '0');
	}
	*out = v;
	return digits > 0;
}

enum lag_status lag_range_list_parse(struct lag_range_list *list, const char *text,
				     struct lag_err *err)
{
	const char *p = text;

	list->n = 0;
	if (!text || !*text)
		return LAG_OK;
	for (;;) {
		int64_t from, to;

		if (list->n == LAG_RANGE_LIST_MAX) {
			return lag_err_set(err, LAG_ERR_LIMIT,
					   "more than %d pieces in \"%.40s...\"",
					   LAG_RANGE_LIST_MAX, text);
		}
		if (!number(&p, &from))
			break;
		to = from;
		if (*p == '-') {
			p++;
			if (*p == ',' || !*p) {
				to = INT64_MAX;
			} else if (!number(&p, &to) || to < from) {
				break;
			}
		}
		list->at[list->n].from = from;
		list->at[list->n++].to = to;
		if (!*p)
			return LAG_OK;
		if (*p++ != ',')
			break;
	}
	list->n = 0;
	return lag_err_set(err, LAG_ERR_USAGE,
			   "\"%.80s\" is no list of numbers such as 0,4-7 (stopped at \"%.20s\")",
			   text, p);
}

bool lag_range_list_has(const struct lag_range_list *list, int64_t number)
{
	if (!list->n)
		return true;
	for (size_t i = 0; i < list->n; i++) {
		if (number >= list->at[i].from && number <= list->at[i].to)
			return true;
	}
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Parses lists of ranks on the fly; see ranks.h. Pure, no allocation. */
#include "schema/base/ranks.h"

#include <stddef.h>
#include <string.h>

#define RANK_MAX INT64_C(1000000000)

struct item {
	int64_t first, last, every;
};

static const char *number(const char *p, int64_t *out)
{
	if (*p < '0' || *p > '9')
		return NULL;
	for (*out = 0; *p >= '0' && *p <= '9'; p++) {
		*out = *out * 10 + (*p - '0');
		if (*out > RANK_MAX)
			return NULL;
	}
	return p;
}

/* Reads one item; the text behind it ("" or after the comma), NULL when it is none. */
static const char *next(const char *p, struct item *it)
{
	*it = (struct item){ .last = RANK_MAX, .every = 1 };
	if (!strncmp(p, "every:", 6)) {
		p = number(p + 6, &it->every);
		if (!p || it->every == 0)
			return NULL;
	} else {
		p = number(p, &it->first);
		if (!p)
			return NULL;
		it->last = it->first;
		if (*p == '-') {
			p = number(p + 1, &it->last);
			if (!p || it->last < it->first)
				return NULL;
		}
	}
	if (*p == ',')
		return p[1] ? p + 1 : NULL;
	return *p ? NULL : p;
}

bool lag_ranks_valid(const char *list)
{
	struct item it;

	while (list && *list)
		list = next(list, &it);
	return list != NULL;
}

bool lag_ranks_contain(const char *list, int64_t rank)
{
	struct item it;

	if (!*list)
		return true;
	while (list && *list && rank >= 0) {
		list = next(list, &it);
		if (list && rank >= it.first && rank <= it.last && rank % it.every == 0)
			return true;
	}
	return false;
}

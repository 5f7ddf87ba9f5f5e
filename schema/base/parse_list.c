/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of numbers, in a file of their own: the tracer uses them, and it links libc alone. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/parse.h"

/* Reads one item at *p and moves behind it; false when it is none. */
static bool list_item(const char **p, int64_t *from, int64_t *until, int64_t *every)
{
	char *end;

	*every = 1;
	*from = 0;
	*until = INT64_MAX;
	if (strncmp(*p, "every:", 6) == 0 && isdigit((unsigned char)(*p)[6])) {
		*every = strtoll(*p + 6, &end, 10);
		*p = end;
		return *every > 0;
	}
	if (!isdigit((unsigned char)**p))
		return false;
	*from = *until = strtoll(*p, &end, 10);
	if (*end == '-') {
		*until = INT64_MAX;
		end++;
		if (isdigit((unsigned char)*end))
			*until = strtoll(end, &end, 10);
	}
	*p = end;
	return *from <= *until;
}

/* One walk serves both questions: -1 malformed, 0 not in it, 1 in it. */
static int list_walk(const char *list, int64_t value)
{
	int found = 0;

	for (const char *p = list;;) {
		int64_t from, until, every;

		if (!list_item(&p, &from, &until, &every))
			return -1;
		if (value >= from && value <= until && value % every == 0)
			found = 1;
		if (!*p)
			return found;
		if (*p++ != ',')
			return -1;
	}
}

bool lag_list_has(const char *list, int64_t value)
{
	return list_walk(list, value) == 1;
}

bool lag_list_valid(const char *list)
{
	return list_walk(list, 0) >= 0;
}

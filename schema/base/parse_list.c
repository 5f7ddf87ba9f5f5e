/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of numbers, in a file of their own: the tracer uses them, and it links libc alone. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/parse.h"

/* Digits at text; false when there are none or they do not fit. */
static bool digits(const char *text, int64_t *value, const char **end)
{
	char *behind;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoll(text, &behind, 10);
	*end = behind;
	return errno == 0;
}

/* Reads one item at *p and moves behind it; false when it is none. */
static bool list_item(const char **p, int64_t *from, int64_t *until, int64_t *every)
{
	*every = 1;
	*from = 0;
	*until = INT64_MAX;
	if (strncmp(*p, "every:", 6) == 0)
		return digits(*p + 6, every, p) && *every > 0;
	if (!digits(*p, from, p))
		return false;
	*until = *from;
	if (**p == '-') {
		(*p)++;
		*until = INT64_MAX;
		if (isdigit((unsigned char)**p) && !digits(*p, until, p))
			return false;
	}
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

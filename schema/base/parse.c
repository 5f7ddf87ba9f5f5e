/* SPDX-License-Identifier: Apache-2.0 */
/* strtoll and strtod do the digits; what they let pass (blanks, "inf", overflow) is refused here. */
#include "schema/base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool lag_parse_i64(const char *text, int64_t *value)
{
	char *end;
	long long v;

	if (!isdigit((unsigned char)text[0]) && text[0] != '-')
		return false;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || *end || errno)
		return false;
	*value = v;
	return true;
}

/* number, then one of units[]; factor[i] belongs to units[i]. */
static bool parse_scaled(const char *text, const char *const *units, const double *factors,
			 int64_t *value)
{
	char *end;
	double v;

	if (!isdigit((unsigned char)text[0]) || strpbrk(text, "xXpP"))
		return false;
	v = strtod(text, &end);
	for (size_t i = 0; units[i]; i++) {
		if (strcasecmp(end, units[i]) == 0) {
			v = round(v * factors[i]);
			if (!(v >= 0 && v < 9.2e18))
				return false;
			*value = (int64_t)v;
			return true;
		}
	}
	return false;
}

bool lag_parse_size(const char *text, int64_t *bytes)
{
	static const char *const units[] = { "",  "b",  "k",   "kb", "kib", "m",   "mb", "mib",
					     "g", "gb", "gib", "t",  "tb",  "tib", NULL };
	static const double factors[] = { 1,      1,      0x1p10, 0x1p10, 0x1p10, 0x1p20, 0x1p20,
					  0x1p20, 0x1p30, 0x1p30, 0x1p30, 0x1p40, 0x1p40, 0x1p40 };

	return parse_scaled(text, units, factors, bytes);
}

bool lag_parse_duration(const char *text, int64_t *ns)
{
	static const char *const units[] = { "", "s", "ms", "us", "ns", "m", "min", "h", NULL };
	static const double factors[] = { 1e9, 1e9, 1e6, 1e3, 1, 60e9, 60e9, 3600e9 };

	return parse_scaled(text, units, factors, ns);
}

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

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

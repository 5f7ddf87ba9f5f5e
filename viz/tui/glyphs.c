/* SPDX-License-Identifier: Apache-2.0 */
/* Glyph and colour always say the same thing, so that either is enough. */
#include "viz/tui/glyphs.h"

#include <math.h>

struct lag_ink lag_glyph_of_class(enum lag_time_class class)
{
	static const struct lag_ink looks[LAG_TIME_LIMIT] = {
		[LAG_TIME_COMPUTE] = { 0x2588, LAG_STYLE_COMPUTE },
		[LAG_TIME_COPY] = { 0x259a, LAG_STYLE_COPY },
		[LAG_TIME_BUBBLE] = { 0x00b7, LAG_STYLE_BUBBLE },
		[LAG_TIME_EXPOSED_TRANSFER] = { 0x2593, LAG_STYLE_TRANSFER },
		[LAG_TIME_EXPOSED_WAIT] = { 0x2592, LAG_STYLE_WAIT },
		[LAG_TIME_HOST] = { 0x2591, LAG_STYLE_HOST },
		[LAG_TIME_IDLE] = { ' ', LAG_STYLE_TEXT },
	};

	return looks[(unsigned)class < LAG_TIME_LIMIT ? class : LAG_TIME_IDLE];
}

/* The class a cell shows: most of its time, plus what its left neighbours owe. Only a class that is in
 * the cell can be shown; a cell of one class settles all debts, so that phases keep their edges. */
static int settle(const int64_t ns[LAG_TIME_LIMIT], int64_t span, int64_t owed[LAG_TIME_LIMIT])
{
	int most = LAG_TIME_IDLE;

	/* In order of precedence, so that of equals the more telling class wins. */
	for (int c = LAG_TIME_LIMIT - 1; c >= 0; c--) {
		if (ns[c] > 0 && (ns[most] == 0 || ns[c] + owed[c] >= ns[most] + owed[most]))
			most = c;
	}
	for (int c = 0; c < LAG_TIME_LIMIT; c++) {
		owed[c] =
			ns[most] * 100 >= span * 99 ? 0 : owed[c] + ns[c] - (c == most ? span : 0);
	}
	return most;
}

struct lag_ink lag_glyph_of_column(const int64_t ns[LAG_TIME_LIMIT], int64_t span,
				   int64_t owed[LAG_TIME_LIMIT])
{
	int64_t recorded = 0, other;
	int most;

	for (int c = 0; c < LAG_TIME_LIMIT; c++)
		recorded += ns[c];
	other = recorded - ns[LAG_TIME_COMPUTE] - ns[LAG_TIME_IDLE];
	if (ns[LAG_TIME_COMPUTE] > 0 && other <= 0 && span > 0) {
		int eighths = (int)(ns[LAG_TIME_COMPUTE] * 8 / span);

		/* A sliver of a gap is noise: the row would look frayed. */
		if (eighths < 6) {
			return (struct lag_ink){ 0x2590U - (unsigned)(eighths ? eighths : 1),
						 LAG_STYLE_COMPUTE };
		}
	}
	most = settle(ns, span, owed);
	if (span - recorded > ns[most] && most != LAG_TIME_COMPUTE)
		most = LAG_TIME_IDLE;
	return lag_glyph_of_class((enum lag_time_class)most);
}

struct lag_ink lag_glyph_of_heat(float ratio)
{
	if (isnan(ratio))
		return (struct lag_ink){ ' ', LAG_STYLE_TEXT };
	if (ratio < 1.05F)
		return (struct lag_ink){ 0x2591, LAG_STYLE_HEAT0 };
	if (ratio < 1.15F)
		return (struct lag_ink){ 0x2592, LAG_STYLE_HEAT1 };
	if (ratio < 1.25F)
		return (struct lag_ink){ 0x2593, LAG_STYLE_HEAT2 };
	return (struct lag_ink){ 0x2588, LAG_STYLE_HEAT3 };
}

uint32_t lag_glyph_of_spark(int64_t value, int64_t low, int64_t high)
{
	double at = high > low ? (double)(value - low) / (double)(high - low) : 0;

	return 0x2581U + (uint32_t)(at < 0 ? 0 : at >= 1 ? 7 : at * 8);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How a class of time looks: a glyph and a style, the same in every view. */
#ifndef VIZ_TUI_GLYPHS_H
#define VIZ_TUI_GLYPHS_H

#include "viz/model/ledger.h"
#include "viz/tui/screen.h"

struct lag_ink lag_glyph_of_class(enum lag_time_class class);

/* One cell of a chart from the ns of each class in it, `span` ns in all: the class with most of it. What
 * the cell could not show is owed to the next one, so that over a row each class gets its share of cells
 * even where it never fills one; owed begins as zeros. Compute in a cell otherwise empty is drawn in
 * eighths. */
struct lag_ink lag_glyph_of_column(const int64_t ns[LAG_TIME_LIMIT], int64_t span,
				   int64_t owed[LAG_TIME_LIMIT]);

/* Compute time against the peers' (1.0 = as fast): below 1.05, 1.05, 1.15, 1.25 and more. */
struct lag_ink lag_glyph_of_heat(float ratio);

/* Eight heights of a sparkline. */
uint32_t lag_glyph_of_spark(int64_t value, int64_t low, int64_t high);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of charts over time that several views draw: rows of classes, the axis with its ticks. */
#ifndef VIZ_TUI_CHART_H
#define VIZ_TUI_CHART_H

#include "viz/tui/scene.h"
#include "viz/tui/screen.h"

/* One row of a chart on the first line of a canvas, from the sums ns[width][LAG_TIME_LIMIT] of n rows. */
void lag_chart_row(struct lag_canvas *canvas, const struct lag_axis *axis, const int64_t *ns,
		   int n);

/* On one line: ticks with times counted from `origin`; with several steps in the window their numbers instead.
 * The cursor's column is marked unless its time lies outside. */
void lag_chart_axis(const struct lag_scene *scene, struct lag_canvas *line, int64_t origin);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Time to cells. */
#include "viz/tui/chart.h"

#include <stdio.h>

#include "viz/tui/glyphs.h"
#include "viz/tui/text.h"

void lag_chart_row(struct lag_canvas *canvas, const struct lag_axis *axis, const int64_t *ns, int n)
{
	int64_t owed[LAG_TIME_LIMIT] = { 0 };
	int width = canvas->width;

	for (int column = 0; column < width; column++) {
		int64_t span =
			lag_axis_time(axis, width, column + 1) - lag_axis_time(axis, width, column);
		struct lag_ink look = lag_glyph_of_column(ns + (ptrdiff_t)column * LAG_TIME_LIMIT,
							  span * n, owed);

		lag_draw_glyph(canvas, column, 0, look.code, look.style);
	}
}

static const struct {
	int64_t ns;
	const char *unit;
} units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "µs" }, { 1, "ns" } };

/* The label of a tick at its column; false when it does not fit before `until`. */
static bool tick_label(const struct lag_canvas *line, int column, int64_t value, const char *unit,
		       int until, char out[LAG_NUM_MAX])
{
	snprintf(out, LAG_NUM_MAX, "%lld%s%s", (long long)value, unit ? " " : "", unit ? unit : "");
	return column >= 0 && column + lag_canvas_text_width(line, out) <= until;
}

/* Ticks from right to left: the last one that fits carries the unit. */
static void draw_ticks(struct lag_canvas *line, const struct lag_axis *axis, int64_t origin)
{
	int64_t tick = lag_axis_tick(axis, line->width, 10), last = axis->t1 - 1 - origin;
	int until = line->width;
	bool named = false;
	size_t unit = 0;

	while (unit < 3 && tick % units[unit].ns)
		unit++;
	last = last >= 0 ? last / tick * tick : -((-last + tick - 1) / tick * tick);
	for (int64_t at = last; at + origin >= axis->t0; at -= tick) {
		int column = lag_axis_column(axis, line->width, at + origin);
		char text[LAG_NUM_MAX];

		if (!tick_label(line, column, at / units[unit].ns, named ? NULL : units[unit].unit,
				until, text))
			continue;
		lag_draw_text(line, column, 0, LAG_STYLE_DIM, text);
		until = column - 1;
		named = true;
	}
}

static int steps_inside(const struct lag_scene *scene)
{
	const struct lag_steps *steps = scene->data->steps;
	int n = 0;

	for (size_t i = 0; i < steps->n_steps; i++) {
		n += steps->steps[i].start_ns >= scene->axis.t0 &&
		     steps->steps[i].start_ns < scene->axis.t1;
	}
	return n;
}

static void draw_steps(const struct lag_scene *scene, struct lag_canvas *line)
{
	const struct lag_steps *steps = scene->data->steps;
	int free_from = 0;

	for (size_t i = 0; i < steps->n_steps; i++) {
		int column = lag_axis_column(&scene->axis, line->width, steps->steps[i].start_ns),
		    need;
		char text[40];

		if (column < free_from || column >= line->width)
			continue;
		snprintf(text, sizeof(text), "│%s%lld", free_from ? "" : "step ",
			 (long long)steps->steps[i].number);
		need = lag_canvas_text_width(line, text);
		if (column + need > line->width)
			break;
		lag_draw_text(line, column, 0, LAG_STYLE_DIM, text);
		free_from = column + need + 1;
	}
}

void lag_chart_axis(const struct lag_scene *scene, struct lag_canvas *line, int64_t origin)
{
	int width = line->width;
	int cursor = lag_axis_column(&scene->axis, width, scene->time_ns);
	int mark = scene->mark_ns == LAG_NONE
			   ? -1
			   : lag_axis_column(&scene->axis, width, scene->mark_ns);

	if (steps_inside(scene) > 2) {
		draw_steps(scene, line);
	} else {
		draw_ticks(line, &scene->axis, origin);
	}
	if (mark >= 0 && mark < width)
		lag_draw_glyph(line, mark, 0, 0x25b4, LAG_STYLE_WAIT | LAG_STYLE_BOLD);
	if (!scene->printing && cursor >= 0 && cursor < width)
		lag_draw_glyph(line, cursor, 0, 0x25bc, LAG_STYLE_KEY);
}

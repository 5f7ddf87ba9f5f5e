/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of time: zooming keeps the cursor's place, nothing leaves the limits. */
#include "viz/tui/axis.h"

int64_t lag_axis_time(const struct lag_axis *axis, int width, int column)
{
	int64_t span = axis->t1 - axis->t0;
	int64_t whole = span / width, rest = span % width;

	return axis->t0 + whole * column + rest * column / width;
}

int lag_axis_column(const struct lag_axis *axis, int width, int64_t t)
{
	double span = (double)(axis->t1 - axis->t0), at = (double)(t - axis->t0) / span * width;
	int column;

	if (at < 0)
		return -1;
	if (at >= width)
		return width;
	column = (int)at;
	/* Rounding must agree with lag_axis_time: the start of a column lies in it. */
	if (column + 1 < width && lag_axis_time(axis, width, column + 1) <= t) {
		column++;
	} else if (column > 0 && lag_axis_time(axis, width, column) > t) {
		column--;
	}
	return column;
}

static void keep_inside(struct lag_axis *axis, const struct lag_axis *limits)
{
	int64_t span = axis->t1 - axis->t0;

	if (span >= limits->t1 - limits->t0) {
		*axis = *limits;
		return;
	}
	if (axis->t0 < limits->t0)
		*axis = (struct lag_axis){ limits->t0, limits->t0 + span };
	if (axis->t1 > limits->t1)
		*axis = (struct lag_axis){ limits->t1 - span, limits->t1 };
}

void lag_axis_zoom(struct lag_axis *axis, double factor, int64_t t, int width,
		   const struct lag_axis *limits)
{
	double span = (double)(axis->t1 - axis->t0);
	double next = span * factor, before;
	double most = (double)(limits->t1 - limits->t0);

	if (next < width)
		next = width;
	if (next > most)
		next = most;
	if (t < axis->t0 || t >= axis->t1)
		t = axis->t0 + (axis->t1 - axis->t0) / 2;
	before = (double)(t - axis->t0) / span * next;
	axis->t0 = t - (int64_t)before;
	axis->t1 = axis->t0 + (int64_t)next;
	if (axis->t1 <= axis->t0)
		axis->t1 = axis->t0 + 1;
	keep_inside(axis, limits);
}

void lag_axis_pan(struct lag_axis *axis, double share, const struct lag_axis *limits)
{
	int64_t by = (int64_t)((double)(axis->t1 - axis->t0) * share);

	if (by == 0)
		by = share < 0 ? -1 : 1;
	axis->t0 += by;
	axis->t1 += by;
	keep_inside(axis, limits);
}

void lag_axis_reveal(struct lag_axis *axis, int64_t t, const struct lag_axis *limits)
{
	int64_t span = axis->t1 - axis->t0, margin = span / 8, by = 0;

	if (t < axis->t0) {
		by = t - margin - axis->t0;
	} else if (t >= axis->t1) {
		by = t + margin + 1 - axis->t1;
	}
	axis->t0 += by;
	axis->t1 += by;
	keep_inside(axis, limits);
}

int64_t lag_axis_tick(const struct lag_axis *axis, int width, int cells)
{
	int64_t tick = 1;
	double least;

	if (cells > width)
		cells = width;
	least = (double)(axis->t1 - axis->t0) * cells / width;
	while ((double)tick < least && tick < INT64_C(1000000000000000000)) {
		static const int64_t grow[] = { 2, 5, 10 };
		int64_t decade = tick;

		for (int i = 0; i < 3 && (double)tick < least; i++)
			tick = decade * grow[i];
	}
	return tick;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The window of time that a chart shows, and its columns. Pure arithmetic. */
#ifndef VIZ_TUI_AXIS_H
#define VIZ_TUI_AXIS_H

#include <stdint.h>

/* Half open; t1 > t0. */
struct lag_axis {
	int64_t t0, t1;
};

/* Start of column c of `width`; c may be `width`, the window's end. */
int64_t lag_axis_time(const struct lag_axis *axis, int width, int column);

/* Column that holds t: below 0 or >= width when outside. */
int lag_axis_column(const struct lag_axis *axis, int width, int64_t t);

/* Makes the window factor times as long, t staying in its place; stays inside [low, high) and at
 * least `width` ns long. */
void lag_axis_zoom(struct lag_axis *axis, double factor, int64_t t, int width,
		   const struct lag_axis *limits);

/* Moves by a share of the window; stops at the limits. */
void lag_axis_pan(struct lag_axis *axis, double share, const struct lag_axis *limits);

/* Moves as little as needed for t to be inside, with a margin where there is room. */
void lag_axis_reveal(struct lag_axis *axis, int64_t t, const struct lag_axis *limits);

/* Distance of ticks: 1, 2 or 5 times a power of ten ns, at least `cells` columns apart. */
int64_t lag_axis_tick(const struct lag_axis *axis, int width, int cells);

#endif

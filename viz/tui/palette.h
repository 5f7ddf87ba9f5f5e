/* SPDX-License-Identifier: Apache-2.0 */
/* What a style looks like on each kind of terminal. Colours can be told apart with any common colour
 * blindness, and are readable on dark and on light backgrounds; every meaning has a glyph too. */
#ifndef VIZ_TUI_PALETTE_H
#define VIZ_TUI_PALETTE_H

#include <stdbool.h>

#include "viz/tui/screen.h"

enum lag_colours {
	LAG_COLOURS_MONO = 0,
	LAG_COLOURS_8,
	LAG_COLOURS_16,
	LAG_COLOURS_256,
	LAG_COLOURS_TRUE,
};

struct lag_look {
	int fg, bg; /* -1: the terminal's own; else an index, or 0xRRGGBB for LAG_COLOURS_TRUE */
	bool bold, reverse, dim;
};

struct lag_look lag_palette_look(enum lag_colours colours, unsigned style);

/* The ladder step for a terminal that says it has n colours (n < 8: none). */
enum lag_colours lag_palette_step(int n_colours, bool no_color);

#endif

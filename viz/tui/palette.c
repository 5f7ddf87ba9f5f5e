/* SPDX-License-Identifier: Apache-2.0 */
/* One row a style: 24-bit, 256, 16 and 8 colours, and what is left without any. */
#include "viz/tui/palette.h"

struct palette_row {
	int rgb, c256, c16, c8;
	bool bold, dim;
	bool on; /* the colour is the background */
};

static const struct palette_row rows[LAG_STYLE_LIMIT] = {
	[LAG_STYLE_TEXT] = { -1, -1, -1, -1, false, false, false },
	[LAG_STYLE_DIM] = { 0x8a8a8a, 245, 8, -1, false, true, false },
	[LAG_STYLE_TITLE] = { -1, -1, -1, -1, true, false, false },
	[LAG_STYLE_NUMBER] = { -1, -1, -1, -1, true, false, false },
	[LAG_STYLE_COMPUTE] = { 0x2f81d6, 32, 12, 4, false, false, false },
	[LAG_STYLE_TRANSFER] = { 0x12a594, 37, 14, 6, false, false, false },
	[LAG_STYLE_WAIT] = { 0xe69f00, 172, 11, 3, false, false, false },
	[LAG_STYLE_COPY] = { 0x9b8f3f, 143, 10, 2, false, false, false },
	[LAG_STYLE_BUBBLE] = { 0x8a8a8a, 245, 8, -1, false, true, false },
	[LAG_STYLE_HOST] = { 0xb07b50, 137, 9, 1, false, false, false },
	[LAG_STYLE_LATE] = { 0xd6549a, 169, 13, 5, true, false, false },
	[LAG_STYLE_BACKWARD] = { 0x1c5fa8, 25, 4, 4, false, false, false },
	[LAG_STYLE_ON_FORWARD] = { 0x2f81d6, 32, 12, 4, true, false, true },
	[LAG_STYLE_ON_BACKWARD] = { 0x1c5fa8, 25, 4, 4, true, false, true },
	[LAG_STYLE_ON_TRANSFER] = { 0x12a594, 37, 14, 6, true, false, true },
	[LAG_STYLE_ON_WAIT] = { 0xe69f00, 172, 11, 3, true, false, true },
	[LAG_STYLE_ON_COPY] = { 0x9b8f3f, 143, 10, 2, true, false, true },
	[LAG_STYLE_HEAT0] = { 0x6b7f99, 66, 8, -1, false, true, false },
	[LAG_STYLE_HEAT1] = { 0x2f81d6, 32, 12, 4, false, false, false },
	[LAG_STYLE_HEAT2] = { 0xe69f00, 172, 11, 3, false, false, false },
	[LAG_STYLE_HEAT3] = { 0xd6549a, 169, 13, 5, true, false, false },
	[LAG_STYLE_GOOD] = { 0x12a594, 37, 14, 6, false, false, false },
	[LAG_STYLE_WARN] = { 0xe69f00, 172, 11, 3, true, false, false },
	[LAG_STYLE_ERROR] = { 0xd6549a, 169, 13, 5, true, false, false },
	[LAG_STYLE_KEY] = { 0x2f81d6, 32, 12, 6, true, false, false },
};

enum lag_colours lag_palette_step(int n_colours, bool no_color)
{
	if (no_color || n_colours < 8)
		return LAG_COLOURS_MONO;
	if (n_colours < 16)
		return LAG_COLOURS_8;
	if (n_colours < 256)
		return LAG_COLOURS_16;
	return n_colours < 1 << 24 ? LAG_COLOURS_256 : LAG_COLOURS_TRUE;
}

static int colour_of(const struct palette_row *row, enum lag_colours colours)
{
	switch (colours) {
	case LAG_COLOURS_TRUE:
		return row->rgb;
	case LAG_COLOURS_256:
		return row->c256;
	case LAG_COLOURS_16:
		return row->c16;
	case LAG_COLOURS_8:
		return row->c8;
	default:
		return -1;
	}
}

/* Of a label inside a block: black on the light colours, white on the blues. */
static int label_colour(enum lag_colours colours, unsigned kind)
{
	if (colours == LAG_COLOURS_MONO)
		return -1;
	if (kind >= LAG_STYLE_ON_TRANSFER && kind <= LAG_STYLE_ON_COPY)
		return 0;
	return colours == LAG_COLOURS_TRUE ? 0xffffff : colours == LAG_COLOURS_8 ? 7 : 15;
}

struct lag_look lag_palette_look(enum lag_colours colours, unsigned style)
{
	unsigned kind = (style & LAG_STYLE_MASK) % LAG_STYLE_LIMIT;
	const struct palette_row *row = &rows[kind];
	struct lag_look look = { colour_of(row, colours), -1, row->bold, false, false };

	look.dim = row->dim && look.fg < 0;
	if (row->on) {
		look.bg = look.fg;
		look.fg = label_colour(colours, kind);
		look.reverse = colours == LAG_COLOURS_MONO;
	}
	if (style & LAG_STYLE_BOLD)
		look.bold = true;
	if (style & LAG_STYLE_SELECTED) {
		look.reverse = !look.reverse;
		look.dim = false;
	}
	return look;
}

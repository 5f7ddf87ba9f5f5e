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

static bool style_is_light(unsigned style)
{
	unsigned kind = style & LAG_STYLE_MASK;

	return kind >= LAG_STYLE_ON_TRANSFER && kind <= LAG_STYLE_ON_COPY;
}

struct lag_look lag_palette_look(enum lag_colours colours, unsigned style)
{
	const struct palette_row *row = &rows[(style & LAG_STYLE_MASK) % LAG_STYLE_LIMIT];
	int colour = colours == LAG_COLOURS_TRUE  ? row->rgb
		     : colours == LAG_COLOURS_256 ? row->c256
		     : colours == LAG_COLOURS_16  ? row->c16
		     : colours == LAG_COLOURS_8   ? row->c8
						  : -1;
	struct lag_look look = { colour, -1, row->bold, false, false };

	look.dim = row->dim && colour < 0;
	if (row->on) {
		/* Black on the light ones, white on the blues. */
		bool light = style_is_light(style);

		look.fg = light && colours != LAG_COLOURS_MONO ? 0
			  : colours == LAG_COLOURS_TRUE        ? 0xffffff
			  : colours == LAG_COLOURS_MONO        ? -1
							       : 15;
		if (colours == LAG_COLOURS_8 && !light)
			look.fg = 7;
		look.bg = colour;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* An in-memory grid of styled cells: the only thing views draw on. A terminal shows it (term.h) or
 * it is printed as text. A canvas is a window on it: everything drawn is clipped to the canvas. */
#ifndef VIZ_TUI_SCREEN_H
#define VIZ_TUI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/buf.h"
#include "schema/base/err.h"

/* What a cell means; the palette (palette.h) says how that looks on each kind of terminal. */
enum lag_style {
	LAG_STYLE_TEXT = 0,
	LAG_STYLE_DIM, /* labels, rules, what explains */
	LAG_STYLE_TITLE,
	LAG_STYLE_NUMBER,
	LAG_STYLE_COMPUTE,
	LAG_STYLE_TRANSFER,
	LAG_STYLE_WAIT,
	LAG_STYLE_COPY,
	LAG_STYLE_BUBBLE,
	LAG_STYLE_HOST,
	LAG_STYLE_LATE, /* the one that others wait for */
	LAG_STYLE_BACKWARD,
	LAG_STYLE_ON_FORWARD, /* a label inside a block */
	LAG_STYLE_ON_BACKWARD,
	LAG_STYLE_ON_TRANSFER,
	LAG_STYLE_ON_WAIT,
	LAG_STYLE_ON_COPY,
	LAG_STYLE_HEAT0, /* as fast as its peers */
	LAG_STYLE_HEAT1,
	LAG_STYLE_HEAT2,
	LAG_STYLE_HEAT3,
	LAG_STYLE_GOOD,
	LAG_STYLE_WARN,
	LAG_STYLE_ERROR,
	LAG_STYLE_KEY, /* a key that works here */
	LAG_STYLE_LIMIT,
};

/* A glyph and its style. */
struct lag_ink {
	uint32_t code;
	unsigned style;
};

#define LAG_STYLE_BOLD     0x100U
#define LAG_STYLE_SELECTED 0x200U /* reverse video */
#define LAG_STYLE_MASK     0xffU

struct lag_screen_cell {
	uint32_t code; /* 0: right half of a wide character */
	uint16_t style;
};

#define LAG_SCREEN_MAX 1000 /* columns, rows */

struct lag_screen {
	int width, height;
	bool ascii; /* no glyph beyond ASCII may be drawn */
	struct lag_screen_cell *cells;
};

struct lag_canvas {
	struct lag_screen *screen;
	int x, y, width, height;
};

/* Sizes are brought into 1..LAG_SCREEN_MAX. Zero-initialise before the first call. */
enum lag_status lag_screen_resize(struct lag_screen *screen, int width, int height,
				  struct lag_err *err) LAG_MUST_USE;
void lag_screen_clear(struct lag_screen *screen);
void lag_screen_release(struct lag_screen *screen);

static inline const struct lag_screen_cell *lag_screen_at(const struct lag_screen *screen, int x,
							  int y)
{
	return &screen->cells[(size_t)y * (size_t)screen->width + (size_t)x];
}

/* As lines of text, blanks at their ends removed. */
void lag_screen_print(const struct lag_screen *screen, struct lag_buf *out);

struct lag_canvas lag_canvas_whole(struct lag_screen *screen);
/* A part of a canvas, clipped to it; may be empty. */
struct lag_canvas lag_canvas_part(const struct lag_canvas *canvas, int x, int y, int width,
				  int height);

/* One cell. */
void lag_draw_glyph(struct lag_canvas *canvas, int x, int y, uint32_t code, unsigned style);
/* Adds bits (LAG_STYLE_SELECTED, LAG_STYLE_BOLD) to cells already drawn. */
void lag_draw_mark(struct lag_canvas *canvas, int x, int y, int width, unsigned bits);
/* n times the same glyph. */
void lag_draw_run(struct lag_canvas *canvas, int x, int y, int n, uint32_t code, unsigned style);
/* Text, clipped at the canvas; returns the x behind it. */
int lag_draw_text(struct lag_canvas *canvas, int x, int y, unsigned style, const char *text);
int lag_draw_printf(struct lag_canvas *canvas, int x, int y, unsigned style, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Text in a field of `width` cells, shortened with an ellipsis in the middle of long names. */
void lag_draw_field(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		    const char *text);
/* A sentence in a field: cut at its end. */
void lag_draw_sentence(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		       const char *text);
/* A sentence folded into lines of `width` cells, the first at y (which may lie above the canvas); returns
 * the lines that takes. */
int lag_draw_folded(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		    const char *text);
/* A field, flush right. Text too long for its field is cut on the left: numbers keep their unit. */
void lag_draw_right(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		    const char *text);
/* A bar of `share` (0..1) of `width` cells, in eighths where the glyph is the full block. */
void lag_draw_bar(struct lag_canvas *canvas, int x, int y, int width, double share,
		  const struct lag_ink *ink);

/* Marks in the right corners: so many lines are above, and below, what the canvas shows. */
void lag_draw_more(struct lag_canvas *canvas, int above, int below);

/* Cells that a text takes on this canvas. */
int lag_canvas_text_width(const struct lag_canvas *canvas, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The cell grid and what draws on it. Pure memory: no terminal is involved. */
#include "viz/tui/screen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "viz/tui/text.h"

static int clamp(int value, int low, int high)
{
	return value < low ? low : value > high ? high : value;
}

enum lag_status lag_screen_resize(struct lag_screen *screen, int width, int height,
				  struct lag_err *err)
{
	struct lag_screen_cell *cells;

	width = clamp(width, 1, LAG_SCREEN_MAX);
	height = clamp(height, 1, LAG_SCREEN_MAX);
	cells = lag_calloc((size_t)width * (size_t)height, sizeof(*cells));
	if (!cells) {
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for a screen of %d x %d", width,
				   height);
	}
	free(screen->cells);
	screen->cells = cells;
	screen->width = width;
	screen->height = height;
	lag_screen_clear(screen);
	return LAG_OK;
}

void lag_screen_clear(struct lag_screen *screen)
{
	size_t n = (size_t)screen->width * (size_t)screen->height;

	for (size_t i = 0; i < n; i++)
		screen->cells[i] = (struct lag_screen_cell){ .code = ' ' };
}

void lag_screen_release(struct lag_screen *screen)
{
	free(screen->cells);
	*screen = (struct lag_screen){ 0 };
}

void lag_screen_print(const struct lag_screen *screen, struct lag_buf *out)
{
	for (int y = 0; y < screen->height; y++) {
		int end = screen->width;
		char bytes[4];

		while (end > 0 && lag_screen_at(screen, end - 1, y)->code == ' ')
			end--;
		for (int x = 0; x < end; x++) {
			uint32_t code = lag_screen_at(screen, x, y)->code;

			if (code)
				lag_buf_add(out, bytes, (size_t)lag_text_encode(code, bytes));
		}
		lag_buf_putc(out, '\n');
	}
}

struct lag_canvas lag_canvas_whole(struct lag_screen *screen)
{
	return (struct lag_canvas){ screen, 0, 0, screen->width, screen->height };
}

struct lag_canvas lag_canvas_part(const struct lag_canvas *canvas, int x, int y, int width,
				  int height)
{
	int x0 = clamp(x, 0, canvas->width), y0 = clamp(y, 0, canvas->height);
	int x1 = clamp(x + width, x0, canvas->width), y1 = clamp(y + height, y0, canvas->height);

	return (struct lag_canvas){ canvas->screen, canvas->x + x0, canvas->y + y0, x1 - x0,
				    y1 - y0 };
}

static struct lag_screen_cell *cell_at(struct lag_canvas *canvas, int x, int y)
{
	size_t row, column;

	if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height)
		return NULL;
	row = (size_t)canvas->y + (size_t)y;
	column = (size_t)canvas->x + (size_t)x;
	return &canvas->screen->cells[row * (size_t)canvas->screen->width + column];
}

void lag_draw_glyph(struct lag_canvas *canvas, int x, int y, uint32_t code, unsigned style)
{
	struct lag_screen_cell *cell = cell_at(canvas, x, y);

	if (!cell)
		return;
	/* Half of a wide character must not stay behind. */
	if (cell->code == 0 && x > 0)
		cell[-1].code = ' ';
	if (x + 1 < canvas->width && cell[1].code == 0)
		cell[1].code = ' ';
	if (canvas->screen->ascii && code >= 0x80)
		code = (unsigned char)lag_text_ascii(code);
	*cell = (struct lag_screen_cell){ code, (uint16_t)style };
}

void lag_draw_mark(struct lag_canvas *canvas, int x, int y, int width, unsigned bits)
{
	for (int i = 0; i < width; i++) {
		struct lag_screen_cell *cell = cell_at(canvas, x + i, y);

		if (cell)
			cell->style = (uint16_t)(cell->style | bits);
	}
}

void lag_draw_run(struct lag_canvas *canvas, int x, int y, int n, uint32_t code, unsigned style)
{
	for (int i = 0; i < n; i++)
		lag_draw_glyph(canvas, x + i, y, code, style);
}

/* Draws one code point; returns its cells. A wide one that does not fit becomes a blank. */
static int draw_code(struct lag_canvas *canvas, int x, int y, uint32_t code, unsigned style)
{
	int cells = lag_text_cells(code);
	struct lag_screen_cell *right;

	if (cells == 2 && x + 1 >= canvas->width) {
		lag_draw_glyph(canvas, x, y, ' ', style);
		return 2;
	}
	lag_draw_glyph(canvas, x, y, code, style);
	right = cells == 2 ? cell_at(canvas, x + 1, y) : NULL;
	if (right && x >= 0)
		*right = (struct lag_screen_cell){ 0, (uint16_t)style };
	return cells;
}

int lag_draw_text(struct lag_canvas *canvas, int x, int y, unsigned style, const char *text)
{
	uint32_t unit[LAG_TEXT_UNIT_MAX];
	int n;

	while ((n = lag_text_next(&text, canvas->screen->ascii, unit)) > 0) {
		for (int i = 0; i < n; i++)
			x += draw_code(canvas, x, y, unit[i], style);
	}
	return x;
}

int lag_draw_printf(struct lag_canvas *canvas, int x, int y, unsigned style, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return lag_draw_text(canvas, x, y, style, text);
}

int lag_canvas_text_width(const struct lag_canvas *canvas, const char *text)
{
	return lag_text_width(text, canvas->screen->ascii);
}

/* Draws the cells [skip, skip + n) of a text at x of a canvas of one line. */
static void draw_slice(struct lag_canvas *canvas, int x, unsigned style, const char *text, int skip,
		       int n)
{
	uint32_t unit[LAG_TEXT_UNIT_MAX];
	int at = 0, count;

	while (at < skip + n && (count = lag_text_next(&text, canvas->screen->ascii, unit)) > 0) {
		for (int i = 0; i < count; i++) {
			int cells = lag_text_cells(unit[i]);

			if (at >= skip && at + cells <= skip + n)
				draw_code(canvas, x + at - skip, 0, unit[i], style);
			at += cells;
		}
	}
}

void lag_draw_field(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		    const char *text)
{
	struct lag_canvas field = lag_canvas_part(canvas, x, y, width, 1);
	int need = lag_canvas_text_width(canvas, text), head;

	if (x < 0 || field.width < 1)
		return;
	if (need <= field.width) {
		lag_draw_text(&field, 0, 0, style, text);
		return;
	}
	/* Long kernel names differ at both ends. */
	head = field.width < 8 ? field.width - 1 : (field.width - 1) * 2 / 3;
	draw_slice(&field, 0, style, text, 0, head);
	lag_draw_glyph(&field, head, 0, 0x2026, style);
	draw_slice(&field, head + 1, style, text, need - (field.width - head - 1),
		   field.width - head - 1);
}

void lag_draw_sentence(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		       const char *text)
{
	struct lag_canvas field = lag_canvas_part(canvas, x, y, width, 1);

	if (x < 0 || field.width < 1)
		return;
	if (lag_canvas_text_width(canvas, text) <= field.width) {
		lag_draw_text(&field, 0, 0, style, text);
		return;
	}
	draw_slice(&field, 0, style, text, 0, field.width - 1);
	lag_draw_glyph(&field, field.width - 1, 0, 0x2026, style);
}

int lag_draw_folded(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		    const char *text)
{
	int lines = 0;

	while (*text) {
		size_t n = lag_text_fold(text, width > 1 ? width : 1, canvas->screen->ascii);

		if (y + lines >= 0 && y + lines < canvas->height) {
			struct lag_canvas line = lag_canvas_part(canvas, x, y + lines, width, 1);
			struct lag_buf part = { 0 };

			lag_buf_add(&part, text, n);
			lag_draw_text(&line, 0, 0, style, lag_buf_text(&part));
			lag_buf_release(&part);
		}
		text += n;
		text += *text == ' ';
		lines++;
	}
	return lines;
}

void lag_draw_right(struct lag_canvas *canvas, int x, int y, int width, unsigned style,
		    const char *text)
{
	struct lag_canvas field = lag_canvas_part(canvas, x, y, width, 1);
	int need = lag_canvas_text_width(canvas, text);

	if (x < 0 || field.width < 1)
		return;
	if (need <= field.width) {
		lag_draw_text(&field, field.width - need, 0, style, text);
	} else {
		draw_slice(&field, 0, style, text, need - field.width, field.width);
	}
}

void lag_draw_bar(struct lag_canvas *canvas, int x, int y, int width, double share,
		  const struct lag_ink *ink)
{
	double cells = share * width;
	int whole, eighths;

	if (!(share > 0) || width < 1)
		return;
	if (cells > width)
		cells = width;
	whole = (int)cells;
	eighths = (int)lround((cells - whole) * 8);
	if (ink->code != 0x2588 || canvas->screen->ascii) {
		/* A glyph cannot be cut: round, but something that exists is never invisible. */
		whole = (int)lround(cells);
		lag_draw_run(canvas, x, y, whole > 0 ? whole : 1, ink->code, ink->style);
		return;
	}
	if (eighths == 8) {
		whole++;
		eighths = 0;
	}
	lag_draw_run(canvas, x, y, whole, ink->code, ink->style);
	if (eighths > 0 || whole == 0) {
		lag_draw_glyph(canvas, x + whole, y, 0x2590U - (unsigned)(eighths ? eighths : 1),
			       ink->style);
	}
}

static void draw_count(struct lag_canvas *canvas, int y, const char *mark, int n)
{
	char text[32];
	int need;

	if (n <= 0)
		return;
	snprintf(text, sizeof(text), " %s %d more", mark, n);
	need = lag_canvas_text_width(canvas, text);
	lag_draw_text(canvas, canvas->width > need ? canvas->width - need : 0, y, LAG_STYLE_KEY,
		      text);
}

void lag_draw_more(struct lag_canvas *canvas, int above, int below)
{
	draw_count(canvas, 0, "▴", above);
	draw_count(canvas, canvas->height - 1, "▾", below);
}

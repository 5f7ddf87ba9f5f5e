/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: shows a screen of cells, gives keys. Only the files behind it include curses. */
#ifndef VIZ_TUI_TERM_H
#define VIZ_TUI_TERM_H

#include "viz/tui/keymap.h"
#include "viz/tui/screen.h"

struct lag_term; /* opaque; one at a time */

enum lag_event_kind {
	LAG_EVENT_KEY,
	LAG_EVENT_CLICK,
	LAG_EVENT_RESIZE,
	LAG_EVENT_END /* the terminal is gone */
};

struct lag_event {
	enum lag_event_kind kind;
	uint32_t key;
	int x, y, wheel; /* wheel -1 up, 1 down, 0 click */
};

/* Takes the terminal over; signals that end the process give it back first (viz/tui/term_ending.h).
 * ascii: no glyph beyond ASCII even where the locale has more. */
enum lag_status lag_term_open(struct lag_term **out, bool ascii, bool no_color, bool mouse,
			      struct lag_err *err) LAG_MUST_USE;
/* Gives it back as it was. */
void lag_term_close(struct lag_term *term);

bool lag_term_ascii(const struct lag_term *term);
void lag_term_size(const struct lag_term *term, int *width, int *height);
void lag_term_show(struct lag_term *term, const struct lag_screen *screen);
/* Draws everything again, for a terminal that something else wrote on. */
void lag_term_redraw(struct lag_term *term);
/* Waits for what happens next. */
void lag_term_next(struct lag_term *term, struct lag_event *event);

#endif

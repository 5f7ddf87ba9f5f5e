/* SPDX-License-Identifier: Apache-2.0 */
/* ncursesw. The glyph ladder is chosen by the locale's codeset, never by return codes: under a C
 * locale curses draws blanks without any error. Writing the last cell returns an error, harmlessly. */
#include "viz/tui/term.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "schema/base/fmt.h"
#include "schema/base/mem.h"
#include "viz/tui/palette.h"
#include "viz/tui/term_ending.h"

/* A terminal whose End key is not in its description sends ESC [ 4 ~: the rest of a sequence that
 * curses does not know follows its ESC within this time. */
#define ESC_MS 25

struct lag_term {
	enum lag_colours colours;
	bool ascii;
	short pairs[LAG_STYLE_LIMIT];
	cchar_t *row;
	int row_size;
};

static void make_pairs(struct lag_term *term)
{
	short next = 1;

	for (unsigned style = 0; style < LAG_STYLE_LIMIT; style++) {
		struct lag_look look = lag_palette_look(term->colours, style);

		term->pairs[style] = 0;
		if ((look.fg < 0 && look.bg < 0) || next >= COLOR_PAIRS)
			continue;
		if (init_extended_pair(next, look.fg, look.bg) != ERR)
			term->pairs[style] = next++;
	}
}

static void start_colours(struct lag_term *term, bool no_color)
{
	term->colours = LAG_COLOURS_MONO;
	if (no_color || !has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	term->colours = lag_palette_step(COLORS, no_color);
	if (term->colours != LAG_COLOURS_MONO)
		make_pairs(term);
}

/* The interrupt key comes as a key: as a signal it would end the program as if it had failed. */
static void keep_interrupt_key(void)
{
	struct termios tty;

	if (tcgetattr(STDIN_FILENO, &tty) != 0)
		return;
	tty.c_cc[VINTR] = _POSIX_VDISABLE;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &tty);
	def_prog_mode(); /* also after a stop (C-z) */
}

enum lag_status lag_term_open(struct lag_term **out, bool ascii, bool no_color, bool mouse,
			      struct lag_err *err)
{
	struct lag_term *term;
	struct termios before;
	SCREEN *screen;

	*out = NULL;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &before) != 0) {
		return lag_err_set(err, LAG_ERR_SYSTEM,
				   "this needs a terminal; use --print VIEW for text");
	}
	setlocale(LC_CTYPE, "");
	set_escdelay(ESC_MS);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		return lag_err_set(err, LAG_ERR_SYSTEM,
				   "unknown terminal type '%s'; set TERM, or use --print VIEW",
				   getenv("TERM") ? getenv("TERM") : "");
	}
	lag_term_ending_begin(&before, mouse);
	term = lag_calloc(1, sizeof(*term));
	if (!term) {
		endwin();
		lag_term_ending_end();
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the terminal");
	}
	term->ascii = ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	keep_interrupt_key();
	start_colours(term, no_color);
	if (mouse) {
		mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED,
			  NULL);
	}
	mouseinterval(0);
	*out = term;
	return LAG_OK;
}

void lag_term_close(struct lag_term *term)
{
	if (!term)
		return;
	endwin();
	lag_term_ending_end();
	free(term->row);
	free(term);
}

bool lag_term_ascii(const struct lag_term *term)
{
	return term->ascii;
}

void lag_term_size(const struct lag_term *term, int *width, int *height)
{
	(void)term;
	getmaxyx(stdscr, *height, *width);
}

static attr_t attributes(const struct lag_look *look)
{
	attr_t out = A_NORMAL;

	if (look->bold)
		out |= A_BOLD;
	if (look->reverse)
		out |= A_REVERSE;
	if (look->dim)
		out |= A_DIM;
	return out;
}

/* Fills term->row with a row of cells; returns how many. A wide character is one of them. */
static int fill_row(struct lag_term *term, const struct lag_screen *screen, int y, int width)
{
	int n = 0;

	for (int x = 0; x < width; x++) {
		const struct lag_screen_cell *cell = lag_screen_at(screen, x, y);
		struct lag_look look = lag_palette_look(term->colours, cell->style);
		wchar_t text[2] = { (wchar_t)cell->code, 0 };
		int pair = term->pairs[cell->style & LAG_STYLE_MASK];

		if (!cell->code)
			continue;
		/* What the C library calls unprintable would shift the rest of the line. */
		if (wcwidth(text[0]) < 1)
			text[0] = L'?';
		if (setcchar(&term->row[n], text, attributes(&look), (short)pair, NULL) != ERR)
			n++;
	}
	return n;
}

void lag_term_show(struct lag_term *term, const struct lag_screen *screen)
{
	int width, height;

	getmaxyx(stdscr, height, width);
	width = width < screen->width ? width : screen->width;
	height = height < screen->height ? height : screen->height;
	if (term->row_size < width) {
		cchar_t *row = realloc(term->row, (size_t)width * sizeof(*row));

		if (!row)
			return;
		term->row = row;
		term->row_size = width;
	}
	erase();
	for (int y = 0; y < height; y++)
		mvadd_wchnstr(y, 0, term->row, fill_row(term, screen, y, width));
	refresh();
}

void lag_term_redraw(struct lag_term *term)
{
	(void)term;
	clearok(stdscr, TRUE);
}

static const struct {
	int code;
	uint32_t key;
} function_keys[] = {
	{ KEY_UP, LAG_KEY_UP },
	{ KEY_DOWN, LAG_KEY_DOWN },
	{ KEY_LEFT, LAG_KEY_LEFT },
	{ KEY_RIGHT, LAG_KEY_RIGHT },
	{ KEY_HOME, LAG_KEY_HOME },
	{ KEY_FIND, LAG_KEY_HOME },
	{ KEY_A1, LAG_KEY_HOME },
	{ KEY_END, LAG_KEY_END },
	{ KEY_LL, LAG_KEY_END },
	{ KEY_SELECT, LAG_KEY_END },
	{ KEY_C1, LAG_KEY_END },
	{ KEY_PPAGE, LAG_KEY_PGUP },
	{ KEY_NPAGE, LAG_KEY_PGDN },
	{ KEY_ENTER, LAG_KEY_ENTER },
	{ KEY_BACKSPACE, LAG_KEY_BACKSPACE },
	{ KEY_DC, LAG_KEY_DELETE },
	{ KEY_BTAB, LAG_KEY_BACKTAB },
};

static uint32_t key_of_function(wint_t code)
{
	for (size_t i = 0; i < sizeof(function_keys) / sizeof(function_keys[0]); i++) {
		if (function_keys[i].code == (int)code)
			return function_keys[i].key;
	}
	if (code >= KEY_F(1) && code <= KEY_F(12))
		return LAG_KEY_F1 + (uint32_t)(code - KEY_F(1));
	return LAG_KEY_UNKNOWN;
}

/* The keys that many terminals send and few descriptions hold. */
static uint32_t key_of_sequence(const char *text)
{
	static const struct {
		const char *text;
		uint32_t key;
	} known[] = { { "[1~", LAG_KEY_HOME },   { "[7~", LAG_KEY_HOME },  { "[H", LAG_KEY_HOME },
		      { "OH", LAG_KEY_HOME },    { "[4~", LAG_KEY_END },   { "[8~", LAG_KEY_END },
		      { "[F", LAG_KEY_END },     { "OF", LAG_KEY_END },    { "[5~", LAG_KEY_PGUP },
		      { "[6~", LAG_KEY_PGDN },   { "[A", LAG_KEY_UP },     { "[B", LAG_KEY_DOWN },
		      { "[C", LAG_KEY_RIGHT },   { "[D", LAG_KEY_LEFT },   { "OA", LAG_KEY_UP },
		      { "OB", LAG_KEY_DOWN },    { "OC", LAG_KEY_RIGHT },  { "OD", LAG_KEY_LEFT },
		      { "[Z", LAG_KEY_BACKTAB }, { "[3~", LAG_KEY_DELETE } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].text, text) == 0)
			return known[i].key;
	}
	return LAG_KEY_UNKNOWN;
}

/* Reads bytes: get_wch() keeps what is no UTF-8, and with it all that is typed after, up to 144 keys. */
static int next_code(uint32_t *code)
{
	int c = getch(), want;
	char text[4];
	int n = 1;

	if (c == ERR)
		return ERR;
	*code = (uint32_t)c;
	if (c >= KEY_MIN)
		return KEY_CODE_YES;
	want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
	text[0] = (char)c;
	timeout(ESC_MS);
	while (n < want && (c = getch()) != ERR) {
		if (c < 0x80 || c >= 0xc0) {
			(void)ungetch(c);
			break;
		}
		text[n++] = (char)c;
	}
	timeout(-1);
	if (!lag_utf8_decode(text, (size_t)n, code))
		*code = 0;
	return OK;
}

/* After ESC: the key alone, or a sequence curses did not know, swallowed whole. */
static uint32_t after_escape(void)
{
	char text[16] = "";
	size_t n = 0;
	int code;

	timeout(ESC_MS);
	while (n + 1 < sizeof(text) && (code = getch()) != ERR && code < 0x80) {
		text[n++] = (char)code;
		text[n] = '\0';
		/* "[" or "O" opens a sequence; a letter or "~" ends it. */
		if (n == 1 && code != '[' && code != 'O')
			break;
		if (n > 1 && code >= 0x40)
			break;
	}
	timeout(-1);
	return n ? key_of_sequence(text) : LAG_KEY_ESC;
}

static uint32_t key_of_character(wint_t code)
{
	switch (code) {
	case 0:
		return LAG_KEY_UNKNOWN;
	case 27:
		return after_escape();
	case '\r':
	case '\n':
		return LAG_KEY_ENTER;
	case '\t':
		return LAG_KEY_TAB;
	case 8:
	case 127:
		return LAG_KEY_BACKSPACE;
	default:
		return (uint32_t)code;
	}
}

static bool read_mouse(struct lag_event *event)
{
	MEVENT mouse;

	if (getmouse(&mouse) == ERR)
		return false;
	*event = (struct lag_event){ .kind = LAG_EVENT_CLICK, .x = mouse.x, .y = mouse.y };
	if (mouse.bstate & BUTTON4_PRESSED) {
		event->wheel = -1;
	} else if (mouse.bstate & BUTTON5_PRESSED) {
		event->wheel = 1;
	}
	return true;
}

void lag_term_next(struct lag_term *term, struct lag_event *event)
{
	int failed = 0;

	(void)term;
	timeout(-1);
	for (;;) {
		uint32_t code = 0;
		int got = next_code(&code);

		/* A signal also ends the wait; a terminal that is gone fails for ever. */
		if (got == ERR) {
			if (++failed < 100)
				continue;
			*event = (struct lag_event){ .kind = LAG_EVENT_END };
			return;
		}
		failed = 0;
		if (got == KEY_CODE_YES && code == KEY_RESIZE) {
			*event = (struct lag_event){ .kind = LAG_EVENT_RESIZE };
			return;
		}
		if (got == KEY_CODE_YES && code == KEY_MOUSE) {
			if (read_mouse(event))
				return;
			continue;
		}
		*event = (struct lag_event){ .kind = LAG_EVENT_KEY,
					     .key = got == KEY_CODE_YES ? key_of_function(code)
									: key_of_character(code) };
		if (event->key != LAG_KEY_UNKNOWN)
			return;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal that is taken over, and signals that ask the program to end: they give it back first. */
#ifndef VIZ_TUI_TERM_ENDING_H
#define VIZ_TUI_TERM_ENDING_H

#include <stdbool.h>
#include <termios.h>

/* From now on interrupt and termination give the terminal back and end the process as they would have
 * without this; curses' own handlers would call it a failure (1). Those that are ignored stay so. Call it
 * when curses has started; before: the modes it found, those to go back to; mouse: it was asked for. */
void lag_term_ending_begin(const struct termios *before, bool mouse);
/* The terminal has been given back: they only end the process. */
void lag_term_ending_end(void);

#endif

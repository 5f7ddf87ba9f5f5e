/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a cell grid: names from traces are hostile (escape sequences, broken UTF-8, direction
 * marks, zero-width characters), so every character is taken apart here before it reaches a screen.
 * Without UTF-8 the glyphs of the views turn into ASCII, some into several characters. */
#ifndef VIZ_TUI_TEXT_H
#define VIZ_TUI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAG_TEXT_UNIT_MAX 12

/* Takes the next character of *text and gives what stands for it on the screen: one or more code
 * points, each 1 or 2 cells wide. Returns how many; 0 at the end. */
int lag_text_next(const char **text, bool ascii, uint32_t out[LAG_TEXT_UNIT_MAX]);

/* Cells of a code point that lag_text_next gave. */
int lag_text_cells(uint32_t code);

/* Bytes of the first line of a text folded at `width` cells: up to a blank where it has one, at least one
 * character. What follows begins with that blank. */
size_t lag_text_fold(const char *text, int width, bool ascii);

/* Cells of a whole text. */
int lag_text_width(const char *text, bool ascii);

/* The single ASCII character that stands for a glyph; '?' for one without. */
char lag_text_ascii(uint32_t code);

/* Appends a code point as UTF-8; returns the bytes written (at most 4), not NUL-terminated. */
int lag_text_encode(uint32_t code, char out[4]);

#define LAG_NUM_MAX 48

/* A duration with its unit and four significant digits: "284.1 ms", "8.902 ms", "-6 µs", "0 ns". */
const char *lag_num_ns(char out[LAG_NUM_MAX], int64_t ns);
/* An error: two significant digits, "6.1 µs". */
const char *lag_num_error(char out[LAG_NUM_MAX], int64_t ns);
/* With µs resolution kept in ms: "112.480 ms"; for places on a time axis. */
const char *lag_num_ms(char out[LAG_NUM_MAX], int64_t ns);
/* "61.2 %"; "-" when not finite. */
const char *lag_num_share(char out[LAG_NUM_MAX], double share);
/* "32 MiB", "1.5 GiB", "640 B". */
const char *lag_num_bytes(char out[LAG_NUM_MAX], int64_t bytes);

/* True when `needle` occurs in `hay`, ASCII letters compared without case. */
bool lag_text_has(const char *hay, const char *needle);

#endif

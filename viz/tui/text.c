/* SPDX-License-Identifier: Apache-2.0 */
/* Characters to cells: UTF-8 decoding, escaping of what must not reach a terminal, ASCII stand-ins,
 * and numbers with units. No locale, no state. */
#include "viz/tui/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "schema/base/fmt.h"

struct ascii_pair {
	uint32_t code;
	const char *text;
};

/* Glyphs the views draw, and punctuation that real names hold. */
static const struct ascii_pair ascii_pairs[] = {
	{ 0x2588, "#" }, /* full block: compute */
	{ 0x2593, "=" }, /* dark shade: transfer */
	{ 0x2592, "-" }, /* medium shade: waiting */
	{ 0x2591, ":" }, /* light shade: host */
	{ 0x259a, "c" }, /* quadrants: copy */
	{ 0x00b7, "." }, /* middle dot: bubble */
	{ 0x2589, "#" },  { 0x258a, "#" },     { 0x258b, "#" }, { 0x258c, "#" }, { 0x258d, " " },
	{ 0x258e, " " },  { 0x258f, " " },     { 0x2581, "_" }, { 0x2582, "." }, { 0x2583, "-" },
	{ 0x2584, "-" },  { 0x2585, "=" },     { 0x2586, "=" }, { 0x2587, "#" }, { 0x2500, "-" },
	{ 0x2502, "|" },  { 0x253c, "+" },     { 0x252c, "+" }, { 0x2534, "+" }, { 0x2514, "`" },
	{ 0x25b8, ">" },  { 0x25be, "v" },     { 0x25c2, "<" }, { 0x25bc, "v" }, { 0x25b2, "^" },
	{ 0x2190, "<-" }, { 0x2192, "->" },    { 0x2191, "^" }, { 0x2193, "v" }, { 0x00d7, "x" },
	{ 0x2212, "-" },  { 0x00b1, "+-" },    { 0x00b5, "u" }, { 0x2026, "~" }, { 0x2264, "<=" },
	{ 0x2265, ">=" }, { 0x23ce, "Enter" }, { 0x2713, "+" }, { 0x2014, "-" }, { 0x2013, "-" },
	{ 0x2206, "d" },  { 0x2261, "=" },     { 0x25cf, "*" }, { 0x25b4, "^" }, { 0x2316, "+" },
};

struct range {
	uint32_t first, last;
};

/* Characters that take no cell, change direction, join or are not characters: shown by number. */
static const struct range escaped_ranges[] = {
	{ 0, 0x1f },        { 0x7f, 0x9f },        { 0xad, 0xad },     { 0x300, 0x36f },
	{ 0x483, 0x489 },   { 0x591, 0x5bd },      { 0x600, 0x61c },   { 0x64b, 0x65f },
	{ 0x900, 0xe7f },   { 0x200b, 0x200f },    { 0x2028, 0x202e }, { 0x2060, 0x206f },
	{ 0x20d0, 0x20ff }, { 0xe000, 0xf8ff },    { 0xfe00, 0xfe2f }, { 0xfeff, 0xfeff },
	{ 0xfff0, 0xffff }, { 0xe0000, 0x10ffff },
};

static const struct range wide_ranges[] = {
	{ 0x1100, 0x115f }, { 0x2e80, 0xa4cf }, { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
	{ 0xfe30, 0xfe6f }, { 0xff01, 0xff60 }, { 0x1f300, 0x1faff }, { 0x20000, 0x3fffd },
};

static bool within(const struct range *ranges, size_t n, uint32_t code)
{
	for (size_t i = 0; i < n; i++) {
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	}
	return false;
}

static bool must_escape(uint32_t code)
{
	return within(escaped_ranges, sizeof(escaped_ranges) / sizeof(escaped_ranges[0]), code);
}

int lag_text_cells(uint32_t code)
{
	return within(wide_ranges, sizeof(wide_ranges) / sizeof(wide_ranges[0]), code) ? 2 : 1;
}

static const char *ascii_of(uint32_t code)
{
	for (size_t i = 0; i < sizeof(ascii_pairs) / sizeof(ascii_pairs[0]); i++) {
		if (ascii_pairs[i].code == code)
			return ascii_pairs[i].text;
	}
	return NULL;
}

char lag_text_ascii(uint32_t code)
{
	const char *text = code < 0x80 ? NULL : ascii_of(code);

	if (code < 0x80)
		return (char)code;
	return text ? text[0] : (char)'?';
}

static int put_ascii(const char *text, uint32_t out[LAG_TEXT_UNIT_MAX])
{
	int n = 0;

	for (; text[n] && n < LAG_TEXT_UNIT_MAX; n++)
		out[n] = (unsigned char)text[n];
	return n;
}

int lag_text_next(const char **text, bool ascii, uint32_t out[LAG_TEXT_UNIT_MAX])
{
	const unsigned char *s = (const unsigned char *)*text;
	char escaped[LAG_TEXT_UNIT_MAX + 1];
	const char *plain;
	uint32_t code = 0;
	size_t taken;

	if (!s[0])
		return 0;
	taken = lag_utf8_decode(*text, strnlen(*text, 4), &code);
	*text += taken ? taken : 1;
	if (!taken || code < 0x20 || code == 0x7f) {
		snprintf(escaped, sizeof(escaped), "\\x%02x", s[0]);
		return put_ascii(escaped, out);
	}
	if (must_escape(code)) {
		snprintf(escaped, sizeof(escaped), "\\u{%x}", (unsigned)code);
		return put_ascii(escaped, out);
	}
	if (!ascii || code < 0x80) {
		out[0] = code;
		return 1;
	}
	plain = ascii_of(code);
	if (!plain) {
		snprintf(escaped, sizeof(escaped), "\\u{%x}", (unsigned)code);
		plain = escaped;
	}
	return put_ascii(plain, out);
}

int lag_text_width(const char *text, bool ascii)
{
	uint32_t unit[LAG_TEXT_UNIT_MAX];
	int width = 0, n;

	while ((n = lag_text_next(&text, ascii, unit)) > 0) {
		for (int i = 0; i < n; i++)
			width += lag_text_cells(unit[i]);
	}
	return width;
}

size_t lag_text_fold(const char *text, int width, bool ascii)
{
	const char *at = text, *blank = NULL;
	uint32_t unit[LAG_TEXT_UNIT_MAX];
	int used = 0;

	while (*at) {
		const char *begin = at;
		int n = lag_text_next(&at, ascii, unit);

		for (int i = 0; i < n; i++)
			used += lag_text_cells(unit[i]);
		if (*begin == ' ')
			blank = begin;
		if (used > width && blank > text)
			return (size_t)(blank - text);
		if (used > width)
			return begin > text ? (size_t)(begin - text) : (size_t)(at - text);
	}
	return (size_t)(at - text);
}

int lag_text_encode(uint32_t code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Copies what lag_fmt_* wrote. */
static const char *take(char out[LAG_NUM_MAX], struct lag_buf *buf)
{
	struct lag_buf text = { 0 };

	lag_fmt_units(&text, lag_buf_text(buf), true);
	snprintf(out, LAG_NUM_MAX, "%s", lag_buf_text(&text));
	lag_buf_release(buf);
	lag_buf_release(&text);
	return out;
}

const char *lag_num_ns(char out[LAG_NUM_MAX], int64_t ns)
{
	struct lag_buf buf = { 0 };

	lag_fmt_ns(&buf, ns);
	return take(out, &buf);
}

const char *lag_num_error(char out[LAG_NUM_MAX], int64_t ns)
{
	static const char *const units[] = { "ns", "µs", "ms", "s" };
	double value = (double)ns;
	int unit = 0;

	while (unit < 3 && fabs(value) >= 999.5) {
		value /= 1000;
		unit++;
	}
	snprintf(out, LAG_NUM_MAX, "%.*f %s", unit && fabs(value) < 9.95 ? 1 : 0, value,
		 units[unit]);
	return out;
}

const char *lag_num_ms(char out[LAG_NUM_MAX], int64_t ns)
{
	if (ns > -1000000 && ns < 1000000) {
		snprintf(out, LAG_NUM_MAX, "%.3f µs", (double)ns / 1e3);
	} else {
		snprintf(out, LAG_NUM_MAX, "%.3f ms", (double)ns / 1e6);
	}
	return out;
}

const char *lag_num_share(char out[LAG_NUM_MAX], double share)
{
	struct lag_buf buf = { 0 };

	if (isfinite(share)) {
		lag_fmt_share(&buf, share);
	} else {
		lag_buf_putc(&buf, '-');
	}
	return take(out, &buf);
}

const char *lag_num_bytes(char out[LAG_NUM_MAX], int64_t bytes)
{
	struct lag_buf buf = { 0 };

	lag_fmt_bytes(&buf, bytes);
	return take(out, &buf);
}

bool lag_text_has(const char *hay, const char *needle)
{
	size_t n = strlen(needle);

	for (; *hay; hay++) {
		if (strncasecmp(hay, needle, n) == 0)
			return true;
	}
	return n == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text, appended to a buffer. */
#include "schema/base/json_write.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/decimal.h"
#include "schema/base/fmt.h"

static void separate(struct lag_json *json)
{
	if (json->comma)
		lag_buf_add(json->out, ", ", json->spaced ? 2 : 1);
	json->comma = true;
}

void lag_json_begin(struct lag_json *json, char bracket)
{
	separate(json);
	lag_buf_putc(json->out, bracket);
	json->comma = false;
}

void lag_json_end(struct lag_json *json, char bracket)
{
	lag_buf_putc(json->out, bracket);
	json->comma = true;
}

void lag_json_key(struct lag_json *json, const char *key)
{
	separate(json);
	lag_json_quote(json->out, key, strlen(key));
	lag_buf_add(json->out, ": ", json->spaced ? 2 : 1);
	json->comma = false;
}

char *lag_json_put_int(char *p, int64_t value, bool exact)
{
	bool quoted = exact && lag_magnitude(value) > (uint64_t)1 << 53;

	*p = '"';
	p = lag_decimal_put(p + quoted, value);
	*p = '"';
	return p + quoted;
}

void lag_json_int(struct lag_json *json, int64_t value)
{
	char text[LAG_DECIMAL_MAX + 2];

	separate(json);
	lag_buf_add(json->out, text, (size_t)(lag_json_put_int(text, value, json->exact) - text));
}

void lag_json_us(struct lag_json *json, int64_t ns)
{
	char text[LAG_DECIMAL_MAX];

	separate(json);
	lag_buf_add(json->out, text, (size_t)(lag_decimal_put_us(text, ns) - text));
}

/* Digits from which to try: decimals of up to 15 survive the way through a double, so that the zeros at the
 * end of 15 tell that fewer do. */
static int least_digits(double value)
{
	char text[40];
	const char *end;
	int digits = 15;

	if (fabs(value) < DBL_MIN) /* has fewer digits than that */
		return 6;
	(void)snprintf(text, sizeof(text), "%.14e", value);
	end = strchr(text, 'e');
	while (digits > 6 && *--end == '0')
		digits--;
	return digits;
}

void lag_json_real(struct lag_json *json, double value)
{
	char text[40];

	separate(json);
	if (!isfinite(value)) {
		lag_buf_puts(json->out, "null");
		return;
	}
	for (int digits = least_digits(value); digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	lag_buf_puts(json->out, text);
}

void lag_json_bool(struct lag_json *json, bool value)
{
	separate(json);
	lag_buf_puts(json->out, value ? "true" : "false");
}

void lag_json_null(struct lag_json *json)
{
	separate(json);
	lag_buf_puts(json->out, "null");
}

void lag_json_text(struct lag_json *json, const char *text)
{
	if (!text) {
		lag_json_null(json);
		return;
	}
	separate(json);
	lag_json_quote(json->out, text, strlen(text));
}

/* Bytes from the first on that stand for themselves, in steps of 8: ASCII without controls, quotes and
 * backslashes. A byte behind one that does not may be taken for such a one; that only costs time. */
static size_t plain_prefix(const char *text, size_t n)
{
	const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
	size_t i = 0;

	for (; n - i >= 8; i += 8) {
		uint64_t x, quote, slash, del;

		memcpy(&x, text + i, 8);
		quote = x ^ (ones * '"');
		slash = x ^ (ones * '\\');
		del = x ^ (ones * 0x7f);
		if ((x | (x - ones * 0x20) | (quote - ones) | (slash - ones) | (del - ones)) & tops)
			break;
	}
	return i;
}

void lag_json_quote(struct lag_buf *out, const char *text, size_t n)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	size_t run = 0, i = plain_prefix(text, n);

	lag_buf_putc(out, '"');
	while (i < n) {
		unsigned char byte = (unsigned char)text[i];
		uint32_t c = byte;
		size_t len = byte < 0x80 ? 1 : lag_utf8_decode(text + i, n - i, &c);

		if (len && c >= 0x20 && c != '"' && c != '\\' && (c < 0x7f || c >= 0xa0)) {
			i += len;
			continue;
		}
		lag_buf_add(out, text + run, i - run);
		if (!len) {
			lag_buf_puts(out, replacement);
		} else if (c == '"' || c == '\\') {
			lag_buf_add(out, c == '"' ? "\\\"" : "\\\\", 2);
		} else {
			lag_buf_printf(out, "\\u%04x", c);
		}
		i += len ? len : 1;
		run = i;
	}
	lag_buf_add(out, text + run, n - run);
	lag_buf_putc(out, '"');
}

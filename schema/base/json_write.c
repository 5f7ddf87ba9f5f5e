/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text, appended to a buffer. */
#include "schema/base/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* printf is the slowest part of writing a large trace, and most of a trace is integers. */
static void put_decimal(struct lag_buf *out, uint64_t value, bool negative, unsigned decimals)
{
	char text[32];
	size_t at = sizeof(text);

	for (unsigned i = 0; value || i <= decimals; i++) {
		if (decimals && i == decimals)
			text[--at] = '.';
		text[--at] = (char)('0' + value % 10);
		value /= 10;
	}
	if (negative)
		text[--at] = '-';
	lag_buf_add(out, text + at, sizeof(text) - at);
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

void lag_json_int(struct lag_json *json, int64_t value)
{
	bool quoted = json->exact && magnitude(value) > (uint64_t)1 << 53;

	separate(json);
	lag_buf_add(json->out, "\"", quoted);
	put_decimal(json->out, magnitude(value), value < 0, 0);
	lag_buf_add(json->out, "\"", quoted);
}

void lag_json_us(struct lag_json *json, int64_t ns)
{
	separate(json);
	put_decimal(json->out, magnitude(ns), ns < 0, 3);
}

void lag_json_real(struct lag_json *json, double value)
{
	char text[40];

	separate(json);
	if (!isfinite(value)) {
		lag_buf_puts(json->out, "null");
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
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

void lag_json_quote(struct lag_buf *out, const char *text, size_t n)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	size_t run = 0, i = 0;

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

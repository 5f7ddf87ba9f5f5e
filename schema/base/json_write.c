/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text, appended to a buffer. */
#include "schema/base/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"

static void separate(struct lag_json *json)
{
	if (json->comma)
		lag_buf_putc(json->out, ',');
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
	lag_buf_putc(json->out, ':');
	json->comma = false;
}

void lag_json_int(struct lag_json *json, int64_t value)
{
	separate(json);
	lag_buf_printf(json->out, "%" PRId64, value);
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

	lag_buf_putc(out, '"');
	while (n) {
		uint32_t c = 0;
		size_t len = lag_utf8_decode(text, n, &c);

		if (!len) {
			lag_buf_puts(out, replacement);
			len = 1;
		} else if (c == '"' || c == '\\') {
			lag_buf_putc(out, '\\');
			lag_buf_putc(out, (char)c);
		} else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
			lag_buf_printf(out, "\\u%04x", c);
		} else {
			lag_buf_add(out, text, len);
		}
		text += len;
		n -= len;
	}
	lag_buf_putc(out, '"');
}

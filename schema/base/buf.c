/* SPDX-License-Identifier: Apache-2.0 */
/* Text buffer; doubles as it grows. */
#include "schema/base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool lag_buf_grow(struct lag_buf *buf, size_t n)
{
	size_t cap = buf->cap ? buf->cap : 128;
	char *text;

	if (buf->failed || n > SIZE_MAX / 4 - buf->n)
		buf->failed = true;
	if (buf->failed || buf->n + n + 1 <= buf->cap)
		return !buf->failed;
	while (cap < buf->n + n + 1)
		cap *= 2;
	text = realloc(buf->text, cap);
	if (!text) {
		buf->failed = true;
		return false;
	}
	buf->text = text;
	buf->cap = cap;
	return true;
}

void lag_buf_add(struct lag_buf *buf, const char *bytes, size_t n)
{
	if (!lag_buf_reserve(buf, n))
		return;
	if (n)
		memcpy(buf->text + buf->n, bytes, n);
	buf->n += n;
	buf->text[buf->n] = '\0';
}

void lag_buf_puts(struct lag_buf *buf, const char *text)
{
	lag_buf_add(buf, text, strlen(text));
}

void lag_buf_putc(struct lag_buf *buf, char c)
{
	lag_buf_add(buf, &c, 1);
}

void lag_buf_printf(struct lag_buf *buf, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		buf->failed = true;
	} else if (lag_buf_reserve(buf, (size_t)n)) {
		(void)vsnprintf(buf->text + buf->n, (size_t)n + 1, fmt, again);
		buf->n += (size_t)n;
	}
	va_end(again);
}

void lag_buf_clear(struct lag_buf *buf)
{
	buf->n = 0;
	buf->failed = false;
	if (buf->text)
		buf->text[0] = '\0';
}

void lag_buf_release(struct lag_buf *buf)
{
	free(buf->text);
	*buf = (struct lag_buf){ 0 };
}

const char *lag_buf_text(const struct lag_buf *buf)
{
	return buf->text ? buf->text : "";
}

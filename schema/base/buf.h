/* SPDX-License-Identifier: Apache-2.0 */
/* A growable text buffer. A failed append sets `failed` and later appends do nothing, so that a
 * writer checks once, at the end. */
#ifndef SCHEMA_BASE_BUF_H
#define SCHEMA_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct lag_buf {
	char *text; /* NUL-terminated once anything was appended; owned */
	size_t n, cap;
	bool failed;
};

void lag_buf_add(struct lag_buf *buf, const char *bytes, size_t n);
void lag_buf_puts(struct lag_buf *buf, const char *text);
void lag_buf_putc(struct lag_buf *buf, char c);
void lag_buf_printf(struct lag_buf *buf, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool lag_buf_grow(struct lag_buf *buf, size_t n); /* lag_buf_reserve's */

/* Makes room for n bytes more (and the NUL), for writers that fill text + n themselves. */
static inline bool lag_buf_reserve(struct lag_buf *buf, size_t n)
{
	return (n < buf->cap - buf->n && !buf->failed) || lag_buf_grow(buf, n);
}

void lag_buf_clear(struct lag_buf *buf); /* keeps the memory */
void lag_buf_release(struct lag_buf *buf);

/* Never NULL: "" for an empty buffer. Borrowed until the next change. */
const char *lag_buf_text(const struct lag_buf *buf);

#endif

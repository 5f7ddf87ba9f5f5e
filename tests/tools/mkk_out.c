/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, and the buffer into the file. */
#include "tests/tools/mkk_out.h"

#include <unistd.h>

void mkk_flush(struct mkk_out *o)
{
	size_t at = 0;

	while (at < o->n && !o->failed) {
		ssize_t n = write(o->fd, o->bytes + at, o->n - at);

		o->failed = n <= 0;
		at += n > 0 ? (size_t)n : 0;
	}
	o->n = 0;
}

static char *digits_before(char *end, uint64_t v)
{
	do {
		*--end = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return end;
}

void mkk_int(struct mkk_out *o, int64_t v)
{
	char text[24], *end = text + sizeof(text);
	char *p = digits_before(end, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);

	if (v < 0)
		*--p = '-';
	mkk_bytes(o, p, (size_t)(end - p));
}

void mkk_us(struct mkk_out *o, int64_t ns)
{
	uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	char text[28], *end = text + sizeof(text), *p;

	for (p = end; p > end - 3; v /= 10)
		*--p = (char)('0' + v % 10);
	*--p = '.';
	p = digits_before(p, v);
	if (ns < 0)
		*--p = '-';
	mkk_bytes(o, p, (size_t)(end - p));
}

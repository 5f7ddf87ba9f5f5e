/* SPDX-License-Identifier: Apache-2.0 */
/* Text into a file at the speed of memory: pieces and numbers appended to a buffer that is written
 * when full. Failures are kept and told at the end. */
#ifndef TESTS_TOOLS_MKK_OUT_H
#define TESTS_TOOLS_MKK_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MKK_BUFFER ((size_t)1 << 18)
#define MKK_PIECE  4096 /* no piece is longer */

struct mkk_out {
	int fd;
	bool failed;
	size_t n;
	uint64_t written; /* bytes, those in the buffer included */
	char bytes[MKK_BUFFER + MKK_PIECE];
};

void mkk_flush(struct mkk_out *o);
void mkk_int(struct mkk_out *o, int64_t v);
void mkk_us(struct mkk_out *o, int64_t ns); /* microseconds with three decimals */

static inline void mkk_bytes(struct mkk_out *o, const char *text, size_t n)
{
	memcpy(o->bytes + o->n, text, n);
	o->n += n;
	o->written += n;
	if (o->n >= MKK_BUFFER)
		mkk_flush(o);
}

#define MKK_PUT(o, literal) mkk_bytes((o), literal, sizeof(literal) - 1)

static inline void mkk_text(struct mkk_out *o, const char *text)
{
	mkk_bytes(o, text, strlen(text));
}

#endif

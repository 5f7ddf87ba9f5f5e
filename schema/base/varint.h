/* SPDX-License-Identifier: Apache-2.0 */
/* Integers in as few bytes as they need: 7 bits a byte, lowest first, the highest bit set in all but
 * the last. Signed values are folded (zigzag) first. Header only: the tracer's hooks use it. */
#ifndef SCHEMA_BASE_VARINT_H
#define SCHEMA_BASE_VARINT_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LAG_VARINT_MAX 10 /* bytes of the longest */

static inline uint64_t lag_zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static inline int64_t lag_unzigzag(uint64_t u)
{
	return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

/* Differences and sums wrap around: any two int64_t have one. */
static inline int64_t lag_minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t lag_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Writes v at p, which has room for LAG_VARINT_MAX bytes (all may be touched); returns what follows it.
 * Two to four bytes go without a branch: which it is, a processor cannot guess in a trace. */
static inline uint8_t *lag_varint_put(uint8_t *p, uint64_t v)
{
	if (v < 0x80) {
		*p = (uint8_t)v;
		return p + 1;
	}
	if (v < 0x10000000) {
		uint32_t x = (uint32_t)v, more = 1u + (x > 0x3fff) + (x > 0x1fffff);

		x = (x & 0x3fff) | (x & 0xfffc000) << 2;
		x = (x & 0x7f007f) | (x & 0x3f803f80) << 1;
		x |= 0x808080u >> (24 - 8 * more);
		x = htole32(x);
		memcpy(p, &x, sizeof(x));
		return p + more + 1;
	}
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* Byte by byte: the last ones of an input, and long ones. */
__attribute__((cold)) static inline const uint8_t *
lag_varint_get_slowly(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
		uint8_t byte = *p++;

		if (shift == 63 && byte > 1)
			return NULL;
		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return p;
	}
	return NULL;
}

/* Reads one; what follows it, or NULL when it does not end before `end` or has more than 64 bits. */
static inline const uint8_t *lag_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	uint32_t x, stop;

	if (p < end && *p < 0x80) {
		*v = *p;
		return p + 1;
	}
	if (end - p < (ptrdiff_t)sizeof(x))
		return lag_varint_get_slowly(p, end, v);
	memcpy(&x, p, sizeof(x));
	x = le32toh(x);
	stop = ~x & 0x80808080;
	if (!stop)
		return lag_varint_get_slowly(p, end, v);
	x &= (stop ^ (stop - 1)) & 0x7f7f7f7f;
	x = (x & 0x7f007f) | (x & 0x7f007f00) >> 1;
	*v = (x & 0x3fff) | (x & 0x3fff0000) >> 2;
	return p + (unsigned)__builtin_ctz(stop) / 8 + 1;
}

#endif

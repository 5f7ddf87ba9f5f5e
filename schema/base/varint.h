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
 * Up to 56 bits go without a branch, since lengths in a trace are nothing that a processor can guess. */
static inline uint8_t *lag_varint_put(uint8_t *p, uint64_t v)
{
	unsigned more = (63u - (unsigned)__builtin_clzll(v | 1)) / 7;

	if (more < 8) {
		v = (v & 0x0fffffff) | (v & 0x00fffffff0000000) << 4;
		v = (v & 0x00003fff00003fff) | (v & 0x0fffc0000fffc000) << 2;
		v = (v & 0x007f007f007f007f) | (v & 0x3f803f803f803f80) << 1;
		v |= UINT64_C(0x8080808080808080) & ((UINT64_C(1) << 8 * more) - 1);
		v = htole64(v);
		memcpy(p, &v, sizeof(v));
		return p + more + 1;
	}
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* The byte by byte way, for the last bytes of an input and for long ones. */
static inline const uint8_t *lag_varint_get_slowly(const uint8_t *p, const uint8_t *end,
						   uint64_t *v)
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
	uint64_t word, stop;

	if (end - p < (ptrdiff_t)sizeof(word))
		return lag_varint_get_slowly(p, end, v);
	memcpy(&word, p, sizeof(word));
	word = le64toh(word);
	stop = ~word & 0x8080808080808080;
	if (!stop)
		return lag_varint_get_slowly(p, end, v);
	word &= (stop ^ (stop - 1)) & 0x7f7f7f7f7f7f7f7f;
	word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
	word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
	*v = (word & 0x0fffffff) | (word & 0x0fffffff00000000) >> 4;
	return p + (unsigned)__builtin_ctzll(stop) / 8 + 1;
}

#endif

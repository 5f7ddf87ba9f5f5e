/* SPDX-License-Identifier: Apache-2.0 */
/* Integers in as few bytes as they need: 7 bits a byte, lowest first, the highest bit set in all but
 * the last. Signed values are folded (zigzag) first. Header only: the tracer's hooks use it. */
#ifndef SCHEMA_BASE_VARINT_H
#define SCHEMA_BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

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

/* Writes v at p, which has room for LAG_VARINT_MAX bytes; returns what follows it. */
static inline uint8_t *lag_varint_put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* Reads one; what follows it, or NULL when it does not end before `end` or has more than 64 bits. */
static inline const uint8_t *lag_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *v)
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

#endif

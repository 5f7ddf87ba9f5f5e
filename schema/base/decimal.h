/* SPDX-License-Identifier: Apache-2.0 */
/* Integers as decimal digits at a given place, for writers of many: printf is slower than all the rest of
 * writing a large trace. Header only, so that the digits go straight to where they are wanted. */
#ifndef SCHEMA_BASE_DECIMAL_H
#define SCHEMA_BASE_DECIMAL_H

#include <stdint.h>
#include <string.h>

#define LAG_DECIMAL_MAX 24 /* bytes of the longest: a sign, 20 digits, a point */

static inline uint64_t lag_magnitude(int64_t v)
{
	return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

static inline unsigned lag_decimal_digits(uint64_t v)
{
	unsigned n = 1;

	for (; v >= 10000; v /= 10000)
		n += 4;
	return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/* 0..99 as two digits. */
static inline void lag_decimal_pair(char *p, unsigned v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";

	memcpy(p, pairs + (size_t)v * 2, 2);
}

/* Writes v at p, which has room for LAG_DECIMAL_MAX bytes; returns what follows it. No NUL. */
static inline char *lag_decimal_put_unsigned(char *p, uint64_t v)
{
	char *end = p + lag_decimal_digits(v), *at = end;

	for (; v >= 100; v /= 100)
		lag_decimal_pair(at -= 2, (unsigned)(v % 100));
	if (v >= 10) {
		lag_decimal_pair(at - 2, (unsigned)v);
	} else {
		at[-1] = (char)('0' + v);
	}
	return end;
}

static inline char *lag_decimal_put(char *p, int64_t v)
{
	*p = '-';
	return lag_decimal_put_unsigned(p + (v < 0), lag_magnitude(v));
}

/* Nanoseconds as microseconds with three decimals, exactly. */
static inline char *lag_decimal_put_us(char *p, int64_t ns)
{
	uint64_t v = lag_magnitude(ns);
	unsigned rest = (unsigned)(v % 1000);

	*p = '-';
	p = lag_decimal_put_unsigned(p + (ns < 0), v / 1000);
	p[0] = '.';
	p[1] = (char)('0' + rest / 100);
	lag_decimal_pair(p + 2, rest % 100);
	return p + 4;
}

#endif

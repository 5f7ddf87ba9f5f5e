/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of strictly valid JSON, eight digits at a time. As in schema/base/json_scan.h, NULL refuses what is
 * not plain, and LAG_JSON_SCAN_SLACK bytes must be readable behind any place below `limit`. */
#ifndef SCHEMA_BASE_JSON_NUMBER_H
#define SCHEMA_BASE_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Steps over the number at p that is too long or has an exponent; *out as lag_json_to_fixed. */
const char *lag_json_scan_long_number(const char *p, const char *limit, int digits, int64_t *out);

static inline bool lag_json_is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

/* Eight bytes at p, the first lowest, less '0' each: digits become their values. */
static inline uint64_t lag_json_load8(const char *p)
{
	uint64_t x;

	memcpy(&x, p, 8);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	return x ^ 0x3030303030303030u;
}

/* Of such bytes, how many in front are digits, times 8. */
static inline unsigned lag_json_digit_bits(uint64_t x)
{
	/* Exact up to the first that is none. */
	uint64_t other = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;

	return other ? (unsigned)__builtin_ctzll(other) & ~7u : 64;
}

/* The number that those digits are; bits > 0. */
static inline uint64_t lag_json_digits_value(uint64_t x, unsigned bits)
{
	x <<= 64 - bits;
	x = x * 10 + (x >> 8);
	return ((x & 0x000000ff000000ffu) * 0x000f424000000064u +
		(x >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
	       32;
}

/* Whether a number may end before c, as far as a comma, a brace or white space goes. */
static inline bool lag_json_may_end(char c)
{
	return (unsigned char)c <= ',' || c == '}' || c == ']';
}

/* Of loaded bytes: one to seven digits and something else, no needless zero in front. */
static inline bool lag_json_is_short(uint64_t x, unsigned bits)
{
	return bits - 8 <= 48 && ((x & 0xff) || bits == 8);
}

/* Steps over a number as most are: up to seven digits, no sign, point or exponent. NULL: any other value. */
static inline const char *lag_json_scan_short(const char *p, int64_t *out)
{
	uint64_t x = lag_json_load8(p);
	unsigned bits = lag_json_digit_bits(x);

	if (!lag_json_is_short(x, bits) || !lag_json_may_end(p[bits / 8]))
		return NULL;
	*out = (int64_t)lag_json_digits_value(x, bits);
	return p + bits / 8;
}

/* Likewise, perhaps with a point and up to seven digits behind it. */
static inline const char *lag_json_skip_short(const char *p)
{
	uint64_t x = lag_json_load8(p);
	unsigned bits = lag_json_digit_bits(x);

	if (!lag_json_is_short(x, bits))
		return NULL;
	p += bits / 8;
	if (*p == '.') {
		bits = lag_json_digit_bits(lag_json_load8(p + 1));
		if (bits - 8 > 48)
			return NULL;
		p += 1 + bits / 8;
	}
	return lag_json_may_end(*p) ? p : NULL;
}

/* Steps over up to 16 digits; *v: the number that they are. NULL: none, or a needless zero in front. */
static inline const char *lag_json_scan_digits(const char *p, uint64_t *v)
{
	static const uint32_t power[] = { 1,      10,      100,      1000,     10000,
					  100000, 1000000, 10000000, 100000000 };
	uint64_t x = lag_json_load8(p);
	unsigned bits = lag_json_digit_bits(x);

	if (!bits || (!(x & 0xff) && bits > 8))
		return NULL;
	*v = lag_json_digits_value(x, bits);
	p += bits / 8;
	if (bits < 64)
		return p;
	x = lag_json_load8(p);
	bits = lag_json_digit_bits(x);
	if (bits)
		*v = *v * power[bits / 8] + lag_json_digits_value(x, bits);
	return p + bits / 8;
}

/* Steps over a time as most are: digits, a point, three digits. *out: the number times 1000. NULL: any other
 * value. */
static inline const char *lag_json_scan_thousandths(const char *p, int64_t *out)
{
	uint64_t v, x;

	p = lag_json_scan_digits(p, &v);
	if (!p || *p != '.' || v >= INT64_MAX / 1000)
		return NULL;
	x = lag_json_load8(p) >> 8;
	if (lag_json_digit_bits(x) != 24 || !lag_json_may_end(p[4]))
		return NULL;
	*out = (int64_t)(v * 1000 + (x & 0xff) * 100 + (x >> 8 & 0xff) * 10 + (x >> 16 & 0xff));
	return p + 4;
}

/* Behind a number's point: adds three digits to *v and rounds by the next, or only rounds. */
static inline const char *lag_json_scan_fraction(const char *p, const char *limit, int digits,
						 uint64_t *v)
{
	uint64_t x = lag_json_load8(p);
	unsigned bits = lag_json_digit_bits(x);

	if (!bits)
		return NULL;
	p += bits / 8;
	if (bits == 64) {
		while (lag_json_is_digit(*p) && p < limit)
			p++;
	} else {
		x &= ((uint64_t)1 << bits) - 1;
	}
	if (digits)
		*v = *v * 1000 + (x & 0xff) * 100 + (x >> 8 & 0xff) * 10 + (x >> 16 & 0xff);
	*v += (x >> 8 * digits & 0xff) >= 5;
	return p;
}

/* Steps over a number and sets *out as lag_json_to_fixed does: its value times 10^digits, rounded;
 * untouched where that does not fit. `digits` is 0 or 3 and to be a constant. */
static inline const char *lag_json_scan_fixed(const char *p, const char *limit, int digits,
					      int64_t *out)
{
	const char *start = p;
	bool negative = *p == '-';
	uint64_t v;

	p = lag_json_scan_digits(p + negative, &v);
	if (!p)
		return NULL;
	if (lag_json_is_digit(*p))
		return lag_json_scan_long_number(start, limit, digits, out);
	if (*p == '.') {
		p = lag_json_scan_fraction(p + 1, limit, digits, &v);
		if (!p)
			return NULL;
	} else if (digits) {
		v *= 1000;
	}
	if ((*p | 0x20) == 'e')
		return lag_json_scan_long_number(start, limit, digits, out);
	if (!digits || v <= INT64_MAX)
		*out = negative ? -(int64_t)v : (int64_t)v;
	return p;
}

#endif

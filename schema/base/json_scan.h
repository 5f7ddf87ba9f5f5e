/* SPDX-License-Identifier: Apache-2.0 */
/* Strictly valid JSON at the speed of memory, over bytes that are all at hand. Whatever is not plain
 * (damage, depth, the end of the bytes) is refused with NULL, and lag_json_reader takes it from there.
 * All functions look at up to LAG_JSON_SCAN_SLACK bytes from a place below `limit`, which therefore
 * stands that far before the end of what may be read. */
#ifndef SCHEMA_BASE_JSON_SCAN_H
#define SCHEMA_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "schema/base/json_read.h"

#define LAG_JSON_SCAN_SLACK 64
#define LAG_JSON_SCAN_DEPTH 60 /* containers deeper than this inside a value are not plain */

/* Bytes of one string or number, borrowed. */
struct lag_span {
	const char *text;
	size_t n;
};

#define LAG_SPAN_INIT(literal)               \
	{                                    \
		literal, sizeof(literal) - 1 \
	}
#define LAG_SPAN(literal) ((struct lag_span)LAG_SPAN_INIT(literal))

static inline bool lag_span_is(struct lag_span a, struct lag_span b)
{
	return a.n == b.n && memcmp(a.text, b.text, b.n) == 0;
}

static inline bool lag_span_begins(struct lag_span a, struct lag_span b)
{
	return a.n >= b.n && memcmp(a.text, b.text, b.n) == 0;
}

/* Which of the 16 bytes at p end a run of ordinary string bytes: quote, backslash, control bytes and
 * those beyond ASCII (both below 0x20 as signed numbers). */
static inline unsigned lag_json_stops(const char *p)
{
#ifdef __SSE2__
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i stop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
				    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));

	return (unsigned)_mm_movemask_epi8(
		_mm_or_si128(stop, _mm_cmplt_epi8(v, _mm_set1_epi8(0x20))));
#else
	unsigned mask = 0;

	for (unsigned i = 0; i < 16; i++) {
		signed char c = (signed char)p[i];

		mask |= (unsigned)(c == '"' || c == '\\' || c < 0x20) << i;
	}
	return mask;
#endif
}

/* Which of the 16 bytes at p are not white space. */
static inline unsigned lag_json_inked(const char *p)
{
#ifdef __SSE2__
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i blank = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(' ')),
						  _mm_cmpeq_epi8(v, _mm_set1_epi8('\n'))),
				     _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\t')),
						  _mm_cmpeq_epi8(v, _mm_set1_epi8('\r'))));

	return ~(unsigned)_mm_movemask_epi8(blank) & 0xffff;
#else
	unsigned mask = 0;

	for (unsigned i = 0; i < 16; i++)
		mask |= (unsigned)!(p[i] == ' ' || p[i] == '\n' || p[i] == '\t' || p[i] == '\r')
			<< i;
	return mask;
#endif
}

/* Skips white space; at `limit` or beyond it stops anywhere. */
static inline const char *lag_json_scan_space(const char *p, const char *limit)
{
	if ((unsigned char)*p > ' ')
		return p;
	if ((unsigned char)p[1] > ' ' && *p == ' ')
		return p + 1;
	while (p < limit) {
		unsigned inked = lag_json_inked(p);

		if (inked)
			return p + __builtin_ctz(inked);
		p += 16;
	}
	return p;
}

/* At a byte at which a run of ordinary bytes stops, no quote: steps over a valid escape or character.
 * NULL: it is none. */
const char *lag_json_scan_odd(const char *p);

/* From behind a string's opening quote to its closing one. *escaped is set when the string has
 * backslashes, so that it must be decoded to be used. */
static inline const char *lag_json_scan_string(const char *p, const char *limit, bool *escaped)
{
	while (p < limit) {
		unsigned stops = lag_json_stops(p);

		if (!stops) {
			p += 16;
			continue;
		}
		p += __builtin_ctz(stops);
		if (*p == '"')
			return p;
		*escaped |= *p == '\\';
		p = lag_json_scan_odd(p);
		if (!p)
			return NULL;
	}
	return NULL;
}

/* The number that four hexadecimal digits are; -1 when they are none. Looks at no byte behind one that is
 * no digit. */
int lag_json_hex4(const char *p);

/* Steps over a number, a string or a word. */
const char *lag_json_scan_scalar(const char *p, const char *limit);
const char *lag_json_scan_number(const char *p, const char *limit);

/* Steps over any value, checking all of it. */
const char *lag_json_scan_value(const char *p, const char *limit);

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
	static const uint32_t power[] = { 1,      10,      100,      1000,     10000,
					  100000, 1000000, 10000000, 100000000 };
	const char *start = p;
	bool negative = *p == '-';
	uint64_t x = lag_json_load8(p += negative), v;
	unsigned bits = lag_json_digit_bits(x);

	if (!bits || (!(x & 0xff) && bits > 8))
		return NULL;
	v = lag_json_digits_value(x, bits);
	p += bits / 8;
	if (bits == 64) {
		x = lag_json_load8(p);
		bits = lag_json_digit_bits(x);
		p += bits / 8;
		if (bits)
			v = v * power[bits / 8] + lag_json_digits_value(x, bits);
		if (bits == 64 && lag_json_is_digit(*p))
			return lag_json_scan_long_number(start, limit, digits, out);
	}
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

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

#include "schema/base/json_number.h"
#include "schema/base/json_read.h"

#define LAG_JSON_SCAN_SLACK 128 /* a key of Kineto's, and the first look at what follows it */
#define LAG_JSON_SCAN_DEPTH 60  /* containers deeper than this inside a value are not plain */

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

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The less frequent parts of the scanner: escapes and UTF-8 inside strings, numbers and whole values that
 * are only stepped over. */
#include "schema/base/json_scan.h"

#include "schema/base/fmt.h"

int lag_json_hex4(const char *p)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		int c = p[i] | 0x20;

		if (lag_json_is_digit(p[i])) {
			v = v * 16 + (p[i] - '0');
		} else if (c >= 'a' && c <= 'f') {
			v = v * 16 + (c - 'a' + 10);
		} else {
			return -1;
		}
	}
	return v;
}

const char *lag_json_scan_odd(const char *p)
{
	uint32_t code;
	size_t n;

	if ((unsigned char)*p >= 0x80) {
		n = lag_utf8_decode(p, 4, &code);
		return n ? p + n : NULL;
	}
	if (*p != '\\')
		return NULL;
	switch (p[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return p + 2;
	case 'u':
		/* NULs and surrogates are the reader's to judge. */
		code = (uint32_t)lag_json_hex4(p + 2);
		return code && code < 0x10000 && (code < 0xd800 || code >= 0xe000) ? p + 6 : NULL;
	default:
		return NULL;
	}
}

const char *lag_json_scan_number(const char *p, const char *limit)
{
	const char *first;
	unsigned bits;

	p += *p == '-';
	first = p;
	do {
		bits = lag_json_digit_bits(lag_json_load8(p));
		p += bits / 8;
	} while (bits == 64 && p < limit);
	if (p == first || (*first == '0' && p != first + 1))
		return NULL;
	if (*p == '.') {
		first = ++p;
		do {
			bits = lag_json_digit_bits(lag_json_load8(p));
			p += bits / 8;
		} while (bits == 64 && p < limit);
		if (p == first)
			return NULL;
	}
	if ((*p | 0x20) == 'e') {
		p++;
		p += *p == '+' || *p == '-';
		for (first = p; lag_json_is_digit(*p) && p < limit;)
			p++;
		if (p == first)
			return NULL;
	}
	return p < limit ? p : NULL;
}

const char *lag_json_scan_long_number(const char *p, const char *limit, int digits, int64_t *out)
{
	const char *end = lag_json_scan_number(p, limit);

	if (end)
		(void)lag_json_to_fixed(p, (size_t)(end - p), digits, out);
	return end;
}

static const char *scan_word(const char *p)
{
	if (memcmp(p, "true", 4) == 0 || memcmp(p, "null", 4) == 0)
		return p + 4;
	return memcmp(p, "false", 5) == 0 ? p + 5 : NULL;
}

const char *lag_json_scan_scalar(const char *p, const char *limit)
{
	bool escaped = false;
	const char *end;

	if (*p == '"') {
		p = lag_json_scan_string(p + 1, limit, &escaped);
		return p ? p + 1 : NULL;
	}
	if (lag_json_is_digit(*p) || *p == '-') {
		end = lag_json_skip_short(p);
		return end ? end : lag_json_scan_number(p, limit);
	}
	return scan_word(p);
}

/* From a key's opening quote to its value. */
static const char *scan_key(const char *p, const char *limit)
{
	bool escaped = false;

	p = *p == '"' ? lag_json_scan_string(p + 1, limit, &escaped) : NULL;
	if (!p)
		return NULL;
	p = lag_json_scan_space(p + 1, limit);
	return *p == ':' ? lag_json_scan_space(p + 1, limit) : NULL;
}

/* Behind a value: over the ends of containers to a comma, or to behind the outermost value. *open is a
 * stack with one bit a container, the innermost lowest, set for objects; a leading 1 marks its end. */
static const char *scan_ends(const char *p, const char *limit, uint64_t *open)
{
	for (; *open != 1; *open >>= 1) {
		if (p >= limit)
			return NULL;
		p = lag_json_scan_space(p, limit);
		if (*p == ',')
			return p;
		if (*p++ != (*open & 1 ? '}' : ']'))
			return NULL;
	}
	return p;
}

/* At an opening brace or bracket: to the first value inside. An empty container is stepped over, and
 * *open stays. */
static const char *scan_begin(const char *p, const char *limit, uint64_t *open)
{
	bool object = *p == '{';

	p = lag_json_scan_space(p + 1, limit);
	if (*p == (object ? '}' : ']'))
		return p + 1;
	if (*open >> LAG_JSON_SCAN_DEPTH)
		return NULL;
	*open = *open << 1 | object;
	return object ? scan_key(p, limit) : p;
}

const char *lag_json_scan_value(const char *p, const char *limit)
{
	uint64_t open = 1, before;

	while (p && p < limit) {
		before = open;
		p = *p == '{' || *p == '[' ? scan_begin(p, limit, &open)
					   : lag_json_scan_scalar(p, limit);
		if (!p || open != before)
			continue;
		p = scan_ends(p, limit, &open);
		if (!p || open == 1)
			return p;
		p = lag_json_scan_space(p + 1, limit);
		p = open & 1 ? scan_key(p, limit) : p;
	}
	return NULL;
}

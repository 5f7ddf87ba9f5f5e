/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to tokens. A string without escapes is delivered where it lies; others are decoded into
 * scratch, run by run, so that no string needs to fit the window. */
#include "schema/base/json_lex.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "schema/base/fmt.h"
#include "schema/base/json_scan.h"

#define REPLACEMENT "\xef\xbf\xbd"

enum {
	C_STOP = 1, /* ends a run of ordinary string bytes */
	C_WORD = 2,
	C_SPACE = 4
};

static unsigned char_class(unsigned char c)
{
	static const unsigned char ascii[128] = {
#define S C_STOP
#define W C_WORD
		S,       S,           S,           S, S, S,           S, S,
		S,       S | C_SPACE, S | C_SPACE, S, S, S | C_SPACE, S, S, /* 0x0 */
		S,       S,           S,           S, S, S,           S, S,
		S,       S,           S,           S, S, S,           S, S, /* 0x1 */
		C_SPACE, 0,           S,           0, 0, 0,           0, 0,
		0,       0,           0,           W, 0, W,           W, 0, /* 0x2 */
		W,       W,           W,           W, W, W,           W, W,
		W,       W,           0,           0, 0, 0,           0, 0, /* 0x3 */
		0,       W,           W,           W, W, W,           W, W,
		W,       W,           W,           W, W, W,           W, W, /* 0x4 */
		W,       W,           W,           W, W, W,           W, W,
		W,       W,           W,           0, S, 0,           0, W, /* 0x5 */
		0,       W,           W,           W, W, W,           W, W,
		W,       W,           W,           W, W, W,           W, W, /* 0x6 */
		W,       W,           W,           W, W, W,           W, W,
		W,       W,           W,           0, 0, 0,           0, 0, /* 0x7 */
#undef S
#undef W
	};

	return c < 128 ? ascii[c] : C_STOP;
}

bool lag_json_is_word(char c)
{
	return char_class((unsigned char)c) & C_WORD;
}

bool lag_json_is_number(const char *text, size_t n)
{
	const char *p = text, *end = text + n;

	if (p < end && *p == '-')
		p++;
	if (p == end || !isdigit((unsigned char)*p))
		return false;
	if (*p == '0') {
		p++;
	} else {
		while (p < end && isdigit((unsigned char)*p))
			p++;
	}
	if (p < end && *p == '.') {
		if (++p == end || !isdigit((unsigned char)*p))
			return false;
		while (p < end && isdigit((unsigned char)*p))
			p++;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		if (++p < end && (*p == '+' || *p == '-'))
			p++;
		if (p == end || !isdigit((unsigned char)*p))
			return false;
		while (p < end && isdigit((unsigned char)*p))
			p++;
	}
	return p == end;
}

bool lag_json_is_no_number(const char *text, size_t n)
{
	static const char *const words[] = { "inf", "nan", "infinity", "none", "undefined" };

	if (n && (text[0] == '-' || text[0] == '+')) {
		text++;
		n--;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i]) == n && strncasecmp(text, words[i], n) == 0)
			return true;
	}
	return false;
}

enum lag_status lag_json_space(struct lag_json_reader *r, struct lag_err *err)
{
	for (;;) {
		while (r->pos < r->end && char_class((unsigned char)r->bytes[r->pos]) & C_SPACE)
			r->pos++;
		if (r->eof || r->end - r->pos >= LAG_JSON_AHEAD)
			return LAG_OK;

		enum lag_status st = lag_json_more(r, err);

		if (lag_failed(st))
			return st;
	}
}

static size_t skip_space(const struct lag_json_reader *r, size_t i)
{
	while (i < r->end && char_class((unsigned char)r->bytes[i]) & C_SPACE)
		i++;
	return i;
}

/* Could `key":` follow at i? False only where the bytes prove otherwise. */
static bool key_may_follow(const struct lag_json_reader *r, size_t i)
{
	size_t limit;
	bool quoted;

	i = skip_space(r, i);
	if (i == r->end || r->bytes[i] == '}' || r->bytes[i] == ',')
		return true;
	quoted = r->bytes[i] == '"';
	if (quoted) {
		i++;
	} else if (!lag_json_is_word(r->bytes[i])) {
		return false;
	}
	limit = r->end - i < 256 ? r->end : i + 256;
	while (i < limit && r->bytes[i] != '"') {
		if (r->bytes[i++] == '\\')
			return true;
	}
	if (i == limit)
		return quoted || limit == r->end;
	i = skip_space(r, i + 1);
	return i == r->end || r->bytes[i] == ':';
}

static bool element_may_follow(const struct lag_json_reader *r, size_t i)
{
	i = skip_space(r, i);
	return i == r->end || strchr("\"[{],", r->bytes[i]) || lag_json_is_word(r->bytes[i]);
}

/* Does the quote before i end the string? Producers forget to escape quotes, so a tolerant reader looks
 * at what follows: in valid JSON this is always true. */
static bool ends_here(const struct lag_json_reader *r, enum lag_json_place place, size_t i)
{
	if (!r->tolerant || place == LAG_JSON_AT_TOP)
		return true;
	i = skip_space(r, i);
	if (i == r->end)
		return true;
	if (place == LAG_JSON_AS_KEY)
		return r->bytes[i] == ':';
	switch (r->bytes[i]) {
	case '}':
		return place == LAG_JSON_IN_OBJECT;
	case ']':
		return place == LAG_JSON_IN_ARRAY;
	case ',':
		return place == LAG_JSON_IN_OBJECT ? key_may_follow(r, i + 1)
						   : element_may_follow(r, i + 1);
	case '"': /* perhaps a forgotten comma */
		return place == LAG_JSON_IN_ARRAY || key_may_follow(r, i);
	default:
		return false;
	}
}

static void add_utf8(struct lag_buf *buf, unsigned u)
{
	char out[4];
	size_t n = 0;

	if (u < 0x80) {
		out[n++] = (char)u;
	} else if (u < 0x800) {
		out[n++] = (char)(0xc0 | u >> 6);
		out[n++] = (char)(0x80 | (u & 0x3f));
	} else if (u < 0x10000) {
		out[n++] = (char)(0xe0 | u >> 12);
		out[n++] = (char)(0x80 | (u >> 6 & 0x3f));
		out[n++] = (char)(0x80 | (u & 0x3f));
	} else {
		out[n++] = (char)(0xf0 | u >> 18);
		out[n++] = (char)(0x80 | (u >> 12 & 0x3f));
		out[n++] = (char)(0x80 | (u >> 6 & 0x3f));
		out[n++] = (char)(0x80 | (u & 0x3f));
	}
	lag_buf_add(buf, out, n);
}

/* At "\u": appends the character, returns its length, 0 when it is no such escape. */
static size_t unicode_escape(const char *p, size_t left, struct lag_buf *out, bool *bad)
{
	int u = left >= 6 ? lag_json_hex4(p + 2) : -1;

	if (u < 0)
		return 0;
	if (u >= 0xd800 && u < 0xdc00 && left >= 12 && p[6] == '\\' && p[7] == 'u') {
		int low = lag_json_hex4(p + 8);

		if (low >= 0xdc00 && low < 0xe000) {
			add_utf8(out, 0x10000u + ((unsigned)(u - 0xd800) << 10) +
					      (unsigned)(low - 0xdc00));
			return 12;
		}
	}
	*bad = u == 0 || (u >= 0xd800 && u < 0xe000);
	add_utf8(out, *bad ? 0xfffd : (unsigned)u);
	return 6;
}

/* Appends what the escape at p stands for; its length, 0 when it is none. */
static size_t decode_escape(const char *p, size_t left, struct lag_buf *out, bool *bad)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = left > 1 && p[1] ? strchr(from, p[1]) : NULL;

	if (!at)
		return left > 1 && p[1] == 'u' ? unicode_escape(p, left, out, bad) : 0;
	lag_buf_putc(out, to[at - from]);
	return 2;
}

void lag_json_decode(const char *text, size_t n, struct lag_buf *out)
{
	const char *end = text + n, *at;
	bool bad = false;

	while ((at = memchr(text, '\\', (size_t)(end - text)))) {
		size_t length;

		lag_buf_add(out, text, (size_t)(at - text));
		length = decode_escape(at, (size_t)(end - at), out, &bad);
		text = at + (length ? length : 1);
	}
	lag_buf_add(out, text, (size_t)(end - text));
}

static enum lag_status read_escape(struct lag_json_reader *r, struct lag_err *err)
{
	const char *p = r->bytes + r->pos;
	size_t left = r->end - r->pos, n;
	enum lag_status st = LAG_OK;
	bool bad = false;

	if (left < 2)
		return LAG_END;
	n = decode_escape(p, left, &r->scratch, &bad);
	if (bad && r->tolerant)
		st = lag_json_repaired(r, LAG_JSON_BAD_UTF8, err);
	if (!n) {
		st = lag_json_repaired(r, LAG_JSON_BAD_ESCAPE, err);
		lag_buf_putc(&r->scratch, '\\');
		n = 1;
	}
	r->pos += n;
	return st;
}

static enum lag_status read_high_byte(struct lag_json_reader *r, struct lag_err *err)
{
	const char *p = r->bytes + r->pos;
	uint32_t code;
	size_t n = lag_utf8_decode(p, r->end - r->pos, &code);
	enum lag_status st = LAG_OK;

	if (n) {
		lag_buf_add(&r->scratch, p, n);
	} else {
		st = lag_json_repaired(r, LAG_JSON_BAD_UTF8, err);
		lag_buf_puts(&r->scratch, REPLACEMENT);
		n = 1;
	}
	r->pos += n;
	return st;
}

static enum lag_status read_control(struct lag_json_reader *r, struct lag_err *err)
{
	enum lag_status st = lag_json_repaired(r, LAG_JSON_CONTROL, err);
	char c = r->bytes[r->pos++];

	if (c == '\n' || c == '\t') {
		lag_buf_putc(&r->scratch, c);
	} else {
		lag_buf_puts(&r->scratch, REPLACEMENT);
	}
	return st;
}

static void trim_scratch(struct lag_json_reader *r)
{
	size_t n = LAG_JSON_STRING_MAX;

	/* Not inside a character. */
	while (n && ((unsigned char)r->scratch.text[n] & 0xc0) == 0x80)
		n--;
	r->scratch.n = n;
	r->scratch.text[n] = '\0';
}

/* From r->pos (inside the string) to behind its closing quote, through scratch. */
static enum lag_status read_decoded(struct lag_json_reader *r, enum lag_json_place place,
				    struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	bool cut = false;

	lag_buf_clear(&r->scratch);
	while (!lag_failed(st)) {
		size_t i = r->pos;
		unsigned char c;

		if (!r->eof && r->end - i < LAG_JSON_AHEAD) {
			st = lag_json_more(r, err);
			continue;
		}
		while (i < r->end && !(char_class((unsigned char)r->bytes[i]) & C_STOP))
			i++;
		lag_buf_add(&r->scratch, r->bytes + r->pos, i - r->pos);
		r->pos = i;
		if (r->scratch.n > LAG_JSON_STRING_MAX) {
			if (!cut)
				st = lag_json_repaired(r, LAG_JSON_LONG_STRING, err);
			cut = true;
			trim_scratch(r);
		}
		if (!r->eof && r->end - i < LAG_JSON_AHEAD)
			continue;
		if (lag_failed(st) || i == r->end)
			return lag_failed(st) ? st : LAG_END;
		c = (unsigned char)r->bytes[i];
		if (c == '"' && ends_here(r, place, i + 1))
			break;
		if (c == '"') {
			st = lag_json_repaired(r, LAG_JSON_STRAY_QUOTE, err);
			lag_buf_putc(&r->scratch, '"');
			r->pos++;
		} else if (c == '\\') {
			st = read_escape(r, err);
		} else {
			st = c < 0x20 ? read_control(r, err) : read_high_byte(r, err);
		}
		if (st == LAG_END)
			return st;
	}
	if (lag_failed(st))
		return st;
	if (r->scratch.failed)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	r->pos++;
	r->text = lag_buf_text(&r->scratch);
	r->n = r->scratch.n;
	return LAG_OK;
}

enum lag_status lag_json_string(struct lag_json_reader *r, enum lag_json_place place,
				struct lag_err *err)
{
	size_t i = ++r->pos;

	while (i < r->end && !(char_class((unsigned char)r->bytes[i]) & C_STOP))
		i++;
	if (i < r->end && r->bytes[i] == '"' && (r->eof || r->end - i >= LAG_JSON_AHEAD) &&
	    i - r->pos <= LAG_JSON_STRING_MAX && ends_here(r, place, i + 1)) {
		r->text = r->bytes + r->pos;
		r->n = i - r->pos;
		r->pos = i + 1;
		return LAG_OK;
	}
	return read_decoded(r, place, err);
}

/* The digits of a number, without point and leading zeros, and how many stand before the point. */
struct decimal {
	char digits[48];
	int n, before;
	bool negative;
};

static bool scan_decimal(const char *text, size_t n, struct decimal *d)
{
	const char *p = text, *end = text + n;
	bool point = false;
	int exponent = 0, sign = 1;

	*d = (struct decimal){ .negative = *p == '-' };
	for (p += d->negative; p < end && *p != 'e' && *p != 'E'; p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		if (d->before > 1000000 || d->before < -1000000)
			return false;
		if (*p == '0' && !d->n) {
			d->before -= point;
			continue;
		}
		if (d->n < (int)sizeof(d->digits))
			d->digits[d->n++] = *p;
		d->before += !point;
	}
	if (p < end) {
		if (*++p == '-' || *p == '+')
			sign = *p++ == '-' ? -1 : 1;
		for (; p < end; p++) {
			if (exponent < 100000)
				exponent = exponent * 10 + (*p - '0');
		}
		d->before += sign * exponent;
	}
	return true;
}

bool lag_json_to_fixed(const char *text, size_t n, int digits, int64_t *out)
{
	struct decimal d;
	uint64_t v = 0;

	if (!lag_json_is_number(text, n) || !scan_decimal(text, n, &d))
		return false;
	d.before += digits;
	if (d.n && d.before > 19)
		return false;
	for (int i = 0; d.n && i < d.before; i++)
		v = v * 10 + (i < d.n ? (unsigned)(d.digits[i] - '0') : 0);
	if (d.before >= 0 && d.before < d.n && d.digits[d.before] >= '5')
		v++;
	if (v > (uint64_t)INT64_MAX)
		return false;
	*out = d.negative ? -(int64_t)v : (int64_t)v;
	return true;
}

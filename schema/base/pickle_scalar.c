/* SPDX-License-Identifier: Apache-2.0 */
/* Pickle opcodes that push a number or a text, in their binary and in their line form. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/parse.h"
#include "schema/base/pickle_internal.h"

static enum lag_status push_int(struct lag_pickle *p, int64_t value)
{
	struct lag_datum *d = lag_datum_new(p->arena, LAG_DATUM_INT);

	if (d)
		d->i = value;
	return lag_pickle_push(p, d);
}

static enum lag_status push_bool(struct lag_pickle *p, bool value)
{
	struct lag_datum *d = lag_datum_new(p->arena, LAG_DATUM_BOOL);

	if (d)
		d->i = value;
	return lag_pickle_push(p, d);
}

enum lag_status lag_pickle_none(struct lag_pickle *p, uint8_t op)
{
	(void)op;
	return lag_pickle_push(p, lag_datum_new(p->arena, LAG_DATUM_NONE));
}

enum lag_status lag_pickle_bool(struct lag_pickle *p, uint8_t op)
{
	return push_bool(p, op == 0x88);
}

/* BININT (signed), BININT1, BININT2 */
enum lag_status lag_pickle_int(struct lag_pickle *p, uint8_t op)
{
	uint64_t v;

	if (!lag_pickle_number(p, op == 'J' ? 4 : op == 'M' ? 2 : 1, &v))
		return LAG_ERR_INPUT;
	return push_int(p, op == 'J' ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v);
}

/* LONG1, LONG4: two's complement, least byte first. */
enum lag_status lag_pickle_long(struct lag_pickle *p, uint8_t op)
{
	const uint8_t *bytes;
	uint64_t n, v = 0;

	if (!lag_pickle_number(p, op == 0x8a ? 1 : 4, &n))
		return LAG_ERR_INPUT;
	bytes = lag_pickle_take(p, n);
	if (!bytes)
		return LAG_ERR_INPUT;
	if (!n)
		return push_int(p, 0);
	/* Bytes that only repeat the sign are allowed. */
	while (n > 8 && bytes[n - 1] == (bytes[n - 2] & 0x80 ? 0xff : 0))
		n--;
	if (n > 8)
		return lag_pickle_push(p, lag_datum_new(p->arena, LAG_DATUM_BIG));
	for (uint64_t i = n; i > 0; i--)
		v = v << 8 | bytes[i - 1];
	if (n < 8 && bytes[n - 1] & 0x80)
		v |= UINT64_MAX << 8 * n;
	return push_int(p, (int64_t)v);
}

/* INT and LONG: digits up to the line's end; INT's 00 and 01 are booleans. */
enum lag_status lag_pickle_digits(struct lag_pickle *p, uint8_t op)
{
	char digits[32];
	size_t n;
	const char *line = lag_pickle_line(p, &n);
	int64_t v;

	if (!line)
		return LAG_ERR_INPUT;
	if (op == 'I' && n == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1'))
		return push_bool(p, line[1] == '1');
	if (op == 'L' && n && line[n - 1] == 'L')
		n--;
	if (!n || strspn(line, "0123456789-") < n)
		return lag_pickle_bad(p, "is no integer");
	if (n >= sizeof(digits))
		return lag_pickle_push(p, lag_datum_new(p->arena, LAG_DATUM_BIG));
	memcpy(digits, line, n);
	digits[n] = '\0';
	if (lag_parse_i64(digits, &v))
		return push_int(p, v);
	return lag_pickle_push(p, lag_datum_new(p->arena, LAG_DATUM_BIG));
}

/* FLOAT, BINFLOAT */
enum lag_status lag_pickle_real(struct lag_pickle *p, uint8_t op)
{
	struct lag_datum *d = lag_datum_new(p->arena, LAG_DATUM_REAL);
	char text[64];
	uint64_t bits = 0;
	const char *line;
	char *end;
	size_t n;

	if (!d)
		return lag_pickle_full(p);
	if (op == 'G') {
		const uint8_t *bytes = lag_pickle_take(p, 8);

		if (!bytes)
			return LAG_ERR_INPUT;
		for (int i = 0; i < 8; i++)
			bits = bits << 8 | bytes[i];
		memcpy(&d->d, &bits, sizeof(bits));
		return lag_pickle_push(p, d);
	}
	line = lag_pickle_line(p, &n);
	if (!line)
		return LAG_ERR_INPUT;
	if (!n || n >= sizeof(text))
		return lag_pickle_bad(p, "is no number");
	memcpy(text, line, n);
	text[n] = '\0';
	d->d = strtod(text, &end);
	return *end ? lag_pickle_bad(p, "is no number") : lag_pickle_push(p, d);
}

/* Bytes of length, and kind, of each counted text. */
static unsigned text_form(uint8_t op, enum lag_datum_kind *kind)
{
	*kind = LAG_DATUM_TEXT;
	switch (op) {
	case 'X': /* BINUNICODE */
	case 'T': /* BINSTRING: Python 2's text */
		return 4;
	case 'U':  /* SHORT_BINSTRING */
	case 0x8c: /* SHORT_BINUNICODE */
		return 1;
	case 0x8d: /* BINUNICODE8 */
		return 8;
	case 'B': /* BINBYTES */
		*kind = LAG_DATUM_BYTES;
		return 4;
	case 'C': /* SHORT_BINBYTES */
		*kind = LAG_DATUM_BYTES;
		return 1;
	default: /* BINBYTES8, BYTEARRAY8 */
		*kind = LAG_DATUM_BYTES;
		return 8;
	}
}

enum lag_status lag_pickle_text(struct lag_pickle *p, uint8_t op)
{
	enum lag_datum_kind kind;
	unsigned width = text_form(op, &kind);
	const uint8_t *bytes;
	uint64_t n;

	if (!lag_pickle_number(p, width, &n))
		return LAG_ERR_INPUT;
	bytes = lag_pickle_take(p, n);
	if (!bytes)
		return LAG_ERR_INPUT;
	return lag_pickle_push(p, lag_datum_text_new(p->arena, kind, bytes, n));
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* The character that the escape at in (after the backslash) stands for and how long it is. */
static size_t escape(const char *in, size_t n, uint32_t *c)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	const char *simple = n && in[0] ? strchr(from, in[0]) : NULL;
	size_t digits = !n ? 0 : in[0] == 'x' ? 2 : in[0] == 'u' ? 4 : in[0] == 'U' ? 8 : 0;
	char hex[9] = "", *end;

	*c = '\\';
	if (simple) {
		*c = (uint32_t)(unsigned char)to[simple - from];
		return 1;
	}
	if (!digits || n <= digits)
		return 0;
	memcpy(hex, in + 1, digits);
	*c = (uint32_t)strtoul(hex, &end, 16);
	if (*end || hex[0] == '-' || hex[0] == '+' || hex[0] == ' ' || *c > 0x10ffff) {
		*c = '\\';
		return 0;
	}
	return digits + 1;
}

/* STRING: a quoted Python literal; UNICODE: plain but for \u escapes. Escapes never make text longer. */
enum lag_status lag_pickle_text_line(struct lag_pickle *p, uint8_t op)
{
	size_t n, out = 0;
	const char *line = lag_pickle_line(p, &n);
	struct lag_datum *d;
	char *text;

	if (!line)
		return LAG_ERR_INPUT;
	if (op == 'S') {
		if (n < 2 || (line[0] != '\'' && line[0] != '"') || line[n - 1] != line[0])
			return lag_pickle_bad(p, "is no quoted text");
		line++;
		n -= 2;
	}
	d = lag_datum_text_new(p->arena, LAG_DATUM_TEXT, line, n);
	text = d ? lag_arena_take(p->arena, n + 1) : NULL;
	if (!text)
		return lag_pickle_full(p);
	for (size_t i = 0; i < n; i++) {
		uint32_t c;
		size_t used;

		if (line[i] != '\\' || (op == 'V' && (i + 1 >= n || (line[i + 1] | 32) != 'u'))) {
			text[out++] = line[i];
			continue;
		}
		used = escape(line + i + 1, n - i - 1, &c);
		out += put_utf8(text + out, c);
		i += used;
	}
	d->text = text;
	d->n = (uint32_t)out;
	return lag_pickle_push(p, d);
}

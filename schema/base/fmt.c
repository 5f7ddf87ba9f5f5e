/* SPDX-License-Identifier: Apache-2.0 */
/* Human formatting: four significant digits for times, so that a column of them compares well. */
#include "schema/base/fmt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int decimals(double value)
{
	double v = fabs(value);

	return v < 9.9995 ? 3 : v < 99.995 ? 2 : v < 999.95 ? 1 : 0;
}

void lag_fmt_ns(struct lag_buf *out, int64_t ns)
{
	double v = (double)ns, a = fabs(v);

	if (a < 1000) {
		lag_buf_printf(out, "%" PRId64 " ns", ns);
	} else if (a < 999950) {
		lag_buf_printf(out, "%.*f us", decimals(v / 1e3), v / 1e3);
	} else if (a < 999950e3) {
		lag_buf_printf(out, "%.*f ms", decimals(v / 1e6), v / 1e6);
	} else {
		lag_buf_printf(out, "%.*f s", decimals(v / 1e9), v / 1e9);
	}
}

void lag_fmt_bytes(struct lag_buf *out, int64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes;
	size_t u = 0;

	while (fabs(v) >= 1024 && u + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1024;
		u++;
	}
	lag_buf_printf(out, "%.*f %s",
		       fabs(v - nearbyint(v)) < 0.005 ? 0
		       : fabs(v) < 10                 ? 2
						      : 1,
		       v, units[u]);
}

void lag_fmt_share(struct lag_buf *out, double share)
{
	/* A small share must not read as none, nor "-0.0". */
	double percent = share * 100;

	if (percent > 0 && percent < 0.05) {
		lag_buf_puts(out, "<0.1 %");
	} else {
		lag_buf_printf(out, "%.1f %%", fabs(percent) < 0.05 ? 0.0 : percent);
	}
}

void lag_fmt_ratio(struct lag_buf *out, double ratio)
{
	lag_buf_printf(out, "%.2fx", ratio);
}

void lag_fmt_count(struct lag_buf *out, int64_t count)
{
	char digits[24];
	uint64_t v = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
	size_t n = 0, i;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	if (count < 0)
		lag_buf_putc(out, '-');
	for (i = n; i-- > 0;) {
		lag_buf_putc(out, digits[i]);
		if (i && i % 3 == 0)
			lag_buf_putc(out, ',');
	}
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

void lag_fmt_units(struct lag_buf *out, const char *text, bool utf8)
{
	const char *from = text, *at = text;

	while (utf8 && (at = strstr(at, " us"))) {
		bool unit = at > text && at[-1] >= '0' && at[-1] <= '9' && !is_word(at[3]);

		at += unit ? 1 : 3;
		if (!unit)
			continue;
		lag_buf_add(out, from, (size_t)(at - from));
		lag_buf_puts(out, "\xc2\xb5s");
		from = at += 2;
	}
	lag_buf_puts(out, from);
}

size_t lag_utf8_decode(const char *text, size_t n, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t len, i;
	uint32_t c;

	if (!n)
		return 0;
	len = s[0] < 0x80   ? 1
	      : s[0] < 0xc2 ? 0
	      : s[0] < 0xe0 ? 2
	      : s[0] < 0xf0 ? 3
	      : s[0] < 0xf5 ? 4
			    : 0;
	if (!len || len > n)
		return 0;
	c = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*code = c;
	return len;
}

static bool is_hostile(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ||       /* C0, DEL, C1 */
	       c == 0x061c || c == 0x200e || c == 0x200f || /* direction marks */
	       (c >= 0x2028 && c <= 0x202e) ||              /* separators, embeddings, overrides */
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void lag_fmt_name(struct lag_buf *out, const char *text)
{
	size_t n = strlen(text);

	while (n) {
		uint32_t c = 0;
		size_t len = lag_utf8_decode(text, n, &c);

		if (len && !is_hostile(c)) {
			lag_buf_add(out, text, len);
		} else {
			len = len ? len : 1;
			for (size_t i = 0; i < len; i++)
				lag_buf_printf(out, "\\x%02x", (unsigned char)text[i]);
		}
		text += len;
		n -= len;
	}
}

static size_t code_width(uint32_t c)
{
	if ((c >= 0x300 && c < 0x370) || c == 0x200b || c == 0x200d || (c >= 0xfe00 && c < 0xfe10))
		return 0;
	if ((c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
	    (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
	    (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
	    (c >= 0x1f300 && c < 0x1f650) || (c >= 0x20000 && c < 0x30000))
		return 2;
	return 1;
}

size_t lag_fmt_prefix(const char *text, size_t width)
{
	size_t n = strlen(text), at = 0, used = 0;

	while (at < n) {
		uint32_t c = '?';
		size_t len = lag_utf8_decode(text + at, n - at, &c);

		used += code_width(c);
		if (used > width)
			break;
		at += len ? len : 1;
	}
	return at;
}

size_t lag_fmt_width(const char *text)
{
	size_t n = strlen(text), at = 0, used = 0;

	while (at < n) {
		uint32_t c = '?';
		size_t len = lag_utf8_decode(text + at, n - at, &c);

		used += code_width(c);
		at += len ? len : 1;
	}
	return used;
}

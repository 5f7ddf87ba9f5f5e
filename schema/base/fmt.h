/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities and foreign names as people read them. All appends go to a lag_buf, so that running out
 * of memory is checked once. ASCII but for what a name itself holds, and
 * for lag_fmt_units: the one place that spells units for people. */
#ifndef SCHEMA_BASE_FMT_H
#define SCHEMA_BASE_FMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/buf.h"

void lag_fmt_ns(struct lag_buf *out, int64_t ns);       /* "284.1 ms", "8.902 us", "-3.000 s" */
void lag_fmt_bytes(struct lag_buf *out, int64_t bytes); /* "32 MiB", "1.5 KiB", "700 B" */
void lag_fmt_share(struct lag_buf *out, double share);  /* 0.612 -> "61.2 %" */
void lag_fmt_ratio(struct lag_buf *out, double ratio);  /* "1.31x" */
void lag_fmt_count(struct lag_buf *out, int64_t count); /* "1,234,567" */

/* The word that goes with a number: LAG_PLURAL(n, "rank", "ranks"), LAG_PLURAL(n, "is", "are"). */
#define LAG_PLURAL(n, one, many) ((n) == 1 ? (one) : (many))

/* Appends a text that people read with its unit of microseconds spelt as they know it: "8.902 us" becomes
 * "8.902 \xc2\xb5s" where utf8 says that they can see it. As wide as before: columns stay where they are. */
void lag_fmt_units(struct lag_buf *out, const char *text, bool utf8);

/* A name from a file, made safe for a terminal: control characters (C0, DEL, C1), characters that
 * change the direction of text, and bytes that are not UTF-8 become \xNN. */
void lag_fmt_name(struct lag_buf *out, const char *text);

/* Terminal columns of UTF-8 text, one a code point (none for combining marks, two for wide ones). */
size_t lag_fmt_width(const char *text);

/* Length in bytes of the longest prefix of text that is at most `width` columns wide. */
size_t lag_fmt_prefix(const char *text, size_t width);

/* Decodes one code point of at most n bytes: its length, 0 when those bytes are not UTF-8. */
size_t lag_utf8_decode(const char *text, size_t n, uint32_t *code);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that writes JSON: strict, with commas and escapes looked after. Strings may hold
 * anything; bytes that are not UTF-8 become U+FFFD. Numbers that JSON lacks become null. */
#ifndef SCHEMA_BASE_JSON_WRITE_H
#define SCHEMA_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/buf.h"

/* Begin with { .out = buf }. Failure to grow shows as out->failed. */
struct lag_json {
	struct lag_buf *out;
	bool comma;  /* a value was written on this level */
	bool spaced; /* a space after each colon and comma */
	bool exact;  /* integers beyond +-2^53 as strings, for readers that use doubles */
};

void lag_json_begin(struct lag_json *json, char bracket); /* '{' or '[' */
void lag_json_end(struct lag_json *json, char bracket);   /* '}' or ']' */
void lag_json_key(struct lag_json *json, const char *key);
void lag_json_int(struct lag_json *json, int64_t value);
/* Nanoseconds as microseconds with three decimals, exactly: the Chrome trace format's times. */
void lag_json_us(struct lag_json *json, int64_t ns);
void lag_json_real(struct lag_json *json, double value); /* shortest text that reads back equal */
void lag_json_bool(struct lag_json *json, bool value);
void lag_json_null(struct lag_json *json);
void lag_json_text(struct lag_json *json, const char *text); /* NULL becomes null */
/* Only the quoted, escaped string, for writers that lay out the rest themselves. */
void lag_json_quote(struct lag_buf *out, const char *text, size_t n);

/* Only the integer, at p, where 26 bytes may be touched; returns what follows it. `exact` as above. */
char *lag_json_put_int(char *p, int64_t value, bool exact);

#endif

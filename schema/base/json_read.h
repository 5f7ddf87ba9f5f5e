/* SPDX-License-Identifier: Apache-2.0 */
/* A pull reader for JSON of any size in fixed memory: one token a call, over bytes in memory or over
 * chunks. Strict, or tolerant: then what real producers get wrong is repaired, counted and located. */
#ifndef SCHEMA_BASE_JSON_READ_H
#define SCHEMA_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/buf.h"
#include "schema/base/err.h"

#define LAG_JSON_DEPTH_MAX  256
#define LAG_JSON_STRING_MAX ((size_t)1 << 20) /* bytes; the rest of a longer string is dropped */

enum lag_json_kind {
	LAG_JSON_NOTHING,
	LAG_JSON_OBJECT,
	LAG_JSON_OBJECT_END,
	LAG_JSON_ARRAY,
	LAG_JSON_ARRAY_END,
	LAG_JSON_KEY,
	LAG_JSON_STRING,
	LAG_JSON_NUMBER, /* text as written */
	LAG_JSON_TRUE,
	LAG_JSON_FALSE,
	LAG_JSON_NULL,
};

/* What the tolerant mode puts right. Valid JSON is never touched. */
enum lag_json_repair {
	LAG_JSON_BARE_WORD,   /* inf and nan become null, other unquoted words strings */
	LAG_JSON_NO_VALUE,    /* "x": , becomes null */
	LAG_JSON_CONTROL,     /* a control byte in a string: newline and tab stay, others U+FFFD */
	LAG_JSON_BAD_ESCAPE,  /* the backslash is taken literally */
	LAG_JSON_BAD_UTF8,    /* U+FFFD for each bad byte; also for lone surrogates and NULs */
	LAG_JSON_STRAY_QUOTE, /* a quote inside a string that does not end it */
	LAG_JSON_NO_QUOTE,    /* a key without its opening quote */
	LAG_JSON_COMMA,       /* missing or superfluous */
	LAG_JSON_GARBAGE,     /* bytes that fit nowhere are skipped */
	LAG_JSON_LONG_STRING, /* cut at LAG_JSON_STRING_MAX */
	LAG_JSON_TOO_DEEP,    /* a container beyond LAG_JSON_DEPTH_MAX becomes null */
	LAG_JSON_CUT,         /* the input ends inside the document */
	LAG_JSON_REPAIR_LIMIT,
};

/* Fills buf with up to `room` bytes: their number, 0 at the end, -1 on error (err is set). */
typedef long (*lag_json_fill)(void *state, void *buf, size_t room, struct lag_err *err);

struct lag_json_reader {
	/* The token of the last call; text is borrowed until the next. KEY, STRING: decoded, valid
	 * UTF-8, without NUL bytes. */
	enum lag_json_kind kind;
	const char *text;
	size_t n;
	uint64_t at;    /* offset of the token in the input */
	unsigned depth; /* containers open after this token */

	uint64_t n_repairs;
	uint64_t repairs[LAG_JSON_REPAIR_LIMIT];
	uint64_t first_at[LAG_JSON_REPAIR_LIMIT]; /* offset of the first of its kind */

	/* Private. */
	const char *bytes;
	char *window; /* owned; NULL when the input lies in memory */
	size_t pos, end;
	size_t slack;  /* bytes that may be read behind end; zeros at the end of the input */
	uint64_t base; /* offset of bytes[0] */
	lag_json_fill fill;
	void *fill_state;
	struct lag_buf scratch;
	unsigned char in_object[LAG_JSON_DEPTH_MAX];
	unsigned char expect;
	bool tolerant, eof;
};

/* Over n bytes in memory, which must outlive the reader. */
void lag_json_init_bytes(struct lag_json_reader *r, const void *bytes, size_t n, bool tolerant);

/* Over chunks. */
enum lag_status lag_json_init_fill(struct lag_json_reader *r, lag_json_fill fill, void *state,
				   bool tolerant) LAG_MUST_USE;

void lag_json_release(struct lag_json_reader *r);

/* Reads the next token. LAG_END after the first whole value of the input, or, in tolerant mode, where
 * a cut input ends (repairs[LAG_JSON_CUT] tells). Strict mode: LAG_ERR_LIMIT when nested too deeply. */
enum lag_status lag_json_next(struct lag_json_reader *r, struct lag_err *err) LAG_MUST_USE;

/* After LAG_END: reads on to the end of the input. *n: the bytes there from the first that is neither white
 * space nor NUL to the last such, 0 when there are none; *at: the offset of the first. */
enum lag_status lag_json_rest(struct lag_json_reader *r, uint64_t *n, uint64_t *at,
			      struct lag_err *err) LAG_MUST_USE;

/* After KEY: skips its value. After OBJECT or ARRAY: skips to its end. Else does nothing. */
enum lag_status lag_json_skip(struct lag_json_reader *r, struct lag_err *err) LAG_MUST_USE;

/* Inside an array: where its next element begins, for a reader of plain JSON (json_scan.h) that wants to
 * take it whole. NULL: there is none, or only lag_json_next can tell. *limit is that reader's. */
const char *lag_json_peek_element(const struct lag_json_reader *r, const char **limit);

/* That element was read, up to `end`. */
void lag_json_took_element(struct lag_json_reader *r, const char *end);

/* Gets more of the input at hand, if a good part of the window has been read: LAG_END: not so. */
enum lag_status lag_json_refill(struct lag_json_reader *r, struct lag_err *err) LAG_MUST_USE;

/* Appends the text of a valid string between its quotes to out. */
void lag_json_decode(const char *text, size_t n, struct lag_buf *out);

/* The decimal number in text, times 10^digits, rounded to the nearest integer, exactly; exponents are
 * understood. False (*out untouched) when it is no number or does not fit. */
bool lag_json_to_fixed(const char *text, size_t n, int digits, int64_t *out);

/* "unquoted word", "missing value", ... */
const char *lag_json_repair_name(enum lag_json_repair repair);

static inline bool lag_json_is(const struct lag_json_reader *r, enum lag_json_kind kind)
{
	return r->kind == kind;
}

#endif

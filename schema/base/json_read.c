/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's grammar: which token may come next, and what to do when another one does.
 * Lexing is in json_lex.c. */
#include "schema/base/json_read.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/json_lex.h"
#include "schema/base/json_scan.h"

enum {
	EXPECT_VALUE,         /* after a colon, or at the start */
	EXPECT_FIRST_ELEMENT, /* after '[' */
	EXPECT_ELEMENT,       /* after a comma in an array */
	EXPECT_FIRST_KEY,     /* after '{' */
	EXPECT_KEY,           /* after a comma in an object */
	EXPECT_COLON,
	EXPECT_AFTER, /* a value has ended */
	EXPECT_NOTHING,
};

void lag_json_init_bytes(struct lag_json_reader *r, const void *bytes, size_t n, bool tolerant)
{
	*r = (struct lag_json_reader){
		.bytes = bytes, .end = n, .tolerant = tolerant, .eof = true
	};
	if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		r->pos = 3;
}

enum lag_status lag_json_init_fill(struct lag_json_reader *r, lag_json_fill fill, void *state,
				   bool tolerant)
{
	*r = (struct lag_json_reader){ .fill = fill, .fill_state = state, .tolerant = tolerant };
	r->bytes = r->window = malloc(LAG_JSON_WINDOW + LAG_JSON_SCAN_SLACK);
	r->slack = LAG_JSON_SCAN_SLACK;
	return r->window ? LAG_OK : LAG_ERR_SYSTEM;
}

void lag_json_release(struct lag_json_reader *r)
{
	free(r->window);
	lag_buf_release(&r->scratch);
	*r = (struct lag_json_reader){ .eof = true };
}

enum lag_status lag_json_more(struct lag_json_reader *r, struct lag_err *err)
{
	size_t left = r->end - r->pos;
	long got = 0;

	memmove(r->window, r->window + r->pos, left);
	r->base += r->pos;
	r->pos = 0;
	r->end = left;
	while (r->end < LAG_JSON_WINDOW) {
		got = r->fill(r->fill_state, r->window + r->end, LAG_JSON_WINDOW - r->end, err);
		if (got <= 0)
			break;
		r->end += (size_t)got;
	}
	memset(r->window + r->end, 0, LAG_JSON_SCAN_SLACK);
	r->eof = got <= 0;
	if (r->base == 0 && r->end >= 3 && memcmp(r->window, "\xef\xbb\xbf", 3) == 0)
		r->pos = 3;
	return got < 0 ? err->status : LAG_OK;
}

enum lag_status lag_json_repaired(struct lag_json_reader *r, enum lag_json_repair what,
				  struct lag_err *err)
{
	uint64_t at = r->base + r->pos;

	if (!r->tolerant) {
		return lag_err_set(err, LAG_ERR_INPUT, "not JSON at byte %llu: %s",
				   (unsigned long long)at, lag_json_repair_name(what));
	}
	if (!r->repairs[what]++)
		r->first_at[what] = at;
	r->n_repairs++;
	return LAG_OK;
}

static bool in_object(const struct lag_json_reader *r)
{
	return r->depth && r->in_object[r->depth - 1];
}

static void value_done(struct lag_json_reader *r)
{
	r->expect = r->depth ? EXPECT_AFTER : EXPECT_NOTHING;
}

/* At a container that is nested too deeply: steps over it as bytes, whatever is inside. */
static enum lag_status skip_container(struct lag_json_reader *r, struct lag_err *err)
{
	enum lag_status st = lag_json_repaired(r, LAG_JSON_TOO_DEEP, err);
	uint64_t open = 0;

	do {
		char c;

		if (lag_failed(st))
			return st;
		if (!r->eof && r->end - r->pos < LAG_JSON_AHEAD)
			st = lag_json_more(r, err);
		if (lag_failed(st) || r->pos == r->end)
			return lag_failed(st) ? st : LAG_END;
		c = r->bytes[r->pos];
		if (c == '"') {
			st = lag_json_string(r, LAG_JSON_AT_TOP, err);
			if (st != LAG_OK)
				return st;
			continue;
		}
		open += c == '{' || c == '[';
		open -= c == '}' || c == ']';
		r->pos++;
	} while (open);
	r->kind = LAG_JSON_NULL;
	r->text = "";
	r->n = 0;
	value_done(r);
	return LAG_OK;
}

static enum lag_status open_container(struct lag_json_reader *r, bool object, struct lag_err *err)
{
	if (r->depth == LAG_JSON_DEPTH_MAX && r->tolerant)
		return skip_container(r, err);
	if (r->depth == LAG_JSON_DEPTH_MAX) {
		return lag_err_set(err, LAG_ERR_LIMIT, "nested more than %d deep at byte %llu",
				   LAG_JSON_DEPTH_MAX, (unsigned long long)r->at);
	}
	r->in_object[r->depth++] = object;
	r->kind = object ? LAG_JSON_OBJECT : LAG_JSON_ARRAY;
	r->expect = object ? EXPECT_FIRST_KEY : EXPECT_FIRST_ELEMENT;
	r->pos++;
	return LAG_OK;
}

static void close_container(struct lag_json_reader *r)
{
	r->kind = in_object(r) ? LAG_JSON_OBJECT_END : LAG_JSON_ARRAY_END;
	r->depth--;
	value_done(r);
}

/* At '}' or ']'. A closer of the wrong kind closes the inner container if the outer one wants it. */
static enum lag_status read_closer(struct lag_json_reader *r, char c, struct lag_err *err)
{
	bool object = c == '}';
	enum lag_status st;

	if (r->depth && in_object(r) == object) {
		r->pos++;
		close_container(r);
		return LAG_OK;
	}
	st = lag_json_repaired(r, LAG_JSON_GARBAGE, err);
	if (lag_failed(st))
		return st;
	if (r->depth >= 2 && r->in_object[r->depth - 2] == object) {
		close_container(r);
		return LAG_OK;
	}
	r->pos++;
	return LAG_WARN;
}

static enum lag_status read_word(struct lag_json_reader *r, struct lag_err *err)
{
	const char *text = r->bytes + r->pos;
	size_t n = 0;
	enum lag_status st;

	while (r->pos + n < r->end && lag_json_is_word(text[n]))
		n++;
	r->text = text;
	r->n = n;
	if (lag_json_is_number(text, n)) {
		r->kind = LAG_JSON_NUMBER;
	} else if (n == 4 && memcmp(text, "true", 4) == 0) {
		r->kind = LAG_JSON_TRUE;
	} else if (n == 5 && memcmp(text, "false", 5) == 0) {
		r->kind = LAG_JSON_FALSE;
	} else if (n == 4 && memcmp(text, "null", 4) == 0) {
		r->kind = LAG_JSON_NULL;
	} else {
		st = lag_json_repaired(r, LAG_JSON_BARE_WORD, err);
		if (lag_failed(st))
			return st;
		r->kind = lag_json_is_no_number(text, n) ? LAG_JSON_NULL : LAG_JSON_STRING;
	}
	r->pos += n;
	value_done(r);
	return LAG_OK;
}

static enum lag_status no_value(struct lag_json_reader *r, struct lag_err *err)
{
	enum lag_status st = lag_json_repaired(r, LAG_JSON_NO_VALUE, err);

	r->kind = LAG_JSON_NULL;
	value_done(r);
	return st;
}

static enum lag_status skip_byte(struct lag_json_reader *r, enum lag_json_repair why,
				 struct lag_err *err)
{
	enum lag_status st = lag_json_repaired(r, why, err);

	r->pos++;
	return lag_failed(st) ? st : LAG_WARN;
}

static enum lag_status read_value(struct lag_json_reader *r, char c, struct lag_err *err)
{
	enum lag_status st;

	switch (c) {
	case '{':
		return open_container(r, true, err);
	case '[':
		return open_container(r, false, err);
	case '"':
		r->kind = LAG_JSON_STRING;
		st = lag_json_string(r,
				     in_object(r) ? LAG_JSON_IN_OBJECT
				     : r->depth   ? LAG_JSON_IN_ARRAY
						  : LAG_JSON_AT_TOP,
				     err);
		value_done(r);
		return st;
	case ',':
		if (r->expect == EXPECT_VALUE && r->depth)
			return no_value(r, err);
		return skip_byte(r, LAG_JSON_COMMA, err);
	case '}':
	case ']':
		if (r->expect == EXPECT_VALUE && r->depth)
			return no_value(r, err);
		if (r->expect == EXPECT_ELEMENT) {
			st = lag_json_repaired(r, LAG_JSON_COMMA, err);
			if (lag_failed(st))
				return st;
		}
		return read_closer(r, c, err);
	default:
		if (lag_json_is_word(c))
			return read_word(r, err);
		return skip_byte(r, LAG_JSON_GARBAGE, err);
	}
}

/* A key that lacks its opening quote: up to the closing one, or to the colon. */
static enum lag_status read_bare_key(struct lag_json_reader *r, struct lag_err *err)
{
	size_t n = 0;
	enum lag_status st = lag_json_repaired(r, LAG_JSON_NO_QUOTE, err);

	r->text = r->bytes + r->pos;
	while (r->pos + n < r->end && lag_json_is_word(r->text[n]))
		n++;
	r->n = n;
	r->pos += n;
	if (r->pos < r->end && r->bytes[r->pos] == '"')
		r->pos++;
	r->kind = LAG_JSON_KEY;
	r->expect = EXPECT_COLON;
	return st;
}

static enum lag_status read_key(struct lag_json_reader *r, char c, struct lag_err *err)
{
	enum lag_status st;

	if (c == '"') {
		r->kind = LAG_JSON_KEY;
		st = lag_json_string(r, LAG_JSON_AS_KEY, err);
		r->expect = EXPECT_COLON;
		return st;
	}
	if (c == ',')
		return skip_byte(r, LAG_JSON_COMMA, err);
	if (c == '}' || c == ']') {
		if (r->expect == EXPECT_KEY) {
			st = lag_json_repaired(r, LAG_JSON_COMMA, err);
			if (lag_failed(st))
				return st;
		}
		return read_closer(r, c, err);
	}
	if (lag_json_is_word(c))
		return read_bare_key(r, err);
	return skip_byte(r, LAG_JSON_GARBAGE, err);
}

/* Between the values of a container. LAG_WARN: nothing to deliver yet. */
static enum lag_status read_between(struct lag_json_reader *r, char c, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (c == '}' || c == ']')
		return read_closer(r, c, err);
	if (c == ',') {
		r->pos++;
	} else if (c == '"' || c == '{' || c == '[' || lag_json_is_word(c)) {
		st = lag_json_repaired(r, LAG_JSON_COMMA, err);
	} else {
		return skip_byte(r, LAG_JSON_GARBAGE, err);
	}
	r->expect = in_object(r) ? EXPECT_KEY : EXPECT_ELEMENT;
	return lag_failed(st) ? st : LAG_WARN;
}

static enum lag_status read_colon(struct lag_json_reader *r, char c, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	r->expect = EXPECT_VALUE;
	if (c == ':') {
		r->pos++;
	} else {
		st = lag_json_repaired(r, LAG_JSON_GARBAGE, err);
	}
	return lag_failed(st) ? st : LAG_WARN;
}

static enum lag_status at_end(struct lag_json_reader *r, struct lag_err *err)
{
	enum lag_status st;

	r->kind = LAG_JSON_NOTHING;
	r->expect = EXPECT_NOTHING;
	st = lag_json_repaired(r, LAG_JSON_CUT, err);
	return lag_failed(st) ? st : LAG_END;
}

enum lag_status lag_json_next(struct lag_json_reader *r, struct lag_err *err)
{
	enum lag_status st = LAG_WARN;

	r->text = "";
	r->n = 0;
	/* Each round consumes a byte or changes what is expected, so this ends. */
	while (st == LAG_WARN) {
		char c;

		if (r->expect == EXPECT_NOTHING) {
			r->kind = LAG_JSON_NOTHING;
			return LAG_END;
		}
		st = lag_json_space(r, err);
		if (lag_failed(st))
			return st;
		if (r->pos == r->end)
			return at_end(r, err);
		c = r->bytes[r->pos];
		r->at = r->base + r->pos;
		if (r->expect <= EXPECT_ELEMENT) {
			st = read_value(r, c, err);
		} else if (r->expect <= EXPECT_KEY) {
			st = read_key(r, c, err);
		} else if (r->expect == EXPECT_COLON) {
			st = read_colon(r, c, err);
		} else {
			st = read_between(r, c, err);
		}
	}
	return st == LAG_END ? at_end(r, err) : st;
}

static bool is_filler(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0';
}

enum lag_status lag_json_rest(struct lag_json_reader *r, uint64_t *n, uint64_t *at,
			      struct lag_err *err)
{
	uint64_t end = 0;

	*n = *at = 0;
	for (;;) {
		enum lag_status st;

		for (; r->pos < r->end; r->pos++) {
			if (is_filler(r->bytes[r->pos]))
				continue;
			if (!end)
				*at = r->base + r->pos;
			end = r->base + r->pos + 1;
		}
		*n = end - *at;
		if (r->eof)
			return LAG_OK;
		st = lag_json_more(r, err);
		if (lag_failed(st))
			return st;
	}
}

enum lag_status lag_json_skip(struct lag_json_reader *r, struct lag_err *err)
{
	unsigned depth = r->depth;
	enum lag_status st;

	if (r->kind == LAG_JSON_OBJECT || r->kind == LAG_JSON_ARRAY) {
		depth--;
	} else if (r->kind != LAG_JSON_KEY) {
		return LAG_OK;
	}
	do {
		st = lag_json_next(r, err);
	} while (st == LAG_OK && r->depth > depth);
	return st;
}

const char *lag_json_peek_element(const struct lag_json_reader *r, const char **limit)
{
	const char *p = r->bytes + r->pos;

	if (r->depth == 0 || in_object(r) || r->end - r->pos + r->slack <= LAG_JSON_SCAN_SLACK)
		return NULL;
	*limit = r->bytes + (r->end + r->slack - LAG_JSON_SCAN_SLACK);
	p = lag_json_scan_space(p, *limit);
	if (r->expect == EXPECT_AFTER) {
		if (p >= *limit || *p != ',')
			return NULL;
		p = lag_json_scan_space(p + 1, *limit);
	} else if (r->expect != EXPECT_FIRST_ELEMENT && r->expect != EXPECT_ELEMENT) {
		return NULL;
	}
	return p < *limit ? p : NULL;
}

void lag_json_took_element(struct lag_json_reader *r, const char *end)
{
	r->pos = (size_t)(end - r->bytes);
	r->expect = EXPECT_AFTER;
}

enum lag_status lag_json_refill(struct lag_json_reader *r, struct lag_err *err)
{
	if (r->eof || r->end - r->pos > LAG_JSON_WINDOW / 2)
		return LAG_END;
	return lag_json_more(r, err);
}

const char *lag_json_repair_name(enum lag_json_repair repair)
{
	static const char *const names[LAG_JSON_REPAIR_LIMIT] = {
		[LAG_JSON_BARE_WORD] = "unquoted word",
		[LAG_JSON_NO_VALUE] = "missing value",
		[LAG_JSON_CONTROL] = "control byte in a string",
		[LAG_JSON_BAD_ESCAPE] = "bad escape",
		[LAG_JSON_BAD_UTF8] = "invalid UTF-8",
		[LAG_JSON_STRAY_QUOTE] = "quote inside a string",
		[LAG_JSON_NO_QUOTE] = "missing quote",
		[LAG_JSON_COMMA] = "missing or superfluous comma",
		[LAG_JSON_GARBAGE] = "unexpected byte",
		[LAG_JSON_LONG_STRING] = "overlong string",
		[LAG_JSON_TOO_DEEP] = "nested too deeply",
		[LAG_JSON_CUT] = "input ends early",
	};

	return repair < LAG_JSON_REPAIR_LIMIT ? names[repair] : "unknown";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader on any bytes: what strict mode accepts, tolerant mode reads the same without a
 * repair, from memory and in chunks; and what any mode delivers can be written and read back. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/json_read.h"
#include "schema/base/json_write.h"

struct chunks {
	const uint8_t *bytes;
	size_t n, at;
};

static long fill(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct chunks *c = state;
	size_t n = c->n - c->at;

	(void)err;
	n = n < 3 ? n : 3;
	n = n < room ? n : room;
	memcpy(buf, c->bytes + c->at, n);
	c->at += n;
	return (long)n;
}

/* Tokens as one text, strings quoted by our own writer. */
static enum lag_status drain(struct lag_json_reader *r, struct lag_buf *out)
{
	struct lag_err err = { 0 };
	enum lag_status st;

	while ((st = lag_json_next(r, &err)) == LAG_OK) {
		lag_buf_putc(out, (char)('0' + r->kind));
		if (r->n)
			lag_json_quote(out, r->text, r->n);
		if (r->depth > LAG_JSON_DEPTH_MAX || r->n > LAG_JSON_STRING_MAX)
			abort();
	}
	return st;
}

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void read_back(const struct lag_buf *text)
{
	struct lag_buf quoted = { 0 };
	struct lag_json_reader r;
	struct lag_err err = { 0 };

	lag_json_quote(&quoted, lag_buf_text(text), text->n);
	lag_json_init_bytes(&r, quoted.text, quoted.n, false);
	require(lag_json_next(&r, &err) == LAG_OK && r.kind == LAG_JSON_STRING);
	require(lag_json_next(&r, &err) == LAG_END);
	lag_json_release(&r);
	lag_buf_release(&quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct lag_buf strict = { 0 }, tolerant = { 0 }, pieces = { 0 };
	struct chunks c = { data, n, 0 };
	struct lag_json_reader r;
	enum lag_status st, st_tolerant;
	int64_t v;

	lag_json_init_bytes(&r, data, n, false);
	st = drain(&r, &strict);
	lag_json_release(&r);
	lag_json_init_bytes(&r, data, n, true);
	st_tolerant = drain(&r, &tolerant);
	require(st_tolerant == LAG_END || st_tolerant == LAG_ERR_LIMIT);
	if (st == LAG_END) {
		require(st_tolerant == LAG_END);
		require(r.n_repairs ==
			r.repairs[LAG_JSON_BAD_UTF8]); /* lone surrogates are valid */
		require(strict.n == tolerant.n &&
			memcmp(lag_buf_text(&strict), lag_buf_text(&tolerant), strict.n) == 0);
	}
	lag_json_release(&r);
	require(lag_json_init_fill(&r, fill, &c, true) == LAG_OK);
	require(drain(&r, &pieces) == st_tolerant);
	require(pieces.n == tolerant.n &&
		memcmp(lag_buf_text(&pieces), lag_buf_text(&tolerant), pieces.n) == 0);
	lag_json_release(&r);
	read_back(&tolerant);
	(void)lag_json_to_fixed((const char *)data, n, 3, &v);
	lag_buf_release(&strict);
	lag_buf_release(&tolerant);
	lag_buf_release(&pieces);
	return 0;
}

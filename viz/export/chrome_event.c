/* SPDX-License-Identifier: Apache-2.0 */
/* Events as text, straight into the block to be written next: a large trace is nothing else. */
#include <string.h>

#include "schema/base/decimal.h"
#include "viz/export/chrome.h"

/* Bytes of a complete event without its name and arguments, and of one half of a flow, as forecast. */
#define EVENT_BYTES 92
#define FLOW_BYTES  82

#define ROOM 256 /* for the numbers and our own words of an event or a flow */

#define PUT(p, literal) put(p, literal, sizeof(literal) - 1)

static inline char *put(char *p, const char *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

static inline char *put_place(char *p, uint32_t r, uint32_t tid, int64_t at_ns)
{
	p = PUT(p, ",\"pid\":");
	p = lag_decimal_put_unsigned(p, lag_chrome_pid(r));
	p = PUT(p, ",\"tid\":");
	p = lag_decimal_put_unsigned(p, tid);
	p = PUT(p, ",\"ts\":");
	return lag_decimal_put_us(p, at_ns);
}

/* Room for n bytes; NULL without memory, which the next flush tells. */
static inline char *room(struct lag_buf *out, size_t n)
{
	return lag_buf_reserve(out, n) ? out->text + out->n : NULL;
}

static inline void took(struct lag_buf *out, char *end)
{
	*end = '\0';
	out->n = (size_t)(end - out->text);
}

void lag_chrome_fail(struct lag_chrome *c, enum lag_status status)
{
	if (!lag_failed(c->status))
		c->status = status;
}

void lag_chrome_flush(struct lag_chrome *c, size_t n_bytes)
{
	if (lag_failed(c->status) || (c->buf.n < n_bytes && !c->buf.failed))
		return;
	if (c->buf.failed) {
		lag_chrome_fail(c, lag_err_set(c->err, LAG_ERR_SYSTEM, "out of memory"));
	} else if (c->buf.n) {
		lag_chrome_fail(c, c->out->write(c->out, c->buf.text, c->buf.n, c->err));
	}
	lag_buf_clear(&c->buf);
}

static bool begin(struct lag_chrome *c, const char *cat, const char *quoted, size_t n_quoted,
		  uint32_t r, uint32_t tid, int64_t start_ns, int64_t end_ns)
{
	size_t n_cat = strlen(cat);
	char *p;

	lag_chrome_flush(c, LAG_CHROME_BLOCK);
	p = lag_failed(c->status) ? NULL : room(&c->buf, ROOM + n_cat + n_quoted);
	if (!p)
		return false;
	if (c->json.comma)
		*p++ = ',';
	p = PUT(p, "\n{\"ph\":\"X\",\"cat\":\"");
	p = put(p, cat, n_cat);
	p = PUT(p, "\",\"name\":");
	p = put(p, quoted, n_quoted);
	p = put_place(p, r, tid, start_ns);
	p = PUT(p, ",\"dur\":");
	p = lag_decimal_put_us(p, end_ns - start_ns);
	p = PUT(p, ",\"args\":{");
	took(&c->buf, p);
	c->json.comma = false;
	return true;
}

bool lag_chrome_begin(struct lag_chrome *c, const char *cat, const char *name, uint32_t r,
		      uint32_t tid, int64_t start_ns, int64_t end_ns, size_t more)
{
	size_t n = strlen(name);

	c->n_events++;
	if (c->planning) {
		c->n_bytes += EVENT_BYTES + strlen(cat) + n + more;
		return false;
	}
	lag_buf_clear(&c->quoted);
	lag_json_quote(&c->quoted, name, n);
	if (c->quoted.failed)
		lag_chrome_fail(c, lag_err_set(c->err, LAG_ERR_SYSTEM, "out of memory"));
	return begin(c, cat, lag_buf_text(&c->quoted), c->quoted.n, r, tid, start_ns, end_ns);
}

bool lag_chrome_begin_named(struct lag_chrome *c, const char *cat, uint32_t name, uint32_t r,
			    uint32_t tid, int64_t start_ns, int64_t end_ns, size_t more)
{
	size_t n;
	const char *quoted = lag_chrome_text(c, LAG_CX_STRING, name, &n);

	c->n_events++;
	if (c->planning) {
		c->n_bytes += EVENT_BYTES + strlen(cat) + n + more;
		return false;
	}
	return begin(c, cat, n ? quoted : "\"\"", n ? n : 2, r, tid, start_ns, end_ns);
}

void lag_chrome_end_event(struct lag_chrome *c)
{
	char *p = room(&c->buf, 2);

	if (p)
		took(&c->buf, PUT(p, "}}"));
	c->json.comma = true;
}

/* A comma where one is due, the key and its colon. */
static inline char *put_key(struct lag_json *json, char *p, const char *key, size_t n_key)
{
	if (json->comma)
		*p++ = ',';
	*p++ = '"';
	p = put(p, key, n_key);
	json->comma = true;
	return PUT(p, "\":");
}

void lag_chrome_put_int(struct lag_chrome *c, const char *key, size_t n_key, int64_t value)
{
	char *p = room(c->json.out, ROOM + n_key);

	if (!p)
		return;
	p = put_key(&c->json, p, key, n_key);
	p = lag_json_put_int(p, value, c->json.exact);
	took(c->json.out, p);
}

void lag_chrome_arg_us(struct lag_chrome *c, const char *key, int64_t ns)
{
	if (ns == LAG_NONE)
		return;
	lag_json_key(&c->json, key);
	lag_json_us(&c->json, ns);
}

/* Finished JSON behind a key. */
static void put_raw(struct lag_chrome *c, const char *key, const char *json, size_t n)
{
	size_t n_key = strlen(key);
	char *p = room(c->json.out, ROOM + n_key + n);

	if (!p)
		return;
	p = put_key(&c->json, p, key, n_key);
	took(c->json.out, put(p, json, n));
}

void lag_chrome_arg_text(struct lag_chrome *c, const char *key, const char *text)
{
	put_raw(c, key, "", 0);
	lag_json_quote(c->json.out, text, strlen(text));
}

void lag_chrome_arg_string(struct lag_chrome *c, const char *key, uint32_t string)
{
	size_t n;
	const char *quoted = lag_chrome_text(c, LAG_CX_STRING, string, &n);

	put_raw(c, key, n ? quoted : "\"\"", n ? n : 2);
}

void lag_chrome_args_of(struct lag_chrome *c, enum lag_chrome_text_kind kind, size_t i)
{
	size_t n;
	const char *text = lag_chrome_text(c, kind, i, &n);
	char *p = n ? room(&c->buf, n + 1) : NULL;

	if (!p)
		return;
	if (c->json.comma)
		*p++ = ',';
	took(&c->buf, put(p, text, n));
	c->json.comma = true;
}

/* The end of the arrow `phase`: 's' or 'f'. */
static char *put_end(char *p, const struct lag_chrome *c, char phase, const char *cat, size_t n_cat,
		     uint32_t r, uint32_t tid, int64_t at_ns)
{
	p = PUT(p, ",\n{\"ph\":\"");
	*p++ = phase;
	p = PUT(p, "\",\"id\":");
	p = lag_decimal_put_unsigned(p, c->next_flow);
	p = put_place(p, r, tid, at_ns);
	p = PUT(p, ",\"cat\":\"");
	p = put(p, cat, n_cat);
	p = PUT(p, "\",\"name\":\"");
	p = put(p, cat, n_cat);
	return phase == 'f' ? PUT(p, "\",\"bp\":\"e\"}") : PUT(p, "\"}");
}

void lag_chrome_flow(struct lag_chrome *c, const char *cat, uint32_t r_from, uint32_t tid_from,
		     int64_t from_ns, uint32_t r_to, uint32_t tid_to, int64_t to_ns)
{
	size_t n_cat = strlen(cat);
	char *p;

	c->n_events += 2;
	c->next_flow++;
	if (c->planning)
		c->n_bytes += 2 * (FLOW_BYTES + 2 * n_cat);
	p = c->planning || lag_failed(c->status) ? NULL : room(&c->buf, 2 * (ROOM + 2 * n_cat));
	if (!p)
		return;
	p = put_end(p, c, 's', cat, n_cat, r_from, tid_from, from_ns);
	p = put_end(p, c, 'f', cat, n_cat, r_to, tid_to, to_ns);
	took(&c->buf, p);
	c->json.comma = true;
}

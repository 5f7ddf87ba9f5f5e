/* SPDX-License-Identifier: Apache-2.0 */
/* The fast way through a Kineto trace: an event that is plain JSON and lies whole in the window is read
 * in one pass. Every other one (damage, decoding of lists, the window's edge) goes the careful way. */
#include <stdlib.h>

#include "merge/kineto_event.h"

void lag_kineto_scan_init(struct lag_kineto_scan *s)
{
	memset(s, 0, sizeof(*s));
	lag_kineto_init_words(s);
}

void lag_kineto_scan_release(struct lag_kineto_scan *s)
{
	for (size_t i = 0; i < LAG_KT_LIMIT; i++)
		lag_buf_release(&s->kept[i]);
}

/* A string's value, p at its opening quote. Decoded into `slot` where it has escapes. */
static inline const char *scan_text(struct lag_kineto_scan *s, enum lag_kineto_slot slot,
				    const char *p, const char *limit, struct lag_span *out)
{
	bool escaped = false;
	const char *text = p + 1, *end = lag_json_scan_string(text, limit, &escaped);

	if (!end)
		return NULL;
	*out = (struct lag_span){ text, (size_t)(end - text) };
	if (out->n > LAG_JSON_STRING_MAX)
		return NULL;
	if (escaped) {
		struct lag_buf *kept = &s->kept[slot];

		lag_buf_clear(kept);
		lag_json_decode(text, out->n, kept);
		if (kept->failed)
			return NULL; /* the careful way meets and tells it again */
		*out = (struct lag_span){ kept->text, kept->n };
	}
	return end + 1;
}

/* "[1, 2, 3]" of integers and nothing else. */
static const char *scan_triple(const char *p, const char *limit, int64_t out[3])
{
	for (size_t i = 0; i < 3; i++) {
		p = lag_json_scan_space(p + 1, limit);
		p = lag_json_scan_fixed(p, limit, 0, &out[i]);
		if (!p)
			return NULL;
		p = lag_json_scan_space(p, limit);
		if (*p != (i < 2 ? ',' : ']'))
			return NULL;
	}
	return p + 1;
}

static const char *scan_arg(struct lag_kineto_scan *s, const struct lag_kineto_arg *arg,
			    const char *p, const char *limit)
{
	struct lag_kineto_event *e = &s->event;
	enum lag_kineto_slot slot =
		arg->type == LAG_KA_TEXT ? (enum lag_kineto_slot)arg->slot : LAG_KT_SCRATCH;
	struct lag_span value;

	if (*p == '"') {
		p = scan_text(s, slot, p, limit, &value);
		if (p)
			lag_kineto_set_arg(e, arg, value);
		return p;
	}
	if (*p == '-' || lag_json_is_digit(*p)) {
		const char *start = p;

		if (arg->type == LAG_KA_INT)
			return lag_json_scan_fixed(p, limit, 0, &e->i[arg->slot]);
		p = lag_json_scan_number(p, limit);
		if (p)
			lag_kineto_set_arg(e, arg, (struct lag_span){ start, (size_t)(p - start) });
		return p;
	}
	if (*p == '[') {
		if (arg->type == LAG_KA_GRID)
			return scan_triple(p, limit, e->grid);
		if (arg->type == LAG_KA_BLOCK)
			return scan_triple(p, limit, e->block);
		if (arg->type == LAG_KA_DIMS || arg->type == LAG_KA_TEXT)
			return NULL;
	}
	return lag_json_scan_value(p, limit);
}

/* From a key's opening quote to its value; NULL for keys with escapes too. */
static inline const char *scan_key(const char *p, const char *limit, struct lag_span *key)
{
	bool escaped = false;
	const char *end = *p == '"' ? lag_json_scan_string(p + 1, limit, &escaped) : NULL;

	if (!end || escaped)
		return NULL;
	*key = (struct lag_span){ p + 1, (size_t)(end - p - 1) };
	p = lag_json_scan_space(end + 1, limit);
	return *p == ':' ? lag_json_scan_space(p + 1, limit) : NULL;
}

static const char *scan_args(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	if (*p != '{' || !lag_kineto_wants_args(s))
		return lag_json_scan_value(p, limit);
	p = lag_json_scan_space(p + 1, limit);
	if (*p == '}')
		return p + 1;
	for (;;) {
		const struct lag_kineto_arg *arg;
		struct lag_span key;

		p = scan_key(p, limit, &key);
		if (!p || p >= limit)
			return NULL;
		arg = lag_kineto_arg(s, key.text, key.n);
		p = arg ? scan_arg(s, arg, p, limit) : lag_json_scan_value(p, limit);
		if (!p)
			return NULL;
		p = lag_json_scan_space(p, limit);
		if (*p != ',')
			return *p == '}' ? p + 1 : NULL;
		p = lag_json_scan_space(p + 1, limit);
	}
}

static inline const char *scan_number_member(struct lag_kineto_event *e,
					     enum lag_kineto_member member, const char *p,
					     const char *limit)
{
	switch (member) {
	case LAG_KM_TS:
		return lag_json_scan_fixed(p, limit, 3, &e->ts_ns);
	case LAG_KM_DUR:
		return lag_json_scan_fixed(p, limit, 3, &e->dur_ns);
	case LAG_KM_PID:
		e->pid = LAG_NONE;
		e->legacy_gpu = false;
		return lag_json_scan_fixed(p, limit, 0, &e->pid);
	case LAG_KM_TID:
		e->tid = LAG_NONE;
		return lag_json_scan_fixed(p, limit, 0, &e->tid);
	case LAG_KM_OTHER:
	case LAG_KM_PHASE:
	case LAG_KM_CAT:
	case LAG_KM_NAME:
	case LAG_KM_ARGS:
		break;
	}
	return NULL; /* a number where text belongs: rare */
}

static inline const char *scan_member(struct lag_kineto_scan *s, enum lag_kineto_member member,
				      const char *p, const char *limit)
{
	struct lag_span value;

	if (member == LAG_KM_ARGS)
		return scan_args(s, p, limit);
	if (member == LAG_KM_OTHER)
		return lag_json_scan_value(p, limit);
	if (*p == '"') {
		p = scan_text(s, member == LAG_KM_NAME ? LAG_KT_NAME : LAG_KT_SCRATCH, p, limit,
			      &value);
		if (p)
			lag_kineto_set_member(s, member, value);
		return p;
	}
	if (*p == '-' || lag_json_is_digit(*p))
		return scan_number_member(&s->event, member, p, limit);
	return lag_json_scan_value(p, limit);
}

const char *lag_kineto_scan_event(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	lag_kineto_event_reset(&s->event);
	p = lag_json_scan_space(p + 1, limit);
	if (*p == '}')
		return p + 1;
	for (;;) {
		struct lag_span key;

		p = scan_key(p, limit, &key);
		if (!p || p >= limit)
			return NULL;
		p = scan_member(s, lag_kineto_member(key.text, key.n), p, limit);
		if (!p)
			return NULL;
		p = lag_json_scan_space(p, limit);
		if (*p != ',')
			return *p == '}' ? p + 1 : NULL;
		p = lag_json_scan_space(p + 1, limit);
	}
}

static enum lag_status next_careful(struct lag_kineto_scan *s, struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;
	unsigned depth = r->depth;
	enum lag_status st;

	do {
		st = lag_json_next(r, err);
	} while (st == LAG_OK && r->kind == LAG_JSON_NULL);
	if (st != LAG_OK)
		return st;
	if (r->depth < depth)
		return LAG_END;
	if (r->kind != LAG_JSON_OBJECT) {
		st = lag_json_skip(r, err);
		return st == LAG_OK ? LAG_WARN : st;
	}
	s->n_careful++;
	st = lag_kineto_read_event(s, err);
	return st == LAG_END ? LAG_WARN : st;
}

enum lag_status lag_kineto_next(struct lag_kineto_scan *s, struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;

	for (;;) {
		const char *limit, *p = lag_json_peek_element(r, &limit), *end;
		enum lag_status st;

		end = p && *p == '{' ? lag_kineto_scan_event(s, p, limit) : NULL;
		if (end) {
			s->n_plain++;
			r->at = r->base + (uint64_t)(p - r->bytes);
			lag_json_took_element(r, end);
			return LAG_OK;
		}
		st = lag_json_refill(r, err);
		if (lag_failed(st))
			return st;
		if (st == LAG_END)
			return next_careful(s, err);
	}
}

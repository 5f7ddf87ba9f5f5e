/* SPDX-License-Identifier: Apache-2.0 */
/* One event object of a Kineto trace: its members may come in any order, arguments have changed their
 * spelling over the years, numbers may be strings and strings numbers. */
#include <string.h>

#include "merge/kineto_event.h"

/* The token's text, kept until the next event. */
static struct lag_span keep(struct lag_kineto_scan *s, enum lag_kineto_slot slot)
{
	struct lag_buf *to = &s->kept[slot];

	lag_buf_clear(to);
	lag_buf_add(to, s->json.text, s->json.n);
	return (struct lag_span){ lag_buf_text(to), to->n };
}

static enum lag_status read_triple(struct lag_kineto_scan *s, int64_t out[3], struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;
	unsigned depth = r->depth;
	enum lag_status st;
	size_t n = 0;

	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (n < 3 && r->kind == LAG_JSON_NUMBER &&
		    lag_json_to_fixed(r->text, r->n, 0, &out[n]))
			n++;
	}
	return st;
}

/* "Input Dims": the number of elements of the first tensor that has any dimensions; tensor lists are
 * nested one level deeper. */
static enum lag_status read_dims(struct lag_kineto_scan *s, int64_t *elements, struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;
	unsigned depth = r->depth;
	int64_t product = 1, v;
	bool any = false, done = false, bad = false;
	enum lag_status st;

	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (r->kind == LAG_JSON_ARRAY_END)
			done |= any;
		if (done || r->kind != LAG_JSON_NUMBER)
			continue;
		bad |= !lag_json_to_fixed(r->text, r->n, 0, &v) || v < 0 ||
		       __builtin_mul_overflow(product, v, &product);
		any = true;
	}
	if (any && !bad)
		*elements = product;
	return st;
}

/* The first string in a list, or a list of numbers as text: "[0, 1]". */
static enum lag_status read_list(struct lag_kineto_scan *s, enum lag_kineto_slot slot,
				 struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;
	struct lag_buf *out = &s->kept[slot];
	unsigned depth = r->depth;
	bool text = false;
	enum lag_status st;

	lag_buf_clear(out);
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (r->kind == LAG_JSON_STRING && r->n && !out->n) {
			lag_buf_add(out, r->text, r->n);
			text = true;
		} else if (r->kind == LAG_JSON_NUMBER && !text) {
			lag_buf_puts(out, out->n ? ", " : "[");
			lag_buf_add(out, r->text, r->n);
		}
	}
	if (out->n && !text)
		lag_buf_putc(out, ']');
	s->event.text[slot] = (struct lag_span){ lag_buf_text(out), out->n };
	return st;
}

static enum lag_status read_arg(struct lag_kineto_scan *s, const struct lag_kineto_arg *arg,
				struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;
	struct lag_kineto_event *e = &s->event;
	enum lag_status st = lag_json_next(r, err);
	bool list = r->kind == LAG_JSON_ARRAY;

	if (st != LAG_OK)
		return st;
	e->has_args = e->has_text = true;
	if (list && arg->type == LAG_KA_GRID)
		return read_triple(s, e->grid, err);
	if (list && arg->type == LAG_KA_BLOCK)
		return read_triple(s, e->block, err);
	if (list && arg->type == LAG_KA_DIMS)
		return read_dims(s, &e->i[arg->slot], err);
	if (list && arg->type == LAG_KA_TEXT)
		return read_list(s, (enum lag_kineto_slot)arg->slot, err);
	if (r->kind != LAG_JSON_NUMBER && r->kind != LAG_JSON_STRING)
		return lag_json_skip(r, err);
	lag_kineto_set_arg(e, arg,
			   arg->type == LAG_KA_TEXT ? keep(s, (enum lag_kineto_slot)arg->slot)
						    : (struct lag_span){ r->text, r->n });
	return LAG_OK;
}

static enum lag_status read_args(struct lag_kineto_scan *s, struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;
	enum lag_status st = lag_json_next(r, err);
	unsigned depth = r->depth;

	if (st != LAG_OK)
		return st;
	if (r->kind != LAG_JSON_OBJECT || !lag_kineto_wants_args(s))
		return lag_json_skip(r, err);
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		const struct lag_kineto_arg *arg = NULL;
		char key[64] = { 0 };

		if (r->kind != LAG_JSON_KEY)
			continue;
		if (r->n < sizeof(key) - 16) {
			memcpy(key, r->text, r->n);
			arg = lag_kineto_arg(s, key, r->n);
		}
		st = arg ? read_arg(s, arg, err) : lag_json_skip(r, err);
		if (st != LAG_OK)
			return st;
	}
	return st;
}

enum lag_status lag_kineto_read_event(struct lag_kineto_scan *s, struct lag_err *err)
{
	struct lag_json_reader *r = &s->json;
	unsigned depth = r->depth;
	enum lag_status st;

	lag_kineto_event_reset(s);
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		enum lag_kineto_member member;

		if (r->kind != LAG_JSON_KEY)
			continue;
		member = lag_kineto_member(r->text, r->n);
		if (member == LAG_KM_ARGS) {
			st = read_args(s, err);
		} else if (member == LAG_KM_OTHER) {
			st = lag_json_skip(r, err);
		} else {
			st = lag_json_next(r, err);
			if (st == LAG_OK &&
			    (r->kind == LAG_JSON_STRING || r->kind == LAG_JSON_NUMBER)) {
				lag_kineto_set_member(s, member,
						      member == LAG_KM_NAME
							      ? keep(s, LAG_KT_NAME)
							      : (struct lag_span){ r->text, r->n });
			} else if (st == LAG_OK) {
				st = lag_json_skip(r, err);
			}
		}
		if (st != LAG_OK)
			return st;
	}
	for (size_t i = 0; i < LAG_KT_LIMIT && st == LAG_OK; i++) {
		if (s->kept[i].failed)
			st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	}
	return st;
}

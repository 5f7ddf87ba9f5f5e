/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of plain data in an arena: made by the pickle and JSON readers, asked by importers. */
#include "schema/base/datum.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/parse.h"

#define BLOCK_BYTES ((size_t)1 << 16)

struct lag_arena_block {
	struct lag_arena_block *next;
	size_t used, size;
	max_align_t bytes[];
};

void *lag_arena_take(struct lag_arena *arena, size_t n)
{
	struct lag_arena_block *block = arena->last;
	size_t unit = sizeof(max_align_t), size;
	void *at;

	if (n > arena->max || arena->used > arena->max - n)
		return NULL;
	n = (n + unit - 1) / unit * unit;
	if (!block || block->size - block->used < n) {
		size = n > BLOCK_BYTES ? n : BLOCK_BYTES;
		block = calloc(1, sizeof(*block) + size);
		if (!block)
			return NULL;
		block->size = size;
		block->next = arena->last;
		arena->last = block;
	}
	at = (char *)block->bytes + block->used;
	block->used += n;
	arena->used += n;
	return at;
}

void lag_arena_release(struct lag_arena *arena)
{
	while (arena->last) {
		struct lag_arena_block *next = arena->last->next;

		free(arena->last);
		arena->last = next;
	}
	arena->used = 0;
}

struct lag_datum *lag_datum_new(struct lag_arena *arena, enum lag_datum_kind kind)
{
	struct lag_datum *d = lag_arena_take(arena, sizeof(*d));

	if (d)
		d->kind = kind;
	return d;
}

struct lag_datum *lag_datum_text_new(struct lag_arena *arena, enum lag_datum_kind kind,
				     const void *text, size_t n)
{
	struct lag_datum *d = n < UINT32_MAX ? lag_datum_new(arena, kind) : NULL;
	char *copy = d ? lag_arena_take(arena, n + 1) : NULL;

	if (!copy)
		return NULL;
	if (n)
		memcpy(copy, text, n);
	d->text = copy;
	d->n = (uint32_t)n;
	return d;
}

bool lag_datum_append(struct lag_arena *arena, struct lag_datum *to, struct lag_datum *item)
{
	if (to->n == to->cap) {
		uint32_t cap = to->cap ? to->cap * 2 : 4;
		struct lag_datum **items = NULL;

		if (cap > to->cap)
			items = lag_arena_take(arena, cap * sizeof(struct lag_datum *));
		if (!items)
			return false;
		if (to->n)
			memcpy(items, to->items, to->n * sizeof(struct lag_datum *));
		to->items = items;
		to->cap = cap;
	}
	to->items[to->n++] = item;
	return true;
}

bool lag_datum_is_text(const struct lag_datum *d)
{
	return d && d->kind == LAG_DATUM_TEXT;
}

const char *lag_datum_text(const struct lag_datum *d)
{
	return lag_datum_is_text(d) ? d->text : "";
}

const struct lag_datum *lag_datum_get(const struct lag_datum *d, const char *key)
{
	if (!d || d->kind != LAG_DATUM_DICT)
		return NULL;
	for (uint32_t i = d->n / 2; i > 0; i--) {
		const struct lag_datum *k = d->items[2 * i - 2];

		if (lag_datum_is_text(k) && strcmp(k->text, key) == 0)
			return d->items[2 * i - 1];
	}
	return NULL;
}

size_t lag_datum_count(const struct lag_datum *d)
{
	return d && (d->kind == LAG_DATUM_LIST || d->kind == LAG_DATUM_TUPLE ||
		     d->kind == LAG_DATUM_SET)
		       ? d->n
		       : 0;
}

int64_t lag_datum_int(const struct lag_datum *d)
{
	int64_t v;

	if (d && d->kind == LAG_DATUM_INT)
		return d->i;
	return lag_datum_is_text(d) && lag_parse_i64(d->text, &v) ? v : INT64_MIN;
}

static enum lag_status full(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_LIMIT, "more data than is allowed in one file");
}

/* What the reader's last token is, without what is inside it. NULL when the arena is full. */
static struct lag_datum *of_token(const struct lag_json_reader *r, struct lag_arena *arena)
{
	struct lag_datum *d;
	char number[64];

	switch (r->kind) {
	case LAG_JSON_OBJECT:
		return lag_datum_new(arena, LAG_DATUM_DICT);
	case LAG_JSON_ARRAY:
		return lag_datum_new(arena, LAG_DATUM_LIST);
	case LAG_JSON_KEY:
	case LAG_JSON_STRING:
		return lag_datum_text_new(arena, LAG_DATUM_TEXT, r->text, r->n);
	case LAG_JSON_TRUE:
	case LAG_JSON_FALSE:
		d = lag_datum_new(arena, LAG_DATUM_BOOL);
		if (d)
			d->i = r->kind == LAG_JSON_TRUE;
		return d;
	case LAG_JSON_NUMBER:
		d = lag_datum_new(arena, LAG_DATUM_INT);
		if (!d || r->n >= sizeof(number))
			return d ? lag_datum_new(arena, LAG_DATUM_BIG) : NULL;
		memcpy(number, r->text, r->n);
		number[r->n] = '\0';
		if (strpbrk(number, ".eE")) {
			d->kind = LAG_DATUM_REAL;
			d->d = strtod(number, NULL);
		} else if (!lag_json_to_fixed(r->text, r->n, 0, &d->i)) {
			d->kind = LAG_DATUM_BIG;
		}
		return d;
	default:
		return lag_datum_new(arena, LAG_DATUM_NONE);
	}
}

enum lag_status lag_datum_read_json(struct lag_json_reader *r, struct lag_arena *arena,
				    struct lag_datum **out, struct lag_err *err)
{
	struct lag_datum *open[LAG_JSON_DEPTH_MAX + 1];
	size_t depth = 0;
	enum lag_status st;

	*out = NULL;
	while ((st = lag_json_next(r, err)) == LAG_OK) {
		struct lag_datum *d;

		if (r->kind == LAG_JSON_OBJECT_END || r->kind == LAG_JSON_ARRAY_END) {
			if (depth && --depth)
				continue;
			return LAG_OK;
		}
		d = of_token(r, arena);
		if (!d || (depth && !lag_datum_append(arena, open[depth - 1], d)))
			return full(err);
		if (!*out)
			*out = d;
		if (r->kind == LAG_JSON_OBJECT || r->kind == LAG_JSON_ARRAY) {
			if (depth == LAG_JSON_DEPTH_MAX)
				return full(err);
			open[depth++] = d;
		} else if (!depth) {
			return LAG_OK;
		}
	}
	/* A cut document: what came before is good, but a key without its value is not. */
	for (size_t i = 0; i < depth && st == LAG_END; i++) {
		if (open[i]->kind == LAG_DATUM_DICT)
			open[i]->n &= ~1u;
	}
	return st == LAG_END && *out ? LAG_OK : st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Plain data as pickle and JSON carry it: a tree of numbers, texts, lists and dictionaries, all of it in
 * one arena with a limit. Nothing in it can be executed. A pickle may refer to one datum from several
 * places, also from inside itself: whoever walks it must limit depth and number of visits. */
#ifndef SCHEMA_BASE_DATUM_H
#define SCHEMA_BASE_DATUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/json_read.h"

/* Memory that is released in one go. Zero-initialise and set max. */
struct lag_arena {
	struct lag_arena_block *last;
	size_t used, max; /* bytes asked for so far, and allowed */
};

/* n zeroed bytes, aligned for anything; NULL beyond max or without memory. */
void *lag_arena_take(struct lag_arena *arena, size_t n) LAG_MUST_USE;
void lag_arena_release(struct lag_arena *arena);

enum lag_datum_kind {
	LAG_DATUM_NONE,
	LAG_DATUM_BOOL, /* i */
	LAG_DATUM_INT,
	LAG_DATUM_BIG, /* an integer beyond 64 bits; its value is not kept */
	LAG_DATUM_REAL,
	LAG_DATUM_TEXT,
	LAG_DATUM_BYTES,
	LAG_DATUM_LIST,
	LAG_DATUM_TUPLE,
	LAG_DATUM_SET,
	LAG_DATUM_DICT, /* items: key, value, key, value, ... as written; of equal keys the last counts */
};

struct lag_datum {
	enum lag_datum_kind kind;
	uint32_t n, cap; /* items, or bytes of text (which is NUL-terminated besides) */

	union {
		int64_t i;
		double d;
		const char *text;
		struct lag_datum **items;
	};
};

/* New data in the arena; NULL when it is full. Text is copied. */
struct lag_datum *lag_datum_new(struct lag_arena *arena, enum lag_datum_kind kind) LAG_MUST_USE;
struct lag_datum *lag_datum_text_new(struct lag_arena *arena, enum lag_datum_kind kind,
				     const void *text, size_t n) LAG_MUST_USE;

/* Appends to a list, tuple, set or dictionary; false when the arena is full. */
bool lag_datum_append(struct lag_arena *arena, struct lag_datum *to,
		      struct lag_datum *item) LAG_MUST_USE;

/* The value of a text key of a dictionary; NULL when d is none (NULL too), or has no such key. */
const struct lag_datum *lag_datum_get(const struct lag_datum *d, const char *key);

/* Items of a list, tuple or set; 0 for anything else, NULL included. */
size_t lag_datum_count(const struct lag_datum *d);

/* An integer, also one that stands as text; INT64_MIN (LAG_NONE) for anything else. */
int64_t lag_datum_int(const struct lag_datum *d);

/* The text, "" for anything else. */
const char *lag_datum_text(const struct lag_datum *d);
bool lag_datum_is_text(const struct lag_datum *d);

/* The next whole value of a JSON reader. LAG_END: the input holds none. */
enum lag_status lag_datum_read_json(struct lag_json_reader *r, struct lag_arena *arena,
				    struct lag_datum **out, struct lag_err *err) LAG_MUST_USE;

#endif

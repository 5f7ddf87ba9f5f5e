/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of numbers to bytes and back. The code is chosen by how many bits a sample of the column
 * needs under each; zstd does the rest. Pure. */
#include "merge/lagz_column.h"

#include <string.h>

#include "schema/base/varint.h"

#define SAMPLE 256u

/* What value i is predicted to be. Where the first field is not known: from 0. */
static inline int64_t predict(enum lag_column_code code, const struct lag_column_of *of, uint32_t i,
			      int64_t before)
{
	int64_t from = 0;

	if (code == LAG_COLUMN_DELTA) {
		from = before;
	} else if (code == LAG_COLUMN_AFTER) {
		from = of->first[i];
	}
	return from == LAG_NONE ? 0 : from;
}

/* 0 stands for LAG_NONE, which moves the others up by one; the one difference that has no room left
 * (UINT64_MAX folded) makes the column WHOLE. */
static inline uint64_t fold(int64_t v, int64_t from)
{
	return v == LAG_NONE ? 0 : lag_zigzag(lag_minus(v, from)) + 1;
}

static uint64_t bits_needed(enum lag_column_code code, const int64_t *v,
			    const struct lag_column_of *of)
{
	uint32_t n = of->n < SAMPLE ? of->n : SAMPLE;
	uint64_t bits = 0;
	int64_t before = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t u = fold(v[i], predict(code, of, i, before));

		/* The first has nothing before it, and says nothing about the others. */
		if (i || n == 1)
			bits += 64 - (unsigned)__builtin_clzll(u | 1);
		before = v[i] == LAG_NONE ? before : v[i];
	}
	return bits;
}

static enum lag_column_code choose(const int64_t *v, const struct lag_column_of *of)
{
	enum lag_column_code best = LAG_COLUMN_PLAIN;
	uint64_t least = bits_needed(best, v, of);
	uint32_t same = 1;

	while (same < of->n && v[same] == v[0])
		same++;
	if (same >= of->n)
		return LAG_COLUMN_CONST;
	for (enum lag_column_code code = LAG_COLUMN_DELTA; code <= LAG_COLUMN_AFTER; code++) {
		uint64_t bits;

		if (code == LAG_COLUMN_AFTER && !of->first)
			continue;
		bits = bits_needed(code, v, of);
		if (bits < least) {
			least = bits;
			best = code;
		}
	}
	/* Hashes: a varint of 64 bits takes ten bytes. */
	return least > (uint64_t)56 * (of->n < SAMPLE ? of->n : SAMPLE) ? LAG_COLUMN_WHOLE : best;
}

/* False when a value has no room in this code. */
static bool put_predicted(uint8_t **at, enum lag_column_code code, const int64_t *v,
			  const struct lag_column_of *of)
{
	uint8_t *p = *at;
	int64_t before = 0;

	for (uint32_t i = 0; i < of->n; i++) {
		uint64_t u = fold(v[i], predict(code, of, i, before));

		if (v[i] != LAG_NONE) {
			if (!u)
				return false;
			before = v[i];
		}
		p = lag_varint_put(p, u);
	}
	*at = p;
	return true;
}

void lag_column_put(struct lag_buf *out, const int64_t *v, const struct lag_column_of *of)
{
	struct lag_column_of one = { .n = 1 };
	enum lag_column_code code = choose(v, of);
	uint8_t *start, *p;

	if (!of->n || !lag_buf_reserve(out, (size_t)of->n * LAG_VARINT_MAX + 1))
		return;
	start = p = (uint8_t *)out->text + out->n;
	if (code == LAG_COLUMN_CONST && fold(v[0], 0) == 0 && v[0] != LAG_NONE)
		code = LAG_COLUMN_WHOLE;
	*p++ = (uint8_t)code;
	if (code == LAG_COLUMN_CONST) {
		(void)put_predicted(&p, LAG_COLUMN_PLAIN, v, &one);
	} else if (code == LAG_COLUMN_WHOLE || !put_predicted(&p, code, v, of)) {
		*start = LAG_COLUMN_WHOLE;
		memcpy(start + 1, v, of->n * sizeof(*v));
		p = start + 1 + of->n * sizeof(*v);
	}
	out->n += (size_t)(p - start);
}

static const uint8_t *get_whole(const uint8_t *p, const uint8_t *end, int64_t *v, uint32_t n)
{
	if ((size_t)(end - p) / sizeof(*v) < n)
		return NULL;
	memcpy(v, p, n * sizeof(*v));
	return p + n * sizeof(*v);
}

static const uint8_t *get_predicted(const uint8_t *p, const uint8_t *end, enum lag_column_code code,
				    int64_t *v, const struct lag_column_of *of)
{
	int64_t before = 0;

	for (uint32_t i = 0; i < of->n; i++) {
		uint64_t u;

		if (p < end && *p < 0x80) {
			u = *p++;
		} else {
			p = lag_varint_get(p, end, &u);
			if (!p)
				return NULL;
		}
		if (!u) {
			v[i] = LAG_NONE;
			continue;
		}
		v[i] = lag_plus(predict(code, of, i, before), lag_unzigzag(u - 1));
		before = v[i] == LAG_NONE ? before : v[i];
	}
	return p;
}

const uint8_t *lag_column_get(const uint8_t *p, const uint8_t *end, int64_t *v,
			      const struct lag_column_of *of)
{
	struct lag_column_of one = { .n = 1 };
	unsigned code;

	if (p >= end || !of->n)
		return NULL;
	code = *p++;
	switch (code) {
	case LAG_COLUMN_CONST:
		p = get_predicted(p, end, LAG_COLUMN_PLAIN, v, &one);
		for (uint32_t i = 1; p && i < of->n; i++)
			v[i] = v[0];
		return p;
	case LAG_COLUMN_PLAIN:
		return get_predicted(p, end, LAG_COLUMN_PLAIN, v, of);
	case LAG_COLUMN_DELTA:
		return get_predicted(p, end, LAG_COLUMN_DELTA, v, of);
	case LAG_COLUMN_AFTER:
		return of->first ? get_predicted(p, end, LAG_COLUMN_AFTER, v, of) : NULL;
	case LAG_COLUMN_WHOLE:
		return get_whole(p, end, v, of->n);
	default:
		return NULL;
	}
}

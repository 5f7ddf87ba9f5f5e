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
	const char *end;

	for (size_t i = 0; i < 3; i++) {
		p = lag_json_scan_space(p + 1, limit);
		end = lag_json_scan_short(p, &out[i]);
		p = end ? end : lag_json_scan_fixed(p, limit, 0, &out[i]);
		if (!p)
			return NULL;
		p = lag_json_scan_space(p, limit);
		if (*p != (i < 2 ? ',' : ']'))
			return NULL;
	}
	return p + 1;
}

/* Traces repeat themselves, and a list or object that was valid once is valid again. */
static const char *skip_container(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	struct lag_kineto_seen_value *seen;
	uint64_t head[3];
	const char *end;

	memcpy(head, p, sizeof(head));
	head[0] ^= head[1] * 0xff51afd7ed558ccdu ^ head[2] * 0xc4ceb9fe1a85ec53u;
	seen = &s->seen_values[head[0] * 0x9e3779b97f4a7c15u >> 56];
	if (seen->n && (ptrdiff_t)seen->n <= limit - p && memcmp(seen->text, p, seen->n) == 0)
		return p + seen->n;
	end = lag_json_scan_value(p, limit);
	if (end && (size_t)(end - p) <= sizeof(seen->text)) {
		seen->n = (size_t)(end - p);
		memcpy(seen->text, p, seen->n);
	}
	return end;
}

static inline const char *skip(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	bool escaped = false;
	const char *end;

	if (*p == '"') {
		end = lag_json_scan_string(p + 1, limit, &escaped);
		return end ? end + 1 : NULL;
	}
	if (*p == '[' || *p == '{')
		return skip_container(s, p, limit);
	end = lag_json_skip_short(p);
	return end ? end : lag_json_scan_scalar(p, limit);
}

/* Shapes and types of inputs, which most operators have, say something about communication only. */
static bool is_of_use(const struct lag_kineto_event *e, const struct lag_kineto_arg *arg)
{
	bool shape = arg->type == LAG_KA_DIMS || arg->slot == LAG_KT_INPUT_TYPE;

	return !shape || e->cat == LAG_KC_ANNOTATION || e->cat == LAG_KC_OTHER;
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
		if (arg->type == LAG_KA_TEXT || arg->type == LAG_KA_DIMS)
			return is_of_use(e, arg) ? NULL : skip_container(s, p, limit);
	}
	return skip(s, p, limit);
}

/* Which of the 32 bytes at a and b are equal. */
static inline uint32_t equal32(const char *a, const char *b)
{
#ifdef __SSE2__
	const __m128i *x = (const __m128i *)(const void *)a, *y = (const __m128i *)(const void *)b;
	__m128i lo = _mm_cmpeq_epi8(_mm_loadu_si128(x), _mm_loadu_si128(y));
	__m128i hi = _mm_cmpeq_epi8(_mm_loadu_si128(x + 1), _mm_loadu_si128(y + 1));

	return (uint32_t)_mm_movemask_epi8(lo) | (uint32_t)_mm_movemask_epi8(hi) << 16;
#else
	uint32_t mask = 0;

	for (unsigned i = 0; i < 32; i++)
		mask |= (uint32_t)(a[i] == b[i]) << i;
	return mask;
#endif
}

/* Whether of the 32 bytes at a and b all are equal but those that `beyond` has set. */
static inline bool same32(const char *a, const char *b, const char *beyond)
{
#ifdef __SSE2__
	const __m128i *x = (const __m128i *)(const void *)a, *y = (const __m128i *)(const void *)b;
	const __m128i *z = (const __m128i *)(const void *)beyond;
	__m128i lo = _mm_cmpeq_epi8(_mm_loadu_si128(x), _mm_loadu_si128(y));
	__m128i hi = _mm_cmpeq_epi8(_mm_loadu_si128(x + 1), _mm_loadu_si128(y + 1));

	lo = _mm_or_si128(lo, _mm_loadu_si128(z));
	hi = _mm_or_si128(hi, _mm_loadu_si128(z + 1));
	return _mm_movemask_epi8(_mm_and_si128(lo, hi)) == 0xffff;
#else
	for (unsigned i = 0; i < 32; i++) {
		if (a[i] != b[i] && !beyond[i])
			return false;
	}
	return true;
#endif
}

/* 64 bytes must be readable at p. */
static inline bool stands_at(const struct lag_kineto_key *k, const char *p)
{
	return same32(k->text, p, k->beyond) &&
	       (k->n <= 32 || (equal32(k->text + 32, p + 32) | k->beyond_high) == UINT32_MAX);
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

/* A member's value in any form. */
static const char *scan_member(struct lag_kineto_scan *s, enum lag_kineto_member member,
			       const char *p, const char *limit)
{
	struct lag_span value;

	if (*p == '"') {
		p = scan_text(s, member == LAG_KM_NAME ? LAG_KT_NAME : LAG_KT_SCRATCH, p, limit,
			      &value);
		if (p)
			lag_kineto_set_member(s, member, value);
		return p;
	}
	if (*p == '-' || lag_json_is_digit(*p))
		return scan_number_member(&s->event, member, p, limit);
	return skip(s, p, limit);
}

static inline const char *scan_phase(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	if (*p == '"' && p[2] == '"' && p[1] >= '0' && p[1] != '\\' && p[1] != 0x7f) {
		s->event.phase = p[1];
		return p + 3;
	}
	return scan_member(s, LAG_KM_PHASE, p, limit);
}

/* The category at p, most often one that was seen before. */
static const char *scan_cat(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	struct lag_kineto_seen_cat *seen;
	struct lag_span value;
	uint64_t first;
	const char *end;

	if (*p != '"')
		return scan_member(s, LAG_KM_CAT, p, limit);
	memcpy(&first, p + 1, sizeof(first));
	seen = &s->seen_cats[first * 0x9e3779b97f4a7c15u >> 58];
	if (seen->n && (equal32(seen->text, p + 1) | seen->beyond) == UINT32_MAX) {
		s->event.cat = seen->cat;
		s->event.category = (struct lag_span){ p + 1, seen->n - 1 };
		return p + 1 + seen->n;
	}
	end = scan_text(s, LAG_KT_SCRATCH, p, limit, &value);
	if (!end)
		return NULL;
	lag_kineto_set_member(s, LAG_KM_CAT, value);
	if ((size_t)(end - p) - 1 < sizeof(seen->text) && value.text == p + 1) {
		seen->n = (size_t)(end - p) - 1;
		seen->beyond = UINT32_MAX << seen->n;
		memcpy(seen->text, p + 1, seen->n);
		seen->cat = s->event.cat;
	}
	return end;
}

static inline const char *scan_name(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	return *p == '"' ? scan_text(s, LAG_KT_NAME, p, limit, &s->event.text[LAG_KT_NAME])
			 : scan_member(s, LAG_KM_NAME, p, limit);
}

static inline const char *scan_time(struct lag_kineto_scan *s, const struct lag_kineto_key *k,
				    int64_t *out, const char *p, const char *limit)
{
	const char *end = lag_json_scan_thousandths(p, out);

	return end ? end : scan_member(s, k->member, p, limit);
}

static inline const char *scan_id(struct lag_kineto_scan *s, const struct lag_kineto_key *k,
				  int64_t *out, const char *p, const char *limit)
{
	const char *end = lag_json_scan_short(p, out);

	return end ? end : scan_member(s, k->member, p, limit);
}

static inline const char *scan_int_arg(struct lag_kineto_scan *s, const struct lag_kineto_key *k,
				       const char *p, const char *limit)
{
	const char *end = lag_json_scan_short(p, &s->event.i[k->slot]);

	return end ? end : scan_arg(s, k->arg, p, limit);
}

#define AT_EVENT 0u /* instead of the key before */
#define AT_ARGS  1u

/* Events of one phase and category have the same keys. */
static inline unsigned context_of(const struct lag_kineto_event *e)
{
	unsigned phase = e->phase == 'X' ? 0u : e->phase == 's' ? 1u : e->phase == 'f' ? 2u : 3u;

	return phase * LAG_KC_LIMIT + (unsigned)e->cat;
}

/* The place of the key at p behind the key `before`. */
static inline unsigned key_at(struct lag_kineto_scan *s, const char *p, const char *limit,
			      unsigned before, uint8_t next[2])
{
	if (stands_at(&s->keys.keys[next[0]], p))
		return next[0];
	if (stands_at(&s->keys.keys[next[1]], p))
		return next[1];
	return lag_kineto_learn(s, p, limit, before <= AT_ARGS, next);
}

const char *lag_kineto_scan_event(struct lag_kineto_scan *s, const char *p, const char *limit)
{
	struct lag_kineto_keys *keys = &s->keys;
	struct lag_kineto_event *e = &s->event;
	enum lag_kineto_place place = LAG_KP_EVENT;
	unsigned at = AT_EVENT;
	uint8_t(*context)[2];

	lag_kineto_event_reset(s);
	context = keys->next[context_of(e)];
	while (p && p < limit) {
		const struct lag_kineto_key *k;

		at = key_at(s, p, limit, at, context[at]);
		k = &keys->keys[at];
		p += k->n;
		switch ((enum lag_kineto_step)k->step[place]) {
		case LAG_KS_GIVE_UP:
			return NULL;
		case LAG_KS_SKIP:
			p = skip(s, p, limit);
			break;
		case LAG_KS_PHASE:
			p = scan_phase(s, p, limit);
			context = keys->next[context_of(e)];
			break;
		case LAG_KS_CAT:
			p = scan_cat(s, p, limit);
			context = keys->next[context_of(e)];
			break;
		case LAG_KS_NAME:
			p = scan_name(s, p, limit);
			break;
		case LAG_KS_PID:
			e->legacy_gpu = false;
			p = scan_id(s, k, &e->pid, p, limit);
			break;
		case LAG_KS_TID:
			p = scan_id(s, k, &e->tid, p, limit);
			break;
		case LAG_KS_TS:
			p = scan_time(s, k, &e->ts_ns, p, limit);
			break;
		case LAG_KS_DUR:
			p = scan_time(s, k, &e->dur_ns, p, limit);
			break;
		case LAG_KS_ENTER_ARGS:
			if (*p != '{') {
				p = skip(s, p, limit);
				break;
			}
			at = AT_ARGS;
			e->has_args = lag_kineto_wants_args(s);
			place = e->has_args ? LAG_KP_ARGS : LAG_KP_IDLE_ARGS;
			break;
		case LAG_KS_INT_ARG:
			p = scan_int_arg(s, k, p, limit);
			break;
		case LAG_KS_OTHER_ARG:
			p = scan_arg(s, k->arg, p, limit);
			break;
		case LAG_KS_LEAVE_ARGS:
			place = LAG_KP_EVENT;
			break;
		case LAG_KS_FINISH:
			return p;
		}
	}
	return NULL;
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

		end = p && *p == '{' && !s->careful ? lag_kineto_scan_event(s, p, limit) : NULL;
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

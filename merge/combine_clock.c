/* SPDX-License-Identifier: Apache-2.0 */
/* How far the clocks of two recordings of one process are apart. Both claim to be the host's wall clock;
 * what both saw of the same things says whether they are. */
#include "merge/combine.h"

#include <stdlib.h>
#include <string.h>

#include "merge/names.h"
#include "schema/base/sort.h"

#define CASES_MAX 20000 /* more do not tell more */
#define CASES_MIN 3
#define ROUNDS    4 /* who belongs to whom, then how far, and again */

/* How far from one offset a case may be: what a tool's conversion of clocks costs it. */
static const int64_t slack_ns[] = { 1000, 20000, 200000 };

#define N_SLACK (sizeof(slack_ns) / sizeof(slack_ns[0]))

static int by_key(const void *left, const void *right, void *state)
{
	const struct lag_mark *a = left, *b = right;

	(void)state;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static enum lag_status push(struct lag_vec *out, struct lag_mark mark)
{
	struct lag_mark *slot = lag_vec_push(out);

	if (!slot)
		return LAG_ERR_SYSTEM;
	*slot = mark;
	return LAG_OK;
}

enum lag_status lag_combine_calls(const struct lag_part *part, struct lag_vec *out)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(part, group) && st == LAG_OK; i++) {
		const struct lag_rec_group *g = &LAG_PART_AT(part, group, i);

		if (g->leave_ns != LAG_NONE && g->enter_ns <= g->leave_ns) {
			st = push(out, (struct lag_mark){ 0, g->enter_ns, g->leave_ns, g->group_id,
							  LAG_FUNC_UNKNOWN });
		}
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, op) && st == LAG_OK; i++) {
		const struct lag_rec_op *o = &LAG_PART_AT(part, op, i);

		if (o->group_id == LAG_NONE && o->leave_ns != LAG_NONE &&
		    o->enter_ns <= o->leave_ns) {
			st = push(out, (struct lag_mark){ 0, o->enter_ns, o->leave_ns, o->op_id,
							  (uint8_t)o->func });
		}
	}
	return st == LAG_OK ? lag_vec_sort(out, by_key, NULL) : st;
}

/* Launch calls by correlation: the first of each. */
static enum lag_status index_calls(const struct lag_part *part, struct lag_map *first)
{
	enum lag_status st = LAG_OK;

	for (size_t i = LAG_PART_COUNT(part, api); i > 0 && st == LAG_OK; i--) {
		int64_t correlation = LAG_PART_GET(part, api, i - 1).correlation;

		if (correlation > 0)
			st = lag_map_set(first, (uint64_t)correlation, i);
	}
	return st;
}

/* Whether a name is a communication kernel's, asked once for each. */
static bool is_comm(const struct lag_merge *m, struct lag_map *known, int64_t name)
{
	uint64_t yes = 0;

	if (lag_map_find(known, (uint64_t)name, &yes))
		return yes;
	yes = lag_name_is_communication(lag_merge_text(m, name));
	return lag_failed(lag_map_set(known, (uint64_t)name, yes)) ? false : yes;
}

enum lag_status lag_combine_launches(const struct lag_merge *m, const struct lag_part *part,
				     struct lag_vec *out)
{
	struct lag_map calls = { .spill = part->spill }, known = { 0 };
	enum lag_status st = index_calls(part, &calls);

	for (size_t i = 0; i < LAG_PART_COUNT(part, kernel) && st == LAG_OK; i++) {
		struct lag_rec_kernel k = LAG_PART_GET(part, kernel, i);
		struct lag_rec_api call;
		uint64_t at = 0;

		if (k.graph_id > 0 || !is_comm(m, &known, k.name) ||
		    !lag_map_find(&calls, (uint64_t)k.correlation, &at))
			continue;
		call = LAG_PART_GET(part, api, at - 1);
		if (call.end_ns != LAG_NONE) {
			st = push(out, (struct lag_mark){ 0, call.start_ns, call.end_ns, (int64_t)i,
							  LAG_FUNC_UNKNOWN });
		}
	}
	lag_map_release(&calls);
	lag_map_release(&known);
	return st == LAG_OK ? lag_vec_sort(out, by_key, NULL) : st;
}

/* ---- marks of what both may have seen ---- */

/* Sources give names mangled or not. */
static uint64_t key_of_kernel(const struct lag_merge *m, struct lag_map *known, int64_t name)
{
	struct lag_buf full = { 0 };
	const char *text = lag_merge_text(m, name);
	uint64_t key = 0;

	if (lag_map_find(known, (uint64_t)name, &key))
		return key;
	if (lag_demangle(text, &full))
		text = lag_buf_text(&full);
	key = lag_hash_bytes(text, strlen(text));
	lag_buf_release(&full);
	return lag_failed(lag_map_set(known, (uint64_t)name, key)) ? 0 : key;
}

static enum lag_status mark_kernels(const struct lag_merge *m, const struct lag_part *part,
				    struct lag_vec *out)
{
	struct lag_map known = { 0 };
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(part, kernel) && st == LAG_OK; i++) {
		struct lag_rec_kernel k = LAG_PART_GET(part, kernel, i);

		st = push(out, (struct lag_mark){ key_of_kernel(m, &known, k.name), k.start_ns,
						  k.start_ns, (int64_t)i, LAG_FUNC_UNKNOWN });
	}
	lag_map_release(&known);
	return st == LAG_OK ? lag_vec_sort(out, by_key, NULL) : st;
}

static enum lag_status mark_ranges(const struct lag_merge *m, const struct lag_part *part,
				   struct lag_vec *out)
{
	enum lag_status st = LAG_OK;

	(void)m;
	for (size_t i = 0; i < LAG_PART_COUNT(part, range) && st == LAG_OK; i++) {
		struct lag_rec_range r = LAG_PART_GET(part, range, i);

		if (r.name) {
			st = push(out, (struct lag_mark){ (uint64_t)r.name, r.start_ns, r.start_ns,
							  (int64_t)i, LAG_FUNC_UNKNOWN });
		}
	}
	return st == LAG_OK ? lag_vec_sort(out, by_key, NULL) : st;
}

static enum lag_status mark_calls(const struct lag_merge *m, const struct lag_part *part,
				  struct lag_vec *out)
{
	(void)m;
	return lag_combine_calls(part, out);
}

/* ---- how far apart ---- */

static int64_t distance(const struct lag_mark *mark, int64_t from_ns, int64_t until_ns)
{
	if (from_ns < mark->from_ns)
		return mark->from_ns - from_ns;
	return until_ns > mark->until_ns ? until_ns - mark->until_ns : 0;
}

const struct lag_mark *lag_combine_nearest(const struct lag_vec *marks, uint64_t key,
					   int64_t from_ns, int64_t until_ns)
{
	const struct lag_mark *at = marks->items, *best = NULL;
	size_t lo = 0, hi = marks->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (at[mid].key < key || (at[mid].key == key && at[mid].from_ns <= from_ns)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo < marks->n && at[lo].key == key)
		best = &at[lo];
	if (lo > 0 && at[lo - 1].key == key &&
	    (!best ||
	     distance(&at[lo - 1], from_ns, until_ns) <= distance(best, from_ns, until_ns)))
		best = &at[lo - 1];
	return best;
}

/* Offsets that one case allows. */
struct allowed {
	int64_t least, most;
};

struct edge {
	int64_t at;
	int step; /* +1 a case begins to agree, -1 it ends */
};

static int by_place(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return (b->step > a->step) - (b->step < a->step);
}

static int64_t from_zero(const struct allowed *a)
{
	return a->least > 0 ? a->least : a->most < 0 ? -a->most : 0;
}

/* The offsets that most cases allow, of several such the one nearest to none at all. */
static size_t most_agree(const struct lag_vec *cases, int64_t slack, struct edge *edges,
			 struct allowed *out)
{
	const struct allowed *c = cases->items;
	size_t best = 0, now = 0;

	for (size_t i = 0; i < cases->n; i++) {
		edges[2 * i] = (struct edge){ c[i].least - slack, 1 };
		edges[2 * i + 1] = (struct edge){ c[i].most + slack, -1 };
	}
	qsort(edges, 2 * cases->n, sizeof(*edges), by_place);
	for (size_t i = 0; i < 2 * cases->n; i++) {
		struct allowed here;

		if (edges[i].step < 0) {
			now--;
			continue;
		}
		/* A beginning is followed by an edge at least. */
		here = (struct allowed){ edges[i].at, edges[i + 1].at };
		if (++now > best || (now == best && from_zero(&here) < from_zero(out))) {
			best = now;
			*out = here;
		}
	}
	return best;
}

/* donor's marks against base's, which must hold them. */
static enum lag_status list_cases(const struct lag_vec *base, const struct lag_vec *donor,
				  int64_t offset, struct lag_vec *cases)
{
	size_t stride = donor->n / CASES_MAX + 1;

	cases->n = 0;
	for (size_t i = 0; i < donor->n; i += stride) {
		const struct lag_mark *d = &LAG_VEC_AT(donor, struct lag_mark, i);
		const struct lag_mark *b = lag_combine_nearest(base, d->key, d->from_ns + offset,
							       d->until_ns + offset);
		struct allowed *slot;

		if (!b || b->until_ns - b->from_ns < d->until_ns - d->from_ns)
			continue;
		slot = lag_vec_push(cases);
		if (!slot)
			return LAG_ERR_SYSTEM;
		*slot = (struct allowed){ b->from_ns - d->from_ns, b->until_ns - d->until_ns };
	}
	return LAG_OK;
}

/* The donor's marks outside the base's time are nobody's case. */
static void narrow(struct lag_vec *marks, int64_t from_ns, int64_t until_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < marks->n; i++) {
		const struct lag_mark *mark = &LAG_VEC_AT(marks, struct lag_mark, i);

		if (mark->until_ns >= from_ns && mark->from_ns <= until_ns)
			LAG_VEC_AT(marks, struct lag_mark, kept++) = *mark;
	}
	marks->n = kept;
}

static void narrow_to(const struct lag_vec *base, struct lag_vec *donor)
{
	int64_t from = INT64_MAX, until = INT64_MIN;

	for (size_t i = 0; i < base->n; i++) {
		const struct lag_mark *mark = &LAG_VEC_AT(base, struct lag_mark, i);

		from = mark->from_ns < from ? mark->from_ns : from;
		until = mark->until_ns > until ? mark->until_ns : until;
	}
	narrow(donor, from, until);
}

static enum lag_status measure(struct lag_vec *base, struct lag_vec *donor,
			       struct lag_combine_clock *out)
{
	struct lag_vec cases = LAG_VEC_INIT(struct allowed);
	struct allowed here = { 0, 0 };
	struct edge *edges = NULL;
	enum lag_status st = LAG_OK;

	narrow_to(base, donor);
	for (size_t s = 0; s < N_SLACK && !out->told && st == LAG_OK; s++) {
		int64_t offset = 0;

		for (int round = 0; round < ROUNDS && st == LAG_OK; round++) {
			int64_t before = offset;

			st = list_cases(base, donor, offset, &cases);
			if (st != LAG_OK || cases.n < CASES_MIN)
				break;
			free(edges);
			edges = lag_calloc(2 * cases.n, sizeof(*edges));
			if (!edges) {
				st = LAG_ERR_SYSTEM;
				break;
			}
			out->n = cases.n;
			out->n_agree = most_agree(&cases, slack_ns[s], edges, &here);
			offset = from_zero(&here) ? here.least + (here.most - here.least) / 2 : 0;
			if (offset == before && round)
				break;
		}
		if (st != LAG_OK || cases.n < CASES_MIN)
			break;
		out->told = out->n_agree * 10 >= out->n * 9;
		out->offset_ns = offset;
		out->uncertainty_ns = here.most - offset > offset - here.least
					      ? here.most - offset
					      : offset - here.least;
	}
	free(edges);
	lag_vec_release(&cases);
	return st;
}

/* ---- kinds of evidence, the best first ---- */

typedef enum lag_status mark_fn(const struct lag_merge *m, const struct lag_part *part,
				struct lag_vec *out);

static const struct evidence {
	const char *by;
	mark_fn *of_base, *of_donor;
	bool base_inside; /* the base's marks lie inside the donor's, not the other way round */
} evidence[] = {
	{ "launches inside communication calls", mark_calls, lag_combine_launches, false },
	{ "launches inside communication calls", lag_combine_launches, mark_calls, true },
	{ "kernels that both recorded", mark_kernels, mark_kernels, false },
	{ "annotations that both recorded", mark_ranges, mark_ranges, false },
};

enum lag_status lag_combine_clocks(const struct lag_merge *m, const struct lag_part *base,
				   const struct lag_part *donor, struct lag_combine_clock *out)
{
	enum lag_status st = LAG_OK;

	*out = (struct lag_combine_clock){ 0 };
	for (size_t i = 0; i < sizeof(evidence) / sizeof(evidence[0]) && !out->told && st == LAG_OK;
	     i++) {
		const struct evidence *e = &evidence[i];
		struct lag_vec a = LAG_VEC_SPILLED(struct lag_mark, m->spill);
		struct lag_vec b = LAG_VEC_SPILLED(struct lag_mark, m->spill);

		st = e->of_base(m, base, &a);
		if (st == LAG_OK)
			st = e->of_donor(m, donor, &b);
		if (st == LAG_OK && a.n && b.n)
			st = e->base_inside ? measure(&b, &a, out) : measure(&a, &b, out);
		if (e->base_inside)
			out->offset_ns = -out->offset_ns;
		if (out->n)
			out->by = e->by;
		lag_vec_release(&a);
		lag_vec_release(&b);
	}
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Operation tables (CSV) of pipeline-parallel jobs, as straggler studies publish them: one row an operation
 * of one worker. Each worker becomes a part; its rows are on one clock, that of whoever made the table. */
#include <stdlib.h>
#include <string.h>

#include "merge/optable.h"

#define BASE_NS INT64_C(1000000000) /* where times begin that are no dates */
#define END_MAX INT64_C(4000000000000000000)
#define EXACT_NS \
	INT64_C(50000) /* what clocks of a table may be apart when it is told what came first */

/* The header names an operation type, a start and a worker. */
static bool looks_like_table(const uint8_t *head, size_t n)
{
	static const char *const words[] = { "optype", "start_ts", "duration", "dp_rank" };
	const uint8_t *end = memchr(head, '\n', n);
	size_t line = end ? (size_t)(end - head) : n;

	if (!memchr(head, ',', line))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!memmem(head, line, words[i], strlen(words[i])))
			return false;
	}
	return head[0] != '{' && head[0] != '[';
}

enum lag_status lag_optable_string(struct lag_optable *t, const char *text, uint32_t *id,
				   struct lag_err *err)
{
	*id = lag_strtab_add(&t->pool->strings, text, strlen(text));
	if (*id == LAG_STR_NONE)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more names");
	return LAG_OK;
}

/* ---- steps ---- */

static int by_step(const void *a, const void *b)
{
	const struct lag_optable_row *x = a, *y = b;

	return x->step < y->step ? -1 : x->step > y->step;
}

static enum lag_status find_steps(struct lag_optable *t, struct lag_err *err)
{
	qsort(t->rows.items, t->rows.n, t->rows.item_size, by_step);
	for (size_t i = 0; i < t->rows.n; i++) {
		struct lag_optable_row *row = LAG_OPTABLE_ROW(t, i);
		struct lag_optable_step *s =
			t->steps.n ? LAG_OPTABLE_STEP(t, t->steps.n - 1) : NULL;

		if (!s || s->number != row->step) {
			s = lag_vec_push(&t->steps);
			if (!s)
				return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for steps");
			*s = (struct lag_optable_step){ .number = row->step,
							.begin_ns = row->start_ns,
							.end_ns = row->start_ns };
		}
		row->at_step = (int32_t)t->steps.n - 1;
		if (row->start_ns < s->begin_ns)
			s->begin_ns = row->start_ns;
		if (row->start_ns + row->dur_ns > s->end_ns)
			s->end_ns = row->start_ns + row->dur_ns;
	}
	return LAG_OK;
}

/* Tables count time from the job's start, from 1970, or anew in each step: then steps follow each other. */
static enum lag_status place_steps(struct lag_optable *t, struct lag_err *err)
{
	int64_t first = LAG_OPTABLE_STEP(t, 0)->begin_ns, at = BASE_NS;

	for (size_t i = 1; i < t->steps.n; i++) {
		const struct lag_optable_step *a = LAG_OPTABLE_STEP(t, i - 1),
					      *b = LAG_OPTABLE_STEP(t, i);

		t->restarts |= b->begin_ns < a->begin_ns + (a->end_ns - a->begin_ns) / 2;
		first = b->begin_ns < first ? b->begin_ns : first;
	}
	for (size_t i = 0; i < t->steps.n; i++) {
		struct lag_optable_step *s = LAG_OPTABLE_STEP(t, i);

		s->offset_ns = t->restarts       ? at - s->begin_ns
			       : first < BASE_NS ? BASE_NS - first
						 : 0;
		if (s->end_ns > END_MAX - s->offset_ns || s->end_ns - s->begin_ns > END_MAX - at) {
			return lag_err_set(err, LAG_ERR_INPUT,
					   "the table's times span more than a century");
		}
		at += s->end_ns - s->begin_ns;
	}
	return LAG_OK;
}

/* ---- workers ---- */

static int by_place(const void *a, const void *b)
{
	const struct lag_optable_worker *x = a, *y = b;

	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return x->dp < y->dp ? -1 : x->dp > y->dp;
}

static int by_rank(const void *a, const void *b)
{
	const struct lag_optable_worker *x = a, *y = b;

	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Keeps the table's ranks where they count the workers, else numbers these by stage and dp rank. */
static enum lag_status number_workers(struct lag_optable *t, struct lag_err *err)
{
	struct lag_map place = { 0 };
	enum lag_status st = LAG_OK;
	uint64_t at = 0;

	qsort(t->workers.items, t->workers.n, t->workers.item_size, by_rank);
	for (size_t i = 0; i < t->workers.n; i++)
		t->renumbered |= LAG_OPTABLE_WORKER(t, i)->rank != (int64_t)i;
	if (t->renumbered)
		qsort(t->workers.items, t->workers.n, t->workers.item_size, by_place);
	for (size_t i = 0; i < t->workers.n && st == LAG_OK; i++) {
		struct lag_optable_worker *w = LAG_OPTABLE_WORKER(t, i);

		w->rank = (int64_t)i;
		st = lag_map_set(&place, (uint64_t)w->stage << 32 | (uint32_t)w->dp, i);
	}
	for (size_t i = 0; i < t->rows.n && st == LAG_OK; i++) {
		struct lag_optable_row *row = LAG_OPTABLE_ROW(t, i);

		(void)lag_map_find(&place, (uint64_t)row->stage << 32 | (uint32_t)row->dp, &at);
		row->worker = (int32_t)at;
	}
	lag_map_release(&place);
	return st == LAG_OK ? st : lag_err_set(err, st, "no memory for workers");
}

static int by_worker(const void *a, const void *b)
{
	const struct lag_optable_row *x = a, *y = b;

	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	if (x->at_step != y->at_step)
		return x->at_step < y->at_step ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

static void sort_rows(struct lag_optable *t)
{
	qsort(t->rows.items, t->rows.n, t->rows.item_size, by_worker);
	for (size_t i = 0; i < t->rows.n; i++) {
		struct lag_optable_worker *w = LAG_OPTABLE_WORKER(t, LAG_OPTABLE_ROW(t, i)->worker);

		if (!w->n++)
			w->first = i;
	}
}

/* ---- who sends to whom ---- */

/* What belongs to the rows [first, last) of one worker in one step, for one direction. */
struct side {
	struct lag_optable *t;
	size_t first, last;
	enum lag_optype compute, message;
	bool sends;
	/* Of what was computed; nothing: INT64_MAX and INT64_MIN. */
	int64_t first_end, last_start;
};

static size_t count_kind(const struct side *s, enum lag_optype kind)
{
	size_t n = 0;

	for (size_t i = s->first; i < s->last; i++)
		n += LAG_OPTABLE_ROW(s->t, i)->kind == kind;
	return n;
}

/* Some tables hold rows of sends before anything was computed and of receives after everything was. */
static bool is_idle(const struct side *s, const struct lag_optable_row *row)
{
	if (s->first_end == INT64_MAX)
		return false;
	return s->sends ? row->start_ns + row->dur_ns < s->first_end - EXACT_NS
			: row->start_ns > s->last_start + EXACT_NS;
}

static void find_span(struct side *s)
{
	s->first_end = INT64_MAX;
	s->last_start = INT64_MIN;
	for (size_t i = s->first; i < s->last; i++) {
		const struct lag_optable_row *c = LAG_OPTABLE_ROW(s->t, i);
		int64_t end = c->start_ns + c->dur_ns;

		if (c->kind != s->compute)
			continue;
		s->first_end = end < s->first_end ? end : s->first_end;
		s->last_start = c->start_ns > s->last_start ? c->start_ns : s->last_start;
	}
}

/* The chunk of the model that the direction's next computation, from row *at on, works on; -1 there is
 * none. Where stages are the chunks, no computation need be on record. */
static int64_t next_chunk(const struct side *s, size_t *at)
{
	if (s->t->n_chunks == 1)
		return LAG_OPTABLE_ROW(s->t, s->first)->stage;
	while (*at < s->last) {
		const struct lag_optable_row *c = LAG_OPTABLE_ROW(s->t, (*at)++);

		if (c->kind == s->compute)
			return (int64_t)c->chunk * s->t->n_stages + c->stage;
	}
	return -1;
}

/* The k-th message of a kind belongs to the k-th computation; at the model's ends nothing is exchanged,
 * and what is left is the k-th of the peer's. */
static void pair_side(struct side *s)
{
	bool ahead = (s->compute == LAG_OT_FORWARD) == s->sends; /* the peer is the next chunk's */
	int64_t n_chunks = (int64_t)s->t->n_chunks * s->t->n_stages;
	size_t n = 0, next = s->first;
	int32_t pair = 0;

	find_span(s);
	for (size_t i = s->first; i < s->last; i++) {
		const struct lag_optable_row *row = LAG_OPTABLE_ROW(s->t, i);

		n += (enum lag_optype)row->kind == s->message && !is_idle(s, row);
	}
	/* The first receive of a worker that begins the pipeline may not be there. */
	if (!s->sends && n && n + 1 == count_kind(s, s->compute))
		(void)next_chunk(s, &next);
	for (size_t i = s->first; i < s->last; i++) {
		struct lag_optable_row *row = LAG_OPTABLE_ROW(s->t, i);
		int64_t chunk, peer;

		if ((enum lag_optype)row->kind != s->message)
			continue;
		chunk = is_idle(s, row) ? -1 : next_chunk(s, &next);
		peer = ahead ? chunk + 1 : chunk - 1;
		if (chunk < 0 || peer < 0 || peer >= n_chunks) {
			s->t->n_idle++;
		} else {
			row->pair = pair++;
		}
	}
}

static void pair_messages(struct lag_optable *t)
{
	for (size_t first = 0, last; first < t->rows.n; first = last) {
		const struct lag_optable_row *a = LAG_OPTABLE_ROW(t, first);

		for (last = first + 1; last < t->rows.n; last++) {
			const struct lag_optable_row *b = LAG_OPTABLE_ROW(t, last);

			if (b->worker != a->worker || b->at_step != a->at_step)
				break;
		}
		for (int kind = LAG_OT_FORWARD_SEND; kind <= LAG_OT_BACKWARD_RECV; kind++) {
			struct side s = { t,
					  first,
					  last,
					  lag_optype_compute((enum lag_optype)kind),
					  (enum lag_optype)kind,
					  lag_optype_sends((enum lag_optype)kind),
					  0,
					  0 };

			pair_side(&s);
		}
	}
}

static enum lag_status arrange(struct lag_optable *t, struct lag_err *err)
{
	enum lag_status st = find_steps(t, err);

	if (st == LAG_OK)
		st = place_steps(t, err);
	if (st == LAG_OK)
		st = number_workers(t, err);
	if (st != LAG_OK)
		return st;
	sort_rows(t);
	pair_messages(t);
	return LAG_OK;
}

static enum lag_status import_optable(struct lag_input *in, struct lag_pool *pool,
				      const struct lag_import_opts *opts,
				      struct lag_part_sink *sink, struct lag_err *err)
{
	struct lag_optable t = { .path = in->path,
				 .pool = pool,
				 .sink = sink,
				 .rows = LAG_VEC_INIT(struct lag_optable_row),
				 .workers = LAG_VEC_INIT(struct lag_optable_worker),
				 .steps = LAG_VEC_INIT(struct lag_optable_step) };
	enum lag_status st = lag_optable_read(&t, in, err);

	(void)opts;
	if (st == LAG_OK)
		st = arrange(&t, err);
	if (st == LAG_OK)
		st = lag_optable_emit(&t, err);
	if (lag_failed(st)) {
		(void)lag_err_wrap(err, "%s", in->path);
	} else {
		st = t.n_bad || t.cut ? LAG_WARN : LAG_OK;
	}
	lag_vec_release(&t.rows);
	lag_vec_release(&t.workers);
	lag_vec_release(&t.steps);
	return st;
}

const struct lag_importer lag_importer_optable = {
	.name = "optable",
	.clock = "the table's own, taken as they are",
	.probe = looks_like_table,
	.import = import_optable,
};

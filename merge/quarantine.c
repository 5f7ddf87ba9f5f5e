/* SPDX-License-Identifier: Apache-2.0 */
/* Events whose times cannot be true are put aside, named and counted, before anything is computed from
 * them: after this stage every time is between 1970 and 2103 and no event ends before it starts. */
#include <stdlib.h>
#include <string.h>

#include "merge/state.h"

#define TIME_MAX INT64_C(4200000000000000000)
#define DAY_NS   INT64_C(86400000000000)
#define FAR_NS   (30 * DAY_NS)
#define SEQ_MAX  (INT64_C(1) << 53)

/* Kinds with a start in their first and an end in their second field. */
static const struct timed_kind {
	enum lag_record_kind kind;
	int name, correlation; /* field numbers, -1 = none */
	int64_t longest_ns;
} timed[] = {
	{ LAG_REC_kernel, 6, 5, DAY_NS },  { LAG_REC_memcpy, -1, 5, DAY_NS },
	{ LAG_REC_memset, -1, 5, DAY_NS }, { LAG_REC_api, 6, 5, FAR_NS },
	{ LAG_REC_sync, -1, 7, FAR_NS },   { LAG_REC_overhead, -1, -1, FAR_NS },
	{ LAG_REC_range, 7, -1, FAR_NS },  { LAG_REC_op, -1, -1, FAR_NS },
	{ LAG_REC_group, -1, -1, FAR_NS },
};

#define N_TIMED (sizeof(timed) / sizeof(timed[0]))

/* Kinds that merely carry times; a bad one is dropped and counted. */
static const enum lag_record_kind moments[] = { LAG_REC_clock,      LAG_REC_range_end,
						LAG_REC_op_end,     LAG_REC_comm_event,
						LAG_REC_receipt,    LAG_REC_clock_step,
						LAG_REC_clock_state };

static bool sane(int64_t t)
{
	return t >= 0 && t <= TIME_MAX;
}

static int64_t *item(const struct lag_vec *vec, size_t i)
{
	return (int64_t *)(void *)((char *)vec->items + i * vec->item_size);
}

static int by_value(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

/* A time that most of the recording is near to: the median start of a sample of its events. */
static int64_t centre_of(const struct lag_part *part)
{
	int64_t sample[1024];
	size_t n = 0;

	for (size_t k = 0; k < N_TIMED; k++) {
		const struct lag_vec *vec = &part->records[timed[k].kind];
		size_t step = vec->n / (sizeof(sample) / sizeof(sample[0]) / N_TIMED) + 1;

		for (size_t i = 0; i < vec->n && n < sizeof(sample) / sizeof(sample[0]);
		     i += step) {
			int64_t start = lag_part_times(part, timed[k].kind, i).start_ns;

			if (sane(start))
				sample[n++] = start;
		}
	}
	if (!n)
		return LAG_NONE;
	qsort(sample, n, sizeof(sample[0]), by_value);
	return sample[n / 2];
}

/* Starts that are sane and near the centre. */
static struct lag_times window_around(int64_t centre)
{
	int64_t from = centre == LAG_NONE || centre < FAR_NS ? 0 : centre - FAR_NS;
	int64_t until =
		centre == LAG_NONE || centre > TIME_MAX - FAR_NS ? TIME_MAX : centre + FAR_NS;

	return (struct lag_times){ from, until };
}

/* Nothing is wrong: quickly, since that is so for nearly all. */
static bool fine(struct lag_times at, const struct timed_kind *kind, struct lag_times window)
{
	uint64_t length = (uint64_t)at.end_ns - (uint64_t)at.start_ns;

	if (at.start_ns < window.start_ns || at.start_ns > window.end_ns)
		return false;
	return at.end_ns == LAG_NONE ||
	       (length <= (uint64_t)kind->longest_ns && at.end_ns <= TIME_MAX);
}

static const char *what_is_wrong(struct lag_times at, const struct timed_kind *kind, int64_t centre)
{
	int64_t start = at.start_ns, end = at.end_ns;

	if (!sane(start) || (end != LAG_NONE && !sane(end)))
		return "impossible time";
	if (end != LAG_NONE && end < start)
		return "ends before it starts";
	if (centre != LAG_NONE && llabs(start - centre) > FAR_NS)
		return start == 0 ? "no start time" : "far from the rest of the recording";
	if (end != LAG_NONE && end - start > kind->longest_ns)
		return "impossible duration";
	return NULL;
}

/* A group has a third time. */
static const char *what_is_wrong_later(const struct lag_rec_group *g, int64_t longest_ns)
{
	if (g->leave_ns != LAG_NONE && (!sane(g->leave_ns) || g->leave_ns < g->enter_ns ||
					g->leave_ns - g->enter_ns > longest_ns))
		return "ends before it starts";
	return NULL;
}

static enum lag_status put_aside(struct lag_merge *m, uint32_t proc, size_t i,
				 const struct timed_kind *kind, const char *reason,
				 struct lag_err *err)
{
	struct lag_record rec = lag_part_get(&LAG_PROC_AT(m, proc)->part, kind->kind, i);
	struct lag_quarantine_row *row = lag_vec_push(&LAG_PROC_AT(m, proc)->quarantine);

	if (!row)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for quarantined events");
	row->proc = proc;
	row->record = lag_record_info_get(kind->kind)->name;
	row->reason = reason;
	row->start_ns = rec.field[0];
	row->end_ns = rec.field[1];
	row->name = kind->name < 0 ? LAG_NONE : rec.field[kind->name];
	row->correlation = kind->correlation < 0 ? LAG_NONE : rec.field[kind->correlation];
	return LAG_OK;
}

static void extend(struct lag_proc *p, int64_t t)
{
	if (t == LAG_NONE)
		return;
	if (p->first_ns == LAG_NONE || t < p->first_ns)
		p->first_ns = t;
	if (p->last_ns == LAG_NONE || t > p->last_ns)
		p->last_ns = t;
}

static enum lag_status sift(struct lag_merge *m, uint32_t proc, const struct timed_kind *kind,
			    int64_t centre, struct lag_err *err)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	struct lag_vec *vec = &p->part.records[kind->kind];
	struct lag_times window = window_around(centre);
	size_t kept = 0;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < vec->n && st == LAG_OK; i++) {
		struct lag_times at = lag_part_times(&p->part, kind->kind, i);
		const char *reason =
			fine(at, kind, window) ? NULL : what_is_wrong(at, kind, centre);

		if (lag_merge_cancelled(m, i))
			return lag_merge_interrupted(err);
		if (!reason && kind->kind == LAG_REC_group) {
			reason = what_is_wrong_later(&LAG_PART_AT(&p->part, group, i),
						     kind->longest_ns);
		}
		if (reason) {
			st = put_aside(m, proc, i, kind, reason, err);
			continue;
		}
		if (kept != i) {
			memcpy((char *)vec->items + kept * vec->item_size,
			       (char *)vec->items + i * vec->item_size, vec->item_size);
		}
		extend(p, at.start_ns);
		extend(p, at.end_ns);
		kept++;
	}
	vec->n = kept;
	return st;
}

static bool near(int64_t t, int64_t centre)
{
	return sane(t) && (centre == LAG_NONE || llabs(t - centre) <= FAR_NS);
}

/* A loss or a gap happened whenever it was: only its times go. */
static void clear_bad_spans(struct lag_part *part, int64_t centre)
{
	static const enum lag_record_kind spans[] = { LAG_REC_loss, LAG_REC_gap };

	for (size_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++) {
		const struct lag_vec *vec = &part->records[spans[k]];

		for (size_t i = 0; i < vec->n; i++) {
			int64_t *rec = item(vec, i);

			if (!near(rec[0], centre))
				rec[0] = LAG_NONE;
			if (!near(rec[1], centre) || (rec[0] != LAG_NONE && rec[1] < rec[0]))
				rec[1] = LAG_NONE;
		}
	}
}

/* A clock reading is as good as its worst number. */
static bool usable(enum lag_record_kind kind, const int64_t *rec)
{
	const struct lag_rec_clock *c = (const struct lag_rec_clock *)(const void *)rec;
	const struct lag_rec_clock_step *s = (const struct lag_rec_clock_step *)(const void *)rec;
	const struct lag_rec_clock_state *a = (const struct lag_rec_clock_state *)(const void *)rec;

	if (kind == LAG_REC_clock) {
		return (c->monotonic_ns == LAG_NONE || sane(c->monotonic_ns)) &&
		       (c->bracket_ns == LAG_NONE ||
			(c->bracket_ns >= 0 && c->bracket_ns <= DAY_NS));
	}
	if (kind == LAG_REC_clock_state)
		return a->max_error_ns == LAG_NONE || sane(a->max_error_ns);
	return kind != LAG_REC_clock_step || (s->step_ns >= -TIME_MAX && s->step_ns <= TIME_MAX);
}

static void drop_bad_moments(struct lag_part *part, int64_t centre)
{
	for (size_t k = 0; k < sizeof(moments) / sizeof(moments[0]); k++) {
		struct lag_vec *vec = &part->records[moments[k]];
		size_t n_fields = vec->item_size / sizeof(int64_t), kept = 0;

		for (size_t i = 0; i < vec->n; i++) {
			const int64_t *rec = item(vec, i);

			if (!near(rec[0], centre) || !usable(moments[k], rec)) {
				part->n_bad++;
				continue;
			}
			for (size_t f = 0; f < n_fields; f++)
				item(vec, kept)[f] = rec[f];
			kept++;
		}
		vec->n = kept;
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, comm); i++) {
		if (!sane(LAG_PART_AT(part, comm, i).created_ns))
			LAG_PART_AT(part, comm, i).created_ns = LAG_NONE;
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, clock); i++) {
		if (!sane(LAG_PART_AT(part, clock, i).cupti_ns))
			LAG_PART_AT(part, clock, i).cupti_ns = LAG_NONE;
	}
	if (!sane(part->process.start_ns))
		part->process.start_ns = LAG_NONE;
}

/* Numbers of operations are counted from 0; none has come this far. */
static void clear_bad_numbers(struct lag_part *part)
{
	for (size_t i = 0; i < LAG_PART_COUNT(part, op); i++) {
		struct lag_rec_op *op = &LAG_PART_AT(part, op, i);

		if (op->seq < 0 || op->seq > SEQ_MAX)
			op->seq = LAG_NONE;
	}
}

enum lag_status lag_merge_quarantine(struct lag_merge *m, uint32_t proc, struct lag_err *err)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	int64_t centre = centre_of(&p->part);
	enum lag_status st = LAG_OK;

	for (size_t k = 0; k < N_TIMED && st == LAG_OK; k++)
		st = sift(m, proc, &timed[k], centre, err);
	drop_bad_moments(&p->part, centre);
	clear_bad_spans(&p->part, centre);
	clear_bad_numbers(&p->part);
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, range_end); i++)
		extend(p, LAG_PART_AT(&p->part, range_end, i).end_ns);
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, op_end); i++)
		extend(p, LAG_PART_AT(&p->part, op_end, i).leave_ns);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ties GPU events to the host calls that launched them, by correlation; and puts aside what overruns
 * its stream. Both arrays are by start. */
#include "merge/state.h"

#define OVERRUN_NS    INT64_C(1000000)
#define OVERRUN_COUNT 16 /* later events of the stream that lie wholly inside */
/* Calls of one correlation that are looked at: a runtime call, the driver calls inside it, and those
 * of a counter that started again. */
#define CALLS_MAX 64

/* ---- overruns ---- */

/* The earliest ends of those events of a stream that were seen: backwards, the ones that start later. */
struct soonest {
	int64_t end_ns[OVERRUN_COUNT]; /* ascending */
	unsigned n;
};

static void note_end(struct soonest *s, int64_t end_ns)
{
	unsigned at = s->n;

	if (at == OVERRUN_COUNT && end_ns >= s->end_ns[at - 1])
		return;
	if (at == OVERRUN_COUNT) {
		at--;
	} else {
		s->n++;
	}
	for (; at && s->end_ns[at - 1] > end_ns; at--)
		s->end_ns[at] = s->end_ns[at - 1];
	s->end_ns[at] = end_ns;
}

/* Events of one stream run one after the other; a few overlap by microseconds, or by one successor's
 * prologue. One that swallows many later ones whole has a wrong end. Graph nodes run side by side. */
static bool overruns(const struct lag_proc *p, const struct lag_gpu *g, const struct soonest *later)
{
	int64_t end_ns = LAG_GPU_END(p, g);

	return end_ns != LAG_NONE && end_ns - g->start_ns >= OVERRUN_NS &&
	       LAG_GPU_SHAPE_AT(p, g)->graph_id <= 0 && later->n == OVERRUN_COUNT &&
	       later->end_ns[OVERRUN_COUNT - 1] <= end_ns;
}

static size_t count_queues(const struct lag_proc *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->gpu_shapes.n; i++) {
		uint32_t queue = LAG_VEC_AT(&p->gpu_shapes, struct lag_gpu_shape, i).queue;

		n = queue >= n ? (size_t)queue + 1 : n;
	}
	return n;
}

/* Indices of those that overrun, descending. */
static enum lag_status find_overruns(struct lag_merge *m, const struct lag_proc *p,
				     struct lag_vec *out)
{
	struct lag_vec queues = LAG_VEC_SPILLED(struct soonest, p->part.spill);
	enum lag_status st = lag_vec_resize(&queues, count_queues(p));

	for (size_t i = p->gpu.n; i > 0 && st == LAG_OK; i--) {
		const struct lag_gpu *g = LAG_GPU_AT(p, i - 1);
		struct soonest *later =
			&LAG_VEC_AT(&queues, struct soonest, LAG_GPU_SHAPE_AT(p, g)->queue);
		int64_t end_ns = LAG_GPU_END(p, g);

		if (lag_merge_cancelled(m, i)) {
			st = LAG_ERR_LIMIT;
		} else if (overruns(p, g, later)) {
			uint32_t *slot = lag_vec_push(out);

			st = slot ? LAG_OK : LAG_ERR_SYSTEM;
			if (slot)
				*slot = (uint32_t)(i - 1);
		}
		if (end_ns != LAG_NONE && end_ns > g->start_ns)
			note_end(later, end_ns);
	}
	lag_vec_release(&queues);
	return st;
}

static enum lag_status put_aside(uint32_t proc, struct lag_proc *p, const struct lag_gpu *g)
{
	static const char *const records[] = { "kernel", "memcpy", "memset" };
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(p, g);
	struct lag_quarantine_row *row = lag_vec_push(&p->quarantine);

	if (!row)
		return LAG_ERR_SYSTEM;
	*row = (struct lag_quarantine_row){ .proc = proc,
					    .record = records[shape->kind],
					    .reason = "overruns its stream",
					    .start_ns = g->start_ns,
					    .end_ns = LAG_GPU_END(p, g),
					    .name = shape->kind == LAG_GPU_KERNEL
							    ? LAG_GPU_SLOT(p, g, name)
							    : LAG_NONE,
					    .correlation = LAG_GPU_SLOT(p, g, correlation) };
	return LAG_OK;
}

/* out: uint32_t indices, descending; used up. */
static enum lag_status put_aside_all(uint32_t proc, struct lag_proc *p, struct lag_vec *out)
{
	enum lag_status st = LAG_OK;
	bool any = out->n > 0;
	size_t kept = 0;

	for (size_t i = 0; i < p->gpu.n && st == LAG_OK && any; i++) {
		if (out->n && LAG_VEC_AT(out, uint32_t, out->n - 1) == i) {
			st = put_aside(proc, p, LAG_GPU_AT(p, i));
			out->n--;
		} else {
			*LAG_GPU_AT(p, kept++) = *LAG_GPU_AT(p, i);
		}
	}
	if (st == LAG_OK && any)
		p->gpu.n = kept;
	return st;
}

enum lag_status lag_merge_overruns(struct lag_merge *m, uint32_t proc, struct lag_err *err)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	struct lag_vec out = LAG_VEC_SPILLED(uint32_t, p->part.spill);
	enum lag_status st = find_overruns(m, p, &out);

	if (st == LAG_OK)
		st = put_aside_all(proc, p, &out);
	lag_vec_release(&out);
	if (st == LAG_ERR_LIMIT)
		return lag_merge_interrupted(err);
	return st == LAG_OK ? st : lag_err_set(err, st, "no memory for quarantined events");
}

/* ---- launches ---- */

/* The first call of each correlation, by start; next leads to the following ones. */
struct calls {
	const struct lag_part *part;
	int64_t least, most; /* correlations in use; least > most: none */
	/* uint32_t by correlation - least: 1 + index; empty where they lie too far apart */
	struct lag_vec direct;
	struct lag_map first; /* then this */
	struct lag_vec next;  /* uint32_t by index: 1 + index */
};

static int64_t correlation_of(const struct lag_part *part, size_t i)
{
	const struct lag_compact *item = LAG_PART_COMPACT(part, api, i);
	uint32_t slot = item->slot[LAG_SLOT_CORRELATION];

	return slot == LAG_SLOT_SHAPE ? LAG_PART_GET(part, api, i).correlation
				      : lag_slot_value(slot, 0);
}

static uint64_t first_of(const struct calls *c, int64_t correlation)
{
	uint64_t ref = 0;

	if (correlation < c->least || correlation > c->most)
		return 0;
	if (c->direct.n)
		return LAG_VEC_AT(&c->direct, uint32_t, correlation - c->least);
	(void)lag_map_find(&c->first, (uint64_t)correlation, &ref);
	return ref;
}

static enum lag_status set_first(struct calls *c, int64_t correlation, uint32_t ref)
{
	if (!c->direct.n)
		return lag_map_set(&c->first, (uint64_t)correlation, ref);
	LAG_VEC_AT(&c->direct, uint32_t, correlation - c->least) = ref;
	return LAG_OK;
}

static enum lag_status index_calls(struct calls *c)
{
	size_t n = LAG_PART_COUNT(c->part, api);
	enum lag_status st = lag_vec_resize(&c->next, n);

	c->least = INT64_MAX;
	for (size_t i = 0; i < n; i++) {
		int64_t correlation = correlation_of(c->part, i);

		if (correlation <= 0)
			continue;
		c->least = correlation < c->least ? correlation : c->least;
		c->most = correlation > c->most ? correlation : c->most;
	}
	/* Correlations count up, so that most of a window is in use. */
	if (st == LAG_OK && c->least <= c->most &&
	    (uint64_t)(c->most - c->least) < 8 * (uint64_t)n + 1024)
		st = lag_vec_resize(&c->direct, (size_t)(c->most - c->least) + 1);
	for (size_t i = n; i > 0 && st == LAG_OK; i--) {
		int64_t correlation = correlation_of(c->part, i - 1);

		if (correlation <= 0)
			continue;
		LAG_VEC_AT(&c->next, uint32_t, i - 1) = (uint32_t)first_of(c, correlation);
		st = set_first(c, correlation, (uint32_t)i);
	}
	return st;
}

static bool holds(const struct lag_part *part, uint32_t outer, uint32_t inner)
{
	struct lag_rec_api a = LAG_PART_GET(part, api, outer - 1);
	struct lag_rec_api b = LAG_PART_GET(part, api, inner - 1);

	return a.tid == b.tid && a.end_ns != LAG_NONE && b.end_ns != LAG_NONE &&
	       a.end_ns >= b.end_ns;
}

/* Of the calls with one correlation: the last that began before the event, and of a runtime call and
 * the driver call inside it the outer one. */
static uint32_t call_of(const struct calls *c, int64_t correlation, int64_t start_ns)
{
	uint32_t refs[CALLS_MAX];
	uint32_t ref = (uint32_t)first_of(c, correlation);
	size_t n = 0;

	for (; ref && n < CALLS_MAX; ref = LAG_VEC_AT(&c->next, uint32_t, ref - 1)) {
		if (n && LAG_PART_COMPACT(c->part, api, ref - 1)->start_ns > start_ns)
			break;
		refs[n++] = ref;
	}
	if (!n)
		return 0;
	while (n > 1 && holds(c->part, refs[n - 2], refs[n - 1]))
		n--;
	return refs[n - 1];
}

enum lag_status lag_merge_tie(struct lag_merge *m, struct lag_proc *p)
{
	struct calls c = { .part = &p->part,
			   .direct = LAG_VEC_SPILLED(uint32_t, p->part.spill),
			   .next = LAG_VEC_SPILLED(uint32_t, p->part.spill),
			   .first = { .spill = p->part.spill } };
	enum lag_status st = index_calls(&c);

	for (size_t i = 0; i < p->gpu.n && st == LAG_OK; i++) {
		struct lag_gpu *g = LAG_GPU_AT(p, i);
		int64_t correlation = LAG_GPU_SLOT(p, g, correlation);

		if (correlation > 0)
			g->api_ref = call_of(&c, correlation, g->start_ns);
		if (lag_merge_cancelled(m, i))
			st = LAG_ERR_LIMIT;
	}
	lag_map_release(&c.first);
	lag_vec_release(&c.direct);
	lag_vec_release(&c.next);
	return st;
}

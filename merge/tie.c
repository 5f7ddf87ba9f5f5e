/* SPDX-License-Identifier: Apache-2.0 */
/* Ties GPU events to the host calls that launched them, by correlation; and puts aside what overruns
 * its stream. Both arrays are by start. */
#include <stdlib.h>

#include "merge/state.h"

#define OVERRUN_NS    INT64_C(1000000)
#define OVERRUN_COUNT 16 /* later events of the stream that lie wholly inside */
/* Later events of the stream that are looked at: few overlap at all. */
#define OVERRUN_LOOKS 4096
/* Calls of one correlation that are looked at: a runtime call, the driver calls inside it, and those
 * of a counter that started again. */
#define CALLS_MAX 64

/* ---- overruns ---- */

/* Events of one stream run one after the other; a few overlap by microseconds, or by one successor's
 * prologue. One that swallows many later ones whole has a wrong end. Graph nodes run side by side.
 * next: 1 + the next event of the same stream. */
static bool overruns(const struct lag_proc *p, const uint32_t *next, uint32_t i)
{
	const struct lag_gpu *g = LAG_GPU_AT(p, i);
	int64_t end_ns = LAG_GPU_END(p, g);
	unsigned inside = 0, looked = 0;

	if (end_ns == LAG_NONE || end_ns - g->start_ns < OVERRUN_NS ||
	    LAG_GPU_SHAPE_AT(p, g)->graph_id > 0)
		return false;
	for (uint32_t ref = next[i]; ref && looked < OVERRUN_LOOKS; ref = next[ref - 1], looked++) {
		const struct lag_gpu *other = LAG_GPU_AT(p, ref - 1);
		int64_t other_end;

		if (other->start_ns >= end_ns)
			return false;
		other_end = LAG_GPU_END(p, other);
		if (other_end != LAG_NONE && other_end > other->start_ns && other_end <= end_ns &&
		    ++inside >= OVERRUN_COUNT)
			return true;
	}
	return false;
}

static uint32_t *chain_streams(const struct lag_proc *p)
{
	uint32_t *next = lag_calloc(p->gpu.n, sizeof(*next));
	uint32_t *later = lag_calloc(p->gpu_shapes.n, sizeof(*later)); /* by stream number */

	for (size_t i = p->gpu.n; i > 0 && next && later; i--) {
		uint32_t queue = LAG_GPU_SHAPE_AT(p, LAG_GPU_AT(p, i - 1))->queue;

		next[i - 1] = later[queue];
		later[queue] = (uint32_t)i;
	}
	if (!later) {
		free(next);
		next = NULL;
	}
	free(later);
	return next;
}

static bool put_aside(struct lag_merge *m, uint32_t proc, const struct lag_gpu *g)
{
	static const char *const records[] = { "kernel", "memcpy", "memset" };
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(p, g);
	struct lag_quarantine_row *row = lag_vec_push(&m->quarantine);

	if (!row)
		return false;
	*row = (struct lag_quarantine_row){ .proc = proc,
					    .record = records[shape->kind],
					    .reason = "overruns its stream",
					    .start_ns = g->start_ns,
					    .end_ns = LAG_GPU_END(p, g),
					    .name = shape->kind == LAG_GPU_KERNEL
							    ? LAG_GPU_SLOT(p, g, name)
							    : LAG_NONE,
					    .correlation = LAG_GPU_SLOT(p, g, correlation) };
	return true;
}

enum lag_status lag_merge_overruns(struct lag_merge *m, uint32_t proc, struct lag_err *err)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	uint32_t *next = chain_streams(p);
	bool *out = lag_calloc(p->gpu.n, sizeof(*out));
	enum lag_status st = next && out ? LAG_OK : LAG_ERR_SYSTEM;
	size_t kept = 0;

	for (uint32_t i = 0; i < p->gpu.n && st == LAG_OK; i++)
		out[i] = overruns(p, next, i);
	for (size_t i = 0; i < p->gpu.n && st == LAG_OK; i++) {
		if (!out[i]) {
			*LAG_GPU_AT(p, kept++) = *LAG_GPU_AT(p, i);
		} else if (!put_aside(m, proc, LAG_GPU_AT(p, i))) {
			st = LAG_ERR_SYSTEM;
		}
	}
	free(out);
	free(next);
	if (st != LAG_OK)
		return lag_err_set(err, st, "no memory for quarantined events");
	p->gpu.n = kept;
	return LAG_OK;
}

/* ---- launches ---- */

/* The first call of each correlation, by start; next leads to the following ones. */
struct calls {
	const struct lag_part *part;
	int64_t least, most; /* correlations in use; least > most: none */
	uint32_t *direct; /* by correlation - least, 1 + index; NULL where they lie too far apart */
	struct lag_map first; /* then this */
	uint32_t *next;       /* by index, 1 + index */
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
	if (c->direct)
		return c->direct[correlation - c->least];
	(void)lag_map_find(&c->first, (uint64_t)correlation, &ref);
	return ref;
}

static enum lag_status set_first(struct calls *c, int64_t correlation, uint32_t ref)
{
	if (!c->direct)
		return lag_map_set(&c->first, (uint64_t)correlation, ref);
	c->direct[correlation - c->least] = ref;
	return LAG_OK;
}

static enum lag_status index_calls(struct calls *c)
{
	size_t n = LAG_PART_COUNT(c->part, api);
	enum lag_status st = LAG_OK;

	c->least = INT64_MAX;
	for (size_t i = 0; i < n; i++) {
		int64_t correlation = correlation_of(c->part, i);

		if (correlation <= 0)
			continue;
		c->least = correlation < c->least ? correlation : c->least;
		c->most = correlation > c->most ? correlation : c->most;
	}
	c->next = lag_calloc(n, sizeof(*c->next));
	if (!c->next)
		return LAG_ERR_SYSTEM;
	/* Correlations count up, so that most of a window is in use. */
	if (c->least <= c->most && (uint64_t)(c->most - c->least) < 8 * (uint64_t)n + 1024)
		c->direct = lag_calloc((size_t)(c->most - c->least) + 1, sizeof(*c->direct));
	for (size_t i = n; i > 0 && st == LAG_OK; i--) {
		int64_t correlation = correlation_of(c->part, i - 1);

		if (correlation <= 0)
			continue;
		c->next[i - 1] = (uint32_t)first_of(c, correlation);
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

	for (; ref && n < CALLS_MAX; ref = c->next[ref - 1]) {
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

enum lag_status lag_merge_tie(struct lag_proc *p)
{
	struct calls c = { .part = &p->part };
	enum lag_status st = index_calls(&c);

	for (size_t i = 0; i < p->gpu.n && st == LAG_OK; i++) {
		struct lag_gpu *g = LAG_GPU_AT(p, i);
		int64_t correlation = LAG_GPU_SLOT(p, g, correlation);

		if (correlation > 0)
			g->api_ref = call_of(&c, correlation, g->start_ns);
	}
	lag_map_release(&c.first);
	free(c.direct);
	free(c.next);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How fine a process's pyramid is, and its making. */
#include "merge/lod.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/lod_track.h"
#include "merge/names.h"

/* Buckets of the finest level an event: with some 6 bytes each, and a third more for the levels above. */
#define BUCKETS_AN_EVENT 0.18
#define SAMPLES          ((size_t)1 << 13)
#define TOP_BUCKETS      64 /* of the coarsest level, for the whole process */
#define TIME_MAX         (((int64_t)1 << 61) - 1)

struct build {
	struct lag_merge *m;
	const struct lag_proc *p;
	const uint32_t *order;
	struct lag_lod_proc *lod;
	struct lag_lod_track *tracks; /* by lane */
	struct lag_lod_level *levels; /* of all tracks */
	struct lag_align_at clock;    /* around the last event */
	uint8_t *name_class;          /* by string id: 0 not looked at, else 1 + class */
	int64_t end_ns; /* when what still runs is taken to end: the last moment on record */
	size_t n_lanes;
};

struct span {
	enum lag_pyramid_class class;
	uint32_t lane;
	int64_t start_ns, end_ns;
};

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the level of detail");
}

/* Like the model that reads the trace: what executes communication is that, whatever it is called. */
static enum lag_pyramid_class class_of(struct build *b, const struct lag_gpu *g,
				       const struct lag_gpu_shape *shape)
{
	int64_t name;
	uint8_t *known;

	if (g->launch_ref)
		return LAG_PYRAMID_COMM;
	if (shape->kind != LAG_GPU_KERNEL)
		return LAG_PYRAMID_COPY;
	name = LAG_GPU_SLOT(b->p, g, name);
	if (name < 0 || (uint64_t)name >= lag_strtab_count(&b->m->pool.strings))
		return LAG_PYRAMID_COMPUTE;
	known = &b->name_class[name];
	if (!*known) {
		*known = 1 + (lag_name_is_communication(lag_merge_text(b->m, name))
				      ? LAG_PYRAMID_COMM
				      : LAG_PYRAMID_COMPUTE);
	}
	return *known - 1;
}

/* Sums and buckets of any two times stay within 64 bits. */
static int64_t bounded(int64_t t)
{
	return t > TIME_MAX ? TIME_MAX : t < -TIME_MAX ? -TIME_MAX : t;
}

static struct span span_of(struct build *b, size_t i)
{
	const struct lag_gpu *g = LAG_GPU_AT(b->p, b->order ? b->order[i] : i);
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(b->p, g);
	int64_t end_ns = LAG_GPU_END(b->p, g);
	struct span out = { .class = class_of(b, g, shape), .lane = 1 + shape->queue };

	out.start_ns = lag_merge_corrected_at(b->m, b->p, &b->clock, shape->dense, g->start_ns);
	out.end_ns = lag_merge_corrected_at(b->m, b->p, &b->clock, shape->dense, end_ns);
	if (end_ns == LAG_NONE)
		out.end_ns = b->end_ns;
	out.start_ns = bounded(out.start_ns);
	out.end_ns = bounded(out.end_ns);
	if (out.end_ns < out.start_ns)
		out.end_ns = out.start_ns;
	return out;
}

/* ---- how fine ---- */

struct occupied {
	double n, busy_ns, from_ns, until_ns;
};

static void occupy(struct occupied *at, const struct span *span, double weight)
{
	double from = (double)span->start_ns, until = (double)span->end_ns;

	if (at->n == 0) {
		at->from_ns = from;
		at->until_ns = until;
	}
	at->n += weight;
	at->busy_ns += weight * (until - from);
	at->from_ns = from < at->from_ns ? from : at->from_ns;
	at->until_ns = until > at->until_ns ? until : at->until_ns;
}

/* Buckets that hold something: at most all, and no more than events touch. */
static double buckets_of(const struct occupied *lanes, size_t n, unsigned shift)
{
	double width = ldexp(1, (int)shift), sum = 0;

	for (size_t i = 0; i < n; i++) {
		double all = (lanes[i].until_ns - lanes[i].from_ns) / width + 1;
		double touched = lanes[i].n + lanes[i].busy_ns / width;

		sum += touched < all ? touched : all;
	}
	return sum;
}

static enum lag_status choose(struct build *b)
{
	struct occupied *lanes = lag_calloc(b->n_lanes, sizeof(*lanes));
	size_t n = b->p->gpu.n, every = 1 + n / SAMPLES;
	unsigned shift = LAG_PYRAMID_SHIFT_MIN, top;
	uint64_t seed = 1;

	if (!lanes)
		return LAG_ERR_SYSTEM;
	/* Steps of different length: events may repeat themselves at any one. */
	for (size_t i = 0; i < n; i += 1 + (seed = lag_hash_u64(seed)) % (2 * every - 1)) {
		struct span span = span_of(b, i);

		occupy(&lanes[0], &span, (double)every);
		occupy(&lanes[span.lane], &span, (double)every);
	}
	while (shift < LAG_PYRAMID_SHIFT_MAX &&
	       buckets_of(lanes, b->n_lanes, shift) > BUCKETS_AN_EVENT * (double)n)
		shift++;
	for (top = shift; top + LAG_PYRAMID_STEP <= LAG_PYRAMID_SHIFT_MAX &&
			  lanes[0].until_ns - lanes[0].from_ns > TOP_BUCKETS * ldexp(1, (int)top);)
		top += LAG_PYRAMID_STEP;
	b->lod->shift = shift;
	b->lod->top_shift = top;
	free(lanes);
	return LAG_OK;
}

/* ---- making ---- */

static bool take(void *state, uint32_t lane, unsigned shift, int64_t segment,
		 const struct lag_buf *packed)
{
	struct lag_lod_proc *lod = state;
	struct lag_lod_row *row;

	if (lag_failed(lag_vec_reserve(&lod->bytes, packed->n)) ||
	    !(row = lag_vec_push(&lod->rows)))
		return false;
	*row = (struct lag_lod_row){ .segment = segment,
				     .at = lod->bytes.n,
				     .lane = lane,
				     .size = (uint16_t)packed->n,
				     .shift = (uint8_t)shift };
	memcpy((uint8_t *)lod->bytes.items + lod->bytes.n, packed->text, packed->n);
	lod->bytes.n += packed->n;
	return true;
}

static void release_tracks(struct build *b)
{
	unsigned n_levels = b->tracks ? b->tracks[0].n_levels : 0;

	for (size_t i = 0; b->levels && i < b->n_lanes * n_levels; i++)
		lag_buf_release(&b->levels[i].packed);
	free(b->levels);
	free(b->tracks);
	b->levels = NULL;
	b->tracks = NULL;
}

static enum lag_status make_tracks(struct build *b, uint64_t *n_left)
{
	struct lag_lod_proc *lod = b->lod;
	unsigned n_levels = 1 + (lod->top_shift - lod->shift) / LAG_PYRAMID_STEP;

	b->tracks = lag_calloc(b->n_lanes, sizeof(*b->tracks));
	b->levels = lag_calloc(b->n_lanes * n_levels, sizeof(*b->levels));
	if (!b->tracks || !b->levels)
		return LAG_ERR_SYSTEM;
	lod->lanes.n = lod->rows.n = lod->bytes.n = 0;
	if (lag_failed(lag_vec_resize(&lod->lanes, b->n_lanes)))
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < b->n_lanes; i++) {
		struct lag_lod_track *track = &b->tracks[i];

		*track = (struct lag_lod_track){ .levels = &b->levels[i * n_levels],
						 .shift = lod->shift,
						 .n_levels = n_levels,
						 .n_left = n_left,
						 .lane = (uint32_t)i,
						 .take = take,
						 .state = lod };
		lag_lod_track_init(track);
	}
	return LAG_OK;
}

static void add_to(struct build *b, uint32_t lane, const struct span *span)
{
	struct lag_lod_lane *l = &LAG_VEC_AT(&b->lod->lanes, struct lag_lod_lane, lane);

	if (!l->n_events++) {
		l->first_ns = span->start_ns;
		l->last_ns = span->end_ns;
	}
	l->last_ns = span->end_ns > l->last_ns ? span->end_ns : l->last_ns;
	lag_lod_track_add(&b->tracks[lane], span->class, span->start_ns, span->end_ns);
}

/* Only samples were looked at: an event that runs on and on may have been missed. */
static void raise_top(struct lag_lod_proc *lod)
{
	const struct lag_lod_lane *whole = lod->lanes.items;

	lod->top_shift = lod->top_shift > lod->shift ? lod->top_shift : lod->shift;
	while (lod->top_shift + LAG_PYRAMID_STEP <= LAG_PYRAMID_SHIFT_MAX &&
	       (whole->last_ns - whole->first_ns) >> lod->top_shift > LAG_PYRAMID_TOP_MAX / 2)
		lod->top_shift += LAG_PYRAMID_STEP;
}

/* LAG_END: there are too many buckets at this level. */
static enum lag_status feed(struct build *b, struct lag_err *err)
{
	bool coarsest = b->lod->shift + LAG_PYRAMID_STEP > LAG_PYRAMID_SHIFT_MAX;
	uint64_t n_left = coarsest ? UINT64_MAX : 4096 + b->p->gpu.n;
	enum lag_status st = make_tracks(b, &n_left);
	unsigned top;

	for (size_t i = 0; i < b->p->gpu.n && st == LAG_OK; i++) {
		struct span span = span_of(b, i);

		if (lag_merge_cancelled(b->m, i))
			st = lag_merge_interrupted(err);
		add_to(b, 0, &span);
		add_to(b, span.lane, &span);
		if (!n_left)
			st = LAG_END;
	}
	for (size_t i = 0; i < b->n_lanes && st == LAG_OK; i++) {
		lag_lod_track_end(&b->tracks[i]);
		if (b->tracks[i].failed)
			st = LAG_ERR_SYSTEM;
	}
	release_tracks(b);
	if (st == LAG_OK && !n_left)
		st = LAG_END;
	if (lag_failed(st))
		return st;
	if (st == LAG_END)
		b->lod->shift += LAG_PYRAMID_STEP;
	top = b->lod->top_shift;
	raise_top(b->lod);
	return st == LAG_OK && top != b->lod->top_shift ? LAG_END : st;
}

/* Which stream a lane is. */
static void find_shapes(const struct lag_proc *p, struct lag_lod_proc *lod)
{
	for (size_t i = 0; i < p->gpu_shapes.n; i++) {
		const struct lag_gpu_shape *s =
			&LAG_VEC_AT(&p->gpu_shapes, struct lag_gpu_shape, i);

		LAG_VEC_AT(&lod->lanes, struct lag_lod_lane, 1 + s->queue).shape_ref =
			(uint32_t)i + 1;
	}
}

enum lag_status lag_lod_proc_build(struct lag_merge *m, const struct lag_proc *p,
				   const uint32_t *order, struct lag_lod_proc *lod,
				   struct lag_err *err)
{
	struct build b = { .m = m, .p = p, .order = order, .lod = lod, .n_lanes = 1 };
	enum lag_status st;

	lod->lanes = (struct lag_vec)LAG_VEC_INIT(struct lag_lod_lane);
	lod->rows = (struct lag_vec)LAG_VEC_SPILLED(struct lag_lod_row, m->spill);
	lod->bytes = (struct lag_vec)LAG_VEC_SPILLED(uint8_t, m->spill);
	if (!p->gpu.n)
		return LAG_OK;
	for (size_t i = 0; i < p->gpu_shapes.n; i++) {
		uint32_t queue = LAG_VEC_AT(&p->gpu_shapes, struct lag_gpu_shape, i).queue;

		b.n_lanes = queue + 2 > b.n_lanes ? queue + 2 : b.n_lanes;
	}
	b.end_ns = lag_merge_corrected(m, p, LAG_HOST_CLOCK, p->last_ns);
	b.name_class = lag_calloc(lag_strtab_count(&m->pool.strings), 1);
	st = b.name_class ? choose(&b) : LAG_ERR_SYSTEM;
	/* Ends, because each time a level is given up, or the last becomes enough. */
	while (st == LAG_OK && (st = feed(&b, err)) == LAG_END)
		st = LAG_OK;
	if (st == LAG_OK)
		find_shapes(p, lod);
	free(b.name_class);
	return st == LAG_ERR_SYSTEM ? no_memory(err) : st;
}

void lag_lod_proc_release(struct lag_lod_proc *lod)
{
	lag_vec_release(&lod->lanes);
	lag_vec_release(&lod->rows);
	lag_vec_release(&lod->bytes);
}

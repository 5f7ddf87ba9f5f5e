/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes at once, segments as they are asked for; the last one of each level is kept. */
#include "viz/model/pyramid.h"

#include <stdlib.h>

#include "schema/base/mem.h"
#include "viz/model/interval.h"
#include "viz/model/load_pyramid_lane.sql.h"
#include "viz/model/pyramid_segment.sql.h"

#define N_LEVELS (1 + LAG_PYRAMID_SHIFT_MAX - LAG_PYRAMID_SHIFT_MIN)

struct segment {
	int64_t lane_id, number;
	bool there;
	struct lag_bucket buckets[LAG_PYRAMID_BUCKETS];
};

struct lag_pyramid {
	struct lag_db *db;
	struct lag_stmt *find;
	struct lag_vec lanes; /* struct lag_pyramid_lane */
	struct segment *last; /* by level */
};

static bool is_level(int64_t shift)
{
	return shift >= LAG_PYRAMID_SHIFT_MIN && shift <= LAG_PYRAMID_SHIFT_MAX;
}

static bool read_lane(const struct lag_stmt *row, const struct lag_pyramid_lane *before,
		      struct lag_pyramid_lane *lane)
{
	int64_t shift = lag_stmt_int(row, 8), top = lag_stmt_int(row, 9);

	*lane = (struct lag_pyramid_lane){ .id = lag_stmt_int(row, 0),
					   .rank = lag_stmt_int(row, 1),
					   .device = lag_stmt_int(row, 2),
					   .context = lag_stmt_int(row, 3),
					   .stream = lag_stmt_int(row, 4),
					   .n_events = lag_stmt_int(row, 5),
					   .first_ns = lag_stmt_int(row, 6),
					   .last_ns = lag_stmt_int(row, 7) };
	if (!is_level(shift) || !is_level(top) || top < shift || (top - shift) % LAG_PYRAMID_STEP ||
	    lane->n_events < 0)
		return false;
	lane->shift = (unsigned)shift;
	lane->top_shift = (unsigned)top;
	/* A rank's own lane comes before its streams'. */
	if (lane->id < 1 || lane->rank < 0 || (before && before->rank > lane->rank) ||
	    (lane->device == LAG_NONE) != (!before || before->rank < lane->rank))
		return false;
	return lane->first_ns > -LAG_TIME_MAX_NS && lane->first_ns <= lane->last_ns &&
	       lane->last_ns < LAG_TIME_MAX_NS &&
	       (lane->last_ns - lane->first_ns) >> lane->top_shift <= LAG_PYRAMID_TOP_MAX;
}

static enum lag_status read_lanes(struct lag_pyramid *pyramid, struct lag_err *err)
{
	const struct lag_pyramid_lane *before = NULL;
	struct lag_stmt *stmt = NULL;
	enum lag_status st =
		lag_stmt_prepare(pyramid->db, lag_sql_load_pyramid_lane, NULL, &stmt, err);

	while (st == LAG_OK && (st = lag_stmt_step(stmt, err)) == LAG_OK) {
		struct lag_pyramid_lane *lane = lag_vec_push(&pyramid->lanes);

		if (!lane) {
			st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory for lanes");
			break;
		}
		before = pyramid->lanes.n > 1 ? lane - 1 : NULL;
		if (!read_lane(stmt, before, lane)) {
			st = lag_err_set(err, LAG_ERR_INPUT,
					 "level of detail of lane %lld cannot be: merge again",
					 (long long)lane->id);
		}
	}
	lag_stmt_free(stmt);
	return st == LAG_END ? LAG_OK : st;
}

enum lag_status lag_pyramid_open(struct lag_db *db, struct lag_pyramid **out, struct lag_err *err)
{
	struct lag_pyramid *pyramid;
	enum lag_status st = LAG_OK;

	*out = NULL;
	pyramid = lag_calloc(1, sizeof(*pyramid));
	if (!pyramid)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	pyramid->db = db;
	pyramid->lanes = (struct lag_vec)LAG_VEC_INIT(struct lag_pyramid_lane);
	pyramid->last = lag_calloc(N_LEVELS, sizeof(*pyramid->last));
	if (!pyramid->last)
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	if (st == LAG_OK)
		st = read_lanes(pyramid, err);
	if (st == LAG_OK && !pyramid->lanes.n)
		st = LAG_END;
	if (st == LAG_OK)
		st = lag_stmt_prepare(db, lag_sql_pyramid_segment, NULL, &pyramid->find, err);
	if (st != LAG_OK) {
		lag_pyramid_close(pyramid);
		return st;
	}
	*out = pyramid;
	return LAG_OK;
}

void lag_pyramid_close(struct lag_pyramid *pyramid)
{
	if (!pyramid)
		return;
	lag_stmt_free(pyramid->find);
	lag_vec_release(&pyramid->lanes);
	free(pyramid->last);
	free(pyramid);
}

const struct lag_pyramid_lane *lag_pyramid_lanes(const struct lag_pyramid *pyramid, size_t *n)
{
	*n = pyramid->lanes.n;
	return pyramid->lanes.items;
}

const struct lag_pyramid_lane *lag_pyramid_rank(const struct lag_pyramid *pyramid, int64_t rank,
						size_t *n)
{
	const struct lag_pyramid_lane *lanes = pyramid->lanes.items;
	size_t low = 0, high = pyramid->lanes.n, end;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (lanes[mid].rank < rank) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	for (end = low; end < pyramid->lanes.n && lanes[end].rank == rank; end++)
		continue;
	*n = end - low;
	return end > low ? &lanes[low] : NULL;
}

/* A segment's buckets, borrowed until the next of its level; *out NULL: all are empty. */
static enum lag_status get_segment(struct lag_pyramid *pyramid, const struct lag_pyramid_lane *lane,
				   unsigned shift, int64_t number, const struct segment **out,
				   struct lag_err *err)
{
	struct segment *at = &pyramid->last[shift - LAG_PYRAMID_SHIFT_MIN];
	enum lag_status st = LAG_OK;
	const void *blob;
	size_t n;

	*out = at->there ? at : NULL;
	if (at->lane_id == lane->id && at->number == number)
		return LAG_OK;
	at->lane_id = 0; /* of none, should this fail */
	at->there = false;
	at->number = number;
	lag_stmt_reset(pyramid->find);
	st = lag_stmt_bind_int(pyramid->find, 1, shift, err);
	if (st == LAG_OK)
		st = lag_stmt_bind_int(pyramid->find, 2, number, err);
	if (st == LAG_OK)
		st = lag_stmt_bind_int(pyramid->find, 3, lane->id, err);
	if (st == LAG_OK)
		st = lag_stmt_step(pyramid->find, err);
	if (lag_failed(st))
		return st;
	if (st == LAG_OK) {
		blob = lag_stmt_blob(pyramid->find, 0, &n);
		/* A segment without anything in it is not written. */
		if (!n || lag_failed(lag_segment_read(blob, n, shift, at->buckets))) {
			return lag_err_set(err, LAG_ERR_INPUT,
					   "level of detail of lane %lld, level %u, segment %lld, "
					   "is damaged: merge again",
					   (long long)lane->id, shift, (long long)number);
		}
		at->there = true;
	}
	at->lane_id = lane->id;
	*out = at->there ? at : NULL;
	return LAG_OK;
}

/* What of a bucket's n lies in its first `part` of `width` ns; all for all of it, and nothing lost between
 * neighbours. Below 2^53, doubles are exact. */
static int64_t before(int64_t n, int64_t part, int64_t width)
{
	if (part >= width)
		return n;
	return part <= 0 ? 0 : (int64_t)((double)n * ((double)part / (double)width));
}

/* Adds the part [from, until) of the bucket that begins at start_ns; nothing of it lies before its lane's
 * first event, or behind the last. */
static void add_part(struct lag_bucket *out, const struct lag_bucket *bucket,
		     const struct lag_pyramid_lane *lane, int64_t start_ns, unsigned shift,
		     int64_t from, int64_t until)
{
	int64_t end_ns = start_ns + (INT64_C(1) << shift), n = (int64_t)bucket->n_events;
	int64_t width, a, b;

	start_ns = start_ns > lane->first_ns ? start_ns : lane->first_ns;
	end_ns = end_ns < lane->last_ns ? end_ns : lane->last_ns;
	width = end_ns > start_ns ? end_ns - start_ns : 1;
	a = from - start_ns;
	b = until - start_ns;
	for (int c = 0; c < LAG_PYRAMID_CLASSES; c++)
		out->ns[c] += before(bucket->ns[c], b, width) - before(bucket->ns[c], a, width);
	out->n_events += (uint64_t)(before(n, b, width) - before(n, a, width));
}

/* ---- columns ---- */

static void add_whole(struct lag_bucket *out, const struct lag_bucket *bucket)
{
	for (int c = 0; c < LAG_PYRAMID_CLASSES; c++)
		out->ns[c] += bucket->ns[c];
	out->n_events += bucket->n_events;
}

struct columns {
	const int64_t *edges;
	int n, at; /* the column that comes next */
	struct lag_bucket *out;
};

static void spread(struct columns *to, const struct lag_bucket *bucket,
		   const struct lag_pyramid_lane *lane, int64_t start_ns, unsigned shift)
{
	int64_t end_ns = start_ns + (INT64_C(1) << shift);

	if (!bucket->n_events && !(bucket->ns[0] | bucket->ns[1] | bucket->ns[2]))
		return;
	while (to->at < to->n && to->edges[to->at + 1] <= start_ns)
		to->at++;
	if (to->at < to->n && to->edges[to->at] <= start_ns && to->edges[to->at + 1] >= end_ns) {
		add_whole(&to->out[to->at], bucket);
		return;
	}
	for (int i = to->at; i < to->n && to->edges[i] < end_ns; i++) {
		add_part(&to->out[i], bucket, lane, start_ns, shift, to->edges[i],
			 to->edges[i + 1]);
	}
}

static unsigned level_for(const struct lag_pyramid_lane *lane, int64_t column_ns)
{
	unsigned shift = lane->shift;

	while (shift < lane->top_shift && INT64_C(2) << (shift + LAG_PYRAMID_STEP) <= column_ns)
		shift += LAG_PYRAMID_STEP;
	return shift;
}

enum lag_status lag_pyramid_columns(struct lag_pyramid *pyramid,
				    const struct lag_pyramid_lane *lane, const int64_t *edges,
				    int n, struct lag_bucket *out, struct lag_err *err)
{
	struct columns to = { .edges = edges, .n = n, .out = out };
	int64_t from = edges[0] > lane->first_ns ? edges[0] : lane->first_ns;
	int64_t until = edges[n] < lane->last_ns + 1 ? edges[n] : lane->last_ns + 1;
	unsigned shift, bits;

	if (n < 1 || from >= until)
		return LAG_OK;
	shift = level_for(lane, (edges[n] - edges[0]) / n);
	bits = shift + LAG_PYRAMID_BUCKET_BITS;
	for (int64_t s = from >> bits; s <= (until - 1) >> bits; s++) {
		const struct segment *segment;
		enum lag_status st = get_segment(pyramid, lane, shift, s, &segment, err);

		if (st != LAG_OK)
			return st;
		for (int i = 0; segment && i < LAG_PYRAMID_BUCKETS; i++) {
			int64_t index = s * LAG_PYRAMID_BUCKETS + i;

			if (index < from >> shift || index > (until - 1) >> shift)
				continue;
			spread(&to, &segment->buckets[i], lane, index * (INT64_C(1) << shift),
			       shift);
		}
	}
	return LAG_OK;
}

/* ---- sums ---- */

/* The widest level whose bucket begins at t and ends by `until`; 0: none. */
static unsigned level_at(const struct lag_pyramid_lane *lane, int64_t t, int64_t until)
{
	unsigned found = 0;

	for (unsigned shift = lane->shift;
	     shift <= lane->top_shift && shift <= LAG_PYRAMID_SHIFT_MAX;
	     shift += LAG_PYRAMID_STEP) {
		int64_t width = INT64_C(1) << shift;

		if ((t & (width - 1)) || until - t < width)
			break;
		found = shift;
	}
	return found;
}

enum lag_status lag_pyramid_between(struct lag_pyramid *pyramid,
				    const struct lag_pyramid_lane *lane, int64_t t0, int64_t t1,
				    struct lag_bucket *out, struct lag_err *err)
{
	int64_t width = INT64_C(1) << lane->shift;
	/* Whole buckets where the lane begins and ends: what is outside of it is empty. */
	int64_t first = lane->first_ns & ~(width - 1);
	int64_t last = (lane->last_ns | (width - 1)) + 1;
	int64_t t = t0 > first ? t0 : first;

	t1 = t1 < last ? t1 : last;
	while (t < t1) {
		unsigned exact = level_at(lane, t, t1), shift = exact ? exact : lane->shift;
		int64_t index = t >> shift, start = index * (INT64_C(1) << shift);
		int64_t end = start + (INT64_C(1) << shift);
		const struct segment *segment;
		enum lag_status st = get_segment(pyramid, lane, shift,
						 index >> LAG_PYRAMID_BUCKET_BITS, &segment, err);

		if (st != LAG_OK)
			return st;
		end = end < t1 ? end : t1;
		if (segment) {
			add_part(out, &segment->buckets[index & (LAG_PYRAMID_BUCKETS - 1)], lane,
				 start, shift, t, end);
		}
		t = end;
	}
	return LAG_OK;
}

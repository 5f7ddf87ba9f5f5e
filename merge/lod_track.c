/* SPDX-License-Identifier: Apache-2.0 */
/* Events of one lane, by start, to segments of buckets at every level. */
#include "merge/lod_track.h"

/* The segment's bytes so far go out. */
static void flush(struct lag_lod_track *track, unsigned l)
{
	struct lag_lod_level *level = &track->levels[l];

	if (level->packed.failed ||
	    (level->packed.n &&
	     !track->take(track->state, track->lane, track->shift + l * LAG_PYRAMID_STEP,
			  level->segment, &level->packed)))
		track->failed = true;
	lag_buf_clear(&level->packed);
	level->next = 0;
}

static void pack(struct lag_lod_track *track, unsigned l, int64_t index,
		 const struct lag_bucket *bucket)
{
	struct lag_lod_level *level = &track->levels[l];
	int64_t segment = index >> LAG_PYRAMID_BUCKET_BITS;
	uint64_t place = (uint64_t)index & (LAG_PYRAMID_BUCKETS - 1);
	uint8_t *p;

	if (segment != level->segment) {
		flush(track, l);
		level->segment = segment;
	}
	if (!lag_buf_reserve(&level->packed, (size_t)2 * LAG_BUCKET_BYTES_MAX)) {
		track->failed = true;
		return;
	}
	p = (uint8_t *)level->packed.text + level->packed.n;
	if (place > level->next)
		p = lag_bucket_skip(p, place - level->next);
	p = lag_bucket_put(p, bucket, track->shift + l * LAG_PYRAMID_STEP);
	level->packed.n = (size_t)(p - (uint8_t *)level->packed.text);
	level->next = place + 1;
}

/* Adds to bucket `index` of level l. Where another one was being filled, that one is over, and added to the
 * level above in the same way. */
static void add(struct lag_lod_track *track, unsigned l, int64_t index, struct lag_bucket more)
{
	for (; l < track->n_levels; l++, index >>= LAG_PYRAMID_STEP) {
		struct lag_lod_level *level = &track->levels[l];
		struct lag_bucket over = level->bucket;
		int64_t over_index = level->index;
		bool used = level->used;

		if (used && over_index == index) {
			for (int c = 0; c < LAG_PYRAMID_CLASSES; c++)
				level->bucket.ns[c] += more.ns[c];
			level->bucket.n_events += more.n_events;
			return;
		}
		level->bucket = more;
		level->index = index;
		level->used = true;
		if (!used)
			return;
		pack(track, l, over_index, &over);
		more = over;
		index = over_index;
	}
}

/* To the finest bucket that t_ns is in. */
static void move_to(struct lag_lod_track *track, int64_t t_ns)
{
	int64_t index = t_ns >> track->shift;

	add(track, 0, index, (struct lag_bucket){ 0 });
	track->edge_ns = (int64_t)(((uint64_t)index + 1) << track->shift);
	if (*track->n_left)
		--*track->n_left;
}

static inline void put(struct lag_lod_track *track, const struct lag_sweep_piece *piece)
{
	int64_t *ns = &track->levels[0].bucket.ns[piece->class], from = piece->from_ns;

	while (piece->until_ns > track->edge_ns && *track->n_left) {
		/* Not from a bucket that is still to come. */
		if (from < track->edge_ns) {
			*ns += track->edge_ns - from;
			from = track->edge_ns;
		}
		move_to(track, from);
	}
	*ns += piece->until_ns - from;
}

/* Time before `to` is settled. */
static inline void settle(struct lag_lod_track *track, int64_t to)
{
	struct lag_sweep_piece piece;

	while (lag_sweep_next(&track->sweep, to, &piece))
		put(track, &piece);
}

void lag_lod_track_init(struct lag_lod_track *track)
{
	lag_sweep_init(&track->sweep);
	track->edge_ns = INT64_MIN;
}

void lag_lod_track_add(struct lag_lod_track *track, enum lag_pyramid_class class, int64_t start_ns,
		       int64_t end_ns)
{
	settle(track, start_ns);
	if (start_ns >= track->edge_ns)
		move_to(track, start_ns);
	track->levels[0].bucket.n_events++;
	lag_sweep_add(&track->sweep, class, end_ns);
}

void lag_lod_track_end(struct lag_lod_track *track)
{
	settle(track, lag_sweep_end(&track->sweep));
	for (unsigned l = 0; l < track->n_levels; l++) {
		struct lag_lod_level *level = &track->levels[l];

		if (level->used) {
			pack(track, l, level->index, &level->bucket);
			add(track, l + 1, level->index >> LAG_PYRAMID_STEP, level->bucket);
		}
		level->used = false;
		flush(track, l);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes. Viewers cut or drop slices that overlap on one track without nesting, so what does not fit
 * goes to an overflow lane of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/export/chrome.h"

#define LANES_MAX 256u

static uint64_t track_key(uint32_t r, enum lag_chrome_track_kind kind, int64_t key)
{
	return lag_hash_pair(lag_hash_pair(r, (uint64_t)kind), (uint64_t)key);
}

static struct lag_chrome_track *find(const struct lag_chrome *c, uint32_t r,
				     enum lag_chrome_track_kind kind, int64_t key)
{
	uint64_t hash = track_key(r, kind, key), at;

	/* Two tracks with one hash take neighbouring places. */
	for (; lag_map_find(&c->track_ids, hash, &at); hash++) {
		struct lag_chrome_track *t = &LAG_VEC_AT(&c->tracks, struct lag_chrome_track, at);

		if (t->r == r && t->kind == kind && t->key == key)
			return t;
	}
	return NULL;
}

static enum lag_status index_track(struct lag_chrome *c, size_t i)
{
	const struct lag_chrome_track *t = &LAG_VEC_AT(&c->tracks, struct lag_chrome_track, i);
	uint64_t hash = track_key(t->r, t->kind, t->key), at;

	while (lag_map_find(&c->track_ids, hash, &at))
		hash++;
	return lag_map_set(&c->track_ids, hash, i);
}

static struct lag_chrome_track *find_or_add(struct lag_chrome *c, uint32_t r,
					    enum lag_chrome_track_kind kind, int64_t key)
{
	uint32_t *near = &c->near_tracks[((uint64_t)key + (unsigned)kind) % LAG_CHROME_NEAR];
	struct lag_chrome_track *t;

	if (*near) {
		t = &LAG_VEC_AT(&c->tracks, struct lag_chrome_track, *near - 1);
		if (t->r == r && t->kind == kind && t->key == key)
			return t;
	}
	t = find(c, r, kind, key);
	if (t) {
		*near = (uint32_t)(t - (struct lag_chrome_track *)c->tracks.items) + 1;
		return t;
	}
	t = lag_vec_push(&c->tracks);
	if (!t)
		return NULL;
	*t = (struct lag_chrome_track){ .r = r,
					.kind = kind,
					.key = key,
					.nests = kind == LAG_CT_RANGES ||
						 kind == LAG_CT_GPU_RANGES || kind == LAG_CT_API ||
						 kind == LAG_CT_NCCL_CALLS,
					.open = LAG_VEC_INIT(struct lag_vec) };
	return lag_failed(index_track(c, c->tracks.n - 1)) ? NULL : t;
}

/* Whether [start, end) fits behind, or inside, what is open on the lane. */
static bool fits(struct lag_vec *ends, bool nests, int64_t start, int64_t end)
{
	while (ends->n && LAG_VEC_AT(ends, int64_t, ends->n - 1) <= start)
		ends->n--;
	return !ends->n || (nests && LAG_VEC_AT(ends, int64_t, ends->n - 1) >= end);
}

/* The first lane that it fits; the last one for all when there are too many. */
static size_t choose_lane(struct lag_chrome_track *t, int64_t start, int64_t end)
{
	for (size_t i = 0; i < t->open.n; i++) {
		if (fits(&LAG_VEC_AT(&t->open, struct lag_vec, i), t->nests, start, end))
			return i;
	}
	return t->open.n < LANES_MAX ? t->open.n : LANES_MAX - 1;
}

/* Where a lane is reused, as nearly always, there is room. */
static int64_t *push_end(struct lag_vec *ends)
{
	return ends->n < ends->cap ? &LAG_VEC_AT(ends, int64_t, ends->n++) : lag_vec_push(ends);
}

uint32_t lag_chrome_place(struct lag_chrome *c, uint32_t r, enum lag_chrome_track_kind kind,
			  int64_t key, int64_t start_ns, int64_t end_ns)
{
	struct lag_chrome_track *t;
	size_t lane;
	int64_t *slot;

	if (lag_failed(c->status))
		return 0;
	t = find_or_add(c, r, kind, key);
	lane = t ? choose_lane(t, start_ns, end_ns) : 0;
	if (t && lane == t->open.n) {
		struct lag_vec *ends = lag_vec_push(&t->open);

		if (ends) {
			*ends = (struct lag_vec)LAG_VEC_INIT(int64_t);
		} else {
			t = NULL;
		}
	}
	slot = t ? push_end(&LAG_VEC_AT(&t->open, struct lag_vec, lane)) : NULL;
	if (!slot) {
		lag_chrome_fail(c, lag_err_set(c->err, LAG_ERR_SYSTEM, "no memory for lanes"));
		return 0;
	}
	*slot = end_ns;
	if (t->n_lanes < lane + 1)
		t->n_lanes = (uint32_t)lane + 1;
	return t->first_tid ? t->first_tid + (uint32_t)lane : 0;
}

uint32_t lag_chrome_find_tid(const struct lag_chrome *c, uint32_t r,
			     enum lag_chrome_track_kind kind, int64_t key)
{
	const struct lag_chrome_track *t = find(c, r, kind, key);

	return t ? t->first_tid : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct lag_chrome_track *x = a, *y = b;

	if (x->r != y->r)
		return x->r < y->r ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static void close_lanes(struct lag_chrome_track *t)
{
	for (size_t i = 0; i < t->open.n; i++)
		lag_vec_release(&LAG_VEC_AT(&t->open, struct lag_vec, i));
	lag_vec_release(&t->open);
	t->open = (struct lag_vec)LAG_VEC_INIT(struct lag_vec);
}

void lag_chrome_number_tracks(struct lag_chrome *c)
{
	/* Apart from process numbers: a thread with its process's number would be its main one. */
	uint32_t tid = (uint32_t)c->trace->n_ranks + 100;

	if (c->tracks.n)
		qsort(c->tracks.items, c->tracks.n, sizeof(struct lag_chrome_track), by_place);
	lag_map_release(&c->track_ids);
	memset(c->near_tracks, 0, sizeof(c->near_tracks));
	for (size_t i = 0; i < c->tracks.n; i++) {
		struct lag_chrome_track *t = &LAG_VEC_AT(&c->tracks, struct lag_chrome_track, i);

		close_lanes(t);
		t->first_tid = tid;
		tid += t->n_lanes;
		if (lag_failed(index_track(c, i)))
			lag_chrome_fail(c, lag_err_set(c->err, LAG_ERR_SYSTEM, "no memory"));
	}
}

void lag_chrome_release_tracks(struct lag_chrome *c)
{
	for (size_t i = 0; i < c->tracks.n; i++)
		close_lanes(&LAG_VEC_AT(&c->tracks, struct lag_chrome_track, i));
	lag_vec_release(&c->tracks);
	lag_map_release(&c->track_ids);
}

/* What a stream that communicates does, where the communicator's role is known. */
static const char *stream_use(const struct lag_chrome *c, int64_t lane)
{
	static const char *const uses[LAG_ROLE_LIMIT] = {
		[LAG_ROLE_WORLD] = " NCCL world",         [LAG_ROLE_PIPELINE] = " NCCL pipeline",
		[LAG_ROLE_DATA] = " NCCL data",           [LAG_ROLE_TENSOR] = " NCCL tensor",
		[LAG_ROLE_EXPERT] = " NCCL expert",       [LAG_ROLE_CONTEXT] = " NCCL context",
		[LAG_ROLE_EMBEDDING] = " NCCL embedding",
	};
	int32_t comm = c->lane_comm[lane];
	enum lag_comm_role role = comm < 0 ? LAG_ROLE_UNSURE : c->roles->comm_role[comm];

	if (comm < 0)
		return "";
	return role < LAG_ROLE_LIMIT && uses[role] ? uses[role] : " NCCL";
}

static void track_name(const struct lag_chrome *c, const struct lag_chrome_track *t, uint32_t lane,
		       char *out, size_t room)
{
	static const char *const titles[] = { [LAG_CT_STEPS] = "steps",
					      [LAG_CT_TIME] = "bubbles and waits",
					      [LAG_CT_WAITS] = "waiting in NCCL",
					      [LAG_CT_GPU_RANGES] = "annotations on stream",
					      [LAG_CT_RANGES] = "NVTX of thread",
					      [LAG_CT_NCCL_CALLS] = "NCCL calls",
					      [LAG_CT_API] = "CUDA calls of thread",
					      [LAG_CT_SYNCS] = "events and waits" };
	const struct lag_lane *s;
	char more[32] = "";

	if (lane)
		(void)snprintf(more, sizeof(more), " (overlap %u)", lane);
	if (t->kind == LAG_CT_STREAM) {
		s = &c->trace->lanes[t->key];
		(void)snprintf(out, room, "GPU %lld stream %lld%s%s", (long long)s->device,
			       (long long)s->stream, stream_use(c, t->key), more);
	} else if (t->kind < LAG_CT_STREAM || t->kind == LAG_CT_NCCL_CALLS ||
		   t->kind == LAG_CT_SYNCS) {
		(void)snprintf(out, room, "%s%s", titles[t->kind], more);
	} else {
		(void)snprintf(out, room, "%s %lld%s", titles[t->kind], (long long)t->key, more);
	}
}

static void write_meta(struct lag_chrome *c, const char *what, uint32_t pid, uint32_t tid,
		       const char *key, const char *text, int64_t number)
{
	struct lag_json *j = &c->json;

	lag_buf_puts(&c->buf, j->comma ? ",\n" : "\n");
	j->comma = false;
	lag_json_begin(j, '{');
	lag_json_key(j, "ph");
	lag_json_text(j, "M");
	lag_json_key(j, "name");
	lag_json_text(j, what);
	lag_json_key(j, "pid");
	lag_json_int(j, pid);
	lag_json_key(j, "tid");
	lag_json_int(j, tid);
	lag_json_key(j, "ts");
	lag_json_int(j, 0);
	lag_json_key(j, "args");
	lag_json_begin(j, '{');
	lag_json_key(j, key);
	if (text) {
		lag_json_text(j, text);
	} else {
		lag_json_int(j, number);
	}
	lag_json_end(j, '}');
	lag_json_end(j, '}');
}

static void rank_name(const struct lag_chrome *c, uint32_t r, char *out, size_t room)
{
	const struct lag_rank *rank = &c->trace->ranks[r];
	const char *host = rank->host >= 0 ? c->trace->hosts[rank->host].name : "";
	int stage = c->roles->ranks ? c->roles->ranks[r].stage : -1;
	char where[64] = "";

	if (stage >= 0 && c->roles->n_stages > 1)
		(void)snprintf(where, sizeof(where), "stage %d", stage);
	if (host[0] || where[0]) {
		(void)snprintf(out, room, "rank %lld (%s%s%s)", (long long)rank->rank, host,
			       host[0] && where[0] ? ", " : "", where);
	} else {
		(void)snprintf(out, room, "rank %lld", (long long)rank->rank);
	}
}

void lag_chrome_write_names(struct lag_chrome *c)
{
	char text[512];

	for (uint32_t r = 0; r < c->trace->n_ranks; r++) {
		int64_t error = c->trace->ranks[r].uncertainty_ns;

		if (!c->exported[r])
			continue;
		rank_name(c, r, text, sizeof(text));
		write_meta(c, "process_name", lag_chrome_pid(r), 0, "name", text, 0);
		write_meta(c, "process_sort_index", lag_chrome_pid(r), 0, "sort_index", NULL, r);
		if (lag_trace_n_recorded(c->trace) < 2) {
			(void)snprintf(text, sizeof(text), "clock error n/a: one rank");
		} else if (error == INT64_MAX) {
			(void)snprintf(text, sizeof(text), "clock error unknown");
		} else {
			(void)snprintf(text, sizeof(text), "clock error %.1f us",
				       (double)error / 1e3);
		}
		write_meta(c, "process_labels", lag_chrome_pid(r), 0, "labels", text, 0);
	}
	for (size_t i = 0; i < c->tracks.n; i++) {
		const struct lag_chrome_track *t =
			&LAG_VEC_AT(&c->tracks, struct lag_chrome_track, i);

		for (uint32_t lane = 0; lane < t->n_lanes; lane++) {
			track_name(c, t, lane, text, sizeof(text));
			write_meta(c, "thread_name", lag_chrome_pid(t->r), t->first_tid + lane,
				   "name", text, 0);
			write_meta(c, "thread_sort_index", lag_chrome_pid(t->r),
				   t->first_tid + lane, "sort_index", NULL, t->first_tid + lane);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which lanes are which, and the window whose events are in memory. */
#include "viz/model/detail.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/strtab.h"
#include "schema/record/sweep.h"
#include "viz/model/detail_back.sql.h"
#include "viz/model/detail_gpu.sql.h"
#include "viz/model/detail_name.sql.h"
#include "viz/model/detail_size.sql.h"
#include "viz/model/interval.h"
#include "viz/model/trace_build.h"

/* A name looked up before: a kernel's (kind 0), or what stands for others'. */
struct name {
	int64_t id;
	uint32_t brief, full;
	uint8_t kind;
	bool known, comm;
};

#define N_NAMES 1024

struct lag_detail {
	struct lag_trace *trace; /* the caller's */
	struct lag_pyramid *pyramid;
	const struct lag_pyramid_lane **whole, **lanes; /* by rank index (NULL: none), by lane */
	struct lag_stmt *back, *find, *name;
	struct name names[N_NAMES]; /* by id; the last of those that meet */
	/* What is loaded: these ranks, events that run in [from, until). */
	uint32_t *ranks;
	size_t n_ranks;
	int64_t from_ns, until_ns;
	int64_t *edges; /* room for absolute ones */
	int n_edges;
};

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the level of detail");
}

enum lag_status lag_detail_size(const char *path, int64_t *n_events, struct lag_err *err)
{
	struct lag_stmt *stmt = NULL;
	struct lag_db *db = NULL;
	enum lag_status st = lag_db_open(path, &db, err);

	*n_events = 0;
	if (st == LAG_OK)
		st = lag_stmt_prepare(db, lag_sql_detail_size, NULL, &stmt, err);
	if (st == LAG_OK)
		st = lag_stmt_step(stmt, err);
	if (st == LAG_OK)
		*n_events = lag_stmt_int(stmt, 0);
	lag_stmt_free(stmt);
	lag_db_close(db);
	return st;
}

/* Streams and spans of time as the trace would have them with its events. */
static enum lag_status find_lanes(struct lag_detail *d, struct lag_err *err)
{
	struct lag_trace *t = d->trace;
	size_t n;
	const struct lag_pyramid_lane *lanes = lag_pyramid_lanes(d->pyramid, &n);

	d->whole = lag_calloc(t->n_ranks, sizeof(void *));
	d->lanes = lag_calloc(n, sizeof(void *));
	t->lanes = lag_calloc(n, sizeof(*t->lanes));
	if (!d->whole || !d->lanes || !t->lanes)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		int r = lag_trace_find_rank(t, lanes[i].rank);

		if (r < 0)
			continue;
		if (lanes[i].device == LAG_NONE) {
			d->whole[r] = &lanes[i];
			t->ranks[r].first_ns = lanes[i].first_ns;
			t->ranks[r].last_ns = lanes[i].last_ns;
			continue;
		}
		d->lanes[t->n_lanes] = &lanes[i];
		t->lanes[t->n_lanes++] = (struct lag_lane){ (uint32_t)r, lanes[i].device,
							    lanes[i].context, lanes[i].stream };
	}
	lag_trace_rebase(t);
	t->window = lag_window_of(t);
	return LAG_OK;
}

enum lag_status lag_detail_open(const char *path, struct lag_detail **out, struct lag_trace **trace,
				struct lag_err *err)
{
	struct lag_detail *d = lag_calloc(1, sizeof(*d));
	enum lag_status st;

	*out = NULL;
	if (!d)
		return no_memory(err);
	st = lag_trace_open_facts(path, trace, err);
	if (st != LAG_OK) {
		free(d);
		return st;
	}
	d->trace = *trace;
	st = lag_pyramid_open(d->trace->db, &d->pyramid, err);
	if (st == LAG_OK)
		st = find_lanes(d, err);
	if (st == LAG_OK)
		st = lag_stmt_prepare(d->trace->db, lag_sql_detail_back, NULL, &d->back, err);
	if (st == LAG_OK)
		st = lag_stmt_prepare(d->trace->db, lag_sql_detail_gpu, NULL, &d->find, err);
	if (st == LAG_OK)
		st = lag_stmt_prepare(d->trace->db, lag_sql_detail_name, NULL, &d->name, err);
	if (st != LAG_OK) {
		lag_detail_close(d);
		lag_trace_close(*trace);
		*trace = NULL;
		return lag_failed(st) ? lag_err_wrap(err, "%s", path) : st;
	}
	*out = d;
	return LAG_OK;
}

void lag_detail_close(struct lag_detail *d)
{
	if (!d)
		return;
	lag_stmt_free(d->back);
	lag_stmt_free(d->find);
	lag_stmt_free(d->name);
	lag_pyramid_close(d->pyramid);
	free(d->whole);
	free(d->lanes);
	free(d->ranks);
	free(d->edges);
	free(d);
}

/* ---- columns ---- */

static bool is_loaded(const struct lag_detail *d, size_t r, int64_t t0, int64_t t1)
{
	for (size_t i = 0; i < d->n_ranks; i++) {
		if (d->ranks[i] == r)
			return t0 >= d->from_ns && t1 <= d->until_ns;
	}
	return false;
}

static enum lag_pyramid_class class_of(const struct lag_gpu_event *event)
{
	return event->class == LAG_CLASS_COMM   ? LAG_PYRAMID_COMM
	       : event->class == LAG_CLASS_COPY ? LAG_PYRAMID_COPY
						: LAG_PYRAMID_COMPUTE;
}

struct columns {
	const int64_t *edges;
	int n, at;
	struct lag_bucket *out;
};

static void settle(struct columns *to, struct lag_sweep *sweep, int64_t until)
{
	struct lag_sweep_piece piece;

	while (lag_sweep_next(sweep, until, &piece)) {
		while (to->at < to->n && to->edges[to->at + 1] <= piece.from_ns)
			to->at++;
		for (int c = to->at; c < to->n && to->edges[c] < piece.until_ns; c++) {
			int64_t a = piece.from_ns > to->edges[c] ? piece.from_ns : to->edges[c];
			int64_t b = to->edges[c + 1];

			b = piece.until_ns < b ? piece.until_ns : b;
			to->out[c].ns[piece.class] += b > a ? b - a : 0;
		}
	}
}

static void columns_of_events(const struct lag_detail *d, size_t r, int32_t lane,
			      struct columns *to)
{
	const struct lag_trace *t = d->trace;
	struct lag_sweep sweep;
	int at = 0;

	lag_sweep_init(&sweep);
	for (size_t i = t->ranks[r].gpu_begin; i < t->ranks[r].gpu_end; i++) {
		const struct lag_gpu_event *event = &t->gpu[i];

		if (lane >= 0 && event->lane != (uint32_t)lane)
			continue;
		settle(to, &sweep, event->start_ns);
		lag_sweep_add(&sweep, class_of(event),
			      event->end_ns == LAG_NONE ? t->ranks[r].last_ns : event->end_ns);
		while (at < to->n && to->edges[at + 1] <= event->start_ns)
			at++;
		if (at < to->n && event->start_ns >= to->edges[at])
			to->out[at].n_events++;
	}
	settle(to, &sweep, lag_sweep_end(&sweep));
}

enum lag_status lag_detail_columns(struct lag_detail *d, size_t r, int32_t lane,
				   const int64_t *edges, int n, struct lag_bucket *out,
				   struct lag_err *err)
{
	const struct lag_pyramid_lane *from = lane >= 0 ? d->lanes[lane] : d->whole[r];
	struct columns to = { edges, n, 0, out };

	if (!from)
		return LAG_OK;
	if (is_loaded(d, r, edges[0], edges[n])) {
		columns_of_events(d, r, lane, &to);
		return LAG_OK;
	}
	if (d->n_edges < n + 1) {
		int64_t *grown = realloc(d->edges, ((size_t)n + 1) * sizeof(*grown));

		if (!grown)
			return no_memory(err);
		d->edges = grown;
		d->n_edges = n + 1;
	}
	for (int i = 0; i <= n; i++)
		d->edges[i] = edges[i] + d->trace->origin_ns;
	return lag_pyramid_columns(d->pyramid, from, d->edges, n, out, err);
}

/* ---- events ---- */

/* The stream of an event; UINT32_MAX: none that the pyramid knows. */
static uint32_t lane_of(const struct lag_detail *d, uint32_t r, const struct lag_stmt *row)
{
	const struct lag_trace *t = d->trace;
	int64_t device = lag_stmt_int(row, 3), context = lag_stmt_int(row, 4);
	int64_t stream = lag_stmt_int(row, 5);

	for (size_t i = 0; i < t->n_lanes && t->lanes[i].r <= r; i++) {
		const struct lag_lane *lane = &t->lanes[i];

		if (lane->r == r && lane->device == device && lane->context == context &&
		    lane->stream == stream)
			return (uint32_t)i;
	}
	return UINT32_MAX;
}

static uint32_t string_of(const struct lag_detail *d, int column)
{
	const char *text = lag_stmt_text(d->name, column);

	return lag_strtab_add(d->trace->memory, text, strlen(text));
}

static enum lag_status bind(struct lag_stmt *stmt, const int64_t *values, int n,
			    struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	lag_stmt_reset(stmt);
	for (int i = 0; i < n && st == LAG_OK; i++)
		st = lag_stmt_bind_int(stmt, i + 1, values[i], err);
	return st;
}

static enum lag_status find_name(struct lag_detail *d, int64_t id, uint8_t kind,
				 const struct name **out, struct lag_err *err)
{
	struct name *at = &d->names[(uint64_t)id % N_NAMES];
	enum lag_status st;

	*out = at;
	if (at->known && at->id == id && at->kind == kind)
		return LAG_OK;
	st = bind(d->name, (int64_t[]){ id, kind }, 2, err);
	if (st == LAG_OK)
		st = lag_stmt_step(d->name, err);
	if (st == LAG_OK) {
		*at = (struct name){ .id = id,
				     .kind = kind,
				     .brief = string_of(d, 0),
				     .full = string_of(d, 1),
				     .comm = lag_stmt_int(d->name, 2) == 1,
				     .known = true };
	}
	lag_stmt_reset(d->name);
	return st;
}

/* LAG_END: its times or its stream cannot be. */
static enum lag_status read_event(struct lag_detail *d, uint32_t r, struct lag_gpu_event *event,
				  struct lag_err *err)
{
	const struct lag_stmt *row = d->find;
	int64_t kind = lag_stmt_int(row, 2), origin = d->trace->origin_ns;
	int64_t start_ns = lag_stmt_int(row, 0), end_ns = lag_stmt_int(row, 1);
	bool kernel = kind != LAG_GPU_COPY && kind != LAG_GPU_SET;
	const struct name *name;
	enum lag_status st = find_name(d, lag_stmt_int(row, 6), !kernel, &name, err);

	if (st != LAG_OK)
		return st;
	*event = (struct lag_gpu_event){
		.start_ns = lag_ns_sub(start_ns, origin),
		.end_ns = end_ns == LAG_NONE ? LAG_NONE : lag_ns_sub(end_ns, origin),
		.launch_start_ns = LAG_NONE,
		.launch_end_ns = LAG_NONE,
		.bytes = lag_stmt_int(row, 8),
		.r = r,
		.name = name->brief,
		.full = name->full,
		.lane = lane_of(d, r, row),
		.launch = -1,
		.config = -1,
		.correlation = lag_stmt_int(row, 7),
		.kind = kernel ? LAG_GPU_KERNEL : (uint8_t)kind,
		.class = kernel ? LAG_CLASS_COMPUTE : LAG_CLASS_COPY,
		.copy_kind = (uint8_t)(lag_stmt_is_null(row, 9) ? 0 : lag_stmt_int(row, 9) & 255),
		.flags = (uint8_t)(lag_stmt_int(row, 11) & 255),
	};
	if (!lag_stmt_is_null(row, 10) || (kernel && name->comm))
		event->class = LAG_CLASS_COMM;
	if (event->lane == UINT32_MAX || start_ns <= -LAG_TIME_MAX_NS ||
	    (end_ns != LAG_NONE && (end_ns < start_ns || end_ns >= LAG_TIME_MAX_NS)))
		return LAG_END;
	return LAG_OK;
}

/* Events of a rank that run in [from, until); of those that began before it the last few hundred are looked
 * at. Appended to events. */
static enum lag_status load_rank(struct lag_detail *d, uint32_t r, int64_t from, int64_t until,
				 struct lag_vec *events, struct lag_err *err)
{
	int64_t rank = d->trace->ranks[r].rank, origin = d->trace->origin_ns, first = from + origin;
	enum lag_status st = bind(d->back, (int64_t[]){ rank, first }, 2, err);

	if (st == LAG_OK && (st = lag_stmt_step(d->back, err)) == LAG_OK &&
	    !lag_stmt_is_null(d->back, 0))
		first = lag_stmt_int(d->back, 0);
	lag_stmt_reset(d->back);
	if (!lag_failed(st))
		st = bind(d->find, (int64_t[]){ rank, first, until + origin }, 3, err);
	while (!lag_failed(st) && (st = lag_stmt_step(d->find, err)) == LAG_OK) {
		struct lag_gpu_event event = { 0 };
		struct lag_gpu_event *slot;

		st = read_event(d, r, &event, err);
		if (lag_failed(st))
			break;
		if (st == LAG_END ||
		    (event.end_ns != LAG_NONE && event.end_ns <= from && event.start_ns < from))
			continue;
		/* More than what was counted: what the pyramid says is not true. */
		slot = events->n < (size_t)4 * LAG_DETAIL_EVENTS_MAX ? lag_vec_push(events) : NULL;
		if (!slot) {
			st = lag_err_set(err, LAG_ERR_LIMIT, "too many events in this window");
			break;
		}
		*slot = event;
	}
	lag_stmt_reset(d->find);
	return st == LAG_END ? LAG_OK : st;
}

static void forget(struct lag_detail *d)
{
	for (size_t r = 0; r < d->trace->n_ranks; r++)
		d->trace->ranks[r].gpu_begin = d->trace->ranks[r].gpu_end = 0;
	free(d->trace->gpu);
	d->trace->gpu = NULL;
	d->trace->n_gpu = 0;
	d->n_ranks = 0;
}

static enum lag_status load(struct lag_detail *d, const uint32_t *ranks, size_t n_ranks, int64_t t0,
			    int64_t t1, struct lag_err *err)
{
	struct lag_vec events = LAG_VEC_INIT(struct lag_gpu_event);
	enum lag_status st = LAG_OK;
	uint32_t *list;

	forget(d);
	free(d->ranks);
	d->ranks = list = lag_calloc(n_ranks, sizeof(*list));
	if (!list)
		return no_memory(err);
	for (size_t i = 0; i < n_ranks && st == LAG_OK; i++) {
		struct lag_rank *rank = &d->trace->ranks[ranks[i]];

		list[i] = ranks[i];
		rank->gpu_begin = events.n;
		st = load_rank(d, ranks[i], t0, t1, &events, err);
		rank->gpu_end = events.n;
	}
	d->trace->gpu = events.items;
	d->trace->n_gpu = events.n;
	if (st != LAG_OK) {
		forget(d);
		return st;
	}
	d->n_ranks = n_ranks;
	d->from_ns = t0;
	d->until_ns = t1;
	return LAG_OK;
}

enum lag_status lag_detail_count(struct lag_detail *d, const uint32_t *ranks, size_t n_ranks,
				 int64_t t0, int64_t t1, uint64_t *n, struct lag_err *err)
{
	struct lag_bucket sum = { 0 };
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < n_ranks && st == LAG_OK; i++) {
		if (d->whole[ranks[i]]) {
			st = lag_pyramid_between(d->pyramid, d->whole[ranks[i]],
						 t0 + d->trace->origin_ns, t1 + d->trace->origin_ns,
						 &sum, err);
		}
	}
	*n = sum.n_events;
	return st;
}

enum lag_status lag_detail_load(struct lag_detail *d, const uint32_t *ranks, size_t n_ranks,
				int64_t t0, int64_t t1, bool *changed, struct lag_err *err)
{
	bool same = n_ranks == d->n_ranks && t0 >= d->from_ns && t1 <= d->until_ns;
	int64_t more = (t1 - t0) / 2;
	enum lag_status st;
	uint64_t n = 0;

	*changed = false;
	for (size_t i = 0; i < n_ranks && same; i++)
		same = ranks[i] == d->ranks[i];
	if (same)
		return LAG_OK;
	*changed = true;
	/* With its neighbourhood, where a key may lead. */
	st = lag_detail_count(d, ranks, n_ranks, t0 - more, t1 + more, &n, err);
	more = n > LAG_DETAIL_EVENTS_MAX ? 0 : more;
	return st == LAG_OK ? load(d, ranks, n_ranks, t0 - more, t1 + more, err) : st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of an Nsight Systems report: calls, waits, recordings of events, what the profiler cost. */
#include <string.h>

#include "merge/nsys.h"

/* ---- waits and recordings ---- */

enum sync_column {
	S_START,
	S_END,
	S_CONTEXT,
	S_STREAM,
	S_CORRELATION,
	S_PID,
	S_EVENT,
	S_SYNC_ID,
	S_TYPE,
	S_OLD_TYPE,
};

static const char *const sync_columns[] = {
	"start",     "end",     "contextId",   "streamId", "correlationId",
	"globalPid", "eventId", "eventSyncId", "syncType", "deprecatedSyncType"
};

/* CUPTI has 32 bits for these, all set where there is none. */
static int64_t known(int64_t v)
{
	return v < 0 || v == UINT32_MAX ? LAG_NONE : v;
}

static void fill_sync(struct lag_rec_sync *sync, const struct lag_foreign_rows *r)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_sync);
	*sync = rec.sync;
	sync->context = lag_or(lag_foreign_int(r, S_CONTEXT), 0);
	sync->stream = known(lag_foreign_int(r, S_STREAM));
	sync->event_id = known(lag_foreign_int(r, S_EVENT));
	sync->correlation = lag_or(lag_foreign_int(r, S_CORRELATION), 0);
	sync->sync_id = lag_foreign_int(r, S_SYNC_ID);
	if (sync->sync_id <= 0)
		sync->sync_id = LAG_NONE;
}

static enum lag_status take_sync(struct lag_nsys *s, struct lag_foreign_rows *r,
				 struct lag_err *err)
{
	static const enum lag_sync_kind kinds[] = { 0, LAG_SYNC_EVENT, LAG_SYNC_STREAM_WAIT,
						    LAG_SYNC_STREAM, LAG_SYNC_CONTEXT };

	int64_t type = lag_or(lag_foreign_int(r, S_TYPE), lag_foreign_int(r, S_OLD_TYPE));
	int64_t start = lag_foreign_int(r, S_START);
	struct lag_nsys_proc *p;
	struct lag_record rec;
	enum lag_status st;

	if (start == LAG_NONE) {
		s->n_bad++;
		return LAG_OK;
	}
	st = lag_nsys_proc(s, lag_foreign_int(r, S_PID), &p, err);
	if (lag_failed(st))
		return st;
	if (type < 1 || type > 4) {
		p->part.n_unknown++;
		return LAG_OK;
	}
	lag_record_init(&rec, LAG_REC_sync);
	fill_sync(&rec.sync, r);
	rec.sync.kind = kinds[type];
	rec.sync.start_ns = lag_nsys_time(s, start);
	rec.sync.end_ns = lag_nsys_time(s, lag_foreign_int(r, S_END));
	return lag_part_add(&p->part, &rec, err);
}

/* A recording has no time of its own: it is the call's, which is still to be read. */
static enum lag_status take_recording(struct lag_nsys *s, struct lag_foreign_rows *r,
				      struct lag_err *err)
{
	struct lag_nsys_proc *p;
	struct lag_rec_sync *sync;
	enum lag_status st = lag_nsys_proc(s, lag_foreign_int(r, S_PID), &p, err);

	if (lag_failed(st))
		return st;
	sync = lag_vec_push(&p->pending);
	if (!sync)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more events");
	fill_sync(sync, r);
	sync->kind = LAG_SYNC_EVENT_RECORD;
	return LAG_OK;
}

static enum lag_status want_calls(struct lag_nsys_proc *p, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < p->carriers.n && !lag_failed(st); i++) {
		int64_t c = LAG_VEC_AT(&p->carriers, struct lag_nsys_carrier, i).correlation;

		if (c)
			st = lag_map_set(&p->wanted, (uint64_t)c, 0);
	}
	for (size_t i = 0; i < p->pending.n && !lag_failed(st); i++) {
		int64_t c = LAG_VEC_AT(&p->pending, struct lag_rec_sync, i).correlation;

		if (c)
			st = lag_map_set(&p->wanted, (uint64_t)c, 0);
	}
	return lag_failed(st) ? lag_err_set(err, st, "no memory for more calls") : LAG_OK;
}

static enum lag_status add_recordings(struct lag_nsys_proc *p, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < p->pending.n && !lag_failed(st); i++) {
		const struct lag_nsys_launch *call;
		struct lag_record rec;
		uint64_t at = 0;

		lag_record_init(&rec, LAG_REC_sync);
		rec.sync = LAG_VEC_AT(&p->pending, struct lag_rec_sync, i);
		if (!lag_map_find(&p->wanted, (uint64_t)rec.sync.correlation, &at) || !at) {
			p->part.n_unknown++;
			continue;
		}
		call = &LAG_VEC_AT(&p->launches, struct lag_nsys_launch, at - 1);
		rec.sync.start_ns = call->enter_ns;
		rec.sync.end_ns = call->leave_ns;
		st = lag_part_add(&p->part, &rec, err);
	}
	lag_vec_release(&p->pending);
	return st;
}

/* ---- calls ---- */

enum api_column {
	A_START,
	A_END,
	A_TID,
	A_CORRELATION,
	A_NAME,
	A_RESULT,
	A_CLASS,
};

static const char *const api_columns[] = { "start",  "end",         "globalTid", "correlationId",
					   "nameId", "returnValue", "eventClass" };

static enum lag_api_domain domain_of(int64_t event_class, const char *name)
{
	if (event_class == 1)
		return LAG_API_DRIVER;
	if (event_class == 0)
		return LAG_API_RUNTIME;
	return strncmp(name, "cu", 2) == 0 && strncmp(name, "cuda", 4) != 0 ? LAG_API_DRIVER
									    : LAG_API_RUNTIME;
}

/* The first call of a correlation is the one that counts. */
static enum lag_status keep_launch(struct lag_nsys_proc *p, const struct lag_rec_api *api,
				   struct lag_err *err)
{
	struct lag_nsys_launch *launch;
	uint64_t seen = 0;

	if (!p->wanted.n || !lag_map_find(&p->wanted, (uint64_t)api->correlation, &seen) || seen)
		return LAG_OK;
	launch = lag_vec_push(&p->launches);
	if (!launch ||
	    lag_failed(lag_map_set(&p->wanted, (uint64_t)api->correlation, p->launches.n)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more calls");
	*launch = (struct lag_nsys_launch){ api->tid, api->start_ns, api->end_ns };
	return LAG_OK;
}

static enum lag_status take_call(struct lag_nsys *s, struct lag_foreign_rows *r,
				 struct lag_err *err)
{
	int64_t global = lag_foreign_int(r, A_TID), start = lag_foreign_int(r, A_START);
	struct lag_nsys_proc *p;
	struct lag_record rec;
	enum lag_status st;
	size_t name;

	if (start == LAG_NONE) {
		s->n_bad++;
		return LAG_OK;
	}
	st = lag_nsys_name(s, lag_foreign_int(r, A_NAME), &name, err);
	if (!lag_failed(st))
		st = lag_nsys_proc(s, global, &p, err);
	if (lag_failed(st))
		return st;
	lag_record_init(&rec, LAG_REC_api);
	rec.api.start_ns = lag_nsys_time(s, start);
	rec.api.end_ns = lag_nsys_time(s, lag_foreign_int(r, A_END));
	rec.api.tid = global == LAG_NONE ? 0 : LAG_NSYS_TID(global);
	rec.api.correlation = lag_or(lag_foreign_int(r, A_CORRELATION), 0);
	rec.api.name = lag_nsys_name_at(s, name)->id;
	rec.api.domain = domain_of(lag_foreign_int(r, A_CLASS),
				   lag_strtab_get(&s->pool->strings, (uint32_t)rec.api.name));
	rec.api.result = lag_foreign_int(r, A_RESULT);
	st = lag_part_add(&p->part, &rec, err);
	return lag_failed(st) ? st : keep_launch(p, &rec.api, err);
}

/* ---- overhead, and what is passed over ---- */

static enum lag_status take_overhead(struct lag_nsys *s, struct lag_foreign_rows *r,
				     struct lag_err *err)
{
	/* CUPTI's kinds by nsys' numbers. */
	static const int64_t kinds[] = { 0,       0,       1,       1 << 16, 2 << 16,
					 3 << 16, 4 << 16, 5 << 16, 6 << 16 };
	int64_t start = lag_foreign_int(r, 0), global = lag_foreign_int(r, 2);
	int64_t kind = lag_foreign_int(r, 3);
	struct lag_record rec;
	uint64_t at;

	/* Processes in which nothing else was recorded do not matter. */
	if (start == LAG_NONE || global == LAG_NONE ||
	    !lag_map_find(&s->proc_of, LAG_NSYS_KEY(global), &at))
		return LAG_OK;
	lag_record_init(&rec, LAG_REC_overhead);
	rec.overhead.start_ns = lag_nsys_time(s, start);
	rec.overhead.end_ns = lag_nsys_time(s, lag_foreign_int(r, 1));
	rec.overhead.kind =
		kind >= 0 && kind < (int64_t)(sizeof(kinds) / sizeof(kinds[0])) ? kinds[kind] : 0;
	return lag_part_add(&LAG_VEC_AT(&s->procs, struct lag_nsys_proc, at).part, &rec, err);
}

static enum lag_status count_os_call(struct lag_nsys *s, struct lag_foreign_rows *r,
				     struct lag_err *err)
{
	(void)r;
	(void)err;
	s->n_os_calls++;
	return LAG_OK;
}

enum lag_status lag_nsys_read_host(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const overhead[] = { "start", "end", "globalTid", "overheadType" };
	static const char *const none[] = { "start" };
	enum lag_status st;

	st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync_columns, take_sync, err);
	if (!lag_failed(st)) {
		st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", sync_columns,
				   take_recording, err);
	}
	for (size_t i = 0; i < s->procs.n && !lag_failed(st); i++)
		st = want_calls(&LAG_VEC_AT(&s->procs, struct lag_nsys_proc, i), err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_RUNTIME", api_columns, take_call, err);
	/* Some exports of 2022 keep the driver's calls apart. */
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_DRIVER", api_columns, take_call, err);
	for (size_t i = 0; i < s->procs.n && !lag_failed(st); i++)
		st = add_recordings(&LAG_VEC_AT(&s->procs, struct lag_nsys_proc, i), err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "PROFILER_OVERHEAD", overhead, take_overhead, err);
	if (!lag_failed(st)) {
		st = LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_OVERHEAD", overhead, take_overhead, err);
	}
	return lag_failed(st) ? st : LAG_NSYS_EACH(s, "OSRT_API", none, count_os_call, err);
}

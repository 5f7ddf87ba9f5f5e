/* SPDX-License-Identifier: Apache-2.0 */
/* The database: ids as sums of what comes before, then all tables at once, in runs of rows that any thread
 * may take. */
#include "merge/write.h"

#include "schema/db/db_run.h"

#define RUN_ROWS   ((size_t)1 << 20)
#define BATCH_ROWS 256
#define SMALL_ROWS 65536

/* Rows [from, until) of one table and process; NULL source: the process's pyramid, and with a NULL process
 * all that is not written in runs. */
struct job {
	const struct lag_row_source *source;
	struct lag_write_proc *wp;
	int64_t first_id;
	size_t from, until;
};

struct jobs {
	struct lag_writer *w;
	struct lag_vec list; /* struct job */
};

/* ---- one run ---- */

static enum lag_status write_batch(const struct job *job, struct lag_fill *fill,
				   struct lag_db_run *run, size_t from, size_t n,
				   struct lag_err *err)
{
	int64_t rows[BATCH_ROWS * LAG_ROW_COLUMNS_MAX];
	const struct lag_row_source *source = job->source;
	enum lag_status st;

	for (size_t i = 0; i < n; i++) {
		int64_t *row = &rows[i * source->n_columns];

		row[0] = job->first_id + (int64_t)(from + i);
		source->fill(fill, from + i, row);
	}
	st = lag_db_run_add(run, rows, source->n_columns, n, err);
	return st == LAG_OK ? lag_merge_advance(fill->w->m, source->counts ? n : 0, err) : st;
}

static enum lag_status write_run(struct jobs *jobs, const struct job *job, struct lag_err *err)
{
	struct lag_fill fill = { .w = jobs->w, .wp = job->wp };
	struct lag_db_run *run = NULL;
	enum lag_status st = lag_db_run_open(jobs->w->db, job->source->table, &run, err);

	for (size_t at = job->from; at < job->until && st == LAG_OK; at += BATCH_ROWS) {
		size_t n = job->until - at < BATCH_ROWS ? job->until - at : BATCH_ROWS;

		st = write_batch(job, &fill, run, at, n, err);
	}
	if (st == LAG_OK)
		return lag_db_run_end(run, err);
	lag_db_run_drop(run);
	return st;
}

static enum lag_status do_job(void *state, size_t i, struct lag_err *err)
{
	struct jobs *jobs = state;
	const struct job *job = &LAG_VEC_AT(&jobs->list, struct job, i);

	if (job->source)
		return write_run(jobs, job, err);
	if (!job->wp)
		return lag_write_facts(jobs->w, err);
	return lag_lod_proc_build(jobs->w->m, job->wp->p, job->wp->gpu_order.items, &job->wp->lod,
				  err);
}

/* ---- all of them ---- */

static enum lag_status plan(void *state, size_t i, struct lag_err *err)
{
	struct lag_writer *w = state;

	return lag_write_plan(w, LAG_WRITE_PROC_AT(w, i), err);
}

static enum lag_status list_procs(struct lag_writer *w)
{
	uint64_t at;

	for (int64_t r = 0; r < w->m->world_size; r++) {
		struct lag_write_proc *wp;

		if (!lag_map_find(&w->m->rank_proc, (uint64_t)r, &at) || LAG_PROC_AT(w->m, at)->old)
			continue;
		wp = lag_vec_push(&w->procs);
		if (!wp)
			return LAG_ERR_SYSTEM;
		wp->p = LAG_PROC_AT(w->m, at);
		wp->gpu_order = wp->gpu_place = wp->names =
			(struct lag_vec)LAG_VEC_SPILLED(uint32_t, w->m->spill);
	}
	return LAG_OK;
}

static enum lag_status list_job(struct jobs *jobs, enum lag_rows rows, struct lag_write_proc *wp,
				int64_t first_id, size_t from, size_t n)
{
	for (size_t at = from; at < n; at += RUN_ROWS) {
		struct job *job = lag_vec_push(&jobs->list);

		if (!job)
			return LAG_ERR_SYSTEM;
		*job = (struct job){ &lag_row_sources[rows], wp, first_id, at,
				     n - at < RUN_ROWS ? n : at + RUN_ROWS };
	}
	return LAG_OK;
}

/* Gives out ids and lists what there is to do; *n_events: rows that are events. */
static enum lag_status list_jobs(struct jobs *jobs, uint64_t *n_events)
{
	struct lag_writer *w = jobs->w;
	int64_t next_id[LAG_ROWS_LIMIT];
	/* All ranks have one, or none has. */
	bool pyramid = !w->m->opts->no_pyramid &&
		       (!w->m->old.is || w->m->old.last_id[LAG_TABLE_pyramid_lane]);
	struct job *facts = lag_vec_push(&jobs->list);
	enum lag_status st = facts ? LAG_OK : LAG_ERR_SYSTEM;

	for (int t = 0; t < LAG_ROWS_LIMIT; t++)
		next_id[t] = w->m->old.last_id[lag_row_sources[t].table] + 1;
	/* First, since each is one piece of work, however many events there are. */
	for (size_t i = 0; i < w->procs.n && st == LAG_OK && pyramid; i++) {
		struct job *job = lag_vec_push(&jobs->list);

		if (job)
			job->wp = LAG_WRITE_PROC_AT(w, i);
		st = job ? LAG_OK : LAG_ERR_SYSTEM;
	}
	for (size_t i = 0; i < w->procs.n && st == LAG_OK; i++) {
		struct lag_write_proc *wp = LAG_WRITE_PROC_AT(w, i);

		for (unsigned t = 0; t < LAG_ROWS_INSTANCE && st == LAG_OK; t++) {
			size_t n = lag_row_sources[t].count(w, wp);

			wp->first_id[t] = next_id[t];
			next_id[t] += (int64_t)n;
			*n_events += lag_row_sources[t].counts ? n : 0;
			st = list_job(jobs, t, wp, wp->first_id[t], 0, n);
		}
	}
	if (st == LAG_OK) {
		st = list_job(jobs, LAG_ROWS_INSTANCE, NULL, 1, w->m->old.n_instances,
			      w->m->instances.n);
	}
	return st;
}

static enum lag_status finish(void *state, size_t i, struct lag_err *err)
{
	struct lag_writer *w = state;
	enum lag_status st = lag_write_pyramid(w, err);

	(void)i;
	return st == LAG_OK ? lag_db_writer_finish(w->db, err) : st;
}

/* By tasks as well, since the calling thread is the one that hears when it is to end. */
static enum lag_status change(void *state, size_t i, struct lag_err *err)
{
	struct lag_writer *w = state;

	(void)i;
	return lag_append_change(w->m, w->db, err);
}

static enum lag_status write_names(void *state, size_t i, struct lag_err *err)
{
	(void)i;
	return lag_write_names(state, err);
}

static enum lag_status write_all(struct lag_writer *w, struct lag_merge_receipt *receipt,
				 struct lag_err *err)
{
	struct jobs jobs = { .w = w, .list = LAG_VEC_INIT(struct job) };
	struct lag_parallel how = w->m->parallel;
	enum lag_status st = list_procs(w);

	if (st == LAG_OK)
		st = list_jobs(&jobs, &receipt->n_events);
	if (st != LAG_OK)
		(void)lag_err_set(err, st, "no memory to write events");
	lag_merge_phase(w->m, LAG_MERGE_WRITE, receipt->n_events);
	if (st == LAG_OK)
		st = lag_merge_tasks(w->m, w->procs.n, plan, w, err);
	if (st == LAG_OK)
		st = lag_merge_tasks(w->m, 1, write_names, w, err);
	/* The fewer the rows, the less is to be won; and one thread makes the same bytes each time. */
	if (receipt->n_events < SMALL_ROWS)
		how.n_threads = 1;
	if (st == LAG_OK)
		st = lag_parallel_run(&how, jobs.list.n, do_job, &jobs, err);
	if (st == LAG_OK)
		st = lag_merge_tasks(w->m, 1, finish, w, err);
	lag_vec_release(&jobs.list);
	return st;
}

static void release(struct lag_writer *w)
{
	for (size_t i = 0; i < w->procs.n; i++) {
		lag_vec_release(&LAG_WRITE_PROC_AT(w, i)->gpu_order);
		lag_vec_release(&LAG_WRITE_PROC_AT(w, i)->gpu_place);
		lag_vec_release(&LAG_WRITE_PROC_AT(w, i)->names);
		lag_lod_proc_release(&LAG_WRITE_PROC_AT(w, i)->lod);
	}
	lag_vec_release(&w->procs);
	lag_db_writer_close(w->db);
	lag_renames_release(&w->renames);
}

enum lag_status lag_merge_write(struct lag_merge *m, const char *path,
				struct lag_merge_receipt *receipt, struct lag_err *err)
{
	struct lag_db_writer_opts opts = { .writer = m->opts->writer };
	struct lag_writer w = { .m = m, .procs = LAG_VEC_INIT(struct lag_write_proc) };
	enum lag_status st = LAG_OK;

	if (m->opts->rename_path)
		st = lag_renames_load(m->opts->rename_path, &w.renames, err);
	if (st == LAG_OK) {
		st = m->old.is ? lag_db_writer_reopen(path, &w.db, err)
			       : lag_db_writer_open(path, &opts, &w.db, err);
	}
	if (st == LAG_OK && m->old.is)
		st = lag_merge_tasks(m, 1, change, &w, err);
	if (st == LAG_OK)
		st = write_all(&w, receipt, err);
	release(&w);
	return st;
}

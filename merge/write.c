/* SPDX-License-Identifier: Apache-2.0 */
/* The database: events rank by rank, facts, indexes and views. */
#include "merge/write.h"

#include <stdlib.h>

#define PROGRESS_EVERY 8192

enum lag_status lag_writer_count(struct lag_writer *w, struct lag_err *err)
{
	if (++w->n_events % PROGRESS_EVERY)
		return LAG_OK;
	return lag_merge_advance(w->m, PROGRESS_EVERY, err);
}

static uint64_t count_events(struct lag_proc *p)
{
	return (uint64_t)p->gpu.n + LAG_PART_COUNT(&p->part, api) + LAG_PART_COUNT(&p->part, sync) +
	       LAG_PART_COUNT(&p->part, range) + LAG_PART_COUNT(&p->part, op);
}

static enum lag_status write_all(void *state, size_t i, struct lag_err *err)
{
	struct lag_writer *w = state;
	enum lag_status st = LAG_OK;
	uint64_t at;

	(void)i;
	for (int64_t r = 0; r < w->m->world_size && st == LAG_OK; r++) {
		if (lag_map_find(&w->m->rank_proc, (uint64_t)r, &at))
			st = lag_write_events(w, LAG_PROC_AT(w->m, at), err);
	}
	if (st == LAG_OK)
		st = lag_write_facts(w, err);
	if (st == LAG_OK)
		st = lag_db_writer_finish(w->db, err);
	return st;
}

static uint64_t count_all(struct lag_merge *m)
{
	uint64_t n = 0, at;

	for (int64_t r = 0; r < m->world_size; r++) {
		if (lag_map_find(&m->rank_proc, (uint64_t)r, &at))
			n += count_events(LAG_PROC_AT(m, at));
	}
	return n;
}

enum lag_status lag_merge_write(struct lag_merge *m, const char *path,
				struct lag_merge_receipt *receipt, struct lag_err *err)
{
	struct lag_db_writer_opts opts = { .writer = m->opts->writer };
	struct lag_writer w = { .m = m };
	enum lag_status st = LAG_OK;

	if (m->opts->rename_path)
		st = lag_renames_load(m->opts->rename_path, &w.renames, err);
	if (st == LAG_OK)
		st = lag_db_writer_open(path, &opts, &w.db, err);
	lag_merge_phase(m, LAG_MERGE_WRITE, count_all(m));
	if (st == LAG_OK)
		st = lag_merge_tasks(m, 1, write_all, &w, err);
	receipt->n_events = w.n_events;
	lag_db_writer_close(w.db);
	lag_renames_release(&w.renames);
	lag_map_release(&w.kernel_names);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write the database share. */
#ifndef MERGE_WRITE_H
#define MERGE_WRITE_H

#include "merge/lod.h"
#include "merge/names.h"
#include "merge/state.h"
#include "schema/db/db_write.h"

/* Tables whose rows several threads make at once. */
enum lag_rows {
	LAG_ROWS_GPU,
	LAG_ROWS_API,
	LAG_ROWS_SYNC,
	LAG_ROWS_RANGE,
	LAG_ROWS_LAUNCH,
	LAG_ROWS_OP,
	LAG_ROWS_INSTANCE, /* of no process: the last one's */
	LAG_ROWS_LIMIT
};

/* A process with a rank, and the id of its first row in each table. */
struct lag_write_proc {
	struct lag_proc *p;
	int64_t first_id[LAG_ROWS_LIMIT];
	/* By corrected start, where that is another order than the array's: uint32_t place -> index and
	 * index -> place. Empty: the same. */
	struct lag_vec gpu_order, gpu_place;
	struct lag_vec names; /* uint32_t: names of its GPU events in order of their first use */
	struct lag_lod_proc lod;
};

#define LAG_COPY_KINDS 11

struct lag_writer {
	struct lag_merge *m;
	struct lag_db_writer *db;
	struct lag_renames renames;
	struct lag_vec procs; /* struct lag_write_proc, by rank */
	/* String ids of what stands for the names of copies, by kind, and of sets. */
	int64_t copy_names[LAG_COPY_KINDS], set_name;
};

#define LAG_WRITE_PROC_AT(w, i) (&LAG_VEC_AT(&(w)->procs, struct lag_write_proc, i))

/* What rows are made from; one thread's. */
struct lag_fill {
	const struct lag_writer *w;
	const struct lag_write_proc *wp;
	struct lag_align_at host, gpu; /* the clocks around the last row */
};

/* One table: how many rows of wp there are, and row i of them. */
struct lag_row_source {
	size_t n_columns;
	size_t (*count)(const struct lag_writer *w, const struct lag_write_proc *wp);
	void (*fill)(struct lag_fill *f, size_t i, int64_t *row);
	enum lag_table table;
	bool counts; /* as events of the trace */
};

#define LAG_ROW_COLUMNS_MAX 21

extern const struct lag_row_source lag_row_sources[LAG_ROWS_LIMIT];

/* Order of one process's GPU events, and the names they use. */
enum lag_status lag_write_plan(struct lag_writer *w, struct lag_write_proc *wp,
			       struct lag_err *err) LAG_MUST_USE;

/* Rows of the kernels' names that all plans found; gives copies and sets theirs. */
enum lag_status lag_write_names(struct lag_writer *w, struct lag_err *err) LAG_MUST_USE;

/* What the host had seen of the operations; how far the process had come (seen.c). */
enum lag_status lag_write_seen(struct lag_writer *w, const struct lag_write_proc *wp,
			       struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_write_progress(struct lag_writer *w, struct lag_proc *p,
				   struct lag_err *err) LAG_MUST_USE;

/* The pyramids of all processes, when they are made. */
enum lag_status lag_write_pyramid(struct lag_writer *w, struct lag_err *err) LAG_MUST_USE;

/* Everything that several threads do not write. */
enum lag_status lag_write_facts(struct lag_writer *w, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_write_clock(struct lag_writer *w, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_write_losses(struct lag_writer *w, uint32_t proc,
				 struct lag_err *err) LAG_MUST_USE;

/* source_facts.c: the receipt of source (index). */
enum lag_status lag_write_source_facts(struct lag_writer *w, size_t source,
				       struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write the database share. */
#ifndef MERGE_WRITE_H
#define MERGE_WRITE_H

#include "merge/names.h"
#include "merge/state.h"
#include "schema/db/db_write.h"

struct lag_writer {
	struct lag_merge *m;
	struct lag_db_writer *db;
	struct lag_renames renames;
	struct lag_map kernel_names; /* string ids written to kernel_name */
	uint64_t n_events;
	/* Last id given, by table. */
	int64_t gpu_id, api_id, sync_id, range_id, launch_id, op_id;
};

/* One more event is written; now and then this asks whether to go on. */
enum lag_status lag_writer_count(struct lag_writer *w, struct lag_err *err) LAG_MUST_USE;

/* Events of one process with a rank. */
enum lag_status lag_write_events(struct lag_writer *w, struct lag_proc *p,
				 struct lag_err *err) LAG_MUST_USE;

/* What the host had seen of the operation written last; how far the process had come (seen.c). */
enum lag_status lag_write_seen(struct lag_writer *w, struct lag_proc *p, uint32_t seen,
			       struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_write_progress(struct lag_writer *w, struct lag_proc *p,
				   struct lag_err *err) LAG_MUST_USE;

/* Everything that is not an event; strings last, since writing makes new ones. */
enum lag_status lag_write_facts(struct lag_writer *w, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_write_clock(struct lag_writer *w, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_write_losses(struct lag_writer *w, uint32_t proc,
				 struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a host had seen of its operations and communicators, where a source tells: tied to the operations
 * after these are placed, and written beside them. */
#include "merge/write.h"

enum lag_status lag_merge_seen(struct lag_proc *p, struct lag_err *err)
{
	struct lag_map of_id = { .spill = p->part.spill };
	enum lag_status st = LAG_OK;
	uint64_t at;

	if (!LAG_PART_COUNT(&p->part, op_seen))
		return LAG_OK;
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, op) && st == LAG_OK; i++)
		st = lag_map_set(&of_id, (uint64_t)LAG_PART_AT(&p->part, op, i).op_id, i);
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, op_seen) && st == LAG_OK; i++) {
		uint64_t id = (uint64_t)LAG_PART_AT(&p->part, op_seen, i).op_id;

		if (lag_map_find(&of_id, id, &at))
			LAG_OP_LINK_AT(p, at)->seen_ref = (uint32_t)i + 1;
	}
	lag_map_release(&of_id);
	if (st != LAG_OK) {
		return lag_err_set(err, st, "%s: no memory to tie what was seen to operations",
				   p->part.path);
	}
	return st;
}

static int64_t known_state(int64_t state)
{
	return state >= LAG_OP_ENQUEUED && state <= LAG_OP_COMPLETED ? state : LAG_NONE;
}

static enum lag_status write_seen(struct lag_writer *w, const struct lag_proc *p, int64_t op_id,
				  uint32_t seen, struct lag_err *err)
{
	const struct lag_rec_op_seen *s = &LAG_PART_AT(&p->part, op_seen, seen);
	struct lag_value row[] = {
		LAG_INT(op_id),
		LAG_INT(known_state(s->state)),
		LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, s->started_ns)),
		LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, s->completed_ns)),
		LAG_INT(s->duration_ns),
		LAG_INT(s->timeout_ns),
		LAG_INT(s->record_id),
		LAG_TEXT(lag_merge_text(w->m, s->sizes)),
	};

	return lag_db_insert(w->db, LAG_TABLE_op_seen, row, sizeof(row) / sizeof(row[0]), err);
}

enum lag_status lag_write_seen(struct lag_writer *w, const struct lag_write_proc *wp,
			       struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < wp->p->op_links.n && st == LAG_OK; i++) {
		uint32_t ref = LAG_OP_LINK_AT(wp->p, i)->seen_ref;

		if (ref) {
			st = write_seen(w, wp->p, wp->first_id[LAG_ROWS_OP] + (int64_t)i, ref - 1,
					err);
		}
	}
	return st;
}

enum lag_status lag_write_progress(struct lag_writer *w, struct lag_proc *p, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	uint64_t comm;

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, comm_progress) && st == LAG_OK; i++) {
		const struct lag_rec_comm_progress *c = &LAG_PART_AT(&p->part, comm_progress, i);
		int64_t row[5] = { p->rank, 0, c->last_enqueued, c->last_started,
				   c->last_completed };

		if (!lag_map_find(&p->comm_of, (uint64_t)c->comm_id, &comm))
			continue;
		row[1] = (int64_t)comm + 1;
		st = lag_db_insert_ints(w->db, LAG_TABLE_comm_progress, row, 5, err);
	}
	return st;
}

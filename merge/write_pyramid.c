/* SPDX-License-Identifier: Apache-2.0 */
/* The processes' pyramids as rows, in the order of their key. */
#include <stdlib.h>

#include "merge/write.h"

struct place {
	const struct lag_lod_row *row;
	const uint8_t *bytes;
	int64_t lane_id;
};

static int by_key(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->row->shift != b->row->shift)
		return a->row->shift < b->row->shift ? -1 : 1;
	if (a->row->segment != b->row->segment)
		return a->row->segment < b->row->segment ? -1 : 1;
	return (a->lane_id > b->lane_id) - (a->lane_id < b->lane_id);
}

/* A lane's number among its process's, by device, context and stream. */
struct lane_place {
	const struct lag_gpu_shape *shape; /* NULL: the process's own */
	uint32_t lane;
};

static int by_stream(const void *left, const void *right)
{
	const struct lag_gpu_shape *a = ((const struct lane_place *)left)->shape;
	const struct lag_gpu_shape *b = ((const struct lane_place *)right)->shape;

	if (!a || !b)
		return (a != NULL) - (b != NULL);
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return (a->stream > b->stream) - (a->stream < b->stream);
}

static enum lag_status write_lane(struct lag_writer *w, const struct lag_write_proc *wp,
				  const struct lane_place *at, int64_t id, struct lag_err *err)
{
	const struct lag_lod_lane *lane =
		&LAG_VEC_AT(&wp->lod.lanes, struct lag_lod_lane, at->lane);
	bool whole = !at->shape;
	int64_t row[10] = {
		id,
		wp->p->rank,
		whole                           ? LAG_NONE
		: at->shape->device == LAG_NONE ? 0
						: at->shape->device,
		whole ? LAG_NONE : at->shape->context,
		whole                           ? LAG_NONE
		: at->shape->stream == LAG_NONE ? 0
						: at->shape->stream,
		(int64_t)lane->n_events,
		lane->first_ns,
		lane->last_ns,
		wp->lod.shift,
		wp->lod.top_shift,
	};

	return lag_db_insert_ints(w->db, LAG_TABLE_pyramid_lane, row, 10, err);
}

/* Gives the lanes of a process their ids: lane_id, by index. */
static enum lag_status write_lanes(struct lag_writer *w, const struct lag_write_proc *wp,
				   int64_t *lane_id, int64_t *last_id, struct lag_err *err)
{
	struct lane_place *places = lag_calloc(wp->lod.lanes.n, sizeof(*places));
	enum lag_status st = LAG_OK;
	size_t n = 0;

	if (!places)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for streams");
	for (size_t i = 0; i < wp->lod.lanes.n; i++) {
		const struct lag_lod_lane *lane =
			&LAG_VEC_AT(&wp->lod.lanes, struct lag_lod_lane, i);

		if (!lane->n_events)
			continue;
		places[n].lane = (uint32_t)i;
		if (i > 0) {
			places[n].shape = &LAG_VEC_AT(&wp->p->gpu_shapes, struct lag_gpu_shape,
						      lane->shape_ref - 1);
		}
		n++;
	}
	if (n)
		qsort(places, n, sizeof(*places), by_stream);
	for (size_t i = 0; i < n && st == LAG_OK; i++) {
		lane_id[places[i].lane] = ++*last_id;
		st = write_lane(w, wp, &places[i], *last_id, err);
	}
	free(places);
	return st;
}

static enum lag_status list_segments(struct lag_writer *w, struct place *places,
				     struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	int64_t last_id = w->m->old.last_id[LAG_TABLE_pyramid_lane];
	size_t n = 0;

	for (size_t i = 0; i < w->procs.n && st == LAG_OK; i++) {
		const struct lag_write_proc *wp = LAG_WRITE_PROC_AT(w, i);
		int64_t *lane_id = lag_calloc(wp->lod.lanes.n, sizeof(*lane_id));

		if (!lane_id)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for streams");
		st = write_lanes(w, wp, lane_id, &last_id, err);
		for (size_t k = 0; k < wp->lod.rows.n; k++) {
			const struct lag_lod_row *row =
				&LAG_VEC_AT(&wp->lod.rows, struct lag_lod_row, k);

			places[n++] = (struct place){ row, (uint8_t *)wp->lod.bytes.items + row->at,
						      lane_id[row->lane] };
		}
		free(lane_id);
	}
	return st;
}

enum lag_status lag_write_pyramid(struct lag_writer *w, struct lag_err *err)
{
	struct place *places;
	enum lag_status st;
	size_t n = 0;

	for (size_t i = 0; i < w->procs.n; i++)
		n += LAG_WRITE_PROC_AT(w, i)->lod.rows.n;
	places = lag_calloc(n, sizeof(*places));
	if (!places)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the level of detail");
	st = list_segments(w, places, err);
	if (n && st == LAG_OK)
		qsort(places, n, sizeof(*places), by_key);
	for (size_t i = 0; i < n && st == LAG_OK; i++) {
		const struct lag_lod_row *row = places[i].row;
		struct lag_value values[] = { LAG_INT(row->shift), LAG_INT(row->segment),
					      LAG_INT(places[i].lane_id),
					      LAG_BLOB(places[i].bytes, row->size) };

		st = lag_db_insert(w->db, LAG_TABLE_pyramid, values, 4, err);
	}
	free(places);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Loads what happened: host calls, GPU work, annotations, synchronisation. */
#include <stdlib.h>
#include <string.h>

#include "viz/model/load_api.sql.h"
#include "viz/model/load_gpu.sql.h"
#include "viz/model/load_range.sql.h"
#include "viz/model/load_sync.sql.h"
#include "viz/model/trace_load.h"

static enum lag_status api_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_api *api = item;
	int r = lag_load_rank(load, lag_stmt_int(row, 1));

	api->start_ns = lag_stmt_int(row, 4);
	api->end_ns = lag_stmt_int(row, 5);
	if (r < 0 || !lag_load_times(load, api->start_ns, api->end_ns))
		return LAG_END;
	api->r = (uint32_t)r;
	api->tid = (uint64_t)lag_stmt_int(row, 2);
	api->name = lag_load_string(load, lag_stmt_int(row, 3));
	api->correlation = lag_stmt_int(row, 6);
	if (load->n_rows >= INT32_MAX ||
	    lag_failed(lag_ids_set(&load->apis, lag_stmt_int(row, 0), (int32_t)load->n_rows)))
		return lag_load_no_memory(load);
	return LAG_OK;
}

/* The lanes made so far. Rows of one stream come in long runs, and a map finds the others: its key
 * is a hash, so that the lane found is compared, and the next key is tried where it is another. */
struct lag_load_lanes {
	struct lag_vec vec; /* struct lag_lane */
	struct lag_map map;
	size_t last;
};

static bool same_lane(const struct lag_lane *a, const struct lag_lane *b)
{
	return a->r == b->r && a->device == b->device && a->context == b->context &&
	       a->stream == b->stream;
}

static enum lag_status find_lane(struct lag_load_lanes *lanes, const struct lag_lane *want,
				 uint32_t *out)
{
	uint64_t at, key;
	struct lag_lane *lane;

	if (lanes->vec.n &&
	    same_lane(&LAG_VEC_AT(&lanes->vec, struct lag_lane, lanes->last), want)) {
		*out = (uint32_t)lanes->last;
		return LAG_OK;
	}
	key = lag_hash_pair(lag_hash_pair(want->r, (uint64_t)want->device),
			    lag_hash_pair((uint64_t)want->context, (uint64_t)want->stream));
	for (; lag_map_find(&lanes->map, key, &at); key++) {
		if (same_lane(&LAG_VEC_AT(&lanes->vec, struct lag_lane, at), want)) {
			lanes->last = at;
			*out = (uint32_t)at;
			return LAG_OK;
		}
	}
	lane = lag_vec_push(&lanes->vec);
	if (!lane || lag_failed(lag_map_set(&lanes->map, key, lanes->vec.n - 1)))
		return LAG_ERR_SYSTEM;
	*lane = *want;
	lanes->last = lanes->vec.n - 1;
	*out = (uint32_t)lanes->last;
	return LAG_OK;
}

static void name_gpu(struct lag_load *load, struct lag_gpu_event *ev, int64_t name_id)
{
	int32_t at = ev->kind == LAG_GPU_KERNEL ? lag_ids_find(&load->names, name_id) : -1;

	ev->class = ev->kind == LAG_GPU_KERNEL ? LAG_CLASS_COMPUTE : LAG_CLASS_COPY;
	if (at >= 0) {
		ev->full = load->kernel_names[at].full;
		ev->name = load->kernel_names[at].brief;
		ev->class = load->kernel_names[at].class;
	} else {
		ev->full = ev->name = lag_load_string(load, name_id);
	}
}

static enum lag_status gpu_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_gpu_event *ev = item;
	int r = lag_load_rank(load, lag_stmt_int(row, 1));
	int64_t kind = lag_stmt_int(row, 2);
	struct lag_lane lane;
	int32_t api;

	ev->start_ns = lag_stmt_int(row, 6);
	ev->end_ns = lag_stmt_int(row, 7);
	if (r < 0 || !lag_load_times(load, ev->start_ns, ev->end_ns))
		return LAG_END;
	ev->r = (uint32_t)r;
	ev->kind = kind == LAG_GPU_COPY || kind == LAG_GPU_SET ? (uint8_t)kind : LAG_GPU_KERNEL;
	name_gpu(load, ev, lag_stmt_int(row, 8));
	ev->correlation = lag_stmt_int(row, 9);
	ev->launch_start_ns = ev->launch_end_ns = LAG_NONE;
	api = lag_stmt_is_null(row, 10) ? -1 : lag_ids_find(&load->apis, lag_stmt_int(row, 10));
	if (api >= 0) {
		ev->launch_start_ns = load->trace->api[api].start_ns;
		ev->launch_end_ns = load->trace->api[api].end_ns;
		ev->launch_tid = load->trace->api[api].tid;
	}
	ev->config = lag_stmt_is_null(row, 11)
			     ? -1
			     : lag_ids_find(&load->configs, lag_stmt_int(row, 11));
	ev->bytes = lag_stmt_int(row, 12);
	ev->copy_kind = (uint8_t)(lag_stmt_is_null(row, 13) ? 0 : lag_stmt_int(row, 13) & 255);
	ev->launch = lag_stmt_is_null(row, 14)
			     ? -1
			     : lag_ids_find(&load->launches, lag_stmt_int(row, 14));
	if (ev->launch >= 0) {
		ev->class = LAG_CLASS_COMM;
		if (load->trace->launches[ev->launch].gpu < 0)
			load->trace->launches[ev->launch].gpu = (int32_t)load->n_rows;
	}
	ev->flags = (uint8_t)(lag_stmt_int(row, 15) & 255);
	lane = (struct lag_lane){ (uint32_t)r, lag_stmt_int(row, 3), lag_stmt_int(row, 4),
				  lag_stmt_int(row, 5) };
	if (lag_failed(find_lane(load->lanes, &lane, &ev->lane)) || load->n_rows >= INT32_MAX)
		return lag_load_no_memory(load);
	return LAG_OK;
}

static enum lag_status range_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_range *range = item;
	int r = lag_load_rank(load, lag_stmt_int(row, 0));
	int64_t kind = lag_stmt_int(row, 2), depth = lag_stmt_int(row, 8);

	range->start_ns = lag_stmt_int(row, 6);
	range->end_ns = lag_stmt_int(row, 7);
	if (kind == LAG_RANGE_MARK && range->end_ns == LAG_NONE)
		range->end_ns = range->start_ns;
	if (r < 0 || !lag_load_times(load, range->start_ns, range->end_ns))
		return LAG_END;
	range->r = (uint32_t)r;
	range->tid = (uint64_t)lag_stmt_int(row, 1);
	range->kind = (uint8_t)(kind & 255);
	range->domain = lag_load_string(load, lag_stmt_int(row, 3));
	range->category = lag_load_string(load, lag_stmt_int(row, 4));
	range->name = lag_load_string(load, lag_stmt_int(row, 5));
	range->depth = depth >= 0 && depth < INT32_MAX ? (int32_t)depth : -1;
	range->flags = (uint8_t)(lag_stmt_int(row, 9) & 255);
	return LAG_OK;
}

static enum lag_status sync_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_sync *sync = item;
	int r = lag_load_rank(load, lag_stmt_int(row, 0));

	sync->start_ns = lag_stmt_int(row, 2);
	sync->end_ns = lag_stmt_int(row, 3);
	if (r < 0 || !lag_load_times(load, sync->start_ns, sync->end_ns))
		return LAG_END;
	sync->r = (uint32_t)r;
	sync->kind = (uint8_t)(lag_stmt_int(row, 1) & 255);
	sync->context = lag_stmt_int(row, 4);
	sync->stream = lag_stmt_int(row, 5);
	sync->event_id = lag_stmt_int(row, 6);
	sync->sync_id = lag_stmt_int(row, 7);
	sync->correlation = lag_stmt_int(row, 8);
	sync->record_correlation = lag_stmt_int(row, 9);
	return LAG_OK;
}

enum lag_status lag_load_events(struct lag_load *load)
{
	struct lag_trace *t = load->trace;
	struct lag_load_lanes lanes = { .vec = LAG_VEC_INIT(struct lag_lane) };
	enum lag_status status;

	load->lanes = &lanes;
	status =
		lag_load_rows(load, lag_sql_load_api, api_row, sizeof(*t->api), &t->api, &t->n_api);
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_gpu, gpu_row, sizeof(*t->gpu), &t->gpu,
				       &t->n_gpu);
	}
	t->lanes = lanes.vec.items;
	t->n_lanes = lanes.vec.n;
	lag_map_release(&lanes.map);
	load->lanes = NULL;
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_range, range_row, sizeof(*t->ranges),
				       &t->ranges, &t->n_ranges);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_sync, sync_row, sizeof(*t->syncs),
				       &t->syncs, &t->n_syncs);
	}
	return status;
}

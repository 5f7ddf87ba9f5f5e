/* SPDX-License-Identifier: Apache-2.0 */
/* Events of one stream to slices that do not overlap: a few µs of overlap on one stream are normal
 * (graphs, dependent launches); the later event then begins where the earlier ends. */
#include "viz/tui/lanes.h"

#include <stdlib.h>

#include "schema/base/mem.h"

enum lag_status lag_lanes_init(struct lag_lane_rows *lanes, const struct lag_trace *trace,
			       struct lag_err *err)
{
	*lanes = (struct lag_lane_rows){ .n = trace->n_lanes };
	lanes->lods = lag_calloc(lanes->n, sizeof(*lanes->lods));
	lanes->slices = lag_calloc(lanes->n, sizeof(struct lag_time_slice *));
	lanes->events = lag_calloc(lanes->n, sizeof(uint32_t *));
	if (lanes->lods && lanes->slices && lanes->events)
		return LAG_OK;
	lag_lanes_release(lanes);
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu streams", trace->n_lanes);
}

void lag_lanes_release(struct lag_lane_rows *lanes)
{
	for (size_t i = 0; lanes->lods && lanes->slices && lanes->events && i < lanes->n; i++) {
		lag_lod_release(&lanes->lods[i]);
		free(lanes->slices[i]);
		free(lanes->events[i]);
	}
	free(lanes->lods);
	free(lanes->slices);
	free(lanes->events);
	*lanes = (struct lag_lane_rows){ 0 };
}

/* At most two slices an event: waiting, then the transfer. Returns how many. */
static size_t slices_of(const struct lag_scene *scene, const struct lag_gpu_event *event,
			int64_t from, struct lag_time_slice *out)
{
	int64_t end = event->end_ns == LAG_NONE ? scene->limits.t1 : event->end_ns, split = from;
	const struct lag_wait *wait = NULL;
	size_t n = 0;

	if (end <= from)
		return 0;
	if (event->class != LAG_CLASS_COMM) {
		out[0] = (struct lag_time_slice){ from, end,
						  event->class == LAG_CLASS_COPY ? LAG_TIME_COPY
										 : LAG_TIME_COMPUTE,
						  -1 };
		return 1;
	}
	if (event->launch >= 0 && (size_t)event->launch < scene->data->waits->n)
		wait = &scene->data->waits->launch[event->launch];
	if (wait && wait->wait_ns != LAG_NONE && wait->wait_ns > 0)
		split = event->start_ns + wait->wait_ns;
	split = split > end ? end : split;
	if (split > from) {
		out[n++] = (struct lag_time_slice){ from, split, LAG_TIME_EXPOSED_WAIT,
						    event->launch };
	}
	if (end > split) {
		out[n++] = (struct lag_time_slice){ split > from ? split : from, end,
						    LAG_TIME_EXPOSED_TRANSFER, event->launch };
	}
	return n;
}

const struct lag_lod *lag_lanes_get(struct lag_lane_rows *lanes, struct lag_scene *scene,
				    size_t lane)
{
	const struct lag_trace *trace = scene->data->trace;
	const struct lag_rank *rank = &trace->ranks[trace->lanes[lane].r];
	int64_t from = INT64_MIN;
	struct lag_err err = { 0 };
	size_t n = 0, events = 0, more;

	if (lanes->lods[lane].sums)
		return &lanes->lods[lane];
	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++)
		events += trace->gpu[i].lane == lane;
	free(lanes->slices[lane]);
	free(lanes->events[lane]);
	lanes->slices[lane] = lag_calloc(2 * events, sizeof(struct lag_time_slice));
	lanes->events[lane] = lag_calloc(2 * events, sizeof(uint32_t));
	if (!lanes->slices[lane] || !lanes->events[lane]) {
		lag_scene_say(scene, "no memory for this stream");
		return NULL;
	}
	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		const struct lag_gpu_event *event = &trace->gpu[i];

		if (event->lane != lane)
			continue;
		from = event->start_ns > from ? event->start_ns : from;
		more = slices_of(scene, event, from, lanes->slices[lane] + n);
		for (size_t k = 0; k < more; k++)
			lanes->events[lane][n + k] = (uint32_t)i;
		n += more;
		if (n)
			from = lanes->slices[lane][n - 1].end_ns;
	}
	if (lag_failed(lag_lod_init(&lanes->lods[lane], lanes->slices[lane], n, &err))) {
		lag_scene_say(scene, "%s", err.text);
		return NULL;
	}
	return &lanes->lods[lane];
}

uint32_t lag_lanes_event(const struct lag_lane_rows *lanes, size_t lane, size_t i)
{
	return lanes->events[lane][i];
}

const char *lag_lanes_use(struct lag_lane_rows *lanes, struct lag_scene *scene, size_t lane)
{
	const struct lag_lod *lod = lag_lanes_get(lanes, scene, lane);
	int64_t ns[LAG_TIME_LIMIT] = { 0 }, comm;

	if (!lod)
		return "";
	lag_lod_between(lod, scene->limits.t0, scene->limits.t1, ns);
	comm = ns[LAG_TIME_EXPOSED_WAIT] + ns[LAG_TIME_EXPOSED_TRANSFER];
	if (ns[LAG_TIME_COMPUTE] >= comm && ns[LAG_TIME_COMPUTE] >= ns[LAG_TIME_COPY])
		return "compute";
	return comm >= ns[LAG_TIME_COPY] ? "NCCL" : "copies";
}

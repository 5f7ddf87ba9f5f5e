/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the timeline: label, classes of time or the events of a stream, remark. */
#include "viz/tui/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "schema/base/mem.h"
#include "viz/tui/chart.h"
#include "viz/tui/inspect.h"
#include "viz/tui/text.h"

static void rank_label(struct lag_scene *scene, struct lag_timeline *view,
		       const struct lag_row *row, enum lag_wordy wordy, char out[96])
{
	const struct lag_rank *rank = &scene->data->trace->ranks[row->r];
	char place[48];
	int n;

	if (row->n_ranks > 0) {
		snprintf(out, 96, wordy == LAG_WORDY_FULL ? "%d %s ▸" : "×%d", row->n_ranks,
			 LAG_PLURAL(row->n_ranks, "rank", "ranks"));
		return;
	}
	if (row->lane >= 0) {
		snprintf(out, 96, wordy == LAG_WORDY_FULL ? "  stream %lld %s" : " s%lld",
			 (long long)scene->data->trace->lanes[row->lane].stream,
			 scene->data->detail
				 ? ""
				 : lag_lanes_use(&view->lanes, scene, (size_t)row->lane));
		return;
	}
	n = snprintf(out, 96, wordy == LAG_WORDY_FULL ? "rank %-3lld" : "r%lld",
		     (long long)rank->rank);
	if (wordy != LAG_WORDY_LEAST) {
		n += snprintf(out + n, 96 - (size_t)n, " %s",
			      lag_scene_place(scene, (size_t)row->r, place));
	}
	if (view->rows.opened[row->r] && wordy == LAG_WORDY_FULL)
		snprintf(out + n, 96 - (size_t)n, " ▾");
}

/* Cells of the widest group name and the widest label. */
static void label_widths(struct lag_scene *scene, struct lag_timeline *view,
			 const struct lag_canvas *canvas, enum lag_wordy wordy, int *group,
			 int *label)
{
	char text[96];

	*group = *label = 0;
	for (size_t i = 0; i < view->rows.at.n; i++) {
		const struct lag_row *row = lag_rows_at(&view->rows, (int)i);
		int width;

		rank_label(scene, view, row, wordy, text);
		width = lag_canvas_text_width(canvas, text);
		*label = width > *label ? width : *label;
		if (!row->first_of_group)
			continue;
		lag_rows_group_name(&view->rows, scene, row->group, text);
		width = lag_canvas_text_width(canvas, text);
		*group = width > *group ? width : *group;
	}
}

struct lag_label_plan lag_timeline_labels(struct lag_scene *scene, struct lag_timeline *view,
					  const struct lag_canvas *canvas)
{
	int most = canvas->width >= 60 ? canvas->width * 2 / 5 : canvas->width / 3;
	struct lag_label_plan plan = { .wordy = LAG_WORDY_FULL };
	int group, label;

	most = most > 44 ? 44 : most;
	for (plan.wordy = LAG_WORDY_FULL;; plan.wordy++) {
		label_widths(scene, view, canvas, plan.wordy, &group, &label);
		if (label <= most || plan.wordy == LAG_WORDY_LEAST)
			break;
	}
	if (canvas->width >= 100 || label + 1 + group <= most) {
		plan.group = group;
	} else if (most - label - 1 >= 4) {
		plan.group = group < most - label - 1 ? group : most - label - 1;
	}
	if (canvas->width < 60)
		plan.group = 0;
	plan.width = label + (plan.group ? plan.group + 1 : 0);
	return plan;
}

static void draw_label(struct lag_scene *scene, struct lag_timeline *view, struct lag_canvas *line,
		       const struct lag_row *row, const struct lag_label_plan *plan)
{
	bool late = row->n_ranks == 0 && view->remarks[row->r][0] &&
		    scene->data->trace->ranks[row->r].recorded;
	int x = plan->group ? plan->group + 1 : 0;
	char text[96];

	if (row->first_of_group && plan->group) {
		lag_rows_group_name(&view->rows, scene, row->group, text);
		lag_draw_field(line, 0, 0, plan->group, LAG_STYLE_TITLE, text);
	}
	rank_label(scene, view, row, plan->wordy, text);
	if (row->n_ranks > 0 && !plan->group) {
		lag_rows_group_name(&view->rows, scene, row->group, text);
		lag_draw_field(line, x, 0, plan->width - x, LAG_STYLE_TITLE, text);
		return;
	}
	lag_draw_field(line, x, 0, plan->width - x,
		       late && row->lane < 0 ? LAG_STYLE_LATE
		       : row->lane >= 0      ? LAG_STYLE_DIM
					     : LAG_STYLE_TEXT,
		       text);
}

static int64_t *columns_for(struct lag_timeline *view, int width)
{
	size_t need = (size_t)width * LAG_TIME_LIMIT;

	if (view->n_columns < width) {
		free(view->columns);
		free(view->edges);
		free(view->buckets);
		view->columns = lag_calloc(need, sizeof(*view->columns));
		view->edges = lag_calloc((size_t)width + 1, sizeof(*view->edges));
		view->buckets = lag_calloc((size_t)width, sizeof(*view->buckets));
		view->n_columns = width;
	}
	if (!view->columns || !view->edges || !view->buckets) {
		view->n_columns = 0;
		return NULL;
	}
	memset(view->columns, 0, need * sizeof(*view->columns));
	return view->columns;
}

#define NAME_LEAST 7 /* cells an event must have for its name */

/* Names inside the events of a stream that are wide enough; none where there are so many that hardly
 * one could be. */
static void draw_names(struct lag_scene *scene, struct lag_timeline *view, struct lag_canvas *chart,
		       size_t lane)
{
	static const enum lag_style on[LAG_TIME_LIMIT] = {
		[LAG_TIME_COMPUTE] = LAG_STYLE_ON_FORWARD,
		[LAG_TIME_COPY] = LAG_STYLE_ON_COPY,
		[LAG_TIME_EXPOSED_TRANSFER] = LAG_STYLE_ON_TRANSFER,
		[LAG_TIME_EXPOSED_WAIT] = LAG_STYLE_ON_WAIT,
	};
	const struct lag_trace *trace = scene->data->trace;
	const struct lag_lod *lod = lag_lanes_get(&view->lanes, scene, lane);
	size_t first = lod ? lag_lod_find(lod, scene->axis.t0) : 0;

	for (size_t i = first; lod && i < lod->n && i < first + (size_t)chart->width; i++) {
		const struct lag_time_slice *slice = &lod->slices[i];
		int left = lag_axis_column(&scene->axis, chart->width, slice->start_ns);
		int right = lag_axis_column(&scene->axis, chart->width, slice->end_ns - 1);
		char name[LAG_INSPECT_MAX];

		if (slice->start_ns >= scene->axis.t1)
			break;
		left = left < 0 ? 0 : left;
		right = right >= chart->width ? chart->width - 1 : right;
		if (right - left < NAME_LEAST)
			continue;
		/* The last cells keep their glyph: what class it is must not be told by colour alone. */
		lag_inspect_brief(trace, lag_lanes_event(&view->lanes, lane, i), name);
		lag_draw_sentence(chart, left, 0, right - left - 1, on[slice->class], name);
	}
}

static bool is_shown(const struct lag_timeline *view, uint32_t r)
{
	for (int i = view->list.top; i < view->list.top + view->list.page; i++) {
		if (i < (int)view->rows.at.n && lag_rows_at(&view->rows, i)->r == (int32_t)r &&
		    lag_rows_at(&view->rows, i)->n_ranks == 0)
			return true;
	}
	return false;
}

/* Ranks whose events are of interest, and how many these are: with `all` those on the screen, else the
 * opened and the selected ones. */
static enum lag_status choose_ranks(struct lag_scene *scene, struct lag_timeline *view, bool all,
				    uint32_t *ranks, size_t *n, struct lag_err *err)
{
	*n = 0;
	for (uint32_t r = 0; r < scene->data->trace->n_ranks; r++) {
		if (view->rows.opened[r] || (int32_t)r == scene->r || (all && is_shown(view, r)))
			ranks[(*n)++] = r;
	}
	return lag_detail_count(scene->data->detail, ranks, *n, scene->axis.t0, scene->axis.t1,
				&view->n_events, err);
}

static enum lag_status load_ranks(struct lag_scene *scene, struct lag_timeline *view,
				  uint32_t *ranks, bool *changed, struct lag_err *err)
{
	size_t n;
	enum lag_status st = choose_ranks(scene, view, true, ranks, &n, err);

	if (st == LAG_OK && view->n_events > LAG_DETAIL_EVENTS_MAX)
		st = choose_ranks(scene, view, false, ranks, &n, err);
	if (st == LAG_OK && view->n_events <= LAG_DETAIL_EVENTS_MAX) {
		st = lag_detail_load(scene->data->detail, ranks, n, scene->axis.t0, scene->axis.t1,
				     changed, err);
	}
	return st;
}

void lag_timeline_load(struct lag_scene *scene, struct lag_timeline *view)
{
	uint32_t *ranks = lag_calloc(scene->data->trace->n_ranks, sizeof(*ranks));
	struct lag_err err = { 0 };
	bool changed = false;

	if (!ranks) {
		lag_scene_say(scene, "no memory for events");
	} else if (lag_failed(load_ranks(scene, view, ranks, &changed, &err))) {
		lag_scene_say(scene, "%s", err.text);
	}
	free(ranks);
	if (!changed)
		return;
	lag_lanes_release(&view->lanes);
	if (lag_failed(lag_lanes_init(&view->lanes, scene->data->trace, &err)))
		lag_scene_say(scene, "%s", err.text);
}

/* The pyramid knows communication, but not whether it waits. */
static void add_detail(struct lag_scene *scene, struct lag_timeline *view, int32_t r, int32_t lane,
		       int width)
{
	struct lag_err err = { 0 };

	for (int x = 0; x <= width; x++)
		view->edges[x] = lag_axis_time(&scene->axis, width, x);
	memset(view->buckets, 0, (size_t)width * sizeof(*view->buckets));
	if (lag_failed(lag_detail_columns(scene->data->detail, (size_t)r, lane, view->edges, width,
					  view->buckets, &err))) {
		lag_scene_say(scene, "%s", err.text);
		return;
	}
	for (int x = 0; x < width; x++) {
		int64_t *to = &view->columns[(size_t)x * LAG_TIME_LIMIT];

		to[LAG_TIME_COMPUTE] += view->buckets[x].ns[LAG_PYRAMID_COMPUTE];
		to[LAG_TIME_COPY] += view->buckets[x].ns[LAG_PYRAMID_COPY];
		to[LAG_TIME_EXPOSED_TRANSFER] += view->buckets[x].ns[LAG_PYRAMID_COMM];
	}
}

static void draw_chart_row(struct lag_scene *scene, struct lag_timeline *view,
			   struct lag_canvas *chart, const struct lag_row *row)
{
	int width = chart->width;
	int64_t *columns = columns_for(view, width);
	int n = row->n_ranks > 0 ? row->n_ranks : 1;

	if (!columns)
		return;
	for (int i = 0; i < n; i++) {
		int32_t r = row->n_ranks > 0
				    ? view->rows.order[view->rows.group_first[row->group] + i]
				    : row->r;
		const struct lag_lod *lod;

		if (scene->data->detail) {
			add_detail(scene, view, r, row->lane, width);
			continue;
		}
		lod = row->lane >= 0 ? lag_lanes_get(&view->lanes, scene, (size_t)row->lane)
				     : lag_scene_lod(scene, (size_t)r);

		if (lod)
			lag_lod_columns(lod, &scene->axis, width, columns);
	}
	lag_chart_row(chart, &scene->axis, columns, n);
	if (row->lane >= 0)
		draw_names(scene, view, chart, (size_t)row->lane);
}

static void draw_remark(const struct lag_scene *scene, const struct lag_timeline *view,
			struct lag_canvas *line, const struct lag_row *row, int x)
{
	int late = 0;

	struct lag_canvas part = lag_canvas_part(line, x, 0, line->width - x, 1);

	if (row->lane >= 0)
		return;
	for (int i = 0; i < row->n_ranks; i++) {
		late += view->remarks[view->rows.order[view->rows.group_first[row->group] + i]]
				     [0] != '\0';
	}
	if (late) {
		lag_draw_printf(&part, 0, 0, LAG_STYLE_LATE, "◂ %d slow", late);
	} else if (row->n_ranks == 0 && view->remarks[row->r][0]) {
		lag_draw_printf(&part, 0, 0,
				scene->data->trace->ranks[row->r].recorded ? LAG_STYLE_LATE
									   : LAG_STYLE_DIM,
				"◂ %s", view->remarks[row->r]);
	}
}

int lag_timeline_remark_width(const struct lag_timeline *view)
{
	int width = 0;

	for (size_t i = 0; i < view->rows.at.n; i++) {
		const struct lag_row *row = lag_rows_at(&view->rows, (int)i);
		int need = row->n_ranks > 0 ? 10 : (int)strlen(view->remarks[row->r]) + 2;

		width = need > 2 && need > width ? need : width;
	}
	return width;
}

void lag_timeline_row(struct lag_scene *scene, struct lag_timeline *view, struct lag_canvas *line,
		      const struct lag_row *row, const struct lag_label_plan *plan)
{
	struct lag_canvas chart = lag_canvas_part(line, plan->width + 1, 0, plan->chart, 1);

	draw_label(scene, view, line, row, plan);
	draw_chart_row(scene, view, &chart, row);
	if (plan->remark)
		draw_remark(scene, view, line, row, plan->width + 1 + plan->chart + 1);
}

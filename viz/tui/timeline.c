/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the timeline: label, classes of time or the events of a stream, remark. */
#include "viz/tui/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		snprintf(out, 96, wordy == LAG_WORDY_FULL ? "%d ranks ▸" : "×%d", row->n_ranks);
		return;
	}
	if (row->lane >= 0) {
		snprintf(out, 96, wordy == LAG_WORDY_FULL ? "  stream %lld %s" : " s%lld",
			 (long long)scene->data->trace->lanes[row->lane].stream,
			 lag_lanes_use(&view->lanes, scene, (size_t)row->lane));
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
		int64_t *grown = realloc(view->columns, need * sizeof(*grown));

		if (!grown)
			return NULL;
		view->columns = grown;
		view->n_columns = width;
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
		const struct lag_lod *lod =
			row->lane >= 0 ? lag_lanes_get(&view->lanes, scene, (size_t)row->lane)
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

/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks on one corrected time axis; a rank opens to its streams; the lines below say what the
 * cursor stands on, who came last and who waited how long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "schema/base/mem.h"
#include "viz/tui/chart.h"
#include "viz/tui/glyphs.h"
#include "viz/tui/inspect.h"
#include "viz/tui/jump.h"
#include "viz/tui/layout.h"
#include "viz/tui/text.h"
#include "viz/tui/timeline.h"
#include "viz/tui/view.h"

static void read_remarks(struct lag_scene *scene, struct lag_timeline *view)
{
	for (size_t r = 0; r < scene->data->trace->n_ranks; r++) {
		const struct lag_straggler *judged = lag_scene_judged(scene, r);

		if (!scene->data->trace->ranks[r].recorded) {
			snprintf(view->remarks[r], sizeof(view->remarks[r]), "not recorded");
		} else if (lag_verdict_accuses(judged->verdict)) {
			snprintf(view->remarks[r], sizeof(view->remarks[r]), "slow %u/%u",
				 judged->steps_slow, judged->steps_seen);
		}
	}
}

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	struct lag_timeline *view = state;
	enum lag_status status = lag_rows_init(&view->rows, scene, err);

	if (!lag_failed(status))
		status = lag_lanes_init(&view->lanes, scene->data->trace, err);
	if (lag_failed(status))
		return status;
	view->remarks = lag_calloc(scene->data->trace->n_ranks, sizeof(*view->remarks));
	if (!view->remarks)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for remarks");
	read_remarks(scene, view);
	return LAG_OK;
}

static void close_view(void *state)
{
	struct lag_timeline *view = state;

	lag_rows_release(&view->rows);
	lag_lanes_release(&view->lanes);
	free(view->remarks);
	free(view->columns);
	free(view->edges);
	free(view->buckets);
}

static void rebuild(struct lag_scene *scene, struct lag_timeline *view)
{
	struct lag_err err = { 0 };
	int at;

	if (lag_failed(lag_rows_build(&view->rows, scene, &err)))
		lag_scene_say(scene, "%s", err.text);
	at = lag_rows_find(&view->rows, scene->r);
	if (at >= 0)
		view->list.selected = at;
	view->list.n = (int)view->rows.at.n;
}

/* Shows the selected rank, opening the group that hides it. */
static void enter(struct lag_scene *scene, void *state)
{
	struct lag_timeline *view = state;
	int at = lag_rows_find(&view->rows, scene->r);
	const struct lag_row *now =
		view->rows.at.n ? lag_rows_at(&view->rows, view->list.selected) : NULL;

	if (now && now->r == scene->r && now->n_ranks == 0)
		return;
	if (at >= 0 && lag_rows_at(&view->rows, at)->n_ranks > 0)
		view->rows.closed[lag_rows_at(&view->rows, at)->group] = false;
	rebuild(scene, view);
}

/* ------------------------------------------------------------------ below the rows */

/* "step 7 +112.480 ms"; where there are no steps "112.480 ms". */
static void moment_text(const struct lag_scene *scene, int64_t t, char out[80])
{
	int32_t step = lag_scene_step_at(scene, scene->time_ns);
	int64_t from = t - lag_inspect_origin(scene, scene->time_ns);
	char ns[LAG_NUM_MAX];

	if (step < 0) {
		snprintf(out, 80, "%s", lag_num_ms(ns, from));
	} else {
		snprintf(out, 80, "step %lld %s%s",
			 (long long)scene->data->steps->steps[step].number, from < 0 ? "−" : "+",
			 lag_num_ms(ns, from < 0 ? -from : from));
	}
}

/* "step 7 +112.480 ms  dur 9.310 ms", or the time since the mark. */
static unsigned where_text(const struct lag_scene *scene, const struct lag_spot *spot,
			   char out[160])
{
	char start[80], ns[LAG_NUM_MAX];

	if (scene->mark_ns != LAG_NONE) {
		snprintf(out, 160, "%s from the mark",
			 lag_num_ms(ns, scene->time_ns - scene->mark_ns));
		return LAG_STYLE_WAIT;
	}
	if (spot->class < 0 && spot->gpu < 0) {
		moment_text(scene, scene->time_ns, start);
		snprintf(out, 160, "at %s", start);
	} else {
		moment_text(scene, spot->t0, start);
		snprintf(out, 160, "%s  dur %s", start, lag_num_ms(ns, spot->t1 - spot->t0));
	}
	return LAG_STYLE_NUMBER;
}

struct legend {
	enum lag_time_class class;
	const char *name;
};

/* On the rule between rows and detail: what the glyphs mean. */
static void draw_legend(const struct lag_scene *scene, struct lag_canvas *canvas, int y)
{
	static const struct legend all[] = { { LAG_TIME_COMPUTE, "compute" },
					     { LAG_TIME_EXPOSED_TRANSFER, "transfer" },
					     { LAG_TIME_EXPOSED_WAIT, "waiting" },
					     { LAG_TIME_BUBBLE, "bubble" },
					     { LAG_TIME_COPY, "copy" },
					     { LAG_TIME_HOST, "host-bound" } };
	static const struct legend detail[] = { { LAG_TIME_COMPUTE, "compute" },
						{ LAG_TIME_EXPOSED_TRANSFER, "communication" },
						{ LAG_TIME_COPY, "copy" } };
	const struct legend *items = scene->data->detail ? detail : all;
	size_t n = scene->data->detail ? 3 : 6;
	int x = 2;

	if (canvas->width < 74)
		return;
	for (size_t i = 0; i < n; i++) {
		struct lag_ink look = lag_glyph_of_class(items[i].class);

		lag_draw_glyph(canvas, x, y, ' ', LAG_STYLE_DIM);
		lag_draw_glyph(canvas, x + 1, y, look.code, look.style);
		x = lag_draw_printf(canvas, x + 2, y, LAG_STYLE_DIM, " %s ", items[i].name) + 1;
	}
}

/* Where a large trace shows no event. */
static void describe_detail(const struct lag_timeline *view, char what[LAG_INSPECT_MAX])
{
	if (view->n_events > LAG_DETAIL_EVENTS_MAX) {
		snprintf(what, LAG_INSPECT_MAX, "%llu %s in this window: + until they are read",
			 (unsigned long long)view->n_events,
			 LAG_PLURAL(view->n_events, "event", "events"));
	} else {
		snprintf(what, LAG_INSPECT_MAX, "nothing runs here");
	}
}

/* Whether an event or slice covers less than a column decides nothing: the cursor is one moment. */
static void draw_detail(struct lag_scene *scene, struct lag_timeline *view,
			struct lag_canvas *canvas, int y, int lines)
{
	const struct lag_row *row = lag_rows_at(&view->rows, view->list.selected);
	char what[LAG_INSPECT_MAX], why[LAG_INSPECT_MAX], where[160];
	struct lag_spot spot;
	unsigned style;
	int room, left = canvas->width >= 40;

	if (lines >= 3) {
		lag_draw_run(canvas, 0, y, canvas->width, 0x2500, LAG_STYLE_DIM);
		draw_legend(scene, canvas, y++);
		lines--;
	}
	if (row->n_ranks > 0) {
		lag_draw_printf(canvas, left, y, LAG_STYLE_TEXT,
				"%d %s together: Enter or e shows them", row->n_ranks,
				LAG_PLURAL(row->n_ranks, "rank", "ranks"));
		return;
	}
	lag_inspect_at(scene, row->r, row->lane, scene->time_ns, &spot);
	lag_inspect_what(scene, row->r, &spot, what);
	lag_inspect_why(scene, &spot, why);
	if (scene->data->detail && spot.gpu < 0)
		describe_detail(view, what);
	style = where_text(scene, &spot, where);
	room = canvas->width - left;
	if (canvas->width >= 70) {
		lag_draw_right(canvas, 0, y, canvas->width - 1, style, where);
		room -= lag_canvas_text_width(canvas, where) + 4;
	} else if (lines >= 2 && canvas->width >= 36) {
		lag_draw_right(canvas, 0, y + 1, canvas->width - 1, style, where);
	} else if (why[0] && spot.launch >= 0) {
		snprintf(what, sizeof(what), "%s", why); /* who waited matters most */
	}
	/* The row says the rank, too. */
	if (lag_canvas_text_width(canvas, what) > room && strstr(what, " · rank "))
		*strstr(what, " · rank ") = '\0';
	lag_draw_field(canvas, left, y, room, LAG_STYLE_TEXT, what);
	if (lines >= 2 && canvas->width >= 70) {
		lag_draw_sentence(canvas, left, y + 1, canvas->width - left,
				  spot.launch >= 0 ? LAG_STYLE_WAIT : LAG_STYLE_DIM, why);
	}
}

static void draw_heading(const struct lag_scene *scene, struct lag_canvas *canvas,
			 const struct lag_timeline *view, int width)
{
	static const char *const folds[] = { "by host", "by stage", "by dp", "" };
	char text[64];

	if (scene->step < 0) {
		snprintf(text, sizeof(text), "whole run");
	} else {
		snprintf(text, sizeof(text),
			 width >= 16  ? "step %lld  %s"
			 : width >= 8 ? "step %lld"
				      : "%lld",
			 (long long)scene->data->steps->steps[scene->step].number,
			 folds[view->rows.fold]);
	}
	lag_draw_field(canvas, 0, 0, width, LAG_STYLE_TITLE, text);
}

/* Line below the axis of the i-th row shown. */
static int line_of(const struct lag_timeline *view, int i)
{
	int line = i;

	for (int k = 1; view->airy && k <= i; k++)
		line += lag_rows_at(&view->rows, view->list.top + k)->first_of_group;
	return line;
}

static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	struct lag_timeline *view = state;
	struct lag_canvas axis;
	struct lag_label_plan plan = lag_timeline_labels(scene, view, canvas);
	int n = (int)view->rows.at.n, cursor;
	struct lag_timeline_layout at = lag_layout_timeline(
		canvas->width, canvas->height, n, plan.width, lag_timeline_remark_width(view));
	int x = plan.width + 1;

	at.chart = canvas->width - x - (at.remark ? at.remark + 1 : 0);
	if (n == 0 || at.chart < 1)
		return;
	view->label = x;
	view->chart = plan.chart = at.chart;
	plan.remark = at.remark > 0;
	lag_list_fit(&view->list, n, at.rows);
	if (scene->data->detail)
		lag_timeline_load(scene, view);
	draw_heading(scene, canvas, view, plan.width);
	axis = lag_canvas_part(canvas, x, 0, at.chart, 1);
	lag_chart_axis(scene, &axis, lag_inspect_origin(scene, scene->axis.t0));
	cursor = lag_axis_column(&scene->axis, at.chart, scene->time_ns);
	view->airy = n + view->rows.n_groups - 1 <= canvas->height - 1 - at.detail &&
		     view->rows.fold != LAG_FOLD_NONE && view->rows.n_groups < n;
	for (int i = 0; i < at.rows && view->list.top + i < n; i++) {
		const struct lag_row *row = lag_rows_at(&view->rows, view->list.top + i);
		struct lag_canvas line =
			lag_canvas_part(canvas, 0, 1 + line_of(view, i), canvas->width, 1);

		lag_timeline_row(scene, view, &line, row, &plan);
		if (scene->printing || view->list.top + i != view->list.selected)
			continue;
		lag_draw_mark(&line, 0, 0, plan.width, LAG_STYLE_SELECTED);
		if (cursor >= 0 && cursor < at.chart)
			lag_draw_mark(&line, x + cursor, 0, 1, LAG_STYLE_SELECTED | LAG_STYLE_BOLD);
	}
	if (at.detail) {
		draw_detail(scene, view, canvas,
			    scene->printing ? 1 + line_of(view, at.rows - 1) + 1
					    : canvas->height - at.detail,
			    at.detail);
	}
}

/* ------------------------------------------------------------------ intents */

static void toggle(struct lag_scene *scene, struct lag_timeline *view)
{
	const struct lag_row row = *lag_rows_at(&view->rows, view->list.selected);
	struct lag_spot spot;

	scene->r = row.r;
	if (row.n_ranks > 0) {
		view->rows.closed[row.group] = false;
		rebuild(scene, view);
		return;
	}
	if (row.lane < 0) {
		view->rows.opened[row.r] = !view->rows.opened[row.r];
		rebuild(scene, view);
		return;
	}
	/* A stream opens to the event under the cursor. */
	lag_inspect_at(scene, row.r, row.lane, scene->time_ns, &spot);
	if (spot.gpu < 0) {
		lag_scene_say(scene, "nothing runs on this stream here");
		return;
	}
	scene->axis = (struct lag_axis){ spot.t0 - (spot.t1 - spot.t0) / 4,
					 spot.t1 + (spot.t1 - spot.t0) / 4 + 1 };
	lag_axis_pan(&scene->axis, 0.0, &scene->limits);
}

static void close_groups(struct lag_scene *scene, struct lag_timeline *view, bool all)
{
	const struct lag_row row = *lag_rows_at(&view->rows, view->list.selected);
	bool closing = row.n_ranks == 0;

	if (view->rows.fold == LAG_FOLD_NONE) {
		lag_scene_say(scene, "no groups: f groups the ranks");
		return;
	}
	for (int32_t g = 0; g < view->rows.n_groups; g++) {
		if (all || g == row.group)
			view->rows.closed[g] = closing;
	}
	scene->r = row.r;
	rebuild(scene, view);
}

static void fold(struct lag_scene *scene, struct lag_timeline *view)
{
	enum lag_fold next = (enum lag_fold)((view->rows.fold + 1) % LAG_FOLD_LIMIT);
	struct lag_err err = { 0 };

	if (next == LAG_FOLD_STAGE && scene->data->roles->n_stages <= 1)
		next = LAG_FOLD_DP;
	if (next == LAG_FOLD_DP && scene->data->roles->n_dp <= 1)
		next = LAG_FOLD_NONE;
	if (lag_failed(lag_rows_fold(&view->rows, scene, next, &err)))
		lag_scene_say(scene, "%s", err.text);
	rebuild(scene, view);
}

/* Intents that move in time. */
static bool move(struct lag_scene *scene, struct lag_timeline *view, enum lag_intent intent)
{
	int width = view->chart > 0 ? view->chart : 1;
	int column = lag_axis_column(&scene->axis, width, scene->time_ns);
	int64_t cell = (scene->axis.t1 - scene->axis.t0) / width;
	double before = (double)(scene->time_ns - scene->axis.t0);

	cell = cell > 0 ? cell : 1;
	switch (intent) {
	case LAG_INTENT_LEFT:
	case LAG_INTENT_RIGHT:
		if (column < 0 || column >= width) {
			lag_scene_set_time(scene, lag_axis_time(&scene->axis, width, width / 2));
		} else {
			lag_scene_set_time(
				scene, scene->time_ns + (intent == LAG_INTENT_LEFT ? -cell : cell));
		}
		lag_axis_reveal(&scene->axis, scene->time_ns, &scene->limits);
		return true;
	case LAG_INTENT_ZOOM_IN:
	case LAG_INTENT_ZOOM_OUT:
		lag_axis_zoom(&scene->axis, intent == LAG_INTENT_ZOOM_IN ? 0.5 : 2.0,
			      scene->time_ns, width, &scene->limits);
		return true;
	case LAG_INTENT_FIT:
		scene->axis = scene->limits;
		return true;
	case LAG_INTENT_PAN_LEFT:
	case LAG_INTENT_PAN_RIGHT:
		lag_axis_pan(&scene->axis, intent == LAG_INTENT_PAN_LEFT ? -0.5 : 0.5,
			     &scene->limits);
		lag_scene_set_time(scene, scene->axis.t0 + (int64_t)before);
		return true;
	case LAG_INTENT_STEP_PREV:
	case LAG_INTENT_STEP_NEXT:
		if (scene->step < 0)
			return true;
		lag_scene_set_step(scene, scene->step + (intent == LAG_INTENT_STEP_NEXT ? 1 : -1));
		lag_scene_show_step(scene);
		return true;
	default:
		return false;
	}
}

static bool needs_events(struct lag_scene *scene, const char *what)
{
	if (scene->data->detail)
		lag_scene_say(scene, LAG_SCENE_NEEDS_EVENTS, what);
	return scene->data->detail != NULL;
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct lag_timeline *view = state;

	if (view->rows.at.n == 0)
		return false;
	view->list.n = (int)view->rows.at.n;
	if (lag_list_act(&view->list, intent)) {
		scene->r = lag_rows_at(&view->rows, view->list.selected)->r;
		return true;
	}
	if (move(scene, view, intent))
		return true;
	switch (intent) {
	case LAG_INTENT_OPEN:
		toggle(scene, view);
		return true;
	case LAG_INTENT_EXPAND:
	case LAG_INTENT_EXPAND_ALL:
		close_groups(scene, view, intent == LAG_INTENT_EXPAND_ALL);
		return true;
	case LAG_INTENT_FOLD:
		fold(scene, view);
		return true;
	case LAG_INTENT_LATE_NEXT:
	case LAG_INTENT_LATE_PREV:
		if (needs_events(scene, "finding late arrivals"))
			return true;
		lag_jump_late(scene, intent == LAG_INTENT_LATE_NEXT);
		enter(scene, view);
		return true;
	case LAG_INTENT_BUBBLE_NEXT:
	case LAG_INTENT_BUBBLE_PREV:
		if (needs_events(scene, "finding bubbles"))
			return true;
		lag_jump_bubble(scene, intent == LAG_INTENT_BUBBLE_NEXT);
		return true;
	case LAG_INTENT_MARK:
		scene->mark_ns = scene->mark_ns == LAG_NONE ? scene->time_ns : LAG_NONE;
		return true;
	default:
		return false;
	}
}

static bool find(struct lag_scene *scene, void *state)
{
	bool found = !needs_events(scene, "finding a name") && lag_jump_name(scene);

	if (found)
		enter(scene, state);
	return found;
}

static void click(struct lag_scene *scene, void *state, int x, int y)
{
	struct lag_timeline *view = state;

	for (int i = 0; i < view->list.page && view->list.top + i < (int)view->rows.at.n; i++) {
		if (1 + line_of(view, i) != y)
			continue;
		view->list.selected = view->list.top + i;
		scene->r = lag_rows_at(&view->rows, view->list.selected)->r;
	}
	if (x >= view->label && x < view->label + view->chart) {
		lag_scene_set_time(scene,
				   lag_axis_time(&scene->axis, view->chart, x - view->label));
	}
}

const struct lag_view lag_view_timeline = {
	.name = "timeline",
	.state_size = sizeof(struct lag_timeline),
	.open = open_view,
	.close = close_view,
	.enter = enter,
	.draw = draw,
	.act = act,
	.find = find,
	.click = click,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The textbook drawing of a pipeline schedule, measured: stages as rows, forward and backward blocks
 * with their microbatch, waiting between them, and the bubble beside the ideal one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/tui/chart.h"
#include "viz/tui/glyphs.h"
#include "viz/tui/inspect.h"
#include "viz/tui/list.h"
#include "viz/tui/text.h"
#include "viz/tui/view.h"

struct pipe_view {
	int group;
	struct lag_list list;          /* stages */
	const struct lag_table *table; /* bubbles; NULL could not be had */
	int chart_x, chart, pitch;     /* cells, as last drawn */
	int64_t *columns;
	int n_columns;
	size_t *rows; /* of the table, by stage: of this group and step; n_rows = none */
	int rows_group;
	int32_t rows_step;
};

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	struct pipe_view *view = state;

	(void)err;
	if (scene->data->pipeline->n_groups)
		view->table = lag_scene_table(scene, "bubbles");
	return LAG_OK;
}

static void close_view(void *state)
{
	struct pipe_view *view = state;

	free(view->columns);
	free(view->rows);
}

static const struct lag_pipe_group *group_of(const struct lag_scene *scene,
					     const struct pipe_view *view)
{
	return &scene->data->pipeline->groups[view->group];
}

/* The group and stage of the rank selected elsewhere. */
static void enter(struct lag_scene *scene, void *state)
{
	struct pipe_view *view = state;
	const struct lag_pipeline *pipeline = scene->data->pipeline;

	for (size_t g = 0; g < pipeline->n_groups; g++) {
		for (int s = 0; s < pipeline->groups[g].n_stages; s++) {
			if (pipeline->groups[g].rank_of_stage[s] == scene->r) {
				view->group = (int)g;
				view->list.selected = s;
				return;
			}
		}
	}
}

/* False: this group has no whole schedule in the selected step. */
static bool window_of(const struct lag_scene *scene, const struct pipe_view *view,
		      struct lag_axis *axis)
{
	const struct lag_pipeline *pipeline = scene->data->pipeline;
	const struct lag_pipe_window *window;

	if (scene->step < 0 || (size_t)scene->step >= pipeline->n_steps)
		return false;
	window = &pipeline->windows[(size_t)scene->step * pipeline->n_groups + (size_t)view->group];
	if (window->start_ns == LAG_NONE || window->end_ns <= window->start_ns)
		return false;
	*axis = (struct lag_axis){ window->start_ns, window->end_ns };
	return true;
}

/* Finds the table's rows of the shown group and step, once for each: the table has a row for every
 * rank and step. */
static void find_rows(const struct lag_scene *scene, struct pipe_view *view)
{
	int64_t number = scene->data->steps->steps[scene->step].number;
	int n_stages = group_of(scene, view)->n_stages;
	size_t *rows;

	if (!view->table ||
	    (view->rows && view->rows_group == view->group && view->rows_step == scene->step))
		return;
	rows = realloc(view->rows, (size_t)n_stages * sizeof(*rows));
	if (!rows)
		return;
	view->rows = rows;
	view->rows_group = view->group;
	view->rows_step = scene->step;
	for (int s = 0; s < n_stages; s++)
		rows[s] = view->table->n_rows;
	for (size_t row = 0; row < view->table->n_rows; row++) {
		int64_t stage = lag_cell_int(view->table, row, "stage");

		if (stage >= 0 && stage < n_stages &&
		    lag_cell_int(view->table, row, "step") == number &&
		    lag_cell_int(view->table, row, "group") == view->group)
			rows[stage] = row;
	}
}

static size_t bubble_row(const struct pipe_view *view, int stage)
{
	return view->rows ? view->rows[stage] : view->table->n_rows;
}

/* ------------------------------------------------------------------ blocks */

static char letter_of(const struct lag_block *block)
{
	if (block->kind == LAG_BLOCK_FORWARD)
		return 'F';
	return block->kind == LAG_BLOCK_BACKWARD ? (char)'B' : (char)'W';
}

/* next: the block after it, NULL = none; its label begins where this one's must end. */
static void draw_block(const struct lag_pipe_group *group, const struct lag_block *block,
		       const struct lag_block *next, struct lag_canvas *line,
		       const struct lag_axis *axis)
{
	bool forward = block->kind == LAG_BLOCK_FORWARD;
	unsigned on = forward ? LAG_STYLE_ON_FORWARD : LAG_STYLE_ON_BACKWARD;
	int left = lag_axis_column(axis, line->width, block->start_ns);
	int right = lag_axis_column(axis, line->width, block->end_ns - 1), need;
	char label[32];

	/* Only its own compute changes colour; waiting inside a block stays what it is. */
	for (int x = left < 0 ? 0 : left; x <= right && x < line->width; x++) {
		const struct lag_screen_cell *cell =
			lag_screen_at(line->screen, line->x + x, line->y);

		if ((cell->style & LAG_STYLE_MASK) == LAG_STYLE_COMPUTE && !forward)
			lag_draw_glyph(line, x, 0, cell->code, LAG_STYLE_BACKWARD);
	}
	if (next && right >= lag_axis_column(axis, line->width, next->start_ns))
		right = lag_axis_column(axis, line->width, next->start_ns) - 1;
	if (group->n_chunks > 1) {
		snprintf(label, sizeof(label), "%c%d.%d", letter_of(block), block->microbatch,
			 block->chunk);
	} else {
		snprintf(label, sizeof(label), "%c%d", letter_of(block), block->microbatch);
	}
	need = (int)strlen(label);
	/* The letter goes before the number: the colour says it too. */
	if (need > right - left + 1)
		need = snprintf(label, sizeof(label), "%d", block->microbatch);
	if (need > right - left + 1)
		return;
	if (left >= 0 && right < line->width && need > 0)
		lag_draw_text(line, left, 0, on, label);
}

static int64_t *columns_for(struct pipe_view *view, int width)
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

static void draw_stage(struct lag_scene *scene, struct pipe_view *view, int stage,
		       const struct lag_axis *axis, struct lag_canvas *line)
{
	const struct lag_pipeline *pipeline = scene->data->pipeline;
	const struct lag_pipe_group *group = group_of(scene, view);
	int32_t r = group->rank_of_stage[stage];
	const struct lag_lod *lod = r >= 0 ? lag_scene_lod(scene, (size_t)r) : NULL;
	int64_t *columns = columns_for(view, line->width);

	if (!lod || !columns)
		return;
	lag_lod_columns(lod, axis, line->width, columns);
	lag_chart_row(line, axis, columns, 1);
	for (size_t i = pipeline->first_block[r]; i < pipeline->first_block[r + 1]; i++) {
		const struct lag_block *block = &pipeline->blocks[i], *next = block + 1;

		if (block->step == scene->step) {
			draw_block(group, block,
				   i + 1 < pipeline->first_block[r + 1] && next->step == scene->step
					   ? next
					   : NULL,
				   line, axis);
		}
	}
}

/* ------------------------------------------------------------------ figures */

#define FIGURE 9 /* cells of "31.0 %" and its heading */

static void draw_figures(const struct pipe_view *view, int stage, struct lag_canvas *line, int x,
			 int n)
{
	size_t row = view->table ? bubble_row(view, stage) : 0;
	double measured, ideal;
	char number[LAG_NUM_MAX];

	if (!view->table || row == view->table->n_rows)
		return;
	measured = lag_cell_real(view->table, row, "measured_share");
	ideal = lag_cell_real(view->table, row, "ideal_share");
	lag_draw_right(line, x, 0, FIGURE, LAG_STYLE_NUMBER, lag_num_share(number, measured));
	if (n > 1) {
		lag_draw_right(line, x + FIGURE, 0, FIGURE, LAG_STYLE_TEXT,
			       lag_num_share(number, ideal));
	}
	if (n > 2) {
		lag_draw_right(line, x + 2 * FIGURE, 0, FIGURE,
			       measured - ideal > 0.02 ? LAG_STYLE_WARN : LAG_STYLE_TEXT,
			       lag_num_share(number, measured - ideal));
	}
}

/* Sum of a column over the group's stages in the selected step; counts the stages that have it. */
static double sum_over_stages(const struct lag_scene *scene, const struct pipe_view *view,
			      const char *column, int *n)
{
	double sum = 0;

	*n = 0;
	for (int s = 0; s < group_of(scene, view)->n_stages; s++) {
		int64_t ns = lag_cell_int(view->table, bubble_row(view, s), column);

		if (ns == LAG_NONE)
			continue;
		sum += (double)ns;
		(*n)++;
	}
	return sum;
}

/* The ladder from ideal to measured, mean over the group's stages: the rungs that the table has between
 * the ideal and the residual. */
static int draw_ladder(const struct lag_scene *scene, const struct pipe_view *view,
		       struct lag_canvas *canvas, int y)
{
	const struct lag_table *table = view->table;
	int first = table ? lag_table_find_column(table, "ideal_ns") : -1;
	int last = table ? lag_table_find_column(table, "residual_ns") : -1, n, m, x;
	double excess;
	char text[96], number[LAG_NUM_MAX];

	if (first < 0 || last < first)
		return y;
	excess = sum_over_stages(scene, view, "measured_ns", &n);
	excess -= sum_over_stages(scene, view, "ideal_ns", &m);
	if (n == 0 || n != m)
		return y;
	x = lag_draw_printf(canvas, 1, y, LAG_STYLE_TITLE, "excess, mean of the stages: %s =",
			    lag_num_ns(number, llround(excess / n)));
	for (int c = first + 1; c <= last; c++) {
		const struct lag_column *column = &table->columns[c];
		double ns = sum_over_stages(scene, view, column->name, &m);

		if (column->unit != LAG_UNIT_NS || m == 0)
			continue;
		snprintf(text, sizeof(text), "%s %s", column->title,
			 lag_num_ns(number, llround(ns / m)));
		if (x + 2 + lag_canvas_text_width(canvas, text) > canvas->width) {
			x = 1;
			y++;
		}
		x = lag_draw_text(canvas, x + 2, y, LAG_STYLE_TEXT, text);
	}
	return y + 1;
}

static void draw_heading(const struct lag_scene *scene, const struct pipe_view *view,
			 struct lag_canvas *canvas, int figures, int n)
{
	static const char *const titles[] = { "measured", "ideal", "excess" };
	const struct lag_pipe_group *group = group_of(scene, view);
	char text[160];
	int at;

	int32_t r = group->rank_of_stage[0];
	int32_t dp = r >= 0 && scene->data->roles->n_dp > 1 ? scene->data->roles->ranks[r].dp : -1;

	at = snprintf(text, sizeof(text), "pipeline %d of %zu", view->group + 1,
		      scene->data->pipeline->n_groups);
	if (dp >= 0)
		at += snprintf(text + at, sizeof(text) - (size_t)at, " (dp %d)", dp);
	at += snprintf(text + at, sizeof(text) - (size_t)at, " · step %lld",
		       (long long)scene->data->steps->steps[scene->step].number);
	if (group->schedule != LAG_SCHEDULE_UNKNOWN) {
		at += snprintf(text + at, sizeof(text) - (size_t)at, " · %s",
			       lag_schedule_name(group->schedule));
	}
	snprintf(text + at, sizeof(text) - (size_t)at, " · m = %d · p = %d", group->n_microbatches,
		 group->n_stages);
	lag_draw_field(canvas, 1, 0, (n ? figures : canvas->width) - 2, LAG_STYLE_TITLE, text);
	for (int i = 0; i < n; i++)
		lag_draw_right(canvas, figures + i * FIGURE, 0, FIGURE, LAG_STYLE_DIM, titles[i]);
}

static void draw_label(const struct lag_scene *scene, int stage, int32_t r, int width,
		       struct lag_canvas *line)
{
	struct lag_canvas field = lag_canvas_part(line, 0, 0, width - 1, 1);
	bool late = r >= 0 && lag_verdict_accuses(lag_scene_judged(scene, (size_t)r)->verdict);
	unsigned style = late ? LAG_STYLE_LATE : LAG_STYLE_TEXT;
	int x = lag_draw_printf(&field, 1, 0, style, "s%d", stage);

	if (width > 4 && r >= 0) {
		x = lag_draw_printf(&field, x + 1, 0, style, "r%lld",
				    (long long)scene->data->trace->ranks[r].rank);
	}
	if (late)
		lag_draw_text(&field, x + 1, 0, style, "◂");
}

static void draw_detail(struct lag_scene *scene, const struct pipe_view *view,
			struct lag_canvas *canvas, int y)
{
	const struct lag_pipeline *pipeline = scene->data->pipeline;
	int32_t r = group_of(scene, view)->rank_of_stage[view->list.selected];
	char what[LAG_INSPECT_MAX], why[LAG_INSPECT_MAX], number[LAG_NUM_MAX];
	struct lag_spot spot;

	if (r < 0)
		return;
	for (size_t i = pipeline->first_block[r]; i < pipeline->first_block[r + 1]; i++) {
		const struct lag_block *block = &pipeline->blocks[i];

		if (block->start_ns > scene->time_ns || block->end_ns <= scene->time_ns)
			continue;
		lag_draw_printf(canvas, 1, y, LAG_STYLE_TEXT, "%c%d on rank %lld: %s",
				letter_of(block), block->microbatch,
				(long long)scene->data->trace->ranks[r].rank,
				lag_num_ns(number, block->end_ns - block->start_ns));
		lag_draw_printf(canvas, 1, y + 1, LAG_STYLE_DIM, "busy %s of it",
				lag_num_ns(number, block->busy_ns));
		return;
	}
	lag_inspect_at(scene, r, -1, scene->time_ns, &spot);
	lag_inspect_what(scene, r, &spot, what);
	lag_inspect_why(scene, &spot, why);
	lag_draw_field(canvas, 1, y, canvas->width - 2, LAG_STYLE_TEXT, what);
	lag_draw_field(canvas, 1, y + 1, canvas->width - 2, LAG_STYLE_WAIT, why);
}

static void draw_empty(const struct lag_scene *scene, struct lag_canvas *canvas)
{
	if (scene->data->pipeline->n_groups == 0) {
		lag_draw_field(canvas, 1, 0, canvas->width - 1, LAG_STYLE_TEXT,
			       "no pipeline in this run: the bubble is n/a, not 0");
	} else {
		lag_draw_field(canvas, 1, 0, canvas->width - 1, LAG_STYLE_TEXT,
			       "no whole schedule in this step: [ and ] go to others");
	}
}

struct plan {
	int label, figures, n_figures, rows, below; /* cells, columns of figures, lines */
};

static struct plan plan_view(const struct lag_scene *scene, struct pipe_view *view,
			     const struct lag_canvas *canvas)
{
	struct plan plan = { .label = canvas->width >= 60 ? 11 : 4 };

	if (view->table && canvas->width >= 40)
		plan.n_figures = canvas->width >= 90 ? 3 : canvas->width >= 70 ? 2 : 1;
	plan.figures = canvas->width - plan.n_figures * FIGURE;
	plan.below = canvas->height >= 10 ? 5 : canvas->height >= 6 ? 2 : 0;
	plan.rows = canvas->height - 1 - plan.below;
	view->chart_x = plan.label;
	view->chart = plan.figures - plan.label - 1;
	/* Where there is room the stages stand apart. */
	view->pitch = plan.rows >= 2 * group_of(scene, view)->n_stages ? 2 : 1;
	plan.rows /= view->pitch;
	return plan;
}

static void draw_row(struct lag_scene *scene, struct pipe_view *view, int stage,
		     const struct lag_axis *axis, const struct plan *plan, struct lag_canvas *line)
{
	struct lag_canvas chart = lag_canvas_part(line, plan->label, 0, view->chart, 1);
	int cursor = lag_axis_column(axis, view->chart, scene->time_ns);

	draw_label(scene, stage, group_of(scene, view)->rank_of_stage[stage], plan->label, line);
	draw_stage(scene, view, stage, axis, &chart);
	if (plan->n_figures)
		draw_figures(view, stage, line, plan->figures, plan->n_figures);
	if (scene->printing || stage != view->list.selected)
		return;
	lag_draw_mark(line, 0, 0, plan->label - 1, LAG_STYLE_SELECTED);
	if (cursor >= 0 && cursor < view->chart)
		lag_draw_mark(&chart, cursor, 0, 1, LAG_STYLE_SELECTED | LAG_STYLE_BOLD);
}

static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	struct pipe_view *view = state;
	struct lag_axis axis;
	struct plan plan;
	int y;

	if (scene->data->pipeline->n_groups == 0 || !window_of(scene, view, &axis)) {
		draw_empty(scene, canvas);
		return;
	}
	find_rows(scene, view);
	plan = plan_view(scene, view, canvas);
	lag_list_fit(&view->list, group_of(scene, view)->n_stages, plan.rows);
	draw_heading(scene, view, canvas, plan.figures, plan.n_figures);
	for (int i = 0; i < plan.rows && view->list.top + i < view->list.n; i++) {
		struct lag_canvas line =
			lag_canvas_part(canvas, 0, 1 + i * view->pitch, canvas->width, 1);

		draw_row(scene, view, view->list.top + i, &axis, &plan, &line);
	}
	y = 1 + view->pitch * (plan.rows < view->list.n ? plan.rows : view->list.n);
	if (plan.below >= 5)
		y = draw_ladder(scene, view, canvas, y + (view->pitch == 1));
	y += canvas->height - y > 3;
	if (plan.below && !scene->printing)
		draw_detail(scene, view, canvas, y);
	if (canvas->height - y >= 4) {
		lag_draw_field(canvas, 1, scene->printing ? y : canvas->height - 1,
			       canvas->width - 2, LAG_STYLE_DIM,
			       "F forward  B backward, each with its microbatch  · bubble");
	}
}

static void move_cursor(struct lag_scene *scene, struct pipe_view *view, int by)
{
	struct lag_axis axis;
	int64_t cell;

	if (view->chart < 1 || !window_of(scene, view, &axis))
		return;
	cell = (axis.t1 - axis.t0) / view->chart;
	if (scene->time_ns < axis.t0 || scene->time_ns >= axis.t1) {
		scene->time_ns = axis.t0;
	} else {
		scene->time_ns += by * (cell > 0 ? cell : 1);
	}
	scene->time_ns = scene->time_ns < axis.t0    ? axis.t0
			 : scene->time_ns >= axis.t1 ? axis.t1 - 1
						     : scene->time_ns;
}

static void take_stage(struct lag_scene *scene, const struct pipe_view *view)
{
	int32_t r = group_of(scene, view)->rank_of_stage[view->list.selected];

	if (r >= 0)
		scene->r = r;
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct pipe_view *view = state;
	int n_groups = (int)scene->data->pipeline->n_groups;
	struct lag_axis axis;

	if (n_groups == 0)
		return false;
	view->list.n = group_of(scene, view)->n_stages;
	if (lag_list_act(&view->list, intent)) {
		take_stage(scene, view);
		return true;
	}
	switch (intent) {
	case LAG_INTENT_LEFT:
	case LAG_INTENT_RIGHT:
		move_cursor(scene, view, intent == LAG_INTENT_LEFT ? -1 : 1);
		return true;
	case LAG_INTENT_STEP_PREV:
	case LAG_INTENT_STEP_NEXT:
		lag_scene_set_step(scene, scene->step + (intent == LAG_INTENT_STEP_NEXT ? 1 : -1));
		lag_scene_show_step(scene);
		return true;
	case LAG_INTENT_GROUP_NEXT:
		view->group = (view->group + 1) % n_groups;
		take_stage(scene, view);
		return true;
	case LAG_INTENT_OPEN:
		take_stage(scene, view);
		if (window_of(scene, view, &axis) &&
		    (scene->time_ns < axis.t0 || scene->time_ns >= axis.t1))
			lag_scene_set_time(scene, axis.t0);
		lag_axis_reveal(&scene->axis, scene->time_ns, &scene->limits);
		scene->go = LAG_VIEW_TIMELINE;
		return true;
	default:
		return false;
	}
}

static void click(struct lag_scene *scene, void *state, int x, int y)
{
	struct pipe_view *view = state;
	struct lag_axis axis;

	if (scene->data->pipeline->n_groups == 0 || !window_of(scene, view, &axis))
		return;
	y = view->pitch > 0 ? (y - 1) / view->pitch : 0;
	if (y >= 0 && y < view->list.page && view->list.top + y < view->list.n) {
		view->list.selected = view->list.top + y;
		take_stage(scene, view);
	}
	if (x >= view->chart_x && x < view->chart_x + view->chart)
		scene->time_ns = lag_axis_time(&axis, view->chart, x - view->chart_x);
}

const struct lag_view lag_view_pipeline = {
	.name = "pipeline",
	.state_size = sizeof(struct pipe_view),
	.open = open_view,
	.close = close_view,
	.enter = enter,
	.draw = draw,
	.act = act,
	.click = click,
};

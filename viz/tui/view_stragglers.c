/* SPDX-License-Identifier: Apache-2.0 */
/* Rank by step: compute time against peers of the same stage, with blame and verdict beside it. Enter
 * opens the cell's place in the timeline. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "viz/tui/glyphs.h"
#include "viz/tui/list.h"
#include "viz/tui/rows.h"
#include "viz/tui/text.h"
#include "viz/tui/view.h"

struct stragglers {
	struct lag_rows rows;
	struct lag_list list;
	int64_t *waited;          /* scratch, by rank index */
	int first_step;           /* first column shown */
	int map_x, cell, columns; /* as last drawn */
	bool no_peers;
};

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	struct stragglers *view = state;
	const struct lag_peers *peers = scene->data->peers;
	enum lag_status status = lag_rows_init(&view->rows, scene, err);

	if (lag_failed(status))
		return status;
	view->waited = lag_calloc(peers->n_ranks, sizeof(*view->waited));
	if (!view->waited)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu ranks", peers->n_ranks);
	view->no_peers = true;
	for (size_t i = 0; i < peers->n_ranks * peers->n_steps; i++)
		view->no_peers = view->no_peers && isnan(peers->step_ratio[i]);
	return LAG_OK;
}

static void close_view(void *state)
{
	struct stragglers *view = state;

	lag_rows_release(&view->rows);
	free(view->waited);
}

static void enter(struct lag_scene *scene, void *state)
{
	struct stragglers *view = state;
	int at = lag_rows_find(&view->rows, scene->r);

	if (at >= 0)
		view->list.selected = at;
}

/* Heat of a row in a step: of a closed group its worst. */
static float row_heat(const struct lag_scene *scene, const struct stragglers *view,
		      const struct lag_row *row, size_t step)
{
	float worst = NAN;

	if (row->n_ranks == 0)
		return lag_scene_heat(scene, (size_t)row->r, step);
	for (int i = 0; i < row->n_ranks; i++) {
		int32_t r = view->rows.order[view->rows.group_first[row->group] + i];
		float heat = lag_scene_heat(scene, (size_t)r, step);

		if (isnan(worst) || heat > worst)
			worst = heat;
	}
	return worst;
}

/* The rank a row is about: of a closed group the one that caused most waiting. */
static int32_t row_rank(const struct lag_scene *scene, const struct stragglers *view,
			const struct lag_row *row)
{
	int32_t worst = row->r;

	for (int i = 0; i < row->n_ranks; i++) {
		int32_t r = view->rows.order[view->rows.group_first[row->group] + i];

		if (lag_scene_judged(scene, (size_t)r)->waiting_caused_ns >
		    lag_scene_judged(scene, (size_t)worst)->waiting_caused_ns)
			worst = r;
	}
	return worst;
}

struct plan {
	int label, map, cell, columns;
	int cost, blamed, last, verdict; /* cells, 0 = not shown */
};

static struct plan plan_columns(const struct lag_scene *scene, const struct lag_canvas *canvas)
{
	struct plan plan = { 0 };
	int n = (int)scene->facts.n_steps, rest;

	plan.label = canvas->width >= 60 ? 18 : canvas->width >= 40 ? 12 : 4;
	rest = canvas->width - plan.label - 1;
	plan.verdict = canvas->width >= 100 ? 28 : canvas->width >= 70 ? 24 : 12;
	plan.cost = canvas->width >= 54 ? 10 : 0;
	plan.blamed = canvas->width >= 96 ? 10 : 0;
	plan.last = canvas->width >= 90 ? 8 : 0;
	rest -= plan.verdict + 1 + (plan.cost ? plan.cost + 1 : 0) +
		(plan.blamed ? plan.blamed + 1 : 0) + (plan.last ? plan.last + 1 : 0);
	if (rest < 3 || n == 0) {
		plan.verdict += rest > 0 ? rest : 0;
		return plan;
	}
	plan.cell = n * 3 <= rest ? 3 : n * 2 <= rest ? 2 : 1;
	plan.columns = rest / plan.cell < n ? rest / plan.cell : n;
	plan.map = plan.columns * plan.cell;
	plan.verdict += rest - plan.map > 40 ? 40 : rest - plan.map;
	return plan;
}

static void draw_legend(const struct lag_scene *scene, struct lag_canvas *canvas, int y,
			bool no_peers)
{
	static const float steps[] = { 1.0F, 1.1F, 1.2F, 1.3F };
	static const char *const names[] = { "<1.05×", "≥1.05×", "≥1.15×", "≥1.25×" };
	const char *withheld = scene->data->stragglers->withheld;
	int x;

	if (withheld[0]) {
		x = lag_draw_text(canvas, 0, y, LAG_STYLE_WARN, "cost and waiting are withheld: ");
		lag_draw_field(canvas, x, y, canvas->width - x, LAG_STYLE_WARN, withheld);
		return;
	}
	if (no_peers) {
		lag_draw_field(
			canvas, 0, y, canvas->width, LAG_STYLE_WARN,
			"no rank has a peer that does the same work: a slow rank and a heavy "
			"stage look the same");
		return;
	}
	x = lag_draw_text(canvas, 0, y, LAG_STYLE_TEXT,
			  canvas->width >= 90 ? "compute time v. peers of the same stage"
					      : "compute v. peers");
	for (int i = 0; i < 4; i++) {
		struct lag_ink look = lag_glyph_of_heat(steps[i]);

		x = lag_draw_text(canvas, x + 2, y, LAG_STYLE_DIM, names[i]);
		lag_draw_glyph(canvas, x + 1, y, look.code, look.style);
		x += 2;
	}
}

/* Left of the steps' numbers: how many of them are shown, and on which side there are more. */
static void draw_part_shown(const struct lag_scene *scene, const struct stragglers *view,
			    const struct plan *plan, struct lag_canvas *canvas, int y)
{
	int n = (int)scene->facts.n_steps;
	char text[48];

	if (plan->columns == n) {
		lag_draw_text(canvas, plan->label - 4, y, LAG_STYLE_DIM, "step");
		return;
	}
	snprintf(text, sizeof(text), plan->label >= 16 ? "%d of %d steps" : "%d/%d", plan->columns,
		 n);
	if (plan->label >= 12)
		lag_draw_right(canvas, 0, y, plan->label - 1, LAG_STYLE_TEXT, text);
	if (view->first_step > 0)
		lag_draw_glyph(canvas, plan->label, y, 0x25c2, LAG_STYLE_KEY);
	if (view->first_step + plan->columns < n)
		lag_draw_glyph(canvas, plan->label + 1 + plan->map, y, 0x25b8, LAG_STYLE_KEY);
}

static void draw_head(const struct lag_scene *scene, const struct stragglers *view,
		      const struct plan *plan, struct lag_canvas *canvas, int y)
{
	const struct lag_steps *steps = scene->data->steps;
	int x = plan->label + 1, free_from = 0, right = x + plan->map + 1;

	if (plan->columns)
		draw_part_shown(scene, view, plan, canvas, y);
	for (int i = 0; i < plan->columns; i++) {
		char text[24];
		int at = x + i * plan->cell, need;

		snprintf(text, sizeof(text), "%lld",
			 (long long)steps->steps[view->first_step + i].number);
		need = (int)strlen(text);
		/* Flush right over the cell's glyph. */
		at = at + plan->cell - need;
		if (at < free_from || at < x)
			continue;
		lag_draw_text(canvas, at, y, LAG_STYLE_DIM, text);
		free_from = at + need + (plan->cell == 3 ? 1 : 3);
	}
	if (plan->cost) {
		lag_draw_right(canvas, right, y, plan->cost, LAG_STYLE_DIM, "cost/step");
		right += plan->cost + 1;
	}
	if (plan->blamed) {
		lag_draw_right(canvas, right, y, plan->blamed, LAG_STYLE_DIM, "waiting");
		right += plan->blamed + 1;
	}
	if (plan->last) {
		lag_draw_right(canvas, right, y, plan->last, LAG_STYLE_DIM, "last in");
		right += plan->last + 1;
	}
	lag_draw_text(canvas, right + 1, y, LAG_STYLE_DIM, plan->verdict ? "verdict" : "");
}

static void draw_label(const struct lag_scene *scene, const struct stragglers *view,
		       const struct lag_row *row, const struct plan *plan, struct lag_canvas *line)
{
	const struct lag_trace *trace = scene->data->trace;
	char text[120], place[48], group[64];
	unsigned style = lag_verdict_accuses(lag_scene_judged(scene, (size_t)row->r)->verdict)
				 ? LAG_STYLE_LATE
				 : LAG_STYLE_TEXT;

	if (row->n_ranks > 0) {
		lag_rows_group_name(&view->rows, scene, row->group, group);
		snprintf(text, sizeof(text), "%s ×%d", group, row->n_ranks);
	} else {
		lag_scene_place(scene, (size_t)row->r, place);
		if (plan->label >= 18) {
			snprintf(text, sizeof(text), "rank %-3lld %s",
				 (long long)trace->ranks[row->r].rank, place);
		} else if (plan->label >= 12) {
			snprintf(text, sizeof(text), "r%-3lld %s",
				 (long long)trace->ranks[row->r].rank, place);
		} else {
			snprintf(text, sizeof(text), "r%lld", (long long)trace->ranks[row->r].rank);
		}
	}
	lag_draw_field(line, 0, 0, plan->label, row->n_ranks > 0 ? LAG_STYLE_TITLE : style, text);
}

static unsigned verdict_text(const struct lag_scene *scene, const struct lag_row *row,
			     const struct lag_straggler *judged, char out[160])
{
	const char *cause = lag_cause_name(judged->cause);
	int n;

	if (!scene->data->trace->ranks[row->r].recorded && row->n_ranks == 0) {
		snprintf(out, 160, "not recorded");
		return LAG_STYLE_DIM;
	}
	if (judged->verdict == LAG_VERDICT_NONE) {
		snprintf(out, 160, "-");
		return LAG_STYLE_DIM;
	}
	n = snprintf(out, 160, "%s", lag_verdict_name(judged->verdict));
	if (cause)
		n += snprintf(out + n, 160 - (size_t)n, ", %s", cause);
	if (lag_verdict_accuses(judged->verdict) && !isnan(judged->ratio) &&
	    judged->cause != LAG_CAUSE_HOST)
		snprintf(out + n, 160 - (size_t)n, " ×%.2f", judged->ratio);
	return lag_verdict_accuses(judged->verdict) ? LAG_STYLE_LATE : LAG_STYLE_TEXT;
}

static void draw_verdict(const struct lag_scene *scene, const struct stragglers *view,
			 const struct lag_row *row, const struct plan *plan,
			 struct lag_canvas *line)
{
	const struct lag_straggler *judged =
		lag_scene_judged(scene, (size_t)row_rank(scene, view, row));
	int x = plan->label + 1 + (plan->map ? plan->map + 1 : 0);
	bool accused = lag_verdict_accuses(judged->verdict);
	char text[160], number[LAG_NUM_MAX];
	unsigned style;

	if (plan->cost) {
		lag_draw_right(line, x, 0, plan->cost, accused ? LAG_STYLE_NUMBER : LAG_STYLE_DIM,
			       judged->step_cost_ns == LAG_NONE || !accused
				       ? "-"
				       : lag_num_ns(number, judged->step_cost_ns));
		x += plan->cost + 1;
	}
	if (plan->blamed) {
		lag_draw_right(line, x, 0, plan->blamed, LAG_STYLE_TEXT,
			       judged->waiting_caused_ns == LAG_NONE
				       ? "-"
				       : lag_num_ns(number, judged->waiting_caused_ns));
		x += plan->blamed + 1;
	}
	if (plan->last) {
		snprintf(text, sizeof(text), "%u/%u", judged->steps_last, judged->steps_seen);
		lag_draw_right(line, x, 0, plan->last, LAG_STYLE_TEXT,
			       judged->waiting_caused_ns == LAG_NONE ? "-" : text);
		x += plan->last + 1;
	}
	style = verdict_text(scene, row, judged, text);
	lag_draw_field(line, x + 1, 0, plan->verdict - 1, style, text);
}

static void draw_map_row(const struct lag_scene *scene, const struct stragglers *view,
			 const struct lag_row *row, const struct plan *plan,
			 struct lag_canvas *line, bool selected)
{
	for (int i = 0; i < plan->columns; i++) {
		size_t step = (size_t)view->first_step + (size_t)i;
		struct lag_ink look = lag_glyph_of_heat(row_heat(scene, view, row, step));
		int x = plan->label + 1 + (i + 1) * plan->cell - 1;

		lag_draw_glyph(line, x, 0, look.code, look.style);
		if (selected && (int32_t)step == scene->step) {
			lag_draw_mark(line, plan->cell > 1 ? x - 1 : x, 0, plan->cell > 1 ? 2 : 1,
				      LAG_STYLE_SELECTED | LAG_STYLE_BOLD);
		}
	}
}

/* A rank's waiting in a step, not covered by its own compute: for one rank, into ns[the rank that waits], or
 * (only < 0) by the rank that was waited for, into ns[that]; what names nobody into *unnamed. */
static void add_waits(const struct lag_scene *scene, size_t r, int32_t only, int64_t *ns,
		      int64_t *unnamed)
{
	const struct lag_ledger *ledger = scene->data->ledger;
	const struct lag_step_span *span =
		lag_steps_span(scene->data->steps, (size_t)scene->step, r);

	if (span->start_ns == LAG_NONE)
		return;
	for (size_t i = lag_ledger_find(ledger, r, span->start_ns);
	     i < ledger->first[r + 1] && ledger->slices[i].start_ns < span->end_ns; i++) {
		const struct lag_time_slice *slice = &ledger->slices[i];
		int32_t last;

		if (slice->launch < 0 ||
		    (slice->class != LAG_TIME_BUBBLE && slice->class != LAG_TIME_EXPOSED_WAIT))
			continue;
		last = scene->data->waits->launch[slice->launch].last;
		if (only >= 0 && last != only)
			continue;
		*(last < 0 ? unnamed : &ns[only < 0 ? (size_t)last : r]) +=
			lag_time_slice_in(slice, span->start_ns, span->end_ns);
	}
}

/* Position of the largest, which is taken out; -1 when all are 0. */
static int take_longest(int64_t *ns, size_t n, int64_t *taken)
{
	size_t most = 0;

	for (size_t i = 1; i < n; i++)
		most = ns[i] > ns[most] ? i : most;
	if (n == 0 || ns[most] <= 0)
		return -1;
	*taken = ns[most];
	ns[most] = 0;
	return (int)most;
}

/* Who waited for the selected rank in the selected step, or for whom it waited: longest first. This
 * explains, it does not accuse. */
static void draw_waits(const struct lag_scene *scene, struct stragglers *view,
		       struct lag_canvas *canvas, int y, bool for_it)
{
	const struct lag_trace *trace = scene->data->trace;
	size_t n_ranks = scene->data->ledger->n_ranks;
	int64_t rank = trace->ranks[scene->r].rank, ns, unnamed = 0;
	long long step;
	char text[96], number[LAG_NUM_MAX];
	int x, r, n = 0;

	if (scene->step < 0 || (size_t)scene->step >= scene->facts.n_steps)
		return;
	step = (long long)scene->data->steps->steps[scene->step].number;
	snprintf(text, sizeof(text),
		 for_it ? "waited for rank %lld in step %lld:"
			: "rank %lld waited in step %lld for:",
		 (long long)rank, step);
	x = lag_draw_text(canvas, 1, y, LAG_STYLE_DIM, text);
	memset(view->waited, 0, n_ranks * sizeof(*view->waited));
	for (size_t other = 0; for_it && other < n_ranks; other++)
		add_waits(scene, other, scene->r, view->waited, &unnamed);
	if (!for_it)
		add_waits(scene, (size_t)scene->r, -1, view->waited, &unnamed);
	while ((r = take_longest(view->waited, n_ranks, &ns)) >= 0) {
		n++;
		snprintf(text, sizeof(text), "rank %lld %s", (long long)trace->ranks[r].rank,
			 lag_num_ns(number, ns));
		if (x + 2 + lag_canvas_text_width(canvas, text) > canvas->width)
			break;
		x = lag_draw_text(canvas, x + 2, y, LAG_STYLE_WAIT, text);
	}
	snprintf(text, sizeof(text), "who cannot be told %s", lag_num_ns(number, unnamed));
	if (unnamed > 0) {
		if (x + 2 + lag_canvas_text_width(canvas, text) <= canvas->width)
			lag_draw_text(canvas, x + 2, y, LAG_STYLE_WAIT, text);
	} else if (n == 0) {
		lag_draw_text(canvas, x + 2, y, LAG_STYLE_DIM, "nobody");
	}
}

static void draw_cell(const struct lag_scene *scene, const struct stragglers *view,
		      struct lag_canvas *canvas, int y)
{
	const struct lag_row *row = lag_rows_at(&view->rows, view->list.selected);
	const struct lag_ledger *ledger = scene->data->ledger;
	int32_t r = row->n_ranks ? row_rank(scene, view, row) : row->r;
	char number[LAG_NUM_MAX], text[200];
	float heat;
	int n;

	if (scene->step < 0 || (size_t)scene->step >= ledger->n_steps)
		return;
	heat = lag_scene_heat(scene, (size_t)r, (size_t)scene->step);
	n = snprintf(
		text, sizeof(text), "rank %lld in step %lld: compute %s",
		(long long)scene->data->trace->ranks[r].rank,
		(long long)scene->data->steps->steps[scene->step].number,
		lag_num_ns(number,
			   ledger->by_step[((size_t)scene->step * ledger->n_ranks + (size_t)r) *
					   LAG_TIME_LIMIT]));
	if (isnan(heat)) {
		snprintf(text + n, sizeof(text) - (size_t)n, ", no peer to compare with");
	} else {
		snprintf(text + n, sizeof(text) - (size_t)n, ", %.2f× its peers", (double)heat);
	}
	lag_draw_field(canvas, 1, y, canvas->width - 1, LAG_STYLE_TEXT, text);
}

static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	struct stragglers *view = state;
	struct plan plan = plan_columns(scene, canvas);
	int n = (int)view->rows.at.n, y = 0, below = canvas->height >= 10 ? 4 : 0, rows;

	if (canvas->height >= 6)
		draw_legend(scene, canvas, y++, view->no_peers);
	if (plan.columns > 0) {
		if (scene->step >= view->first_step + plan.columns)
			view->first_step = scene->step - plan.columns + 1;
		if (scene->step >= 0 && scene->step < view->first_step)
			view->first_step = scene->step;
		if (view->first_step > (int)scene->facts.n_steps - plan.columns)
			view->first_step = (int)scene->facts.n_steps - plan.columns;
	}
	view->map_x = plan.label + 1;
	view->cell = plan.cell;
	view->columns = plan.columns;
	if (canvas->height >= 4)
		draw_head(scene, view, &plan, canvas, y++);
	rows = canvas->height - y - below;
	lag_list_fit(&view->list, n, rows);
	for (int i = 0; i < rows && view->list.top + i < n; i++) {
		struct lag_canvas line = lag_canvas_part(canvas, 0, y + i, canvas->width, 1);
		const struct lag_row *row = lag_rows_at(&view->rows, view->list.top + i);
		bool selected = !scene->printing && view->list.top + i == view->list.selected;

		draw_label(scene, view, row, &plan, &line);
		draw_verdict(scene, view, row, &plan, &line);
		draw_map_row(scene, view, row, &plan, &line, selected);
		if (selected)
			lag_draw_mark(&line, 0, 0, plan.label, LAG_STYLE_SELECTED);
	}
	if (below && n > 0) {
		y += rows < n ? rows : n;
		draw_cell(scene, view, canvas, y + 1);
		draw_waits(scene, view, canvas, y + 2, true);
		draw_waits(scene, view, canvas, y + 3, false);
	}
}

static void move_step(struct lag_scene *scene, int by)
{
	int32_t step = scene->step + by;

	if (step >= 0 && (size_t)step < scene->facts.n_steps)
		lag_scene_point(scene, scene->r, step);
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct stragglers *view = state;
	const struct lag_row *row;
	struct lag_err err = { 0 };

	view->list.n = (int)view->rows.at.n;
	if (view->list.n == 0)
		return false;
	if (lag_list_act(&view->list, intent)) {
		row = lag_rows_at(&view->rows, view->list.selected);
		scene->r = row->n_ranks ? row_rank(scene, view, row) : row->r;
		return true;
	}
	row = lag_rows_at(&view->rows, view->list.selected);
	switch (intent) {
	case LAG_INTENT_LEFT:
	case LAG_INTENT_RIGHT:
		move_step(scene, intent == LAG_INTENT_LEFT ? -1 : 1);
		return true;
	case LAG_INTENT_OPEN:
		lag_scene_point(scene, row->n_ranks ? row_rank(scene, view, row) : row->r,
				scene->step);
		scene->go = LAG_VIEW_TIMELINE;
		return true;
	case LAG_INTENT_EXPAND:
	case LAG_INTENT_EXPAND_ALL:
		for (int32_t g = 0; g < view->rows.n_groups; g++) {
			if (g == row->group || intent == LAG_INTENT_EXPAND_ALL)
				view->rows.closed[g] = row->n_ranks == 0;
		}
		if (lag_failed(lag_rows_build(&view->rows, scene, &err)))
			lag_scene_say(scene, "%s", err.text);
		enter(scene, view);
		return true;
	default:
		return false;
	}
}

static void click(struct lag_scene *scene, void *state, int x, int y)
{
	struct stragglers *view = state;
	int row = view->list.top + y - 2, step;

	if (y < 2 || row >= (int)view->rows.at.n || y - 2 >= view->list.page)
		return;
	view->list.selected = row;
	scene->r = lag_rows_at(&view->rows, row)->r;
	step = view->cell ? view->first_step + (x - view->map_x) / view->cell : -1;
	if (x >= view->map_x && view->cell && step < view->first_step + view->columns)
		lag_scene_point(scene, scene->r, step);
}

const struct lag_view lag_view_stragglers = {
	.name = "stragglers",
	.state_size = sizeof(struct stragglers),
	.open = open_view,
	.close = close_view,
	.enter = enter,
	.draw = draw,
	.act = act,
	.click = click,
};

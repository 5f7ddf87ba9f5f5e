/* SPDX-License-Identifier: Apache-2.0 */
/* What qualifies every number: how steps and roles were found, clock errors, losses, missing ranks. */
#include <inttypes.h>
#include <stdio.h>

#include "schema/base/fmt.h"
#include "viz/tui/list.h"
#include "viz/tui/table_list.h"
#include "viz/tui/text.h"
#include "viz/tui/view.h"

struct trust {
	const struct lag_table *trust, *clock, *ranks; /* NULL: could not be had */
	struct lag_list list;                          /* scrolls lines; nothing is selected */
	int lines;
};

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	struct trust *view = state;

	(void)err;
	view->trust = lag_scene_table(scene, "trust");
	view->clock = lag_scene_table(scene, "clock");
	view->ranks = lag_scene_table(scene, "ranks");
	scene->message[0] = '\0';
	return LAG_OK;
}

static int fact(struct lag_canvas *canvas, int y, const char *name, const char *text)
{
	int x = canvas->width >= 50 ? 18 : 8;

	lag_draw_field(canvas, 1, y, x - 2, LAG_STYLE_DIM, name);
	return y + lag_draw_folded(canvas, x, y, canvas->width - x - 1, LAG_STYLE_TEXT, text);
}

static int draw_window(const struct lag_tui_data *data, struct lag_canvas *canvas, int y)
{
	struct lag_buf text = { 0 }, spelt = { 0 };

	if (lag_window_tells(data->trace)) {
		lag_window_text(data->trace, &text);
		lag_fmt_units(&spelt, lag_buf_text(&text), true);
		y = fact(canvas, y, "window", lag_buf_text(&spelt));
	}
	lag_buf_release(&text);
	lag_buf_release(&spelt);
	return y;
}

/* Steps and layout. */
static int draw_found(const struct lag_tui_data *data, const struct lag_facts *facts,
		      struct lag_canvas *canvas, int y)
{
	char text[400];

	snprintf(text, sizeof(text), "%zu, %zu of them complete: %s", facts->n_steps,
		 facts->n_complete, data->steps->label);
	y = fact(canvas, y, "steps", text);
	y = draw_window(data, canvas, y);
	snprintf(text, sizeof(text), "%s (confidence %.0f %%): %s", data->roles->shape,
		 100 * data->roles->confidence, data->roles->why);
	return fact(canvas, y, "layout", text);
}

static int draw_facts(const struct lag_scene *scene, struct lag_canvas *canvas, int y)
{
	const struct lag_tui_data *data = scene->data;
	const struct lag_facts *facts = &scene->facts;
	char text[400], number[LAG_NUM_MAX];

	snprintf(text, sizeof(text), "%d of %d on record%s", facts->n_recorded, facts->n_ranks,
		 facts->n_recorded < facts->n_ranks
			 ? ": what the others did, and who came last, is not known"
			 : "");
	y = fact(canvas, y, "ranks", text);
	if (data->detail) {
		y = fact(canvas, y, "events",
			 "not read: nothing is known here of steps, layout and waiting (--all)");
	} else {
		y = draw_found(data, facts, canvas, y);
	}
	if (facts->clock_ns == LAG_NONE) {
		snprintf(text, sizeof(text), "error not known");
	} else {
		snprintf(text, sizeof(text), "±%s at worst; closer arrivals name nobody",
			 lag_num_error(number, facts->clock_ns));
	}
	y = fact(canvas, y, "clock", text);
	if (data->detail)
		return y;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " %s within the clock error, %" PRIu64 " lacking members",
		 data->waits->n_within_error,
		 LAG_PLURAL(data->waits->n_within_error, "comparison", "comparisons"),
		 data->waits->n_incomplete);
	y = fact(canvas, y, "withheld", text);
	if (data->pipeline->n_groups)
		y = fact(canvas, y, "pipeline", data->pipeline->how);
	return y;
}

static int draw_table(struct lag_canvas *canvas, int y, const char *title,
		      const struct lag_table *table)
{
	if (!table)
		return y;
	lag_draw_text(canvas, 0, y + 1, LAG_STYLE_KEY, title);
	return lag_table_draw_all(table, canvas, y + 2);
}

static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	struct trust *view = state;
	int y;

	lag_list_fit(&view->list,
		     view->lines > canvas->height ? view->lines - canvas->height + 1 : 1,
		     canvas->height);
	y = -view->list.selected;
	y = draw_facts(scene, canvas, y);
	y = draw_table(canvas, y, "What was found", view->trust);
	y = draw_table(canvas, y, "Clocks", view->clock);
	y = draw_table(canvas, y, "Ranks", view->ranks);
	view->lines = y + view->list.selected;
	if (!scene->printing)
		lag_draw_more(canvas, view->list.selected, y - canvas->height);
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct trust *view = state;

	(void)scene;
	return lag_list_act(&view->list, intent);
}

const struct lag_view lag_view_trust = {
	.name = "trust",
	.state_size = sizeof(struct trust),
	.open = open_view,
	.draw = draw,
	.act = act,
};

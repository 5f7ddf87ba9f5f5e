/* SPDX-License-Identifier: Apache-2.0 */
/* GPU time by kernel; Enter shows the next time it ran. */
#include <stdio.h>
#include <string.h>

#include "viz/tui/jump.h"
#include "viz/tui/table_list.h"
#include "viz/tui/view.h"

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	const struct lag_table *table = lag_scene_table(scene, "kernels");

	if (!table)
		return lag_err_set(err, LAG_ERR_INPUT, "%s", scene->message);
	return lag_table_list_init(state, table, "total_ns", "total_ns share mean_ns count class",
				   err);
}

static void close_view(void *state)
{
	lag_table_list_release(state);
}

static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	lag_table_list_draw(scene, state, canvas);
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct lag_table_list *view = state;
	const char *name;

	if (lag_table_list_act(view, intent))
		return true;
	if (intent != LAG_INTENT_OPEN)
		return false;
	name = lag_cell_text(view->table, lag_table_list_row(view), "name");
	if (!name)
		return false;
	snprintf(scene->find, sizeof(scene->find), "%s", name);
	/* The last one has no next: begin again at the front. */
	if (!lag_jump_name(scene)) {
		lag_scene_set_time(scene, scene->limits.t0);
		if (!lag_jump_name(scene)) {
			lag_scene_say(scene, "no event on record has this name");
			return true;
		}
	}
	scene->go = LAG_VIEW_TIMELINE;
	return true;
}

static bool find(struct lag_scene *scene, void *state)
{
	return lag_table_list_find(scene, state);
}

static void click(struct lag_scene *scene, void *state, int x, int y)
{
	(void)scene;
	(void)x;
	lag_table_list_click(state, y);
}

const struct lag_view lag_view_kernels = {
	.name = "kernels",
	.state_size = sizeof(struct lag_table_list),
	.open = open_view,
	.close = close_view,
	.draw = draw,
	.act = act,
	.find = find,
	.click = click,
};

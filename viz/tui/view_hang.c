/* SPDX-License-Identifier: Apache-2.0 */
/* Communication that had not ended: who holds it up, and how far each communicator came. Enter shows where
 * the rank stood when its recording ended. */
#include <string.h>

#include "viz/tui/table_list.h"
#include "viz/tui/view.h"

static bool is_suspect(const struct lag_table *table, size_t row)
{
	const char *kind = lag_cell_text(table, row, "kind");

	return kind && strcmp(kind, "suspect") == 0;
}

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	const struct lag_table *table = lag_scene_table(scene, "hang");
	struct lag_table_list *view = state;
	enum lag_status status;

	if (!table)
		return lag_err_set(err, LAG_ERR_INPUT, "%s", scene->message);
	/* The report's own order: the most telling first. */
	status = lag_table_list_init(
		view, table, "", "rank verdict function seq communicator waiting description sizes",
		err);
	view->late = is_suspect;
	return status;
}

static void close_view(void *state)
{
	lag_table_list_release(state);
}

/* The suspicion of the rank that was selected elsewhere. */
static void enter(struct lag_scene *scene, void *state)
{
	struct lag_table_list *view = state;
	int64_t rank =
		scene->data->trace->n_ranks ? scene->data->trace->ranks[scene->r].rank : LAG_NONE;

	for (size_t i = 0; i < view->table->n_rows; i++) {
		if (is_suspect(view->table, view->order[i]) &&
		    lag_cell_int(view->table, view->order[i], "rank") == rank) {
			view->list.selected = (int)i;
			return;
		}
	}
}

static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	lag_table_list_draw(scene, state, canvas);
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct lag_table_list *view = state;
	int64_t rank;
	int r;

	if (lag_table_list_act(view, intent))
		return true;
	if (intent != LAG_INTENT_OPEN)
		return false;
	rank = lag_cell_int(view->table, lag_table_list_row(view), "rank");
	r = rank == LAG_NONE ? -1 : lag_trace_find_rank(scene->data->trace, rank);
	if (r < 0) {
		lag_scene_say(scene, "this row is of several ranks: a suspect's opens its rank");
		return true;
	}
	scene->r = r;
	scene->axis = scene->limits;
	lag_scene_set_time(scene, scene->limits.t1 - 1);
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

const struct lag_view lag_view_hang = {
	.name = "hang",
	.state_size = sizeof(struct lag_table_list),
	.open = open_view,
	.close = close_view,
	.enter = enter,
	.draw = draw,
	.act = act,
	.find = find,
	.click = click,
};

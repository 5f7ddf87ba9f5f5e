/* SPDX-License-Identifier: Apache-2.0 */
/* Communication by communicator, function and size; Enter shows the instance that was waited for
 * longest, with who came last. */
#include <string.h>

#include "schema/record/enums.h"
#include "viz/model/comm_text.h"
#include "viz/tui/jump.h"
#include "viz/tui/table_list.h"
#include "viz/tui/view.h"

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	const struct lag_table *table = lag_scene_table(scene, "collectives");

	if (!table)
		return lag_err_set(err, LAG_ERR_INPUT, "%s", scene->message);
	return lag_table_list_init(state, table, "wait_ns",
				   "function wait_ns role transfer_ns bytes busbw_gbps count", err);
}

static void close_view(void *state)
{
	lag_table_list_release(state);
}

static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	lag_table_list_draw(scene, state, canvas);
}

/* The communicator a row is about; -1 when the table does not say. */
static int32_t comm_of(const struct lag_scene *scene, const struct lag_table *table, size_t row)
{
	const struct lag_trace *trace = scene->data->trace;
	const char *label = lag_cell_text(table, row, "communicator");
	const char *members = lag_cell_text(table, row, "members");
	struct lag_buf text = { 0 };
	int32_t found = -1;

	for (size_t c = 0; label && found < 0 && c < trace->n_comms; c++) {
		lag_comm_label(trace, c, &text);
		if (strcmp(lag_buf_text(&text), label) != 0)
			continue;
		/* Several may have one name: "pp" is called so on every pipeline. */
		lag_comm_members(trace, c, &text);
		if (!members || strcmp(lag_buf_text(&text), members) == 0)
			found = (int32_t)c;
	}
	lag_buf_release(&text);
	return found;
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct lag_table_list *view = state;
	const char *func;
	size_t row;

	if (lag_table_list_act(view, intent))
		return true;
	if (intent != LAG_INTENT_OPEN)
		return false;
	row = lag_table_list_row(view);
	func = lag_cell_text(view->table, row, "function");
	if (!lag_jump_worst_wait(scene, comm_of(scene, view->table, row),
				 func ? (int)lag_func_parse(func, strlen(func)) : -1)) {
		lag_scene_say(scene, "nobody waited for this longer than the clock error");
		return true;
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

const struct lag_view lag_view_collectives = {
	.name = "collectives",
	.state_size = sizeof(struct lag_table_list),
	.open = open_view,
	.close = close_view,
	.draw = draw,
	.act = act,
	.find = find,
	.click = click,
};

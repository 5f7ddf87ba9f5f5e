/* SPDX-License-Identifier: Apache-2.0 */
/* One view = one file = one line in views.def. A view sees intents, the shared scene and a canvas;
 * neither keys, nor the terminal, nor SQL. */
#ifndef VIZ_TUI_VIEW_H
#define VIZ_TUI_VIEW_H

#include "viz/tui/scene.h"
#include "viz/tui/screen.h"

struct lag_view {
	const char *name;
	size_t state_size; /* zeroed before open */
	/* Called once, before the view is first shown. */
	enum lag_status (*open)(struct lag_scene *scene, void *state, struct lag_err *err);
	void (*close)(void *state); /* NULL = nothing to free */
	/* Each time it comes to the front; NULL = nothing to do. */
	void (*enter)(struct lag_scene *scene, void *state);
	void (*draw)(struct lag_scene *scene, void *state, struct lag_canvas *canvas);
	/* False: the intent means nothing here. */
	bool (*act)(struct lag_scene *scene, void *state, enum lag_intent intent);
	/* To the next place that holds scene->find; NULL = nothing to find here. */
	bool (*find)(struct lag_scene *scene, void *state);
	/* A click on a cell of the last canvas; NULL = nothing. */
	void (*click)(struct lag_scene *scene, void *state, int x, int y);
};

#define LAG_VIEW(NAME, id, title, brief, summary) extern const struct lag_view lag_view_##id;
#include "viz/tui/views.def"

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The line at the top (run, shape, clock error, trust), the keys at the bottom, and the help. */
#ifndef VIZ_TUI_STATUS_H
#define VIZ_TUI_STATUS_H

#include "viz/tui/scene.h"
#include "viz/tui/screen.h"

void lag_status_top(const struct lag_scene *scene, struct lag_canvas *canvas);

/* The scene's message if there is one, else the keys that work in this view. */
void lag_status_bottom(const struct lag_scene *scene, enum lag_view_id view,
		       struct lag_canvas *canvas);

/* The key table, scrolled to line *top, which is brought into range. */
void lag_status_help(enum lag_view_id view, int *top, struct lag_canvas *canvas);

#endif

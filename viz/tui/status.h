/* SPDX-License-Identifier: Apache-2.0 */
/* The line at the top (run, shape, clock error, trust), the keys at the bottom, and the help. */
#ifndef VIZ_TUI_STATUS_H
#define VIZ_TUI_STATUS_H

#include "viz/tui/scene.h"
#include "viz/tui/screen.h"

void lag_status_top(const struct lag_scene *scene, struct lag_canvas *canvas);

/* Views that this run has something for: the first so many. */
int lag_status_views(const struct lag_scene *scene);

/* The views' names and digits, in one line, shortened where it is narrow; false: it is too narrow for
 * that. */
bool lag_status_tabs(const struct lag_scene *scene, enum lag_view_id view,
		     struct lag_canvas *canvas);

/* The scene's message if there is one, else the keys that work in this view; and that digits lead to
 * views where no tabs say so. */
void lag_status_bottom(const struct lag_scene *scene, enum lag_view_id view, bool tabs,
		       struct lag_canvas *canvas);

/* The key table, scrolled to line *top, which is brought into range. */
void lag_status_help(const struct lag_scene *scene, enum lag_view_id view, int *top,
		     struct lag_canvas *canvas);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The program without its terminal: keys in, a screen of cells out. The terminal loop, scripted keys
 * and printing all drive the same thing. */
#ifndef VIZ_TUI_APP_H
#define VIZ_TUI_APP_H

#include "viz/tui/keymap.h"
#include "viz/tui/screen.h"
#include "viz/tui/tui.h"

struct lag_app; /* opaque */

enum lag_status lag_app_new(const struct lag_tui_data *data, int width, int height, bool ascii,
			    struct lag_app **out, struct lag_err *err) LAG_MUST_USE;
void lag_app_free(struct lag_app *app);

/* False: no view has this name. */
bool lag_app_show(struct lag_app *app, const char *view);

enum lag_status lag_app_resize(struct lag_app *app, int width, int height,
			       struct lag_err *err) LAG_MUST_USE;
void lag_app_key(struct lag_app *app, uint32_t key);
void lag_app_click(struct lag_app *app, int x, int y, int wheel); /* wheel -1 up, 1 down, 0 click */
bool lag_app_done(const struct lag_app *app);

/* Draws and returns the screen, borrowed until the next call. */
const struct lag_screen *lag_app_draw(struct lag_app *app);
/* Without keys at the bottom and without a cursor. */
const struct lag_screen *lag_app_print(struct lag_app *app);

#endif

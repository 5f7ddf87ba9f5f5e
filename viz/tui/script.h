/* SPDX-License-Identifier: Apache-2.0 */
/* Keys from a text instead of a keyboard. */
#ifndef VIZ_TUI_SCRIPT_H
#define VIZ_TUI_SCRIPT_H

#include "viz/tui/app.h"

/* Presses keys, names separated by blanks; a word that names no key is typed letter by letter:
 * "/ gemm Enter n". Stops early when the program is left. */
void lag_script_press(struct lag_app *app, const char *keys);

#endif

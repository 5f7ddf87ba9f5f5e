/* SPDX-License-Identifier: Apache-2.0 */
/* From the cursor to the next thing worth looking at. Each returns false when there is none, and says
 * what it found in the scene's message. */
#ifndef VIZ_TUI_JUMP_H
#define VIZ_TUI_JUMP_H

#include "viz/tui/scene.h"

/* A late arrival that somebody waited for longer than the clock error and than 0.2 % of the step:
 * moves to the late rank's start. */
bool lag_jump_late(struct lag_scene *scene, bool forward);

/* A bubble of the selected rank of at least 0.1 % of the step. */
bool lag_jump_bubble(struct lag_scene *scene, bool forward);

/* The next event whose name holds scene->find: first on the selected rank, then on any. */
bool lag_jump_name(struct lag_scene *scene);

/* The longest wait of one communicator and function; -1 for any. */
bool lag_jump_worst_wait(struct lag_scene *scene, int32_t comm, int func);

#endif

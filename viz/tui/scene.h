/* SPDX-License-Identifier: Apache-2.0 */
/* What all views share: the data, the cursor's time, the selected rank and step, the window of time,
 * the text last searched. It survives every change of view. */
#ifndef VIZ_TUI_SCENE_H
#define VIZ_TUI_SCENE_H

#include "viz/tui/axis.h"
#include "viz/tui/facts.h"
#include "viz/tui/keymap.h"
#include "viz/tui/lod.h"
#include "viz/tui/tui.h"

#define LAG_FIND_MAX 128

/* What a view or key says that has no events to work on. */
#define LAG_SCENE_NEEDS_EVENTS \
	"%s needs all events: start with --all, given the memory (man laggard-tui)"

struct lag_scene {
	const struct lag_tui_data *data;
	struct lag_facts facts;
	struct lag_axis axis, limits; /* the timeline's window, the whole run */
	int64_t time_ns;              /* cursor */
	int64_t mark_ns;              /* measured from; LAG_NONE */
	int32_t r;                    /* selected rank index */
	int32_t step;                 /* selected step index, -1 = run has none */
	char find[LAG_FIND_MAX];
	char message[256];    /* shown in the bottom line until the next key */
	enum lag_view_id go;  /* view asked for; LAG_VIEW_LIMIT = stay */
	bool printing;        /* as text: no cursor, all rows */
	bool root;            /* "back" leaves the program */
	struct lag_lod *lods; /* by rank index, made on first use */
};

enum lag_status lag_scene_init(struct lag_scene *scene, const struct lag_tui_data *data,
			       struct lag_err *err) LAG_MUST_USE;
void lag_scene_release(struct lag_scene *scene);

void lag_scene_say(struct lag_scene *scene, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Moves the cursor in time; the selected step follows. */
void lag_scene_set_time(struct lag_scene *scene, int64_t time_ns);
/* Selects a step: the cursor keeps its place within the step. */
void lag_scene_set_step(struct lag_scene *scene, int32_t step);
/* Shows this step (with a small margin), or the whole run when it has none. */
void lag_scene_show_step(struct lag_scene *scene);
/* To a rank's share of a step, for a view that opens a place in time. */
void lag_scene_point(struct lag_scene *scene, int32_t r, int32_t step);

/* Step that holds a time, else the last one before; -1 when there is none. */
int32_t lag_scene_step_at(const struct lag_scene *scene, int64_t time_ns);

/* A rank's level of detail over its ledger; NULL (with a message) without memory. */
const struct lag_lod *lag_scene_lod(struct lag_scene *scene, size_t r);

/* Compute time of a rank in a step over what its peers lead to expect; NaN cannot tell. */
float lag_scene_heat(const struct lag_scene *scene, size_t r, size_t step);

/* The verdict on a rank. Never NULL. */
const struct lag_straggler *lag_scene_judged(const struct lag_scene *scene, size_t r);

/* An analysis' table, NULL with a message when it cannot be had. */
const struct lag_table *lag_scene_table(struct lag_scene *scene, const char *name);

/* "s2 dp1", "" when nothing is known. */
const char *lag_scene_place(const struct lag_scene *scene, size_t r, char out[48]);

/* Go to what the user typed: "7", "step 7", "s7", "112.5ms", "rank 5", "r5". False: not understood,
 * with a message. */
bool lag_scene_goto(struct lag_scene *scene, const char *text);

/* Reading tables by column name; what is not there is null. */
const char *lag_cell_text(const struct lag_table *table, size_t row, const char *column);
int64_t lag_cell_int(const struct lag_table *table, size_t row, const char *column);
double lag_cell_real(const struct lag_table *table, size_t row, const char *column);

#endif

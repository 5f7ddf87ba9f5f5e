/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline's state, and the drawing of its rows; used by view_timeline.c alone. */
#ifndef VIZ_TUI_TIMELINE_H
#define VIZ_TUI_TIMELINE_H

#include "viz/tui/lanes.h"
#include "viz/tui/list.h"
#include "viz/tui/rows.h"
#include "viz/tui/screen.h"

struct lag_timeline {
	struct lag_rows rows;
	struct lag_lane_rows lanes;
	struct lag_list list;
	char (*remarks)[64]; /* by rank: "slow 12/12" */
	int label, chart;    /* cells, as last drawn */
	bool airy;           /* a blank line between groups */
	int64_t *columns;    /* sums of one row */
	int n_columns;
	/* Where the trace has too many events (lag_tui_data.detail). */
	uint64_t n_events;          /* of the ranks looked at, in the window */
	int64_t *edges;             /* of n_columns columns */
	struct lag_bucket *buckets; /* of them */
};

enum lag_wordy {
	LAG_WORDY_FULL = 0, /* rank 5 s2 dp1 */
	LAG_WORDY_BRIEF,    /* r5 s2 dp1 */
	LAG_WORDY_LEAST,    /* r5 */
};

struct lag_label_plan {
	enum lag_wordy wordy;
	int group; /* cells for the group's name, 0 = not shown */
	int width; /* all */
	int chart; /* cells for the chart; set by the caller */
	bool remark;
};

/* Names shorten first, then disappear; a rank's number is never cut. */
struct lag_label_plan lag_timeline_labels(struct lag_scene *scene, struct lag_timeline *view,
					  const struct lag_canvas *canvas);

/* Cells of the widest remark, 0 = there is none. */
int lag_timeline_remark_width(const struct lag_timeline *view);

/* Loads the events of the ranks on the screen, else of opened ranks and the selected one, when these are few
 * enough. Rows of a screen page are known. */
void lag_timeline_load(struct lag_scene *scene, struct lag_timeline *view);

/* One row: label, chart, remark right of it. */
void lag_timeline_row(struct lag_scene *scene, struct lag_timeline *view, struct lag_canvas *line,
		      const struct lag_row *row, const struct lag_label_plan *plan);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline's rows: groups of ranks, ranks, and the streams of an opened rank. */
#ifndef VIZ_TUI_ROWS_H
#define VIZ_TUI_ROWS_H

#include "schema/base/mem.h"
#include "viz/tui/scene.h"

enum lag_fold {
	LAG_FOLD_HOST = 0,
	LAG_FOLD_STAGE,
	LAG_FOLD_DP,
	LAG_FOLD_NONE,
	LAG_FOLD_LIMIT
};

struct lag_row {
	int32_t group;       /* index of the group, -1 with LAG_FOLD_NONE */
	int32_t r;           /* rank index; of a closed group its first */
	int32_t lane;        /* index of the stream, -1: the rank's row */
	int32_t n_ranks;     /* > 0: a closed group that stands for so many ranks */
	bool first_of_group; /* carries the group's name */
};

struct lag_rows {
	enum lag_fold fold;
	struct lag_vec at;    /* struct lag_row */
	int32_t *order;       /* rank indices, grouped */
	int32_t *group_first; /* by group: first place in order; one more than groups */
	int32_t n_groups;
	bool *closed; /* by group */
	bool *opened; /* by rank: shows its streams */
	size_t n_ranks;
};

/* More ranks than this start with their groups closed. */
#define LAG_ROWS_OPEN_MAX 64

enum lag_status lag_rows_init(struct lag_rows *rows, const struct lag_scene *scene,
			      struct lag_err *err) LAG_MUST_USE;
void lag_rows_release(struct lag_rows *rows);

/* Groups anew. */
enum lag_status lag_rows_fold(struct lag_rows *rows, const struct lag_scene *scene,
			      enum lag_fold fold, struct lag_err *err) LAG_MUST_USE;
/* After opening or closing something. */
enum lag_status lag_rows_build(struct lag_rows *rows, const struct lag_scene *scene,
			       struct lag_err *err) LAG_MUST_USE;

static inline const struct lag_row *lag_rows_at(const struct lag_rows *rows, int i)
{
	return &LAG_VEC_AT(&rows->at, struct lag_row, i);
}

/* Row of a rank or of the closed group that hides it; -1 if there is none. */
int lag_rows_find(const struct lag_rows *rows, int32_t r);

/* "node0", "stage 2", "dp 1", "unknown". */
void lag_rows_group_name(const struct lag_rows *rows, const struct lag_scene *scene, int32_t group,
			 char out[64]);

/* First and last + 1 stream of a rank in the trace's lanes. */
void lag_rows_lanes(const struct lag_trace *trace, int32_t r, size_t *first, size_t *last);

#endif

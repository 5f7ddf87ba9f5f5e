/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables or two lists of events compared row by row: what was added, removed, changed, and by how
 * much. Rows are the same when their keys are (a kernel by its name, a collective by its members, ...);
 * rows of equal keys are the same in their order. */
#ifndef VIZ_MODEL_DIFF_H
#define VIZ_MODEL_DIFF_H

#include "viz/model/table.h"

struct lag_diff_opts {
	double tolerance; /* numbers that differ by at most this share of the larger are equal */
	const char
		*ignore; /* "start_ns,kernels.share": columns that are not compared; NULL = none */
	size_t n_top;    /* changes kept, the biggest; 0 = all, up to LAG_DIFF_CHANGES_MAX */
	int64_t step_ns; /* mean step; changes of less than a thousandth of it weigh little; 0 = unknown */
};

#define LAG_DIFF_CHANGES_MAX ((size_t)1 << 20)

enum lag_diff_kind {
	LAG_DIFF_CHANGED = 0,
	LAG_DIFF_ADDED,   /* in B alone */
	LAG_DIFF_REMOVED, /* in A alone */
};

/* One cell that changed, or one row that is in one of the two. */
struct lag_diff_change {
	enum lag_diff_kind kind;
	uint32_t view;      /* index into views */
	char *row;          /* what the row is of: "rank 3, step 7"; owned */
	const char *column; /* NULL for rows; static */
	const char *title;  /* the column's, for people; NULL = its name */
	int tier; /* what tells most comes first: 0 verdicts, 1 all else, 2 errors of numbers */
	enum lag_unit unit;
	struct lag_cell a, b; /* null in rows; texts are owned */
	/* What orders changes of a tier: the difference as a share of the sum of its column over both
	 * sides; that of a row is its largest column's, that of texts 0. */
	double weight;
	uint64_t order; /* of being found */
};

struct lag_diff_view {
	const char *name;  /* static */
	uint64_t n_a, n_b; /* rows */
	uint64_t n_same, n_added, n_removed, n_changed;
};

struct lag_diff {
	struct lag_diff_opts opts; /* strings borrowed */
	struct lag_vec views;      /* struct lag_diff_view */
	struct lag_vec changes;    /* struct lag_diff_change; in order after lag_diff_finish */
	uint64_t n_found;          /* changes, kept or not */
	bool failed;               /* out of memory: checked once, by lag_diff_finish */
};

void lag_diff_init(struct lag_diff *diff, const struct lag_diff_opts *opts);
void lag_diff_release(struct lag_diff *diff);

/* Begins a view; its index. What follows is counted in it. */
uint32_t lag_diff_begin(struct lag_diff *diff, const char *name);

/* Do n bytes of a list of columns, "start_ns" or "kernels.share", name this one? */
bool lag_diff_names(const char *entry, size_t n, const char *view, const char *column);

/* Is the column of the current view left out? */
bool lag_diff_ignores(const struct lag_diff *diff, const char *column);

/* Are two cells equal within the tolerance? Null is equal to null alone; ids and texts have none. */
bool lag_diff_cells_equal(const struct lag_diff *diff, const struct lag_cell *a,
			  const struct lag_cell *b, enum lag_unit unit);

/* Adds a change to the current view; its row and cells are copied. Counting is the caller's. */
void lag_diff_add(struct lag_diff *diff, const struct lag_diff_change *change);

/* Names of columns, separated by blanks. */
struct lag_diff_keys {
	const char *keys; /* equal in rows that are the same */
	const char *skip; /* not compared; "" = none */
};

/* Compares two tables of the same columns in the current view. LAG_ERR_USAGE: a key is no column, or the
 * columns differ. */
enum lag_status lag_diff_tables(struct lag_diff *diff, const struct lag_table *a,
				const struct lag_table *b, const struct lag_diff_keys *keys,
				struct lag_err *err) LAG_MUST_USE;

/* Sorts the changes, biggest first. LAG_ERR_SYSTEM: something above ran out of memory. */
enum lag_status lag_diff_finish(struct lag_diff *diff, struct lag_err *err) LAG_MUST_USE;

/* A cell's number; 0 for texts and nulls. */
double lag_diff_number(const struct lag_cell *cell, enum lag_unit unit);

#endif

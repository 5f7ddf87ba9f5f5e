/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks in groups by host, stage or data-parallel place, in the order of their numbers. */
#include "viz/tui/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t key_of(const struct lag_scene *scene, enum lag_fold fold, int32_t r)
{
	const struct lag_rank_role *role = &scene->data->roles->ranks[r];

	switch (fold) {
	case LAG_FOLD_HOST:
		return scene->data->trace->ranks[r].host;
	case LAG_FOLD_STAGE:
		return role->stage;
	case LAG_FOLD_DP:
		return role->dp;
	default:
		return 0;
	}
}

struct keyed {
	int32_t key, r;
};

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->r < y->r ? -1 : x->r > y->r;
}

enum lag_status lag_rows_init(struct lag_rows *rows, const struct lag_scene *scene,
			      struct lag_err *err)
{
	size_t n = scene->data->trace->n_ranks;

	*rows = (struct lag_rows){ .n_ranks = n };
	rows->at.item_size = sizeof(struct lag_row);
	rows->order = lag_calloc(n, sizeof(*rows->order));
	rows->group_first = lag_calloc(n + 1, sizeof(*rows->group_first));
	rows->closed = lag_calloc(n, sizeof(*rows->closed));
	rows->opened = lag_calloc(n, sizeof(*rows->opened));
	if (!rows->order || !rows->group_first || !rows->closed || !rows->opened) {
		lag_rows_release(rows);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu rows", n);
	}
	return lag_rows_fold(rows, scene, LAG_FOLD_HOST, err);
}

void lag_rows_release(struct lag_rows *rows)
{
	lag_vec_release(&rows->at);
	free(rows->order);
	free(rows->group_first);
	free(rows->closed);
	free(rows->opened);
	*rows = (struct lag_rows){ 0 };
}

enum lag_status lag_rows_fold(struct lag_rows *rows, const struct lag_scene *scene,
			      enum lag_fold fold, struct lag_err *err)
{
	struct keyed *keyed = lag_calloc(rows->n_ranks, sizeof(*keyed));

	if (!keyed)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu rows", rows->n_ranks);
	for (size_t r = 0; r < rows->n_ranks; r++)
		keyed[r] = (struct keyed){ key_of(scene, fold, (int32_t)r), (int32_t)r };
	qsort(keyed, rows->n_ranks, sizeof(*keyed), compare_keyed);
	rows->fold = fold;
	rows->n_groups = 0;
	for (size_t i = 0; i < rows->n_ranks; i++) {
		rows->order[i] = keyed[i].r;
		if (i == 0 || keyed[i].key != keyed[i - 1].key)
			rows->group_first[rows->n_groups++] = (int32_t)i;
	}
	rows->group_first[rows->n_groups] = (int32_t)rows->n_ranks;
	for (int32_t g = 0; g < rows->n_groups; g++)
		rows->closed[g] = fold != LAG_FOLD_NONE && rows->n_ranks > LAG_ROWS_OPEN_MAX;
	free(keyed);
	return lag_rows_build(rows, scene, err);
}

static bool push(struct lag_rows *rows, struct lag_row row)
{
	struct lag_row *at = lag_vec_push(&rows->at);

	if (at)
		*at = row;
	return at != NULL;
}

static bool push_rank(struct lag_rows *rows, const struct lag_scene *scene, struct lag_row row)
{
	size_t first, last;

	if (!push(rows, row))
		return false;
	if (!rows->opened[row.r])
		return true;
	lag_rows_lanes(scene->data->trace, row.r, &first, &last);
	row.first_of_group = false;
	for (size_t lane = first; lane < last; lane++) {
		row.lane = (int32_t)lane;
		if (!push(rows, row))
			return false;
	}
	return true;
}

enum lag_status lag_rows_build(struct lag_rows *rows, const struct lag_scene *scene,
			       struct lag_err *err)
{
	bool ok = true;

	rows->at.n = 0;
	for (int32_t g = 0; g < rows->n_groups && ok; g++) {
		int32_t first = rows->group_first[g], last = rows->group_first[g + 1];
		int32_t group = rows->fold == LAG_FOLD_NONE ? -1 : g;

		if (rows->closed[g]) {
			ok = push(rows, (struct lag_row){ group, rows->order[first], -1,
							  last - first, true });
			continue;
		}
		for (int32_t i = first; i < last && ok; i++) {
			ok = push_rank(rows, scene,
				       (struct lag_row){ group, rows->order[i], -1, 0,
							 group >= 0 && i == first });
		}
	}
	return ok ? LAG_OK : lag_err_set(err, LAG_ERR_SYSTEM, "no memory for rows");
}

int lag_rows_find(const struct lag_rows *rows, int32_t r)
{
	for (size_t i = 0; i < rows->at.n; i++) {
		const struct lag_row *row = lag_rows_at(rows, (int)i);

		if (row->n_ranks == 0 && row->r == r)
			return (int)i;
		for (int32_t k = 0; k < row->n_ranks; k++) {
			if (rows->order[rows->group_first[row->group] + k] == r)
				return (int)i;
		}
	}
	return -1;
}

void lag_rows_group_name(const struct lag_rows *rows, const struct lag_scene *scene, int32_t group,
			 char out[64])
{
	int32_t key;

	out[0] = '\0';
	if (group < 0)
		return;
	key = key_of(scene, rows->fold, rows->order[rows->group_first[group]]);
	if (key < 0) {
		snprintf(out, 64, "unknown");
	} else if (rows->fold == LAG_FOLD_HOST) {
		snprintf(out, 64, "%s", scene->data->trace->hosts[key].name);
	} else {
		snprintf(out, 64, "%s %d", rows->fold == LAG_FOLD_STAGE ? "stage" : "dp", key);
	}
}

void lag_rows_lanes(const struct lag_trace *trace, int32_t r, size_t *first, size_t *last)
{
	size_t low = 0, high = trace->n_lanes;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (trace->lanes[mid].r < (uint32_t)r) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	*first = *last = low;
	while (*last < trace->n_lanes && trace->lanes[*last].r == (uint32_t)r)
		(*last)++;
}

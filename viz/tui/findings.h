/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of the first screen: the summary's findings, each with what it would win and the view
 * that holds its evidence. */
#ifndef VIZ_TUI_FINDINGS_H
#define VIZ_TUI_FINDINGS_H

#include "viz/tui/scene.h"

#define LAG_FINDINGS_MAX 32

struct lag_claim {
	char text[320];
	int64_t gain_ns; /* of the step; LAG_NONE not known */
	double share;    /* of the step; NaN not known */
	enum lag_view_id view;
	bool accuses;    /* names a rank */
	int32_t r, step; /* where to look there, -1 */
};

struct lag_findings {
	struct lag_claim items[LAG_FINDINGS_MAX];
	int n;
};

/* summary may be NULL: no findings. Doubts about the data come last. */
void lag_findings_gather(const struct lag_scene *scene, const struct lag_table *summary,
			 struct lag_findings *out);

#endif

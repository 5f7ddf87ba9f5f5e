/* SPDX-License-Identifier: Apache-2.0 */
/* Findings come from the summary, so that the screen and the report cannot differ; what is added is
 * only where each one's evidence is. */
#include "viz/tui/findings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *item;
	enum lag_view_id view;
} evidence[] = {
	{ "hang", LAG_VIEW_HANG },
	{ "straggler", LAG_VIEW_STRAGGLERS },
	{ "nobody_late", LAG_VIEW_STRAGGLERS },
	{ "imbalance", LAG_VIEW_PIPELINE },
	{ "bubble", LAG_VIEW_PIPELINE },
	{ "exposed_comm", LAG_VIEW_COLLECTIVES },
	{ "host_bound", LAG_VIEW_TIMELINE },
	{ "copy", LAG_VIEW_TIMELINE },
	{ "compute", LAG_VIEW_KERNELS },
};

static enum lag_view_id view_of(const char *section, const char *item)
{
	for (size_t i = 0; i < sizeof(evidence) / sizeof(evidence[0]); i++) {
		if (strcmp(section, "finding") == 0 && item && strcmp(item, evidence[i].item) == 0)
			return evidence[i].view;
	}
	return LAG_VIEW_TRUST;
}

/* The step in which a rank was slowest against its peers. */
static int32_t worst_step(const struct lag_scene *scene, size_t r)
{
	int32_t worst = -1;
	float most = 0;

	for (size_t step = 0; step < scene->facts.n_steps; step++) {
		float heat = lag_scene_heat(scene, r, step);

		if (heat > most) {
			most = heat;
			worst = (int32_t)step;
		}
	}
	return worst;
}

static void add(const struct lag_scene *scene, const struct lag_table *summary, size_t row,
		struct lag_findings *out)
{
	const char *section = lag_cell_text(summary, row, "section");
	const char *item = lag_cell_text(summary, row, "item");
	const char *text = lag_cell_text(summary, row, "text");
	int64_t rank = lag_cell_int(summary, row, "rank");
	int r = rank == LAG_NONE ? -1 : lag_trace_find_rank(scene->data->trace, rank);
	struct lag_claim *claim = &out->items[out->n];

	*claim = (struct lag_claim){ .gain_ns = lag_cell_int(summary, row, "value_ns"),
				     .share = lag_cell_real(summary, row, "share"),
				     .view = view_of(section, item),
				     .r = r,
				     .step = r < 0 ? -1 : worst_step(scene, (size_t)r) };
	snprintf(claim->text, sizeof(claim->text), "%s", text ? text : "");
	claim->accuses =
		r >= 0 && (claim->view == LAG_VIEW_STRAGGLERS || claim->view == LAG_VIEW_HANG);
	out->n++;
}

void lag_findings_gather(const struct lag_scene *scene, const struct lag_table *summary,
			 struct lag_findings *out)
{
	static const char *const sections[] = { "finding", "trust" };

	out->n = 0;
	for (int s = 0; s < 2; s++) {
		for (size_t row = 0; summary && row < summary->n_rows; row++) {
			const char *section = lag_cell_text(summary, row, "section");
			const char *item = lag_cell_text(summary, row, "item");

			if (!section || strcmp(section, sections[s]) != 0 ||
			    out->n == LAG_FINDINGS_MAX)
				continue;
			/* The top line says these. */
			if (s == 1 && item &&
			    (strcmp(item, "ok") == 0 || strcmp(item, "clock") == 0))
				continue;
			add(scene, summary, row, out);
		}
	}
}

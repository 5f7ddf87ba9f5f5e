/* SPDX-License-Identifier: Apache-2.0 */
/* The clock map of each host and device: the estimate with its uncertainty, and apart from it the
 * interval that causality allows, which is a check. */
#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"

static const struct lag_column columns[] = {
	{ "host", "host", LAG_UNIT_TEXT, NULL },
	{ "device", "device", LAG_UNIT_ID, "null: the host itself" },
	{ "rank", "rank", LAG_UNIT_ID, "whose device it is" },
	{ "from_ns", "from", LAG_UNIT_NS, "since the first event" },
	{ "offset_ns", "offset", LAG_UNIT_NS, "to be added to the recorded time" },
	{ "drift_ppm", "drift", LAG_UNIT_PPM, NULL },
	{ "uncertainty_ns", "uncertainty", LAG_UNIT_NS, "of the estimate" },
	{ "bound_ns", "bound", LAG_UNIT_NS, "width of the interval that causality allows" },
	{ "bound_lo_ns", "bound from", LAG_UNIT_NS, "lowest correction that causality allows" },
	{ "bound_hi_ns", "bound to", LAG_UNIT_NS, "highest correction that causality allows" },
	{ "method", "method", LAG_UNIT_TEXT, NULL },
	{ "n_observations", "observations", LAG_UNIT_COUNT, NULL },
	{ "own_ns", "own", LAG_UNIT_NS, "of the uncertainty, what is the device's own" },
	{ "basis", "rests on", LAG_UNIT_TEXT, "what joins the host to the reference" },
};

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);

	size_t unknown = 0;

	(void)err;
	for (size_t i = 0; i < t->n_clock; i++) {
		const struct lag_clock_row *c = &t->clock[i];
		bool bounded = c->bound_lo_ns != LAG_NONE && c->bound_hi_ns != LAG_NONE;

		if (c->device_rank >= 0 &&
		    !lag_context_has_rank(ctx, t->ranks[c->device_rank].rank))
			continue;
		unknown += c->uncertainty_ns == LAG_NONE;
		lag_table_row(out);
		lag_table_text(out, t->hosts[c->host].name);
		lag_table_int(out, c->device_rank < 0 ? LAG_NONE : t->ranks[c->device_rank].device);
		lag_table_int(out, c->device_rank < 0 ? LAG_NONE : t->ranks[c->device_rank].rank);
		/* A map without a beginning holds from the first event on. */
		lag_table_int(out, c->from_ns <= -t->origin_ns ? LAG_NONE : c->from_ns);
		lag_table_int(out, c->offset_ns);
		lag_table_real(out, c->drift_ppm);
		lag_table_int(out, c->uncertainty_ns);
		lag_table_int(out, bounded ? c->bound_hi_ns - c->bound_lo_ns : LAG_NONE);
		lag_table_int(out, c->bound_lo_ns);
		lag_table_int(out, c->bound_hi_ns);
		lag_table_text(out, c->method);
		lag_table_int(out, c->n_observations);
		lag_table_int(out, c->own_ns);
		lag_table_text(out, c->basis);
	}
	if (unknown) {
		lag_table_note(out,
			       "uncertainty of %zu %s is not known: nothing joins these "
			       "clocks, or they were not compared",
			       unknown, LAG_PLURAL(unknown, "row", "rows"));
	}
	if (t->n_clock) {
		lag_table_note(out,
			       "between ranks of one host only what is their devices' own counts");
		lag_table_note(
			out, "offset: to be added to recorded times; from: since the trace's first "
			     "event, before it where the map is older");
		lag_table_note(out,
			       "bounds are of hosts, and null where nothing bounds them; from is "
			       "null where a map always holds");
	}
	if (!t->n_clock)
		lag_table_note(out, "no clock map: times are as recorded");
	return LAG_OK;
}

const struct lag_analysis lag_analysis_clock = {
	.name = "clock",
	.summary = "clock of each host and device: offset, drift, uncertainty, bound",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN,
};

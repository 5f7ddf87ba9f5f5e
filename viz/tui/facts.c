/* SPDX-License-Identifier: Apache-2.0 */
/* From the model to the few figures that frame every view. */
#include "viz/tui/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

static int compare_i64(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static enum lag_status step_times(const struct lag_steps *steps, struct lag_facts *out,
				  struct lag_err *err)
{
	int64_t *ns = lag_calloc(steps->n_steps, sizeof(*ns)), nearest = INT64_MAX;
	size_t n = 0;

	if (!ns)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for step times");
	for (size_t i = 0; i < steps->n_steps; i++) {
		if (steps->steps[i].complete)
			ns[n++] = steps->steps[i].end_ns - steps->steps[i].start_ns;
	}
	out->n_complete = n;
	out->step_median_ns = LAG_NONE;
	if (n) {
		qsort(ns, n, sizeof(*ns), compare_i64);
		out->step_median_ns = n % 2 ? ns[n / 2] : (ns[n / 2 - 1] + ns[n / 2]) / 2;
	}
	for (size_t i = 0; n && i < steps->n_steps; i++) {
		const struct lag_step *step = &steps->steps[i];
		int64_t off;

		if (!step->complete)
			continue;
		off = llabs(step->end_ns - step->start_ns - out->step_median_ns);
		if (off < nearest) {
			nearest = off;
			out->median_step = i;
		}
	}
	free(ns);
	return LAG_OK;
}

static void records(const struct lag_trace *trace, struct lag_facts *out)
{
	for (size_t r = 0; r < trace->n_ranks; r++) {
		out->n_ranks++;
		out->n_recorded += trace->ranks[r].recorded;
	}
	out->n_hosts = (int)trace->n_hosts;
	out->clock_ns = lag_trace_clock_error(trace);
}

/* What the trust analysis warns of; an analysis that fails is a warning by itself. */
static void warnings(const struct lag_tui_data *data, struct lag_facts *out)
{
	const struct lag_table *table = NULL;
	struct lag_err err = { 0 };
	int severity;

	if (lag_failed(data->table(data->self, "trust", &table, &err))) {
		out->n_warnings = 1;
		return;
	}
	severity = lag_table_find_column(table, "severity");
	for (size_t row = 0; severity >= 0 && row < table->n_rows; row++) {
		const struct lag_cell *cell = lag_table_cell(table, row, (size_t)severity);

		if (!lag_unit_is_text(table->columns[severity].unit) || cell->null)
			continue;
		out->n_warnings += strcmp(cell->text, "warning") == 0;
		out->n_errors += strcmp(cell->text, "error") == 0;
		out->n_notes += strcmp(cell->text, "note") == 0;
	}
}

/* What had not ended is told from all events. */
static bool stands(const struct lag_tui_data *data)
{
	const struct lag_table *table = NULL;
	struct lag_err err = { 0 };

	return !data->detail && !lag_failed(data->table(data->self, "hang", &table, &err)) &&
	       table->n_rows > 0;
}

enum lag_status lag_facts_compute(const struct lag_tui_data *data, struct lag_facts *out,
				  struct lag_err *err)
{
	*out = (struct lag_facts){ .n_steps = data->steps->n_steps };
	records(data->trace, out);
	warnings(data, out);
	out->stands = stands(data);
	return step_times(data->steps, out, err);
}

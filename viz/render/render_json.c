/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON contract: schema_version, analysis, trace, trust, columns, rows. Times are integer ns,
 * unknown is null, and the reasons stand in trust.notes. */
#include "schema/base/json_write.h"
#include "viz/render/render.h"

static void trace_part(struct lag_json *json, const struct lag_trace *t)
{
	size_t recorded = 0;

	lag_json_key(json, "trace");
	lag_json_begin(json, '{');
	if (t) {
		for (size_t r = 0; r < t->n_ranks; r++)
			recorded += t->ranks[r].recorded;
		lag_json_key(json, "path");
		lag_json_text(json, t->path);
		lag_json_key(json, "origin_ns");
		lag_json_int(json, t->origin_ns);
		lag_json_key(json, "span_ns");
		lag_json_int(json, t->span_ns);
		lag_json_key(json, "n_ranks");
		lag_json_int(json, (int64_t)t->n_ranks);
		lag_json_key(json, "n_ranks_recorded");
		lag_json_int(json, (int64_t)recorded);
		lag_json_key(json, "n_hosts");
		lag_json_int(json, (int64_t)t->n_hosts);
		lag_json_key(json, "n_gpu_events");
		lag_json_int(json, (int64_t)t->n_gpu);
		lag_json_key(json, "n_comm_ops");
		lag_json_int(json, (int64_t)t->n_ops);
	}
	lag_json_end(json, '}');
}

static void missing(struct lag_json *json, const struct lag_trace *t)
{
	lag_json_key(json, "missing_ranks");
	lag_json_begin(json, '[');
	for (size_t r = 0; r < t->n_ranks; r++) {
		if (!t->ranks[r].recorded)
			lag_json_int(json, t->ranks[r].rank);
	}
	lag_json_end(json, ']');
}

static void trust_part(struct lag_json *json, const struct lag_table *table,
		       const struct lag_trace *t)
{
	static const char *const outcomes[] = { "fine", "finding", "unsure" };
	int64_t lost = 0, clock_ns = t ? lag_trace_clock_error(t) : LAG_NONE;

	lag_json_key(json, "trust");
	lag_json_begin(json, '{');
	lag_json_key(json, "outcome");
	lag_json_text(json, outcomes[table->outcome]);
	if (t) {
		for (size_t r = 0; r < t->n_ranks; r++)
			lost += (int64_t)t->ranks[r].lost;
		missing(json, t);
		lag_json_key(json, "lost");
		lag_json_int(json, lost);
		lag_json_key(json, "quarantined");
		lag_json_int(json, t->n_quarantined);
		lag_json_key(json, "window_from_ns");
		lag_json_int(json, t->window.from_ns);
		lag_json_key(json, "window_until_ns");
		lag_json_int(json, t->window.until_ns);
		lag_json_key(json, "clock_uncertainty_ns");
		if (clock_ns == LAG_NONE) {
			lag_json_null(json);
		} else {
			lag_json_int(json, clock_ns);
		}
	}
	lag_json_key(json, "notes");
	lag_json_begin(json, '[');
	for (size_t i = 0; i < table->n_notes; i++)
		lag_json_text(json, lag_buf_text(&table->notes[i]));
	lag_json_end(json, ']');
	lag_json_end(json, '}');
}

static void columns_part(struct lag_json *json, const struct lag_table *table)
{
	lag_json_key(json, "columns");
	lag_json_begin(json, '[');
	for (size_t c = 0; c < table->n_columns; c++) {
		lag_json_begin(json, '{');
		lag_json_key(json, "name");
		lag_json_text(json, table->columns[c].name);
		lag_json_key(json, "unit");
		lag_json_text(json, lag_unit_name(table->columns[c].unit));
		lag_json_key(json, "of");
		lag_json_text(json, table->columns[c].of);
		lag_json_end(json, '}');
	}
	lag_json_end(json, ']');
}

static void value(struct lag_json *json, const struct lag_table *table, size_t row, size_t column)
{
	const struct lag_cell *cell = lag_table_cell(table, row, column);

	lag_json_key(json, table->columns[column].name);
	if (cell->null) {
		lag_json_null(json);
	} else if (lag_unit_is_text(table->columns[column].unit)) {
		lag_json_text(json, cell->text);
	} else if (table->columns[column].unit >= LAG_UNIT_SHARE) {
		lag_json_real(json, cell->d);
	} else {
		lag_json_int(json, cell->i);
	}
}

static void render(const struct lag_table *table, const struct lag_trace *trace,
		   const struct lag_render_opts *opts, struct lag_buf *out)
{
	struct lag_json json = { .out = out };

	(void)opts;
	lag_json_begin(&json, '{');
	lag_json_key(&json, "schema_version");
	lag_json_int(&json, LAG_JSON_SCHEMA_VERSION);
	lag_json_key(&json, "analysis");
	lag_json_text(&json, table->analysis);
	trace_part(&json, trace);
	trust_part(&json, table, trace);
	columns_part(&json, table);
	lag_json_key(&json, "rows");
	lag_json_begin(&json, '[');
	for (size_t r = 0; r < table->n_rows; r++) {
		lag_buf_putc(out, r ? ' ' : '\n');
		lag_json_begin(&json, '{');
		for (size_t c = 0; c < table->n_columns; c++)
			value(&json, table, r, c);
		lag_json_end(&json, '}');
		lag_buf_putc(out, '\n');
	}
	lag_json_end(&json, ']');
	lag_json_end(&json, '}');
	lag_buf_putc(out, '\n');
}

const struct lag_renderer lag_renderer_json = { "json", render };

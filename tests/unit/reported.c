/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one analysis and counts rows of its table. */
#include "tests/unit/reported.h"

#include <string.h>

#include "tests/unit/unit.h"
#include "viz/analysis/analysis.h"

size_t reported(const char *path, const char *analysis, const char *column, const char *text)
{
	struct lag_trace *trace = NULL;
	struct lag_context *ctx = NULL;
	struct lag_table table;
	struct lag_err err = { 0 };
	size_t n = 0;
	int at;

	assert_int_equal(lag_trace_open(path, &trace, &err), LAG_OK);
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	assert_int_equal(lag_analysis_run(lag_analysis_find(analysis), ctx, &table, &err), LAG_OK);
	at = column ? lag_table_find_column(&table, column) : 0;
	assert_true(at >= 0);
	for (size_t row = 0; row < table.n_rows; row++) {
		struct lag_buf cell = { 0 };

		lag_table_format(&table, row, (size_t)at, &cell);
		n += !column || strcmp(lag_buf_text(&cell), text) == 0;
		lag_buf_release(&cell);
	}
	lag_table_release(&table);
	lag_context_free(ctx);
	return n;
}

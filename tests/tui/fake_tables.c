/* SPDX-License-Identifier: Apache-2.0 */
/* One function a table. */
#include "tests/tui/fake_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SUMMARY,
	BUBBLES,
	COLLECTIVES,
	KERNELS,
	TRUST,
	CLOCK,
	WAITS,
	TABLES
};

struct fake_tables {
	struct lag_table tables[TABLES];
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct lag_column summary_columns[] = {
	{ "section", "", LAG_UNIT_TEXT, NULL },  { "item", "", LAG_UNIT_TEXT, NULL },
	{ "text", "", LAG_UNIT_TEXT, NULL },     { "value_ns", "", LAG_UNIT_NS, NULL },
	{ "share", "", LAG_UNIT_SHARE, "step" }, { "rank", "", LAG_UNIT_ID, NULL },
};

static void summary_row(struct lag_table *table, const char *section, const char *item,
			const char *text, int64_t ns, double share, int64_t rank)
{
	lag_table_row(table);
	lag_table_text(table, section);
	lag_table_text(table, item);
	lag_table_text(table, text);
	lag_table_int(table, ns);
	lag_table_real(table, share);
	lag_table_int(table, rank);
}

static void summary(struct lag_table *table, const struct lag_tui_data *data)
{
	static const char *const items[] = { "compute",      "copy",
					     "bubble",       "exposed_transfer",
					     "exposed_wait", "host_bound",
					     "idle" };
	size_t n = data->ledger->n_steps * data->ledger->n_ranks;
	int64_t of[LAG_TIME_LIMIT] = { 0 }, all = 0;

	lag_table_init(table, "summary", summary_columns, COUNT(summary_columns));
	for (size_t i = 0; i < n * LAG_TIME_LIMIT; i++)
		of[i % LAG_TIME_LIMIT] += data->ledger->by_step[i];
	for (int c = 0; c < LAG_TIME_LIMIT; c++)
		all += of[c] /= (int64_t)n;
	summary_row(table, "step", "mean", "mean step", all, (double)NAN, LAG_NONE);
	summary_row(table, "step", "p5", "5th percentile", all - 1500000, (double)NAN, LAG_NONE);
	summary_row(table, "step", "p95", "95th percentile", all + 2500000, (double)NAN, LAG_NONE);
	summary_row(table, "step", "without_stragglers", "without stragglers", all - 26700000,
		    (double)NAN, LAG_NONE);
	for (int c = 0; c < LAG_TIME_LIMIT; c++) {
		summary_row(table, "time", items[c],
			    c == LAG_TIME_BUBBLE ? "bubble (ideal 22.9 %, excess 3.3 %)" : items[c],
			    of[c], (double)of[c] / (double)all, LAG_NONE);
	}
	summary_row(table, "finding", "straggler",
		    "rank 5 (node2, stage 2, dp 1): slow GPU, 1.31x its peers, chronic, slow in 12 "
		    "of 12 steps",
		    26700000, 0.094, 5);
	summary_row(table, "finding", "exposed_comm",
		    "data reduce_scatter is not hidden behind compute", 17380000, 0.06, LAG_NONE);
	summary_row(table, "finding", "imbalance", "the pipeline's stages carry unequal work",
		    7100000, 0.025, LAG_NONE);
	summary_row(table, "trust", "clock", "clock error between ranks, at most", 6100,
		    (double)NAN, LAG_NONE);
	summary_row(table, "trust", "lost", "rank 3: 12 kernel records lost: disk full", LAG_NONE,
		    (double)NAN, LAG_NONE);
}

static const struct lag_column waits_columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "for_rank", "for rank", LAG_UNIT_ID, NULL },
	{ "wait_ns", "waited", LAG_UNIT_NS, NULL },
};

static void waits(struct lag_table *table)
{
	static const int64_t pairs[][3] = { { 3, 5, 108000000 },
					    { 7, 5, 104000000 },
					    { 4, 5, 96000000 } };

	lag_table_init(table, "waits", waits_columns, COUNT(waits_columns));
	for (size_t i = 0; i < COUNT(pairs); i++) {
		lag_table_row(table);
		for (int c = 0; c < 3; c++)
			lag_table_int(table, pairs[i][c]);
	}
}

static const struct lag_column bubble_columns[] = {
	{ "group", "group", LAG_UNIT_ID, NULL },
	{ "stage", "stage", LAG_UNIT_ID, NULL },
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "step", "step", LAG_UNIT_ID, NULL },
	{ "window_ns", "window", LAG_UNIT_NS, NULL },
	{ "measured_ns", "measured", LAG_UNIT_NS, NULL },
	{ "measured_share", "measured", LAG_UNIT_SHARE, "window" },
	{ "ideal_ns", "ideal", LAG_UNIT_NS, NULL },
	{ "ideal_share", "ideal", LAG_UNIT_SHARE, "window" },
	{ "imbalance_ns", "+imbalance", LAG_UNIT_NS, NULL },
	{ "slow_ranks_ns", "+slow ranks", LAG_UNIT_NS, NULL },
	{ "send_recv_ns", "+send/recv", LAG_UNIT_NS, NULL },
	{ "residual_ns", "+residual", LAG_UNIT_NS, NULL },
	{ "warm_up_ns", "warm-up", LAG_UNIT_NS, NULL },
};

static void bubbles(struct lag_table *table, const struct lag_tui_data *data)
{
	lag_table_init(table, "bubbles", bubble_columns, COUNT(bubble_columns));
	for (size_t step = 0; step < data->steps->n_steps; step++) {
		for (size_t r = 0; r < data->trace->n_ranks; r++) {
			size_t group = r % 2;
			const struct lag_pipe_window *window =
				&data->pipeline->windows[step * data->pipeline->n_groups + group];
			int64_t span = window->end_ns - window->start_ns;

			lag_table_row(table);
			lag_table_int(table, (int64_t)group);
			lag_table_int(table, (int64_t)r / 2);
			lag_table_int(table, (int64_t)r);
			lag_table_int(table, (int64_t)step);
			lag_table_int(table, span);
			lag_table_int(table, span * 31 / 100);
			lag_table_real(table, 0.31);
			lag_table_int(table, span * 27 / 100);
			lag_table_real(table, 0.27);
			lag_table_int(table, span / 200);
			lag_table_int(table, span * 3 / 100);
			lag_table_int(table, span / 500);
			lag_table_int(table,
				      span * 4 / 100 - span / 200 - span * 3 / 100 - span / 500);
			lag_table_int(table, span / 20);
		}
	}
}

static const struct lag_column collective_columns[] = {
	{ "communicator", "communicator", LAG_UNIT_TEXT, NULL },
	{ "function", "function", LAG_UNIT_TEXT, NULL },
	{ "bytes", "size", LAG_UNIT_BYTES, NULL },
	{ "count", "count", LAG_UNIT_COUNT, NULL },
	{ "wait_ns", "wait", LAG_UNIT_NS, NULL },
	{ "transfer_ns", "transfer", LAG_UNIT_NS, NULL },
	{ "bus_gbps", "bus bandwidth", LAG_UNIT_GBPS, NULL },
};

static void collectives(struct lag_table *table)
{
	static const char *const names[] = { "dp stage 0", "dp stage 2", "pp 0-1" };
	static const int64_t wait[] = { 1200000, 96000000, 8902000 };

	lag_table_init(table, "collectives", collective_columns, COUNT(collective_columns));
	for (int i = 0; i < 3; i++) {
		lag_table_row(table);
		lag_table_text(table, names[i]);
		lag_table_text(table, i == 2 ? "send_recv" : "reduce_scatter");
		lag_table_int(table, INT64_C(33554432) << i);
		lag_table_int(table, 12 * (i + 1));
		lag_table_int(table, wait[i]);
		lag_table_int(table, 3100000);
		lag_table_real(table, i == 1 ? (double)NAN : 82.2);
	}
}

static const struct lag_column kernel_columns[] = {
	{ "name", "kernel", LAG_UNIT_TEXT, NULL },
	{ "class", "class", LAG_UNIT_TEXT, NULL },
	{ "count", "count", LAG_UNIT_COUNT, NULL },
	{ "total_ns", "total", LAG_UNIT_NS, NULL },
	{ "share", "share", LAG_UNIT_SHARE, "GPU time" },
	{ "mean_ns", "mean", LAG_UNIT_NS, NULL },
	{ "max_ns", "max", LAG_UNIT_NS, NULL },
};

static void kernels(struct lag_table *table, const struct lag_trace *trace)
{
	lag_table_init(table, "kernels", kernel_columns, COUNT(kernel_columns));
	for (uint32_t name = 1; name < trace->n_strings; name++) {
		int64_t total = 0, most = 0, n = 0;

		for (size_t i = 0; i < trace->n_gpu; i++) {
			int64_t ns = trace->gpu[i].end_ns - trace->gpu[i].start_ns;

			if (trace->gpu[i].name != name)
				continue;
			total += ns;
			most = ns > most ? ns : most;
			n++;
		}
		lag_table_row(table);
		lag_table_text(table, trace->strings[name]);
		lag_table_text(table, name < 5 ? "compute" : name == 7 ? "copy" : "comm");
		lag_table_int(table, n);
		lag_table_int(table, total);
		lag_table_real(table, 0.1 * name);
		lag_table_int(table, n ? total / n : LAG_NONE);
		lag_table_int(table, most);
	}
}

static const struct lag_column trust_columns[] = {
	{ "severity", "severity", LAG_UNIT_TEXT, NULL }, { "rank", "rank", LAG_UNIT_ID, NULL },
	{ "kind", "kind", LAG_UNIT_TEXT, NULL },         { "count", "count", LAG_UNIT_COUNT, NULL },
	{ "text", "what", LAG_UNIT_PROSE, NULL },
};

static void trust(struct lag_table *table)
{
	lag_table_init(table, "trust", trust_columns, COUNT(trust_columns));
	lag_table_row(table);
	lag_table_text(table, "warning");
	lag_table_int(table, 3);
	lag_table_text(table, "lost");
	lag_table_int(table, 12);
	lag_table_text(table, "kernel records lost: disk full");
	lag_table_row(table);
	lag_table_text(table, "note");
	lag_table_null(table);
	lag_table_text(table, "not_recorded");
	lag_table_int(table, 8);
	lag_table_text(table,
		       "readings of the GPU's clock: nothing on record in 8 of 8 sources: not "
		       "recorded, or there was none");
	lag_table_note(table, "arrivals closer than the clock error name nobody");
}

static const struct lag_column clock_columns[] = {
	{ "host", "host", LAG_UNIT_TEXT, NULL },
	{ "device", "device", LAG_UNIT_ID, NULL },
	{ "offset_ns", "offset", LAG_UNIT_NS, NULL },
	{ "drift_ppm", "drift", LAG_UNIT_PPM, NULL },
	{ "uncertainty_ns", "uncertainty", LAG_UNIT_NS, NULL },
};

static void clock_table(struct lag_table *table, const struct lag_trace *trace)
{
	lag_table_init(table, "clock", clock_columns, COUNT(clock_columns));
	for (size_t i = 0; i < trace->n_hosts; i++) {
		lag_table_row(table);
		lag_table_text(table, trace->hosts[i].name);
		lag_table_null(table);
		lag_table_int(table, (int64_t)i * 7300000);
		lag_table_real(table, 1.25 * (double)i);
		lag_table_int(table, 5200);
	}
}

struct fake_tables *fake_tables_new(const struct lag_tui_data *data)
{
	struct fake_tables *tables = calloc(1, sizeof(*tables));
	struct lag_err err = { 0 };

	if (!tables)
		abort();
	summary(&tables->tables[SUMMARY], data);
	waits(&tables->tables[WAITS]);
	bubbles(&tables->tables[BUBBLES], data);
	collectives(&tables->tables[COLLECTIVES]);
	kernels(&tables->tables[KERNELS], data->trace);
	trust(&tables->tables[TRUST]);
	clock_table(&tables->tables[CLOCK], data->trace);
	for (int i = 0; i < TABLES; i++) {
		if (lag_failed(lag_table_finish(&tables->tables[i], &err)))
			abort();
	}
	return tables;
}

void fake_tables_free(struct fake_tables *tables)
{
	for (int i = 0; i < TABLES; i++)
		lag_table_release(&tables->tables[i]);
	free(tables);
}

const struct lag_table *fake_tables_find(const struct fake_tables *tables, const char *name)
{
	for (int i = 0; i < TABLES; i++) {
		if (strcmp(tables->tables[i].analysis, name) == 0)
			return &tables->tables[i];
	}
	return NULL;
}

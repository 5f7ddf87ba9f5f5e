/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger added up per rank over the steps of the report: each nanosecond in exactly one class, so
 * that the classes of a row add up to its time, exactly. */
#include <math.h>
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/stat.h"

#define TIME_COLUMN 3

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "stage", "stage", LAG_UNIT_ID, NULL },
	{ "steps", "steps", LAG_UNIT_COUNT, NULL },
	{ "time_ns", "time", LAG_UNIT_NS, "all steps of the report" },
	{ "compute_ns", "compute", LAG_UNIT_NS, "time" },
	{ "copy_ns", "copies", LAG_UNIT_NS, "time" },
	{ "bubble_ns", "bubble", LAG_UNIT_NS, "time" },
	{ "exposed_transfer_ns", "transfer", LAG_UNIT_NS, "time" },
	{ "exposed_wait_ns", "waiting", LAG_UNIT_NS, "time" },
	{ "host_bound_ns", "host-bound", LAG_UNIT_NS, "time" },
	{ "idle_ns", "other idle", LAG_UNIT_NS, "time" },
	{ "compute_share", "compute share", LAG_UNIT_SHARE, "time" },
	{ "unsplit_ns", "unsplit", LAG_UNIT_NS,
	  "transfer that may hold waiting: members without a record" },
};

/* Time of rank r in each class over the steps that count; how many steps it has among them. */
static int64_t add_up(const struct lag_ledger *ledger, const struct lag_steps *steps,
		      const bool *counts, size_t r, int64_t *sum)
{
	int64_t n_steps = 0;

	for (size_t s = 0; s < steps->n_steps; s++) {
		const int64_t *row = &ledger->by_step[(s * ledger->n_ranks + r) * LAG_TIME_LIMIT];

		if (!counts[s] || lag_steps_span(steps, s, r)->start_ns == LAG_NONE)
			continue;
		n_steps++;
		for (int c = 0; c < LAG_TIME_LIMIT; c++)
			sum[c] += row[c];
	}
	return n_steps;
}

/* The models that the table is made from. */
struct models {
	const struct lag_ledger *ledger;
	const struct lag_steps *steps;
	const struct lag_roles *roles;
	const struct lag_waits *waits;
	const struct lag_pipeline *pipeline;
};

static bool borrow(struct lag_context *ctx, struct models *m, struct lag_err *err)
{
	*m = (struct models){ .ledger = lag_context_ledger(ctx, err) };
	m->steps = m->ledger ? lag_context_steps(ctx, err) : NULL;
	m->roles = m->steps ? lag_context_roles(ctx, err) : NULL;
	m->waits = m->roles ? lag_context_waits(ctx, err) : NULL;
	m->pipeline = m->waits ? lag_context_pipeline(ctx, err) : NULL;
	return m->pipeline != NULL;
}

static void row(const struct lag_context *ctx, const struct models *m, const bool *counts, size_t r,
		struct lag_table *out)
{
	int64_t sum[LAG_TIME_LIMIT] = { 0 }, all = 0;
	int64_t n_steps = add_up(m->ledger, m->steps, counts, r, sum);
	int64_t unsplit = lag_unsplit_ns(m->steps, m->waits, m->ledger, counts, r);
	int32_t stage = m->roles->ranks[r].stage;
	const struct lag_trace *t = lag_context_trace(ctx);

	for (int c = 0; c < LAG_TIME_LIMIT; c++)
		all += sum[c];
	lag_table_row(out);
	lag_table_int(out, t->ranks[r].rank);
	lag_table_int(out, stage < 0 ? LAG_NONE : stage);
	lag_table_int(out, n_steps);
	/* A rank without a step in the report: nothing is known of it, which is not 0. */
	lag_table_int(out, n_steps ? all : LAG_NONE);
	for (int c = 0; c < LAG_TIME_LIMIT; c++) {
		bool none = !n_steps || (c == LAG_TIME_BUBBLE && !m->pipeline->n_groups) ||
			    !lag_ledger_tells(t, r, (enum lag_time_class)c);

		/* All communication that may hold waiting is unsplit. */
		none = none || (c == LAG_TIME_EXPOSED_WAIT && sum[c] == 0 && unsplit > 0);
		lag_table_int(out, none ? LAG_NONE : sum[c]);
	}
	lag_table_real(out, all ? (double)sum[LAG_TIME_COMPUTE] / (double)all : NAN);
	lag_table_int(out, n_steps ? unsplit : LAG_NONE);
}

/* Classes that the record of some ranks cannot tell. */
static void note_unknown(const struct lag_context *ctx, struct lag_table *out)
{
	static const struct {
		enum lag_time_class class;
		const char *why;
	} unknown[] = { { LAG_TIME_COPY, "copies are not on record" },
			{ LAG_TIME_HOST,
			  "no launch call is on record, so that a late host is not told "
			  "from other idle" } };
	const struct lag_trace *t = lag_context_trace(ctx);

	for (size_t k = 0; k < sizeof(unknown) / sizeof(unknown[0]); k++) {
		size_t n = 0;

		for (size_t r = 0; r < t->n_ranks; r++) {
			n += t->ranks[r].gpu_begin < t->ranks[r].gpu_end &&
			     !lag_ledger_tells(t, r, unknown[k].class);
		}
		if (n) {
			lag_table_note(out, "%s: n/a of %zu of %zu ranks, %s",
				       lag_time_class_title(unknown[k].class), n, t->n_ranks,
				       unknown[k].why);
		}
	}
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	struct models m;
	bool *counts = NULL;
	size_t n = 0, empty = 0;
	enum lag_status status;

	if (!borrow(ctx, &m, err))
		return err->status;
	status = lag_steps_chosen(ctx, m.steps, &counts, &n, err);
	for (size_t r = 0; !lag_failed(status) && r < t->n_ranks; r++) {
		if (t->ranks[r].recorded && lag_context_has_rank(ctx, t->ranks[r].rank))
			row(ctx, &m, counts, r, out);
	}
	free(counts);
	for (size_t i = 0; i < out->n_rows; i++)
		empty += lag_table_cell(out, i, TIME_COLUMN)->null;
	if (empty) {
		lag_table_note(out,
			       "%zu %s no GPU work on record in these steps, which is "
			       "not 0",
			       empty, LAG_PLURAL(empty, "rank has", "ranks have"));
	}
	if (!m.pipeline->n_groups)
		lag_table_note(out, "bubble: n/a, no pipeline was found");
	note_unknown(ctx, out);
	lag_table_note(out, "steps from: %s", m.steps->label);
	if (!lag_failed(status) && n < m.steps->n_steps) {
		lag_table_note(out,
			       "%zu of %zu steps: what is not asked for, or not whole on every "
			       "recorded rank, is left out",
			       n, m.steps->n_steps);
	}
	return status;
}

const struct lag_analysis lag_analysis_ledger = {
	.name = "ledger",
	.summary = "each nanosecond of each step in exactly one class",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Events whose times cannot be true, which are in no other table: of which rank and kind, why, how many,
 * and what the first of them looks like. */
#include <math.h>
#include <string.h>

#include "viz/analysis/analysis.h"

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "record", "record", LAG_UNIT_TEXT, NULL },
	{ "reason", "reason", LAG_UNIT_PROSE, NULL },
	{ "count", "count", LAG_UNIT_COUNT, NULL },
	{ "share", "share", LAG_UNIT_SHARE, "the rank's records of the kind" },
	{ "first_name", "the first", LAG_UNIT_TEXT, NULL },
	{ "first_raw_start_ns", "its start", LAG_UNIT_NS, "since 1970, as recorded" },
	{ "first_length_ns", "its length", LAG_UNIT_NS, "as recorded" },
};

static size_t count_gpu(const struct lag_trace *t, size_t r, const char *record)
{
	static const char *const kinds[] = { "kernel", "memcpy", "memset" };
	const struct lag_rank *rank = &t->ranks[r];
	size_t n = 0;

	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++)
		n += t->gpu[i].kind < 3 && !strcmp(kinds[t->gpu[i].kind], record);
	return n;
}

/* Records of the kind that the rank has left; LAG_NONE where the trace does not keep them. */
static int64_t count_kept(const struct lag_trace *t, int64_t rank_number, const char *record)
{
	int r = rank_number == LAG_NONE ? -1 : lag_trace_find_rank(t, rank_number);
	const struct lag_rank *rank = r < 0 ? NULL : &t->ranks[r];

	if (!rank)
		return LAG_NONE;
	if (!strcmp(record, "kernel") || !strcmp(record, "memcpy") || !strcmp(record, "memset"))
		return (int64_t)count_gpu(t, (size_t)r, record);
	if (!strcmp(record, "api"))
		return (int64_t)(rank->api_end - rank->api_begin);
	if (!strcmp(record, "range"))
		return (int64_t)(rank->range_end - rank->range_begin);
	if (!strcmp(record, "sync"))
		return (int64_t)(rank->sync_end - rank->sync_begin);
	if (!strcmp(record, "op"))
		return (int64_t)(rank->op_end - rank->op_begin);
	return LAG_NONE;
}

/* NONE where there is no end, or none that can be subtracted. */
static int64_t length_of(const struct lag_quarantine_row *q)
{
	int64_t length;

	if (q->raw_start_ns == LAG_NONE || q->raw_end_ns == LAG_NONE ||
	    __builtin_sub_overflow(q->raw_end_ns, q->raw_start_ns, &length))
		return LAG_NONE;
	return length;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);

	(void)err;
	for (size_t i = 0; i < t->n_quarantine; i++) {
		const struct lag_quarantine_row *q = &t->quarantine[i];
		int64_t kept = count_kept(t, q->rank, q->record), all = q->count;

		if (q->rank != LAG_NONE && !lag_context_has_rank(ctx, q->rank))
			continue;
		for (size_t k = 0; k < t->n_quarantine; k++) {
			if (k != i && t->quarantine[k].rank == q->rank &&
			    !strcmp(t->quarantine[k].record, q->record))
				all += t->quarantine[k].count;
		}
		out->outcome = LAG_OUTCOME_FINDING;
		lag_table_row(out);
		lag_table_int(out, q->rank);
		lag_table_text(out, q->record);
		lag_table_text(out, q->reason);
		lag_table_int(out, q->count);
		lag_table_real(out,
			       kept == LAG_NONE ? NAN : (double)q->count / (double)(all + kept));
		lag_table_text(out, q->name && *q->name ? q->name : NULL);
		lag_table_int(out, q->raw_start_ns);
		lag_table_int(out, length_of(q));
	}
	if (!out->n_rows) {
		lag_table_note(out, "every event's times can be true");
	} else {
		lag_table_note(out, "they are in no other table and in no analysis; the table "
				    "quarantine of the trace has them one by one");
	}
	return LAG_OK;
}

const struct lag_analysis lag_analysis_quarantine = {
	.name = "quarantine",
	.summary = "events whose times cannot be true, and why",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds up the job: suspects first, then each communicator with an unfinished collective and how far
 * its members have come. A job that ended has nothing to tell here. */
#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/hang.h"
#include "viz/model/comm_text.h"

#define COMMS_SHOWN 256
#define RANKS_TOLD  16

static const struct lag_column columns[] = {
	{ "kind", "", LAG_UNIT_TEXT, "suspect, or communicator that stands" },
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "verdict", "verdict", LAG_UNIT_TEXT, NULL },
	{ "communicator", "communicator", LAG_UNIT_TEXT, NULL },
	{ "description", "description", LAG_UNIT_TEXT, NULL },
	{ "function", "operation", LAG_UNIT_TEXT, "the first unfinished" },
	{ "seq", "number", LAG_UNIT_ID, "of the operation in its communicator" },
	{ "sizes", "sizes", LAG_UNIT_TEXT, "of its tensors, where recorded" },
	{ "waiting", "waiting", LAG_UNIT_COUNT, "ranks that wait for it in the end" },
	{ "finished", "finished", LAG_UNIT_COUNT, "members" },
	{ "started", "started", LAG_UNIT_COUNT, "members" },
	{ "enqueued", "enqueued", LAG_UNIT_COUNT, "members; started or not is in the text" },
	{ "never", "never", LAG_UNIT_COUNT, "members that never called it" },
	{ "no_record", "no record", LAG_UNIT_COUNT, "members" },
	{ "text", "", LAG_UNIT_PROSE, NULL },
};

static const char *const verdicts[] = {
	[LAG_HANG_SILENT] = "never called it", [LAG_HANG_LOCAL] = "its own",
	[LAG_HANG_BLOCKED] = "blocked",        [LAG_HANG_TOGETHER] = "communication",
	[LAG_HANG_UNKNOWN] = "cannot tell",    [LAG_HANG_DEADLOCK] = "deadlock",
	[LAG_HANG_NOT_RECORDED] = "no record",
};

/* "0, 4-7 and 12 more" */
static void tell_ranks(const int64_t *ranks, size_t n, struct lag_buf *out)
{
	for (size_t i = 0, shown = 0, j; i < n; i = j, shown++) {
		if (shown == RANKS_TOLD) {
			lag_buf_printf(out, " and %zu more", n - i);
			return;
		}
		for (j = i + 1; j < n && ranks[j] == ranks[j - 1] + 1; j++)
			continue;
		lag_buf_printf(out, j - i > 1 ? "%s%lld-%lld" : "%s%lld", i ? ", " : "",
			       (long long)ranks[i], (long long)ranks[j - 1]);
	}
}

/* Communicator, description, function, number, sizes. */
static void op_cells(const struct lag_hang *h, uint32_t comm, uint8_t func, int64_t seq,
		     uint32_t sizes, struct lag_table *out)
{
	const char *description = h->trace->comms[comm].description;
	const char *text = lag_strtab_get(&h->seen.sizes, sizes);
	struct lag_buf label = { 0 };

	lag_comm_label(h->trace, comm, &label);
	lag_table_text(out, lag_buf_text(&label));
	lag_table_text(out, description && description[0] ? description : NULL);
	lag_table_text(out, lag_func_name(func));
	lag_table_int(out, seq < 0 ? LAG_NONE : seq);
	lag_table_text(out, text[0] ? text : NULL);
	lag_buf_release(&label);
}

static void tell_suspect(const struct lag_hang *h, const struct lag_hang_suspect *s,
			 struct lag_buf *out)
{
	int64_t ranks[1024];
	size_t n = 0;

	switch (s->end) {
	case LAG_HANG_SILENT:
		lag_buf_puts(out, "others wait in it, this rank has nothing under way: what holds "
				  "it is not communication");
		break;
	case LAG_HANG_LOCAL:
		lag_buf_puts(out, "others have finished it, so every member had started: this "
				  "rank's GPU, driver or process holds it");
		break;
	case LAG_HANG_BLOCKED:
		lag_buf_printf(out, "called and not started: on its GPU runs %.100s",
			       lag_hang_running(h, (uint32_t)s->r));
		break;
	case LAG_HANG_TOGETHER:
		lag_buf_puts(out, "every member has started: communication hangs here");
		break;
	case LAG_HANG_UNKNOWN:
		lag_buf_puts(out, "all on record are in it, whether all have started is not");
		break;
	case LAG_HANG_DEADLOCK:
		for (size_t i = 0; i < h->n_deadlocked && n < 1024; i++)
			ranks[n++] = h->trace->ranks[h->deadlocked[i]].rank;
		lag_buf_puts(out, "wait for each other in different operations: ranks ");
		tell_ranks(ranks, n, out);
		break;
	case LAG_HANG_NOT_RECORDED:
		lag_buf_puts(out, "others wait in it, what this rank did is not on record: dump "
				  "missing, empty or ends before");
		break;
	}
}

static void suspect_row(const struct lag_hang *h, const struct lag_hang_suspect *s,
			struct lag_table *out)
{
	struct lag_buf text = { 0 };

	tell_suspect(h, s, &text);
	lag_table_row(out);
	lag_table_text(out, "suspect");
	lag_table_int(out, s->r < 0 ? LAG_NONE : h->trace->ranks[s->r].rank);
	lag_table_text(out, verdicts[s->end]);
	op_cells(h, s->comm, s->func, s->seq, s->sizes, out);
	lag_table_int(out, s->n_waiting);
	for (int i = 0; i < LAG_HANG_STATES; i++)
		lag_table_null(out);
	lag_table_text(out, lag_buf_text(&text));
	lag_buf_release(&text);
}

static void tell_state(const struct lag_hang *h, const struct lag_hang_comm *hc,
		       enum lag_hang_state state, struct lag_buf *out)
{
	const struct lag_comm *c = &h->trace->comms[hc->comm];
	int64_t ranks[1024];
	size_t n = 0;

	for (uint32_t m = 0; m < c->n_members && n < 1024; m++) {
		const struct lag_hang_place *p = &h->places[c->first_member + m];

		if (p->r >= 0 && lag_hang_state_of(h, p, hc->seq) == state)
			ranks[n++] = h->trace->ranks[p->r].rank;
	}
	tell_ranks(ranks, n, out);
}

static enum lag_hang_end judge(const struct lag_hang *h, const struct lag_hang_comm *hc,
			       struct lag_buf *out)
{
	const uint32_t *n = hc->n;

	if (n[LAG_HANG_NEVER]) {
		lag_buf_puts(out, "not communication: never called by ");
		tell_state(h, hc, LAG_HANG_NEVER, out);
		return LAG_HANG_SILENT;
	}
	if (n[LAG_HANG_NO_RECORD]) {
		lag_buf_puts(out, "no record of ");
		tell_state(h, hc, LAG_HANG_NO_RECORD, out);
		return LAG_HANG_UNKNOWN;
	}
	if (n[LAG_HANG_FINISHED] && lag_hang_joins_all(hc->func)) {
		lag_buf_puts(out, "not finished on ");
		tell_state(h, hc, LAG_HANG_ENQUEUED, out);
		lag_buf_puts(out, n[LAG_HANG_ENQUEUED] && n[LAG_HANG_STARTED] ? ", " : "");
		tell_state(h, hc, LAG_HANG_STARTED, out);
		lag_buf_puts(out, " alone: every member had started");
		return LAG_HANG_LOCAL;
	}
	if (!n[LAG_HANG_ENQUEUED]) {
		lag_buf_puts(out, "every member had started");
		return LAG_HANG_TOGETHER;
	}
	if (!hc->starts_known) {
		lag_buf_puts(out, "every member has called it, starts are not on record");
		return LAG_HANG_UNKNOWN;
	}
	lag_buf_puts(out, "something before it: called and not started by ");
	tell_state(h, hc, LAG_HANG_ENQUEUED, out);
	return LAG_HANG_BLOCKED;
}

/* Ranks whose oldest unfinished operation it is. */
static void tell_standing(const struct lag_hang *h, const struct lag_hang_comm *hc,
			  struct lag_buf *out)
{
	int64_t ranks[1024];
	size_t n = 0;

	for (size_t r = 0; r < h->trace->n_ranks && n < 1024; r++) {
		const struct lag_hang_head *head = &h->heads[r];

		if (head->any && head->comm == hc->comm && head->seq == hc->seq)
			ranks[n++] = h->trace->ranks[r].rank;
	}
	if (!n)
		return;
	lag_buf_puts(out, LAG_PLURAL(n, "; rank ", "; ranks "));
	tell_ranks(ranks, n, out);
	lag_buf_puts(out, LAG_PLURAL(n, " stands in it", " stand in it"));
}

static void comm_row(const struct lag_hang *h, const struct lag_hang_comm *hc,
		     struct lag_table *out)
{
	struct lag_buf text = { 0 };
	enum lag_hang_end verdict = judge(h, hc, &text);

	tell_standing(h, hc, &text);
	lag_table_row(out);
	lag_table_text(out, "communicator");
	lag_table_null(out);
	lag_table_text(out, verdicts[verdict]);
	op_cells(h, hc->comm, hc->func, hc->seq, hc->sizes, out);
	lag_table_null(out);
	for (int state = LAG_HANG_FINISHED; state >= LAG_HANG_NO_RECORD; state--)
		lag_table_int(out, hc->n[state]);
	lag_table_text(out, lag_buf_text(&text));
	lag_buf_release(&text);
}

/* What can be told first, and in each the oldest first. */
static void comm_rows(const struct lag_hang *h, struct lag_table *out)
{
	struct lag_buf unused = { 0 };
	size_t shown = 0;

	for (int telling = 1; telling >= 0; telling--) {
		for (size_t i = 0; i < h->comms.n && shown < COMMS_SHOWN; i++) {
			const struct lag_hang_comm *hc =
				&LAG_VEC_AT(&h->comms, struct lag_hang_comm, i);

			if ((judge(h, hc, &unused) != LAG_HANG_UNKNOWN) != telling)
				continue;
			comm_row(h, hc, out);
			shown++;
		}
	}
	lag_buf_release(&unused);
}

static void write_notes(const struct lag_hang *h, struct lag_table *out)
{
	const struct lag_trace *t = h->trace;
	size_t missing = t->n_ranks - lag_trace_n_recorded(t), silent_starts = 0, from_hosts = 0;

	for (size_t r = 0; r < t->n_ranks; r++) {
		from_hosts += h->seen_rank[r];
		silent_starts += h->seen_rank[r] && h->heads[r].any && !h->tells_starts[r];
	}
	if (!h->n_calls && !h->seen.progress.n) {
		lag_table_note(out, "no communication is on record: whether anything hangs cannot "
				    "be told");
	} else if (!h->n_standing) {
		lag_table_note(out, "nothing %shangs: every operation on record had ended",
			       missing ? "on record " : "");
	}
	if (missing) {
		lag_table_note(out, "%zu of %zu ranks %s not on record", missing, t->n_ranks,
			       LAG_PLURAL(missing, "is", "are"));
	}
	if (silent_starts) {
		lag_table_note(out,
			       "%zu %s not tell what had started on the GPU (no timing): "
			       "enqueued may be started",
			       silent_starts, LAG_PLURAL(silent_starts, "rank does", "ranks do"));
	}
	if (from_hosts && h->n_standing) {
		lag_table_note(out, "dumps of a job that still runs look the same: they tell how "
				    "far each rank was, not for how long");
	}
	if (h->comms.n > COMMS_SHOWN) {
		lag_table_note(out, "%zu %s", h->comms.n - COMMS_SHOWN,
			       LAG_PLURAL(h->comms.n - COMMS_SHOWN, "more communicator stands",
					  "more communicators stand"));
	}
}

static enum lag_outcome outcome_of(const struct lag_hang *h)
{
	if (!h->n_calls && !h->seen.progress.n)
		return LAG_OUTCOME_UNSURE;
	for (size_t i = 0; i < h->suspects.n; i++) {
		enum lag_hang_end end = LAG_VEC_AT(&h->suspects, struct lag_hang_suspect, i).end;

		if (end != LAG_HANG_UNKNOWN && end != LAG_HANG_NOT_RECORDED)
			return LAG_OUTCOME_FINDING;
	}
	return h->n_standing ? LAG_OUTCOME_UNSURE : LAG_OUTCOME_FINE;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	struct lag_hang h;
	enum lag_status st = lag_hang_find(lag_context_trace(ctx), &h, err);

	for (size_t i = 0; st == LAG_OK && i < h.suspects.n; i++)
		suspect_row(&h, &LAG_VEC_AT(&h.suspects, struct lag_hang_suspect, i), out);
	if (st == LAG_OK) {
		comm_rows(&h, out);
		write_notes(&h, out);
		out->outcome = outcome_of(&h);
	}
	lag_hang_release(&h);
	return st;
}

const struct lag_analysis lag_analysis_hang = {
	.name = "hang",
	.summary = "who holds up a job that stands",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN | LAG_ALL_RANKS,
};

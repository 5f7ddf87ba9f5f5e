/* SPDX-License-Identifier: Apache-2.0 */
/* Unions of GPU time per rank that overlap each other, with the definitions other tools use: span =
 * first start to last end, comm = NCCL kernels, mem = copies and sets, exposed = comm minus compute and
 * mem. Not to be added up with the ledger's classes. */
#include <math.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/stat.h"
#include "viz/model/interval.h"

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },
	{ "span_ns", "span", LAG_UNIT_NS, "first start to last end of GPU work" },
	{ "busy_ns", "busy", LAG_UNIT_NS, "span" },
	{ "idle_ns", "idle", LAG_UNIT_NS, "span" },
	{ "compute_ns", "compute", LAG_UNIT_NS, "span" },
	{ "comm_ns", "comm", LAG_UNIT_NS, "span" },
	{ "mem_ns", "mem", LAG_UNIT_NS, "span" },
	{ "overlap_ns", "comm&compute", LAG_UNIT_NS, "comm" },
	{ "exposed_comm_ns", "exposed comm", LAG_UNIT_NS, "comm" },
	{ "n_gpu_events", "events", LAG_UNIT_COUNT, NULL },
	{ "exposed_mem_ns", "exposed mem", LAG_UNIT_NS, "mem" },
	{ "busy_share", "busy share", LAG_UNIT_SHARE, "span" },
};

#define N_UNIONS 8 /* columns between rank and n_gpu_events */

struct unions {
	struct lag_intervals all, compute, comm, mem, scratch, other;
	int64_t first_ns, last_ns, n, n_running;
};

static void release(struct unions *u)
{
	lag_intervals_release(&u->all);
	lag_intervals_release(&u->compute);
	lag_intervals_release(&u->comm);
	lag_intervals_release(&u->mem);
	lag_intervals_release(&u->scratch);
	lag_intervals_release(&u->other);
}

static enum lag_status add(struct unions *u, const struct lag_gpu_event *ev)
{
	struct lag_intervals *of = ev->class == LAG_CLASS_COMM   ? &u->comm
				   : ev->class == LAG_CLASS_COPY ? &u->mem
								 : &u->compute;
	enum lag_status status;

	u->n++;
	if (ev->end_ns == LAG_NONE) {
		u->n_running++;
		return LAG_OK;
	}
	if (u->first_ns == LAG_NONE || ev->start_ns < u->first_ns)
		u->first_ns = ev->start_ns;
	if (u->last_ns == LAG_NONE || ev->end_ns > u->last_ns)
		u->last_ns = ev->end_ns;
	status = lag_intervals_add(of, ev->start_ns, ev->end_ns);
	if (!lag_failed(status))
		status = lag_intervals_add(&u->all, ev->start_ns, ev->end_ns);
	return status;
}

static void note_silence(const struct unions *u, int64_t rank, struct lag_table *out)
{
	if (u->n_running) {
		lag_table_note(out, "rank %lld: %lld %s never ended and are left out",
			       (long long)rank, (long long)u->n_running,
			       LAG_PLURAL(u->n_running, "event", "events"));
	}
	if (u->n == 0) {
		lag_table_note(out, "rank %lld: no GPU work on record in this report",
			       (long long)rank);
	}
}

static enum lag_status row(struct unions *u, int64_t rank, struct lag_table *out)
{
	int64_t span, busy, overlap = 0, exposed = 0, exposed_mem = 0;
	enum lag_status status;

	lag_intervals_normalize(&u->all);
	lag_intervals_normalize(&u->compute);
	lag_intervals_normalize(&u->comm);
	lag_intervals_normalize(&u->mem);
	span = u->first_ns == LAG_NONE ? LAG_NONE : u->last_ns - u->first_ns;
	busy = lag_intervals_length(&u->all);
	status = lag_intervals_intersect(&u->comm, &u->compute, &u->scratch);
	overlap = lag_intervals_length(&u->scratch);
	if (!lag_failed(status))
		status = lag_intervals_subtract(&u->comm, &u->compute, &u->scratch);
	if (!lag_failed(status))
		status = lag_intervals_subtract(&u->scratch, &u->mem, &u->other);
	exposed = lag_intervals_length(&u->other);
	if (!lag_failed(status))
		status = lag_intervals_subtract(&u->mem, &u->compute, &u->scratch);
	if (!lag_failed(status))
		status = lag_intervals_subtract(&u->scratch, &u->comm, &u->other);
	exposed_mem = lag_intervals_length(&u->other);
	lag_table_row(out);
	lag_table_int(out, rank);
	/* No GPU work on record is not the same as none: nothing can be said. */
	for (int i = 0; span == LAG_NONE && i < N_UNIONS; i++)
		lag_table_null(out);
	if (span == LAG_NONE) {
		lag_table_int(out, u->n);
		lag_table_null(out);
		lag_table_null(out);
		note_silence(u, rank, out);
		return status;
	}
	lag_table_int(out, span);
	lag_table_int(out, busy);
	lag_table_int(out, span - busy);
	lag_table_int(out, lag_intervals_length(&u->compute));
	lag_table_int(out, lag_intervals_length(&u->comm));
	lag_table_int(out, lag_intervals_length(&u->mem));
	lag_table_int(out, overlap);
	lag_table_int(out, exposed);
	lag_table_int(out, u->n);
	lag_table_int(out, exposed_mem);
	lag_table_real(out, span > 0 ? (double)busy / (double)span : NAN);
	note_silence(u, rank, out);
	return status;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	enum lag_status status = LAG_OK;

	if (!steps)
		return err->status;
	for (size_t r = 0; r < t->n_ranks && !lag_failed(status); r++) {
		struct unions u = { .first_ns = LAG_NONE, .last_ns = LAG_NONE };

		if (!t->ranks[r].recorded || !lag_context_has_rank(ctx, t->ranks[r].rank))
			continue;
		for (size_t i = t->ranks[r].gpu_begin;
		     i < t->ranks[r].gpu_end && !lag_failed(status); i++) {
			if (lag_covers_gpu(ctx, steps, i))
				status = add(&u, &t->gpu[i]);
		}
		if (!lag_failed(status))
			status = row(&u, t->ranks[r].rank, out);
		release(&u);
	}
	lag_table_note(out, "these unions overlap: they do not add up; `ledger` is the partition");
	if (lag_failed(status))
		return lag_err_set(err, status, "breakdown: no memory");
	return LAG_OK;
}

const struct lag_analysis lag_analysis_breakdown = {
	.name = "breakdown",
	.summary = "unions per rank: busy, compute, communication, copies, overlap",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* What the recordings say against themselves, as findings: losses, gaps, clocks that were set, calls
 * that failed, communicators that broke, processes that did not end. */
#include <inttypes.h>
#include <stdlib.h>

#include "merge/state.h"
#include "schema/base/fmt.h"

#define NCCL_IN_PROGRESS 7 /* what non-blocking calls return */

static uint64_t count_lost(const struct lag_part *part)
{
	uint64_t by_kind = 0, by_reason = 0;

	for (int i = 0; i < LAG_REC_LIMIT; i++)
		by_kind += part->lost[i];
	for (int i = 0; i < LAG_LOSS_LIMIT; i++)
		by_reason += part->lost_reason[i];
	return by_kind > by_reason ? by_kind : by_reason;
}

static int main_reason(const struct lag_part *part)
{
	int most = 0;

	for (int i = 1; i < LAG_LOSS_LIMIT; i++) {
		if (part->lost_reason[i] > part->lost_reason[most])
			most = i;
	}
	return most;
}

static void find_losses(struct lag_merge *m, const struct lag_proc *p)
{
	uint64_t lost = count_lost(&p->part);

	if (lost) {
		lag_merge_find(m, 1, "loss", LAG_ABOUT(p->rank, LAG_NONE, lost),
			       "rank %" PRId64 " lost %" PRIu64 " %s, most by: %s", p->rank, lost,
			       LAG_PLURAL(lost, "record", "records"),
			       lag_loss_reason_name(main_reason(&p->part)));
	}
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, gap); i++) {
		const struct lag_rec_gap *g = &LAG_PART_AT(&p->part, gap, i);
		int64_t until = g->until_ns == LAG_NONE ? p->last_ns : g->until_ns;

		/* Without a beginning, how long is not known. */
		if (g->from_ns == LAG_NONE || until < g->from_ns) {
			lag_merge_find(m, 1, "gap", LAG_ABOUT(p->rank, LAG_NONE, 1),
				       "rank %" PRId64 " recorded no %.60s for a while: %.200s",
				       p->rank, lag_merge_text(m, g->what),
				       lag_merge_text(m, g->reason));
		} else {
			lag_merge_find(m, 1, "gap", LAG_ABOUT(p->rank, LAG_NONE, 1),
				       "rank %" PRId64 " recorded no %.60s for %.3f s: %.200s",
				       p->rank, lag_merge_text(m, g->what),
				       (double)(until - g->from_ns) / 1e9,
				       lag_merge_text(m, g->reason));
		}
	}
}

/* Every process of a host sees its clock being set: the first one tells. */
static enum lag_status find_clock_steps(struct lag_merge *m, const struct lag_proc *p,
					struct lag_map *told)
{
	const struct lag_rec_clock_step *s;
	char room[LAG_HOST_NAME_MAX];
	uint64_t seen;

	if (!LAG_PART_COUNT(&p->part, clock_step) || lag_map_find(told, p->host, &seen))
		return LAG_OK;
	s = &LAG_PART_AT(&p->part, clock_step, 0);
	lag_merge_find(m, 1, "clock_step",
		       LAG_ABOUT(p->rank, LAG_NONE, LAG_PART_COUNT(&p->part, clock_step)),
		       "the clock of host %.100s was set while recording, first by %.6f s",
		       lag_merge_host_name(m, p->host, room), (double)s->step_ns / 1e9);
	return lag_map_set(told, p->host, 1);
}

static void find_failures(struct lag_merge *m, const struct lag_proc *p)
{
	uint64_t n_failed = 0;
	int64_t first = 0;

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, op); i++) {
		int64_t result = LAG_PART_AT(&p->part, op, i).result;

		if (result <= 0 || result == NCCL_IN_PROGRESS)
			continue;
		first = n_failed++ ? first : result;
	}
	if (n_failed) {
		lag_merge_find(
			m, 2, "failed_call", LAG_ABOUT(p->rank, LAG_NONE, n_failed),
			"rank %" PRId64 ": %" PRIu64 " %s failed, the first with result %" PRId64,
			p->rank, n_failed,
			LAG_PLURAL(n_failed, "communication call", "communication calls"), first);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, comm_event); i++) {
		const struct lag_rec_comm_event *e = &LAG_PART_AT(&p->part, comm_event, i);
		uint64_t comm = 0;

		if ((e->state != LAG_COMM_ABORTED && e->state != LAG_COMM_ERROR) ||
		    !lag_map_find(&p->comm_of, (uint64_t)e->comm_id, &comm))
			continue;
		lag_merge_find(m, 2, "communicator_failed", LAG_ABOUT(p->rank, (int64_t)comm, 1),
			       "rank %" PRId64 ": a communicator %s", p->rank,
			       e->state == LAG_COMM_ABORTED ? "was aborted" : "reported an error");
	}
}

enum lag_status lag_merge_trust(struct lag_merge *m, struct lag_err *err)
{
	struct lag_map told = { 0 };
	enum lag_status st = LAG_OK;
	uint64_t n_cut = 0, n_bad = m->old.n_quarantined + m->quarantine.n;

	for (size_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		const struct lag_proc *p = LAG_PROC_AT(m, i);

		if (p->rank == LAG_NONE)
			continue;
		n_cut += p->part.clean_exit == 0;
		if (p->old)
			continue;
		find_losses(m, p);
		find_failures(m, p);
		st = find_clock_steps(m, p, &told);
	}
	lag_map_release(&told);
	if (n_cut) {
		lag_merge_find(m, 0, "cut_off", LAG_ABOUT(LAG_NONE, LAG_NONE, n_cut),
			       "%" PRIu64
			       " %s did not end in an orderly way (killed, or still running)",
			       n_cut, LAG_PLURAL(n_cut, "process", "processes"));
	}
	if (n_bad) {
		lag_merge_find(m, 1, "quarantine", LAG_ABOUT(LAG_NONE, LAG_NONE, n_bad),
			       "%" PRIu64 " %s times that cannot be true: left out", n_bad,
			       LAG_PLURAL(n_bad, "event has", "events have"));
	}
	return st == LAG_OK ? st : lag_err_set(err, st, "no memory for findings");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that say how far the recording can be trusted: clock maps and samples, losses, gaps, receipts. */
#include <math.h>

#include "merge/write.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int64_t rounded(double value)
{
	return isfinite(value) && fabs(value) < 9e18 ? llround(value) : LAG_NONE;
}

/* A device's row (rank given) says only what that adds to its host's. */
static enum lag_status write_map_row(struct lag_writer *w, const struct lag_align_segment *s,
				     int64_t rank, double own_ns, struct lag_err *err)
{
	bool bound = rank == LAG_NONE;
	struct lag_value row[] = {
		LAG_INT((int64_t)s->host + 1),
		LAG_INT(rank),
		LAG_INT(s->from_ns),
		LAG_INT(s->ref_ns),
		LAG_INT(llround(s->offset_ns)),
		LAG_REAL(s->drift * 1e6),
		LAG_INT(s->uncertainty_ns < 0 ? LAG_NONE : rounded(s->uncertainty_ns)),
		LAG_INT(bound ? rounded(s->bound_lo_ns) : LAG_NONE),
		LAG_INT(bound ? rounded(s->bound_hi_ns) : LAG_NONE),
		LAG_TEXT(w->m->clock.method),
		LAG_INT(s->n_observations),
		LAG_INT(bound || own_ns < 0 ? LAG_NONE : rounded(own_ns)),
		LAG_TEXT(bound ? lag_align_basis_name(s->basis) : NULL),
	};

	return lag_db_insert(w->db, LAG_TABLE_clock_map, row, COUNT(row), err);
}

/* A rank's own row is its main device's, added to its host's. */
static enum lag_status write_device_map(struct lag_writer *w, const struct lag_align_device *d,
					struct lag_err *err)
{
	const struct lag_proc *p;
	struct lag_align_segment s = { .from_ns = d->from_ns,
				       .ref_ns = d->from_ns,
				       .offset_ns = d->offset_ns,
				       .uncertainty_ns = d->uncertainty_ns };

	if (d->device >= w->m->n_devices)
		return LAG_OK;
	p = LAG_PROC_AT(w->m, LAG_VEC_AT(&w->m->device_proc, uint32_t, d->device));
	if (p->old || LAG_VEC_AT(&p->devices, struct lag_device_row, 0).dense != d->device)
		return LAG_OK;
	s.host = p->host;
	return write_map_row(w, &s, p->rank, d->own_ns, err);
}

static enum lag_status write_samples(struct lag_writer *w, uint32_t proc, struct lag_err *err)
{
	const struct lag_part *part = &LAG_PROC_AT(w->m, proc)->part;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(part, clock) && st == LAG_OK; i++) {
		const struct lag_rec_clock *c = &LAG_PART_AT(part, clock, i);
		int64_t row[7] = { (int64_t)proc + 1, c->realtime_ns, c->monotonic_ns, c->tsc,
				   c->cupti_ns,       c->bracket_ns,  c->device };

		st = lag_db_insert_ints(w->db, LAG_TABLE_clock_sample, row, 7, err);
	}
	return st;
}

static enum lag_status write_repair(struct lag_writer *w, const struct lag_align_repair *r,
				    struct lag_err *err)
{
	const struct lag_proc *p;
	int64_t row[3];

	if (r->device >= w->m->n_devices)
		return LAG_OK;
	p = LAG_PROC_AT(w->m, LAG_VEC_AT(&w->m->device_proc, uint32_t, r->device));
	if (LAG_VEC_AT(&p->devices, struct lag_device_row, 0).dense != r->device)
		return LAG_OK;
	row[0] = p->rank;
	row[1] = r->at_ns;
	row[2] = llround(r->shift_ns);
	return lag_db_insert_ints(w->db, LAG_TABLE_clock_repair, row, 3, err);
}

enum lag_status lag_write_clock(struct lag_writer *w, struct lag_err *err)
{
	const struct lag_align_result *clock = &w->m->clock;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < clock->n_segments && st == LAG_OK; i++) {
		if (clock->segments[i].host >= w->m->old.n_hosts)
			st = write_map_row(w, &clock->segments[i], LAG_NONE, 0, err);
	}
	for (size_t i = 0; i < clock->n_devices && st == LAG_OK; i++)
		st = write_device_map(w, &clock->devices[i], err);
	for (size_t i = 0; i < clock->n_repairs && st == LAG_OK; i++)
		st = write_repair(w, &clock->repairs[i], err);
	for (uint32_t i = 0; i < w->m->procs.n && st == LAG_OK; i++)
		st = write_samples(w, i, err);
	return st;
}

static const char *kind_name(uint64_t kind)
{
	const struct lag_record_info *info = lag_record_info_get((unsigned)kind);

	return info ? info->name : "unknown";
}

static enum lag_status write_loss(struct lag_writer *w, uint32_t proc,
				  const struct lag_rec_loss *loss, struct lag_err *err)
{
	const struct lag_proc *p = LAG_PROC_AT(w->m, proc);
	struct lag_value row[] = {
		LAG_INT((int64_t)proc + 1),
		LAG_TEXT(kind_name((uint64_t)loss->kind)),
		LAG_TEXT(lag_loss_reason_name(loss->reason)),
		LAG_INT(loss->count),
		LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, loss->from_ns)),
		LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, loss->until_ns)),
	};

	return lag_db_insert(w->db, LAG_TABLE_loss, row, COUNT(row), err);
}

static enum lag_status write_count(struct lag_writer *w, uint32_t proc, int kind, int reason,
				   uint64_t count, struct lag_err *err)
{
	struct lag_rec_loss loss = { .from_ns = LAG_NONE,
				     .until_ns = LAG_NONE,
				     .kind = kind,
				     .reason = reason,
				     .count = (int64_t)count };

	return write_loss(w, proc, &loss, err);
}

/* What is counted beyond the loss records: by kind where there is one reason only, else by reason. */
static enum lag_status write_rest(struct lag_writer *w, uint32_t proc, const uint64_t *kinds,
				  const uint64_t *reasons, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	uint64_t by_kind = 0;
	int n_reasons = 0, only = 0;

	for (int i = 0; i < LAG_LOSS_LIMIT; i++) {
		if (!reasons[i])
			continue;
		n_reasons++;
		only = i;
	}
	for (int i = 0; i < LAG_REC_LIMIT; i++)
		by_kind += kinds[i];
	if (n_reasons == 1 && by_kind == reasons[only]) {
		for (int i = 0; i < LAG_REC_LIMIT && st == LAG_OK; i++) {
			if (kinds[i]) {
				st = write_count(w, proc, i, only, kinds[i], err);
			}
		}
		return st;
	}
	for (int i = 0; i < LAG_LOSS_LIMIT && st == LAG_OK; i++) {
		if (reasons[i])
			st = write_count(w, proc, 0, i, reasons[i], err);
	}
	return st;
}

static enum lag_status write_gaps(struct lag_writer *w, uint32_t proc, struct lag_err *err)
{
	const struct lag_proc *p = LAG_PROC_AT(w->m, proc);
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, gap) && st == LAG_OK; i++) {
		const struct lag_rec_gap *g = &LAG_PART_AT(&p->part, gap, i);
		struct lag_value row[] = {
			LAG_INT((int64_t)proc + 1),
			LAG_TEXT(lag_merge_text(w->m, g->what)),
			LAG_TEXT(lag_merge_text(w->m, g->reason)),
			LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, g->from_ns)),
			LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, g->until_ns)),
		};

		st = lag_db_insert(w->db, LAG_TABLE_gap, row, COUNT(row), err);
	}
	if (st == LAG_OK && LAG_PART_COUNT(&p->part, receipt)) {
		const struct lag_rec_receipt *r =
			&LAG_PART_AT(&p->part, receipt, LAG_PART_COUNT(&p->part, receipt) - 1);
		int64_t row[6] = { (int64_t)proc + 1, r->hook_ns, r->thread_ns,
				   r->bytes,          r->records, r->lost };

		st = lag_db_insert_ints(w->db, LAG_TABLE_receipt, row, 6, err);
	}
	return st;
}

enum lag_status lag_write_losses(struct lag_writer *w, uint32_t proc, struct lag_err *err)
{
	const struct lag_part *part = &LAG_PROC_AT(w->m, proc)->part;
	uint64_t kinds[LAG_REC_LIMIT], reasons[LAG_LOSS_LIMIT];
	enum lag_status st = LAG_OK;
	struct lag_rec_loss clean;

	for (int i = 0; i < LAG_REC_LIMIT; i++)
		kinds[i] = part->lost[i];
	for (int i = 0; i < LAG_LOSS_LIMIT; i++)
		reasons[i] = part->lost_reason[i];
	for (size_t i = 0; i < LAG_PART_COUNT(part, loss) && st == LAG_OK; i++) {
		const struct lag_rec_loss *l = &LAG_PART_AT(part, loss, i);
		uint64_t n = l->count > 0 ? (uint64_t)l->count : 0;
		uint64_t kind = (uint64_t)l->kind < LAG_REC_LIMIT ? (uint64_t)l->kind : 0;
		uint64_t reason = (uint64_t)l->reason < LAG_LOSS_LIMIT ? (uint64_t)l->reason : 0;

		kinds[kind] -= n < kinds[kind] ? n : kinds[kind];
		reasons[reason] -= n < reasons[reason] ? n : reasons[reason];
		clean = *l;
		clean.kind = (int64_t)kind;
		clean.reason = (int64_t)reason;
		clean.count = (int64_t)n;
		st = write_loss(w, proc, &clean, err);
	}
	if (st == LAG_OK)
		st = write_rest(w, proc, kinds, reasons, err);
	return st == LAG_OK ? write_gaps(w, proc, err) : st;
}

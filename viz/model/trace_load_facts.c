/* SPDX-License-Identifier: Apache-2.0 */
/* Loads what tells whether the rest can be trusted: clock maps, findings, losses, gaps, sources. */
#include "viz/model/clock_error.h"
#include "viz/model/interval.h"
#include "viz/model/load_clock.sql.h"
#include "viz/model/load_finding.sql.h"
#include "viz/model/load_gap.sql.h"
#include "viz/model/load_loss.sql.h"
#include "viz/model/load_quarantine.sql.h"
#include "viz/model/load_source.sql.h"
#include "viz/model/load_unrecorded.sql.h"
#include "viz/model/trace_load.h"

#define COUNT_MAX (INT64_C(1) << 40) /* sums of them stay far from overflow */

/* What no recording can be so far from is not known. */
static int64_t bounded(const struct lag_stmt *row, int column)
{
	int64_t value = lag_stmt_int(row, column);

	return value > -LAG_TIME_MAX_NS && value < LAG_TIME_MAX_NS ? value : LAG_NONE;
}

static int64_t count(const struct lag_stmt *row, int column)
{
	int64_t n = lag_stmt_int(row, column);

	return n < 0 ? 0 : n < COUNT_MAX ? n : COUNT_MAX;
}

static enum lag_status clock_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_clock_row *clock = item;

	clock->host = lag_ids_find(&load->hosts, lag_stmt_int(row, 0));
	clock->device_rank = lag_stmt_is_null(row, 1)
				     ? -1
				     : lag_trace_find_rank(load->trace, lag_stmt_int(row, 1));
	clock->from_ns = bounded(row, 2);
	clock->offset_ns = bounded(row, 3);
	clock->drift_ppm = lag_stmt_real(row, 4);
	clock->uncertainty_ns = bounded(row, 5);
	clock->bound_lo_ns = bounded(row, 6);
	clock->bound_hi_ns = bounded(row, 7);
	clock->method = lag_load_text(load, row, 8);
	clock->n_observations = lag_stmt_int(row, 9);
	clock->ref_ns = bounded(row, 10);
	clock->own_ns = bounded(row, 11);
	clock->basis = lag_load_text(load, row, 12);
	if (clock->host < 0) {
		load->n_skipped++;
		return LAG_END;
	}
	return LAG_OK;
}

static enum lag_status finding_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_finding *finding = item;
	int64_t severity = lag_stmt_int(row, 0);

	finding->severity = severity < 0 ? 0 : severity > 2 ? 2 : (int)severity;
	finding->rank = lag_stmt_int(row, 1);
	finding->count = bounded(row, 2);
	finding->kind = lag_load_text(load, row, 3);
	finding->text = lag_load_text(load, row, 4);
	return LAG_OK;
}

static enum lag_status loss_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_loss_row *loss = item;

	loss->rank = lag_stmt_int(row, 0);
	loss->kind = lag_load_text(load, row, 1);
	loss->reason = lag_load_text(load, row, 2);
	loss->count = count(row, 3);
	return LAG_OK;
}

static enum lag_status gap_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_gap_row *gap = item;

	gap->rank = lag_stmt_int(row, 0);
	gap->what = lag_load_text(load, row, 1);
	gap->reason = lag_load_text(load, row, 2);
	gap->from_ns = bounded(row, 3);
	gap->until_ns = bounded(row, 4);
	if (gap->from_ns != LAG_NONE && !lag_load_times(load, gap->from_ns, gap->until_ns))
		return LAG_END;
	return LAG_OK;
}

static enum lag_status source_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_source_row *source = item;

	source->path = lag_load_text(load, row, 0);
	source->format = lag_load_text(load, row, 1);
	source->status = lag_load_text(load, row, 2);
	source->note = lag_load_text(load, row, 3);
	source->n_records = bounded(row, 4);
	source->n_bad = bounded(row, 5);
	return LAG_OK;
}

static enum lag_status quarantine_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_quarantine_row *q = item;

	q->rank = lag_stmt_int(row, 0);
	q->record = lag_load_text(load, row, 1);
	q->reason = lag_load_text(load, row, 2);
	q->count = count(row, 3);
	q->raw_start_ns = lag_stmt_int(row, 5);
	q->raw_end_ns = lag_stmt_int(row, 6);
	q->name = lag_load_text(load, row, 7);
	load->trace->n_quarantined += q->count;
	return LAG_OK;
}

static enum lag_status unrecorded_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_unrecorded_row *u = item;

	u->what = lag_load_text(load, row, 0);
	u->n_sources = lag_stmt_int(row, 1);
	u->n_all = lag_stmt_int(row, 2);
	return LAG_OK;
}

static int64_t worse(int64_t a, int64_t b)
{
	return b == LAG_NONE || b > a ? (b == LAG_NONE ? INT64_MAX : b) : a;
}

/* A rank's clock error is its device's where that is known, else its host's. */
static void rank_uncertainty(struct lag_trace *t)
{
	lag_clock_place_rows(t);
	for (size_t r = 0; r < t->n_ranks; r++) {
		int64_t device = -1, host = -1;

		for (size_t i = 0; i < t->n_clock; i++) {
			const struct lag_clock_row *row = &t->clock[i];

			if (row->device_rank == (int32_t)r) {
				device = worse(device, row->uncertainty_ns);
			} else if (row->device_rank < 0 && row->host == t->ranks[r].host) {
				host = worse(host, row->uncertainty_ns);
			}
		}
		if (device >= 0) {
			t->ranks[r].uncertainty_ns = device;
		} else if (host >= 0) {
			t->ranks[r].uncertainty_ns = host;
		}
	}
}

enum lag_status lag_load_facts(struct lag_load *load)
{
	struct lag_trace *t = load->trace;
	enum lag_status status;

	status = lag_load_rows(load, lag_sql_load_clock, clock_row, sizeof(*t->clock), &t->clock,
			       &t->n_clock);
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_finding, finding_row,
				       sizeof(*t->findings), &t->findings, &t->n_findings);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_loss, loss_row, sizeof(*t->losses),
				       &t->losses, &t->n_losses);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_gap, gap_row, sizeof(*t->gaps), &t->gaps,
				       &t->n_gaps);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_source, source_row, sizeof(*t->sources),
				       &t->sources, &t->n_sources);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_quarantine, quarantine_row,
				       sizeof(*t->quarantine), &t->quarantine, &t->n_quarantine);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_unrecorded, unrecorded_row,
				       sizeof(*t->unrecorded), &t->unrecorded, &t->n_unrecorded);
	}
	if (!lag_failed(status))
		rank_uncertainty(t);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The receipt of each source: what it recorded, of what time, by which clock, what was lost or put aside
 * and why, and what it cannot tell. Rows "key, value" of the table source_fact. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/importer.h"
#include "merge/write.h"

void lag_source_count(struct lag_source_row *row, const struct lag_part *part)
{
	bool named = LAG_PART_COUNT(part, op) > 0;

	for (int k = 0; k < LAG_REC_LIMIT; k++)
		row->counts[k] += part->records[k].n;
	for (int r = 0; r < LAG_LOSS_LIMIT; r++)
		row->lost[r] += part->lost_reason[r];
	for (size_t i = 0; i < LAG_PART_COUNT(part, op) && named; i++)
		named = LAG_PART_AT(part, op, i).sources == LAG_OP_FROM_NAME;
	row->named_only = row->named_only || named;
	row->n_parts++;
	row->n_records += part->n_records;
	row->n_bad += part->n_bad;
}

void lag_source_release(struct lag_source_row *row)
{
	free(row->path);
	lag_vec_release(&row->notes);
}

/* What can be missing, and the kinds of which one is enough. */
static const struct wanted {
	const char *what;
	enum lag_record_kind kinds[3];
} wanted[] = {
	{ "GPU events", { LAG_REC_kernel, LAG_REC_memcpy, LAG_REC_memset } },
	{ "host calls (launches)", { LAG_REC_api } },
	{ "stream waits and events", { LAG_REC_sync } },
	{ "annotations", { LAG_REC_range } },
	{ "communication calls", { LAG_REC_op } },
	{ "readings of the GPU's clock", { LAG_REC_clock } },
	{ "properties of the GPU", { LAG_REC_device } },
};

/* Key and value of the row at hand. */
static enum lag_status fact(struct lag_writer *w, size_t source, const char *key, const char *value,
			    struct lag_err *err)
{
	struct lag_value row[] = { LAG_INT((int64_t)source + 1), LAG_TEXT(key), LAG_TEXT(value) };

	return lag_db_insert(w->db, LAG_TABLE_source_fact, row, sizeof(row) / sizeof(row[0]), err);
}

static enum lag_status fact_count(struct lag_writer *w, size_t source, const char *key,
				  const char *what, uint64_t n, struct lag_err *err)
{
	char full[160], value[32];

	(void)snprintf(full, sizeof(full), "%s: %s", key, what);
	(void)snprintf(value, sizeof(value), "%" PRIu64, n);
	return fact(w, source, full, value, err);
}

static enum lag_status write_counts(struct lag_writer *w, size_t source,
				    const struct lag_source_row *s, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (unsigned k = 0; k < LAG_REC_LIMIT && st == LAG_OK; k++) {
		const struct lag_record_info *info = lag_record_info_get(k);

		if (info && s->counts[k])
			st = fact_count(w, source, "records", info->name, s->counts[k], err);
	}
	for (int r = 0; r < LAG_LOSS_LIMIT && st == LAG_OK; r++) {
		if (s->lost[r]) {
			st = fact_count(w, source, "lost", lag_loss_reason_name(r), s->lost[r],
					err);
		}
	}
	return st;
}

static enum lag_status write_absent(struct lag_writer *w, size_t source,
				    const struct lag_source_row *s, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && st == LAG_OK; i++) {
		uint64_t n = 0;

		for (size_t k = 0; k < 3; k++)
			n += wanted[i].kinds[k] ? s->counts[wanted[i].kinds[k]] : 0;
		if (!n)
			st = fact(w, source, "not recorded", wanted[i].what, err);
	}
	if (st == LAG_OK && s->named_only) {
		st = fact(w, source, "not recorded",
			  "communicators and sizes (kernels' names tell the operation only)", err);
	}
	return st;
}

/* Of all of the source's processes, on the common clock. */
static enum lag_status write_time(struct lag_writer *w, size_t source, struct lag_err *err)
{
	int64_t first = LAG_NONE, last = LAG_NONE;
	enum lag_status st;
	char text[32];

	for (size_t i = 0; i < w->m->procs.n; i++) {
		const struct lag_proc *p = LAG_PROC_AT(w->m, i);
		int64_t from, until;

		if (p->source != source || p->first_ns == LAG_NONE || p->part_of_ref)
			continue;
		from = lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, p->first_ns);
		until = lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, p->last_ns);
		first = first == LAG_NONE || from < first ? from : first;
		last = last == LAG_NONE || until > last ? until : last;
	}
	if (first == LAG_NONE)
		return LAG_OK;
	(void)snprintf(text, sizeof(text), "%" PRId64, first);
	st = fact(w, source, "first_ns", text, err);
	(void)snprintf(text, sizeof(text), "%" PRId64, last);
	return st == LAG_OK ? fact(w, source, "last_ns", text, err) : st;
}

static enum lag_status write_quarantined(struct lag_writer *w, size_t source, struct lag_err *err)
{
	uint64_t n = 0;
	char text[32];

	for (size_t i = 0; i < w->m->quarantine.n; i++) {
		uint32_t proc = LAG_VEC_AT(&w->m->quarantine, struct lag_quarantine_row, i).proc;

		n += LAG_PROC_AT(w->m, proc)->source == source;
	}
	if (!n)
		return LAG_OK;
	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	return fact(w, source, "put aside", text, err);
}

enum lag_status lag_write_source_facts(struct lag_writer *w, size_t source, struct lag_err *err)
{
	const struct lag_source_row *s = &LAG_VEC_AT(&w->m->sources, struct lag_source_row, source);
	/* Who gave parts is in the registry. */
	const struct lag_importer *importer = lag_importer_find(s->format);
	enum lag_status st = LAG_OK;

	if (s->n_parts)
		st = fact(w, source, "clock", importer->clock, err);
	if (st == LAG_OK)
		st = write_time(w, source, err);
	if (st == LAG_OK)
		st = write_counts(w, source, s, err);
	if (st == LAG_OK && s->n_parts && !importer->tells_gaps)
		st = write_absent(w, source, s, err);
	if (st == LAG_OK)
		st = write_quarantined(w, source, err);
	for (size_t i = 0; i < s->notes.n && st == LAG_OK; i++) {
		st = fact(w, source, "note", (const char *)s->notes.items + i * LAG_ERR_TEXT_MAX,
			  err);
	}
	return st;
}

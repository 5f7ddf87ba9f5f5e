/* SPDX-License-Identifier: Apache-2.0 */
/* The merge from end to end. */
#include "merge/merge.h"
#include "schema/base/fmt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "merge/importer.h"
#include "merge/names.h"
#include "merge/output.h"
#include "merge/state.h"
#include "schema/base/outfile.h"

/* Fails early on what would fail late. */
static enum lag_status check_opts(const struct lag_merge_opts *opts, struct lag_err *err)
{
	const char *name = opts->align ? opts->align : "collective";
	struct lag_renames renames;
	enum lag_status st = LAG_OK;
	bool found = false;

	if (opts->from && !lag_importer_find(opts->from))
		return lag_err_set(err, LAG_ERR_USAGE, "no format '%s'", opts->from);
	for (size_t i = 0; lag_aligners[i]; i++)
		found = found || strcmp(lag_aligners[i]->name, name) == 0;
	if (!found)
		return lag_err_set(err, LAG_ERR_USAGE, "no alignment method '%s'", name);
	if (opts->rename_path) {
		st = lag_renames_load(opts->rename_path, &renames, err);
		if (st == LAG_OK)
			lag_renames_release(&renames);
	}
	return st;
}

/* Stages of one process each, side by side; then one that looks at all of them. */
struct pass {
	struct lag_merge *m;
	bool used; /* only processes that are */
	enum lag_status (*stage)(struct lag_merge *m, uint32_t proc, struct lag_err *err);
};

static enum lag_status do_process(void *state, size_t i, struct lag_err *err)
{
	const struct pass *pass = state;
	enum lag_status st = LAG_OK;

	if (LAG_PROC_AT(pass->m, i)->old)
		return lag_merge_advance(pass->m, 1, err);
	if (!pass->used || !LAG_PROC_AT(pass->m, i)->unused)
		st = pass->stage(pass->m, (uint32_t)i, err);
	return st == LAG_OK ? lag_merge_advance(pass->m, 1, err) : st;
}

static enum lag_status each_proc(struct lag_merge *m, bool used,
				 enum lag_status (*stage)(struct lag_merge *, uint32_t,
							  struct lag_err *),
				 struct lag_err *err)
{
	struct pass pass = { m, used, stage };
	enum lag_status st = lag_merge_tasks(m, m->procs.n, do_process, &pass, err);

	return st == LAG_OK ? lag_merge_join(m, err) : st;
}

struct alone {
	struct lag_merge *m;
	enum lag_status (*stage)(struct lag_merge *m, struct lag_err *err);
};

static enum lag_status do_alone(void *state, size_t i, struct lag_err *err)
{
	const struct alone *alone = state;
	enum lag_status st = alone->stage(alone->m, err);

	(void)i;
	return st == LAG_OK ? lag_merge_advance(alone->m, alone->m->procs.n, err) : st;
}

/* On a thread of its own, so that this one hears when the user wants to end. */
static enum lag_status all_procs(struct lag_merge *m,
				 enum lag_status (*stage)(struct lag_merge *, struct lag_err *),
				 struct lag_err *err)
{
	struct alone alone = { m, stage };

	return lag_merge_tasks(m, 1, do_alone, &alone, err);
}

static enum lag_status sift_and_pair(struct lag_merge *m, uint32_t proc, struct lag_err *err)
{
	struct lag_proc *p = LAG_PROC_AT(m, proc);
	enum lag_status st;

	lag_merge_rename_ids(m, p);
	st = lag_merge_quarantine(m, proc, err);
	return st == LAG_OK ? lag_merge_pair(p, err) : st;
}

/* Why nothing could be used, in one line. */
static enum lag_status nothing_usable(const struct lag_merge *m, struct lag_err *err)
{
	size_t n_sources = m->sources.n - m->old.n_sources;
	const struct lag_source_row *s;

	if (!n_sources) {
		return lag_err_set(err, LAG_ERR_INPUT, "%s: no trace files in it",
				   m->opts->inputs[0]);
	}
	s = &LAG_VEC_AT(&m->sources, struct lag_source_row, m->old.n_sources);
	if (m->procs.n == m->old.n_procs && n_sources == 1)
		return lag_err_set(err, LAG_ERR_INPUT, "%s: %s", s->path, s->note);
	if (m->procs.n == m->old.n_procs) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "none of %zu %s is a usable trace; the first: %s: %s", n_sources,
				   LAG_PLURAL(n_sources, "file", "files"), s->path, s->note);
	}
	return lag_err_set(err, LAG_ERR_INPUT, "%s: no GPU or communication event in any of %zu %s",
			   s->path, m->procs.n - m->old.n_procs,
			   LAG_PLURAL(m->procs.n - m->old.n_procs, "recording", "recordings"));
}

static enum lag_status count_and_match(struct lag_merge *m, struct lag_err *err)
{
	enum lag_status st = lag_merge_count(m, err);

	return st == LAG_OK ? lag_merge_match(m, err) : st;
}

static enum lag_status align_and_time(struct lag_merge *m, struct lag_err *err)
{
	enum lag_status st = lag_merge_align(m, err);

	if (st != LAG_OK)
		return st;
	lag_merge_waits(m);
	return lag_merge_trust(m, err);
}

/* Units of work of the phase between reading and writing: passes over the processes. */
#define N_PASSES 6

static enum lag_status merge_in_memory(struct lag_merge *m, const char *output, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	size_t n_ranks;

	if (m->opts->append)
		st = lag_append_load(m, output, err);
	n_ranks = m->rank_proc.n;
	if (st == LAG_OK)
		st = lag_merge_intake(m, err);
	lag_merge_phase(m, LAG_MERGE_MATCH, N_PASSES * m->procs.n);
	if (st == LAG_OK)
		st = each_proc(m, false, sift_and_pair, err);
	if (st == LAG_OK && m->old.is)
		st = lag_append_check(m, err);
	if (st == LAG_OK)
		st = lag_merge_identify(m, err);
	if (st == LAG_OK && m->rank_proc.n == n_ranks && !(m->opts->keep_empty && m->procs.n))
		return nothing_usable(m, err);
	if (st == LAG_OK)
		st = each_proc(m, true, lag_merge_gather, err);
	if (st == LAG_OK)
		st = lag_merge_devices(m, err);
	if (st == LAG_OK)
		st = all_procs(m, lag_merge_comms, err);
	if (st == LAG_OK)
		st = each_proc(m, true, lag_merge_link, err);
	if (st == LAG_OK)
		st = all_procs(m, count_and_match, err);
	if (st == LAG_OK)
		st = all_procs(m, align_and_time, err);
	return st;
}

/* Messages name the file that people asked for. */
static void name_output(const struct lag_outfile *file, struct lag_err *err)
{
	char text[LAG_ERR_TEXT_MAX];
	size_t n = strlen(file->partial);
	bool named = strncmp(err->text, file->partial, n) == 0;

	(void)snprintf(text, sizeof(text), "%s", err->text + (named ? n : 0));
	(void)lag_err_set(err, err->status, "%s%s%s", file->path, named ? "" : ": ", text);
}

static enum lag_status write_to(struct lag_merge *m, struct lag_outfile *file,
				struct lag_merge_receipt *receipt, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (m->old.is)
		st = lag_append_copy(m, file->fd, err);
	if (st == LAG_OK)
		st = lag_merge_write(m, file->partial, receipt, err);
	/* What is replaced is whole: so shall this be, on the disk. */
	if (st == LAG_OK && m->old.is && fsync(file->fd) != 0 && errno != EINVAL)
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write");
	if (st == LAG_ERR_SYSTEM)
		name_output(file, err);
	return st;
}

struct ending {
	const struct lag_merge *m;
	const char *output;
};

static enum lag_status may_end(void *state, struct lag_err *err)
{
	const struct ending *end = state;

	return end->m->old.is ? lag_append_recheck(end->m, end->output, err)
			      : lag_output_recheck(end->output, err);
}

static enum lag_status write_and_rename(struct lag_merge *m, struct lag_merge_receipt *receipt,
					struct lag_err *err)
{
	struct ending end = { m, receipt->output };
	struct lag_outfile file;
	struct lag_err end_err = { 0 };
	enum lag_status st, ended;

	if (m->opts->scratch)
		return write_to(m, m->opts->scratch, receipt, err);
	st = lag_outfile_make(&file, receipt->output, err);
	if (st != LAG_OK)
		return st;
	receipt->n_cleared = file.n_cleared;
	file.force = m->opts->force || m->old.is;
	if (file.force) {
		file.may_end = may_end;
		file.state = &end;
	}
	st = write_to(m, &file, receipt, err);
	ended = lag_outfile_close(&file, st == LAG_OK, &end_err);
	if (st == LAG_OK && ended != LAG_OK) {
		*err = end_err;
		st = ended;
	}
	return st;
}

/* At any time of any device, as the trace's readers state it; INT64_MAX = unknown. */
static int64_t worst_uncertainty(const struct lag_merge *m)
{
	int64_t worst = m->n_devices ? 0 : INT64_MAX, u;

	for (size_t i = 0; i < m->clock.n_devices; i++) {
		const struct lag_align_device *row = &m->clock.devices[i];

		u = row->uncertainty_ns < 0 || row->uncertainty_ns > 9e18
			    ? INT64_MAX
			    : llround(row->uncertainty_ns);
		if (row->device < m->n_devices && u > worst)
			worst = u;
	}
	for (uint32_t d = 0; d < m->n_devices; d++) {
		const struct lag_proc *p = LAG_PROC_AT(m, LAG_VEC_AT(&m->device_proc, uint32_t, d));

		u = lag_align_uncertainty(&m->clock, p->host, d, p->last_ns);
		worst = u > worst ? u : worst;
	}
	return worst;
}

/* Sources without GPU times tell what their hosts had seen end, and what not. */
static bool has_unfinished(const struct lag_proc *p)
{
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, op_seen) && !p->unused; i++) {
		if (LAG_PART_AT(&p->part, op_seen, i).state != LAG_OP_COMPLETED)
			return true;
	}
	return false;
}

static void fill_receipt(struct lag_merge *m, struct lag_merge_receipt *receipt)
{
	int64_t worst = worst_uncertainty(m);

	receipt->clock_uncertainty_ns = worst == INT64_MAX ? LAG_NONE : worst;
	receipt->clock_method = m->clock.method;
	receipt->spill_bytes = lag_spill_bytes(m->spill);
	receipt->n_files = m->sources.n;
	receipt->n_processes = m->procs.n;
	receipt->n_ranks = m->rank_proc.n;
	receipt->world_size = (uint64_t)m->world_size;
	receipt->n_hosts = m->hosts.n;
	receipt->n_other_runs = m->n_other_runs;
	for (size_t i = m->old.n_procs; i < m->procs.n && m->old.is; i++)
		receipt->n_added += LAG_PROC_AT(m, i)->rank != LAG_NONE;
	receipt->n_findings = m->old.n_findings + m->findings.n;
	receipt->n_warnings = m->old.n_warnings;
	for (size_t i = 0; i < m->procs.n && !receipt->hangs; i++)
		receipt->hangs = has_unfinished(LAG_PROC_AT(m, i));
	for (size_t i = 0; i < m->findings.n; i++) {
		receipt->n_warnings +=
			LAG_VEC_AT(&m->findings, struct lag_finding_row, i).severity > 0;
	}
}

enum lag_status lag_merge_run(const struct lag_merge_opts *opts, struct lag_merge_receipt *receipt,
			      struct lag_err *err)
{
	char folder[sizeof(receipt->output)];
	struct lag_merge m;
	enum lag_status st;

	*receipt = (struct lag_merge_receipt){ 0 };
	if (!opts->n_inputs)
		return lag_err_set(err, LAG_ERR_USAGE, "nothing to merge");
	st = check_opts(opts, err);
	if (st == LAG_OK && opts->scratch) {
		(void)snprintf(receipt->output, sizeof(receipt->output), "%s", opts->scratch->path);
	} else if (st == LAG_OK) {
		st = (opts->append ? lag_output_append : lag_output_choose)(
			opts, receipt->output, sizeof(receipt->output), err);
	}
	if (st != LAG_OK)
		return st;
	st = lag_output_tmp(opts, receipt->output, folder, sizeof(folder), err);
	if (st != LAG_OK)
		return st;
	st = lag_merge_init(&m, opts, err);
	if (st == LAG_OK)
		st = lag_merge_open_spill(&m, folder, err);
	if (st == LAG_OK)
		st = merge_in_memory(&m, receipt->output, err);
	if (st == LAG_OK)
		st = write_and_rename(&m, receipt, err);
	if (st == LAG_OK)
		fill_receipt(&m, receipt);
	/* What looked like a want of memory may have been one of disk. */
	if (st == LAG_ERR_SYSTEM && m.spill && lag_failed(lag_spill_failure(m.spill, err)))
		(void)lag_err_wrap(err, "temporary data in %s", folder);
	lag_merge_release(&m);
	if (st != LAG_OK)
		return st;
	return receipt->n_warnings ? LAG_WARN : LAG_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The merge from end to end, and the file it leaves: made beside its final place, renamed when whole. */
#include "merge/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/importer.h"
#include "merge/names.h"
#include "merge/state.h"
#include "schema/db/foreign.h"

/* "runs/a/" gives "a.db", "x/trace.json.gz" gives "trace.db", in the current directory. */
static enum lag_status default_output(const char *input, char *out, size_t room,
				      struct lag_err *err)
{
	static const char *const endings[] = { ".gz",  ".zst", ".xz",    ".bz2",  ".lz4",
					       ".tar", ".tgz", ".zip",   ".json", ".trace",
					       ".pt",  ".lag", ".sqlite" };
	char *full = realpath(input, NULL);
	const char *slash;
	size_t n;

	if (!full)
		return lag_err_errno(err, LAG_ERR_INPUT, "%s", input);
	slash = strrchr(full, '/');
	(void)snprintf(out, room - 4, "%s", slash && slash[1] ? slash + 1 : "trace");
	free(full);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		n = strlen(out);
		if (n > strlen(endings[i]) &&
		    strcasecmp(out + n - strlen(endings[i]), endings[i]) == 0)
			out[n - strlen(endings[i])] = '\0';
	}
	n = strlen(out);
	(void)snprintf(out + n, room - n, ".db");
	return LAG_OK;
}

/* Overwriting is for traces: a slip such as `-fo *.lag` must not cost a recording. */
static bool may_be_overwritten(const char *path, const struct stat *sb)
{
	uint8_t head[128];
	FILE *file;
	size_t n;

	if (sb->st_size == 0)
		return true;
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(head, 1, sizeof(head), file);
	(void)fclose(file);
	return lag_foreign_is_ours(head, n);
}

/* What is in the output's place. A link stands for what it points to. */
static enum lag_status check_place(char *path, size_t room, bool force, struct lag_err *err)
{
	struct stat sb;
	char *full;

	if (lstat(path, &sb) != 0)
		return LAG_OK;
	if (S_ISLNK(sb.st_mode)) {
		full = realpath(path, NULL);
		if (!full || strlen(full) >= room || stat(full, &sb) != 0) {
			free(full);
			return lag_err_set(err, LAG_ERR_USAGE, "%s: a link to nowhere", path);
		}
		memcpy(path, full, strlen(full) + 1);
		free(full);
	}
	if (S_ISDIR(sb.st_mode))
		return lag_err_set(err, LAG_ERR_USAGE, "%s: is a directory", path);
	/* A rename would put a file in the place of a device, for everyone. */
	if (!S_ISREG(sb.st_mode))
		return lag_err_set(err, LAG_ERR_USAGE, "%s: is no regular file", path);
	if (!force) {
		return lag_err_set(err, LAG_ERR_USAGE, "%s: exists already (-f overwrites it)",
				   path);
	}
	if (!may_be_overwritten(path, &sb)) {
		return lag_err_set(err, LAG_ERR_USAGE, "%s: is no merged trace, not overwritten",
				   path);
	}
	return LAG_OK;
}

static enum lag_status choose_output(const struct lag_merge_opts *opts,
				     struct lag_merge_receipt *receipt, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (opts->output && !opts->output[0])
		return lag_err_set(err, LAG_ERR_USAGE, "the output has no name");
	if (opts->output && strlen(opts->output) + 32 >= sizeof(receipt->output))
		return lag_err_set(err, LAG_ERR_USAGE, "output path too long");
	if (opts->output) {
		(void)snprintf(receipt->output, sizeof(receipt->output), "%s", opts->output);
	} else {
		st = default_output(opts->inputs[0], receipt->output, sizeof(receipt->output), err);
	}
	if (st != LAG_OK)
		return st;
	/* Room for what is added to the name while it is written. */
	return check_place(receipt->output, sizeof(receipt->output) - 32, opts->force, err);
}

/* Where temporary data go: where the user said, else beside the output, whose disk has to have room for
 * much the same amount. */
static enum lag_status spill_folder(const struct lag_merge_opts *opts, const char *output,
				    char *out, size_t room, struct lag_err *err)
{
	const char *tmp = opts->tmp ? opts->tmp : getenv("TMPDIR");
	const char *slash = strrchr(output, '/');
	struct stat sb;

	if (tmp && tmp[0]) {
		if (snprintf(out, room, "%s", tmp) >= (int)room)
			return lag_err_set(err, LAG_ERR_USAGE, "path of temporary folder too long");
	} else if (slash) {
		(void)snprintf(out, room, "%.*s", slash == output ? 1 : (int)(slash - output),
			       output);
	} else {
		(void)snprintf(out, room, ".");
	}
	if (opts->tmp && (stat(out, &sb) != 0 || !S_ISDIR(sb.st_mode)))
		return lag_err_set(err, LAG_ERR_USAGE, "%s: no folder for temporary data", out);
	return LAG_OK;
}

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
	const struct lag_source_row *s = m->sources.items;

	if (!m->sources.n) {
		return lag_err_set(err, LAG_ERR_INPUT, "%s: no trace files in it",
				   m->opts->inputs[0]);
	}
	if (!m->procs.n && m->sources.n == 1)
		return lag_err_set(err, LAG_ERR_INPUT, "%s: %s", s->path, s->note);
	if (!m->procs.n) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "none of %zu files is a usable trace; the first: %s: %s",
				   m->sources.n, s->path, s->note);
	}
	return lag_err_set(err, LAG_ERR_INPUT,
			   "%s: no GPU or communication event in any of %zu recordings", s->path,
			   m->procs.n);
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

static enum lag_status merge_in_memory(struct lag_merge *m, struct lag_err *err)
{
	enum lag_status st = lag_merge_intake(m, err);

	lag_merge_phase(m, LAG_MERGE_MATCH, N_PASSES * m->procs.n);
	if (st == LAG_OK)
		st = each_proc(m, false, sift_and_pair, err);
	if (st == LAG_OK)
		st = lag_merge_identify(m, err);
	if (st == LAG_OK && !m->rank_proc.n && !(m->opts->keep_empty && m->procs.n))
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

/* An empty file beside the output that nobody else has. */
static enum lag_status make_temporary(const char *output, char *path, size_t room,
				      struct lag_err *err)
{
	int fd;

	(void)snprintf(path, room, "%s.XXXXXX", output);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot create", output);
	/* mkostemp is 0600; a result is a file like any other. */
	mode_t mask = umask(0);
	(void)umask(mask);
	(void)fchmod(fd, 0666 & ~mask);
	(void)close(fd);
	return LAG_OK;
}

static enum lag_status write_and_rename(struct lag_merge *m, struct lag_merge_receipt *receipt,
					struct lag_err *err)
{
	char path[sizeof(receipt->output) + 8];
	enum lag_status st = make_temporary(receipt->output, path, sizeof(path), err);

	if (st != LAG_OK)
		return st;
	st = lag_merge_write(m, path, receipt, err);
	if (st == LAG_OK && rename(path, receipt->output) != 0) {
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot rename to %s", path,
				   receipt->output);
	}
	if (st != LAG_OK)
		(void)unlink(path);
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
	receipt->n_findings = m->findings.n;
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
	if (st == LAG_OK)
		st = choose_output(opts, receipt, err);
	if (st != LAG_OK)
		return st;
	st = spill_folder(opts, receipt->output, folder, sizeof(folder), err);
	if (st != LAG_OK)
		return st;
	st = lag_merge_init(&m, opts, err);
	if (st == LAG_OK)
		st = lag_merge_open_spill(&m, folder, err);
	if (st == LAG_OK)
		st = merge_in_memory(&m, err);
	if (st == LAG_OK)
		st = write_and_rename(&m, receipt, err);
	if (st == LAG_OK)
		fill_receipt(&m, receipt);
	/* What looked like a want of memory may have been one of disk. */
	if (st == LAG_ERR_SYSTEM && m.spill && lag_failed(lag_spill_failure(m.spill, err)))
		(void)lag_err_wrap(err, "temporary data");
	lag_merge_release(&m);
	if (st != LAG_OK)
		return st;
	return receipt->n_warnings ? LAG_WARN : LAG_OK;
}

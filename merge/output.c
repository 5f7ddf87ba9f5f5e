/* SPDX-License-Identifier: Apache-2.0 */
/* Where the trace goes, and how it gets there whole: made beside its final place, renamed at the end. */
#include "merge/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/unfinished.h"
#include "schema/db/foreign.h"

/* "runs/a/" gives "a.db", "x/trace.json.gz" gives "trace.db", in the current directory. */
static enum lag_status default_output(const char *input, char *out, size_t room,
				      struct lag_err *err)
{
	static const char *const endings[] = { ".gz",  ".zst", ".xz",     ".bz2",  ".lz4",
					       ".tar", ".tgz", ".zip",    ".json", ".trace",
					       ".pt",  ".lag", ".sqlite", ".csv" };
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

enum lag_status lag_output_choose(const struct lag_merge_opts *opts, char *output, size_t room,
				  struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (opts->output && !opts->output[0])
		return lag_err_set(err, LAG_ERR_USAGE, "the output has no name");
	if (opts->output && strlen(opts->output) + 32 >= room)
		return lag_err_set(err, LAG_ERR_USAGE, "output path too long");
	if (opts->output) {
		(void)snprintf(output, room, "%s", opts->output);
	} else {
		st = default_output(opts->inputs[0], output, room, err);
	}
	if (st != LAG_OK)
		return st;
	/* Room for what is added to the name while it is written. */
	return check_place(output, room - 32, opts->force, err);
}

enum lag_status lag_output_append(const struct lag_merge_opts *opts, char *output, size_t room,
				  struct lag_err *err)
{
	struct stat sb;
	char *full;

	if (opts->output || opts->force || opts->align || opts->repair_order) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "--append: the trace stays where it is, on the clock that it is "
				   "on (no -o, -f, -a, --repair-order)");
	}
	for (size_t i = 0; i < opts->n_inputs; i++) {
		if (stat(opts->inputs[i], &sb) == 0 && S_ISREG(sb.st_mode) && sb.st_size > 0 &&
		    may_be_overwritten(opts->inputs[i], &sb)) {
			return lag_err_set(err, LAG_ERR_INPUT,
					   "%s: is a merged trace: recordings can be added to one",
					   opts->inputs[i]);
		}
	}
	if (lstat(opts->append, &sb) != 0)
		return lag_err_errno(err, LAG_ERR_INPUT, "%s", opts->append);
	full = S_ISLNK(sb.st_mode) ? realpath(opts->append, NULL) : strdup(opts->append);
	if (!full)
		return lag_err_errno(err, LAG_ERR_INPUT, "%s", opts->append);
	output[0] = '\0';
	if (strlen(full) + 32 < room)
		memcpy(output, full, strlen(full) + 1);
	free(full);
	return output[0] ? LAG_OK : lag_err_set(err, LAG_ERR_USAGE, "output path too long");
}

/* Where temporary data go: where the user said, else beside the output, whose disk has to have room for
 * much the same amount. */
enum lag_status lag_output_tmp(const struct lag_merge_opts *opts, const char *output, char *out,
			       size_t room, struct lag_err *err)
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

/* ---- the file while it is made ---- */

#define ENDING     ".laggard-XXXXXX"
#define ENDING_LEN (sizeof(ENDING) - 1)

/* Whether this is what a merge to `output` (a name without its folder) calls its file. */
static bool is_temporary(const char *name, const char *output)
{
	size_t n = strlen(output);

	return strlen(name) == n + ENDING_LEN && strncmp(name, output, n) == 0 &&
	       strncmp(name + n, ENDING, ENDING_LEN - 6) == 0;
}

/* Who makes the file holds a lock on it, until it ends in whatever way. */
static void remove_stale(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat sb;

	if (fd < 0)
		return;
	if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) && sb.st_uid == geteuid() &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(folder, name, 0);
	(void)close(fd);
}

/* What earlier merges to this place left that were killed. */
static void clean_up(const char *output)
{
	const char *slash = strrchr(output, '/');
	char folder[4096];
	const struct dirent *entry;
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - output) + 1 : 1,
		       slash ? output : ".");
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		if (is_temporary(entry->d_name, slash ? slash + 1 : output))
			remove_stale(dirfd(dir), entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
}

enum lag_status lag_temporary_make(const char *output, struct lag_temporary *tmp,
				   struct lag_err *err)
{
	struct lag_making making;
	struct stat sb;
	mode_t mask;

	clean_up(output);
	*tmp = (struct lag_temporary){ .output = output, .fd = -1 };
	do {
		if (tmp->fd >= 0) {
			lag_unfinished_done(tmp->path);
			(void)close(tmp->fd);
		}
		(void)snprintf(tmp->path, sizeof(tmp->path), "%s" ENDING, output);
		lag_making_begin(&making);
		tmp->fd = mkostemp(tmp->path, O_CLOEXEC);
		if (tmp->fd >= 0)
			lag_unfinished_add(AT_FDCWD, tmp->path, false);
		lag_making_end(&making);
		if (tmp->fd < 0)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot create", output);
		/* Where there are no locks, nobody can take one and remove it either. Between making
		 * and locking somebody could: then another one is made. */
		(void)flock(tmp->fd, LOCK_EX | LOCK_NB);
	} while (fstat(tmp->fd, &sb) == 0 && sb.st_nlink == 0);
	/* mkostemp is 0600; a result is a file like any other. */
	mask = umask(0);
	(void)umask(mask);
	(void)fchmod(tmp->fd, 0666 & ~mask);
	return LAG_OK;
}

enum lag_status lag_temporary_end(struct lag_temporary *tmp, bool sync, enum lag_status st,
				  struct lag_err *err)
{
	if (st == LAG_OK && sync && fsync(tmp->fd) != 0 && errno != EINVAL)
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "%s", tmp->path);
	if (st == LAG_OK && rename(tmp->path, tmp->output) != 0) {
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot rename to %s", tmp->path,
				   tmp->output);
	}
	if (st != LAG_OK)
		(void)unlink(tmp->path);
	lag_unfinished_done(tmp->path);
	(void)close(tmp->fd);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the trace goes, and what may be in its place. */
#include "merge/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

enum lag_status lag_output_recheck(const char *output, struct lag_err *err)
{
	struct stat sb;

	if (lstat(output, &sb) != 0 || (S_ISREG(sb.st_mode) && may_be_overwritten(output, &sb)))
		return LAG_OK;
	return lag_err_set(err, LAG_ERR_USAGE,
			   "%s: became something else meanwhile, not overwritten", output);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* What the user named, as a list of files. Links to directories are not followed, so that no tree
 * is walked twice; a link to a file is that file. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "merge/source.h"

#define DEPTH_MAX 16
#define FILES_MAX ((size_t)1 << 20)

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcasecmp(name + n - m, suffix) == 0;
}

/* What ends in "_dump_3" or "trace_rank_3": PyTorch names its dumps without a suffix. */
static bool looks_like_dump(const char *name)
{
	size_t n = strlen(name), digits = 0;

	while (digits < n && name[n - digits - 1] >= '0' && name[n - digits - 1] <= '9')
		digits++;
	n -= digits;
	return digits && ((n >= 6 && memcmp(name + n - 6, "_dump_", 6) == 0) ||
			  (n >= 5 && memcmp(name + n - 5, "rank_", 5) == 0));
}

static bool looks_like_trace(const char *name)
{
	static const char *const suffixes[] = { ".lag",      ".lagz",   ".json", ".gz",  ".zst",
						".tar",      ".tgz",    ".zip",  ".xz",  ".bz2",
						".lz4",      ".pickle", ".pkl",  ".csv", ".sqlite",
						".nsys-rep", ".qdrep" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (ends_with(name, suffixes[i]))
			return name[0] != '.';
	}
	return looks_like_dump(name);
}

static enum lag_status add_file(struct lag_vec *files, const char *path, const struct stat *sb,
				bool named, struct lag_err *err)
{
	struct lag_run_file *file = lag_vec_push(files);

	if (!file)
		return lag_err_set(err, LAG_ERR_LIMIT, "%s: more than %zu files", path, FILES_MAX);
	file->path = strdup(path);
	file->size = (uint64_t)sb->st_size;
	file->named = named;
	if (file->path)
		return LAG_OK;
	files->n--;
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
}

static enum lag_status add_directory(struct lag_vec *files, const char *path, int depth,
				     struct lag_err *err);

static enum lag_status add_entry(struct lag_vec *files, const char *dir, const char *name,
				 int depth, struct lag_err *err)
{
	char path[4096];
	struct stat sb;
	int n = snprintf(path, sizeof(path), "%s%s%s", dir, ends_with(dir, "/") ? "" : "/", name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return lag_err_set(err, LAG_ERR_LIMIT, "%s: path too long", dir);
	if (lstat(path, &sb) != 0)
		return LAG_OK; /* gone since the directory was read */
	if (S_ISDIR(sb.st_mode))
		return depth < DEPTH_MAX ? add_directory(files, path, depth + 1, err) : LAG_OK;
	if (!looks_like_trace(name) || stat(path, &sb) != 0 || !S_ISREG(sb.st_mode))
		return LAG_OK;
	return add_file(files, path, &sb, false, err);
}

static enum lag_status add_directory(struct lag_vec *files, const char *path, int depth,
				     struct lag_err *err)
{
	static const struct stat none;
	struct dirent **names = NULL;
	enum lag_status st = LAG_OK;
	int n = scandir(path, &names, NULL, alphasort);

	if (n < 0 && depth == 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	/* One folder that may not be read does not hide the others: opening it will say why. */
	if (n < 0)
		return add_file(files, path, &none, true, err);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		if (st == LAG_OK && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			st = add_entry(files, path, name, depth, err);
		free(names[i]);
	}
	free(names);
	return st;
}

static int by_path(const void *left, const void *right)
{
	const struct lag_run_file *a = left, *b = right;
	int order = strverscmp(a->path, b->path);

	return order ? order : (int)b->named - (int)a->named;
}

static void drop_repeats(struct lag_vec *files)
{
	struct lag_run_file *at = files->items;
	size_t kept = 0;

	for (size_t i = 0; i < files->n; i++) {
		if (kept && strcmp(at[kept - 1].path, at[i].path) == 0) {
			free(at[i].path);
		} else {
			at[kept++] = at[i];
		}
	}
	files->n = kept;
}

enum lag_status lag_run_files(const char *const *names, size_t n_names, struct lag_vec *files,
			      struct lag_err *err)
{
	files->item_size = sizeof(struct lag_run_file);
	files->max = FILES_MAX;
	for (size_t i = 0; i < n_names; i++) {
		enum lag_status st;
		struct stat sb;

		if (stat(names[i], &sb) != 0)
			return lag_err_errno(err, LAG_ERR_INPUT, "%s", names[i]);
		st = S_ISDIR(sb.st_mode) ? add_directory(files, names[i], 0, err)
					 : add_file(files, names[i], &sb, true, err);
		if (st != LAG_OK)
			return st;
	}
	if (files->n)
		qsort(files->items, files->n, sizeof(struct lag_run_file), by_path);
	drop_repeats(files);
	return LAG_OK;
}

void lag_run_files_release(struct lag_vec *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(LAG_VEC_AT(files, struct lag_run_file, i).path);
	lag_vec_release(files);
}

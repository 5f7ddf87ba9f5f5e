/* SPDX-License-Identifier: Apache-2.0 */
/* From the names that the user gave to a sorted list of files with the names of archive members. */
#include "merge/pack_files.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX ((size_t)1 << 20)
#define DEPTH_MAX 32
#define NOTES_MAX 50

void lag_pack_note(struct lag_pack_receipt *receipt, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	receipt->notes.item_size = LAG_ERR_TEXT_MAX;
	if (receipt->notes.n < NOTES_MAX)
		text = lag_vec_push(&receipt->notes);
	if (!text) {
		receipt->n_unsaid++;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(text, LAG_ERR_TEXT_MAX, fmt, ap);
	va_end(ap);
}

void lag_pack_receipt_release(struct lag_pack_receipt *receipt)
{
	lag_vec_release(&receipt->notes);
}

static enum lag_status add(struct lag_vec *files, const char *path, const struct stat *sb,
			   const char *root, const char *below, bool is_link, struct lag_err *err)
{
	struct lag_pack_file *file = lag_vec_push(files);

	if (!file)
		return lag_err_set(err, LAG_ERR_LIMIT, "%s: more than %zu files", path, FILES_MAX);
	file->path = strdup(path);
	file->sb = *sb;
	/* A file under its own name rather than a link to it. */
	file->order = files->n + (is_link ? FILES_MAX : 0);
	if (asprintf(&file->member, "%s%s", root, below) < 0)
		file->member = NULL;
	return file->path && file->member ? LAG_OK : lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
}

/* The last part of the operand's real path: "." and "run/" have none of their own. */
static enum lag_status name_of(const char *input, char *root, size_t room, struct lag_err *err)
{
	char *full = realpath(input, NULL);
	const char *slash = full ? strrchr(full, '/') : NULL;

	if (!full)
		return lag_err_errno(err, LAG_ERR_INPUT, "%s", input);
	(void)snprintf(root, room, "%s", slash && slash[1] ? slash + 1 : "root");
	free(full);
	return LAG_OK;
}

/* Runs of the same name from several folders: run, run-2, run-3. */
static void make_distinct(char (*roots)[NAME_MAX + 32], size_t i)
{
	char first[NAME_MAX + 1];
	bool again = true;

	(void)snprintf(first, sizeof(first), "%.*s", NAME_MAX, roots[i]);
	for (unsigned n = 2; again; n++) {
		again = false;
		for (size_t j = 0; j < i; j++)
			again = again || strcmp(roots[j], roots[i]) == 0;
		if (again)
			(void)snprintf(roots[i], sizeof(roots[i]), "%s-%u", first, n);
	}
}

static enum lag_status take_entry(FTSENT *entry, const char *input, const char *root,
				  struct lag_vec *files, struct lag_pack_receipt *receipt,
				  struct lag_err *err)
{
	struct stat sb = *entry->fts_statp;
	bool there = true;

	switch (entry->fts_info) {
	case FTS_SL:
	case FTS_SLNONE:
		there = stat(entry->fts_path, &sb) == 0;
		break;
	case FTS_F:
	case FTS_DEFAULT:
		break;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		lag_pack_note(receipt, "%s: %s, left out", entry->fts_path,
			      strerror(entry->fts_errno));
		receipt->n_refused++;
		return LAG_OK;
	default:
		return LAG_OK;
	}
	if (!there || !S_ISREG(sb.st_mode)) {
		lag_pack_note(receipt, "%s: %s, left out", entry->fts_path,
			      !there                ? "a link to nowhere"
			      : S_ISDIR(sb.st_mode) ? "a link to a directory"
						    : "no regular file");
		return LAG_OK;
	}
	return add(files, entry->fts_path, &sb, root, entry->fts_path + strlen(input),
		   entry->fts_info == FTS_SL, err);
}

static int by_name(const FTSENT **left, const FTSENT **right)
{
	return strcmp((*left)->fts_name, (*right)->fts_name);
}

static enum lag_status add_directory(const char *input, const char *root, struct lag_vec *files,
				     struct lag_pack_receipt *receipt, struct lag_err *err)
{
	char *path = strdup(input);
	char *paths[] = { path, NULL };
	enum lag_status st = LAG_OK;
	FTSENT *entry;
	FTS *fts;

	if (!path)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, by_name);
	if (!fts) {
		free(path);
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", input);
	}
	while (st == LAG_OK && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_D && entry->fts_level > DEPTH_MAX) {
			lag_pack_note(receipt, "%s: nested too deeply, left out", entry->fts_path);
			receipt->n_refused++;
			(void)fts_set(fts, entry, FTS_SKIP);
			continue;
		}
		/* "/" is followed by no further slash. */
		st = take_entry(entry, strcmp(path, "/") == 0 ? "" : path, root, files, receipt,
				err);
	}
	(void)fts_close(fts);
	free(path);
	return st;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int by_inode(const void *left, const void *right)
{
	const struct lag_pack_file *a = left, *b = right;

	if (a->sb.st_dev != b->sb.st_dev)
		return a->sb.st_dev < b->sb.st_dev ? -1 : 1;
	if (a->sb.st_ino != b->sb.st_ino)
		return a->sb.st_ino < b->sb.st_ino ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int by_member(const void *left, const void *right)
{
	return strcmp(((const struct lag_pack_file *)left)->member,
		      ((const struct lag_pack_file *)right)->member);
}

/* A rank file that came twice would be merged twice. */
static void drop_repeats(struct lag_vec *files, const struct stat *out)
{
	struct lag_pack_file *at = files->items;
	size_t kept = 0;

	if (files->n)
		qsort(at, files->n, sizeof(*at), by_inode);
	for (size_t i = 0; i < files->n; i++) {
		if ((kept && same_file(&at[kept - 1].sb, &at[i].sb)) || same_file(&at[i].sb, out)) {
			free(at[i].path);
			free(at[i].member);
		} else {
			at[kept++] = at[i];
		}
	}
	files->n = kept;
	if (kept)
		qsort(at, kept, sizeof(*at), by_member);
}

enum lag_status lag_pack_files(const struct lag_pack_opts *opts, const struct stat *out,
			       struct lag_vec *files, struct lag_pack_receipt *receipt,
			       struct lag_err *err)
{
	char(*roots)[NAME_MAX + 32] = lag_calloc(opts->n_inputs, sizeof(*roots));
	enum lag_status st = LAG_OK;

	files->item_size = sizeof(struct lag_pack_file);
	files->max = FILES_MAX;
	if (!roots)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	for (size_t i = 0; i < opts->n_inputs && st == LAG_OK; i++) {
		const char *input = opts->inputs[i];
		struct stat sb;

		if (stat(input, &sb) != 0)
			st = lag_err_errno(err, LAG_ERR_INPUT, "%s", input);
		if (st == LAG_OK)
			st = name_of(input, roots[i], sizeof(roots[i]), err);
		if (st != LAG_OK)
			break;
		make_distinct(roots, i);
		if (S_ISDIR(sb.st_mode)) {
			st = add_directory(input, roots[i], files, receipt, err);
		} else if (S_ISREG(sb.st_mode)) {
			st = add(files, input, &sb, roots[i], "", false, err);
		} else {
			st = lag_err_set(err, LAG_ERR_INPUT, "%s: not a regular file", input);
		}
	}
	free(roots);
	drop_repeats(files, out);
	return st;
}

void lag_pack_files_release(struct lag_vec *files)
{
	for (size_t i = 0; i < files->n; i++) {
		free(LAG_VEC_AT(files, struct lag_pack_file, i).path);
		free(LAG_VEC_AT(files, struct lag_pack_file, i).member);
	}
	lag_vec_release(files);
}

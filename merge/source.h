/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to readable inputs: plain files (mapped), gzip (inflated), members of archives, all
 * recognised by content, never by name. */
#ifndef MERGE_SOURCE_H
#define MERGE_SOURCE_H

#include "merge/importer.h"

#define LAG_SOURCE_HEAD 4096 /* bytes that importers see when they probe */

/* A sequential byte source; layers (gzip) stand on others. Owned by whoever opened it. */
struct lag_stream {
	/* Up to room bytes; 0 at the end, -1 on error (err is set). */
	long (*read)(struct lag_stream *st, void *buf, size_t room, struct lag_err *err);
	void (*close)(struct lag_stream *st);
	/* Set at the end where that came early: one line on what is damaged, borrowed until close. */
	const char *damage;
};

/* Called for each input found. `head` is the input's beginning, already inflated. A failing status
 * ends the walk and is returned; what is wrong with one input is the visitor's to record. */
struct lag_source_visitor {
	enum lag_status (*visit)(struct lag_source_visitor *self, struct lag_input *in,
				 const uint8_t *head, size_t n_head, struct lag_err *err);
	void *state;
};

/* Opens path and visits the input it is, or each member of the archive it is. Failures: path cannot
 * be opened or its container is broken (LAG_ERR_INPUT, members before the damage were visited). */
enum lag_status lag_source_each(const char *path, struct lag_source_visitor *visitor,
				struct lag_err *err) LAG_MUST_USE;

/* Visits a stream as one input, inflating it when it is gzip. `name` is what messages call it. */
enum lag_status lag_source_visit_stream(struct lag_stream *raw, const char *name,
					uint64_t size_hint, struct lag_source_visitor *visitor,
					struct lag_err *err) LAG_MUST_USE;

/* True when the beginning of a file is an archive's (tar, zip, zstd, xz, bzip2, 7z). */
bool lag_archive_probe(const uint8_t *head, size_t n);

/* Visits every regular member of the archive at path. Limits: members, bytes, expansion ratio.
 * Damage is LAG_ERR_INPUT, after all that could be found was visited. */
enum lag_status lag_archive_each(const char *path, struct lag_source_visitor *visitor,
				 struct lag_err *err) LAG_MUST_USE;

/* The whole input in memory. Where it is mapped, *owned is NULL; else it is to be freed.
 * LAG_ERR_LIMIT beyond max bytes. */
enum lag_status lag_input_slurp(struct lag_input *in, size_t max, const uint8_t **bytes, size_t *n,
				uint8_t **owned, struct lag_err *err) LAG_MUST_USE;

/* An input's read as lag_json_fill and lag_csv_fill; state is the struct lag_input. */
long lag_input_fill(void *state, void *buf, size_t room, struct lag_err *err) LAG_MUST_USE;

/* Files of a run, in order of their paths, from what the user named: a directory gives the files in it
 * and below whose names look like traces, a file gives itself. */
struct lag_run_file {
	char *path;
	uint64_t size;
	bool named; /* by the user, not found in a directory */
};

/* files: struct lag_run_file, appended; the caller frees the paths. A name that does not exist is
 * LAG_ERR_INPUT; a file reached twice is taken once. */
enum lag_status lag_run_files(const char *const *names, size_t n_names, struct lag_vec *files,
			      struct lag_err *err) LAG_MUST_USE;
void lag_run_files_release(struct lag_vec *files);

#endif

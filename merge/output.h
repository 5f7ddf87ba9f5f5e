/* SPDX-License-Identifier: Apache-2.0 */
/* Where a merge's output goes, and the file that becomes it. */
#ifndef MERGE_OUTPUT_H
#define MERGE_OUTPUT_H

#include "merge/merge.h"

/* The output's path (a link's target), after a look at what is in its place. */
enum lag_status lag_output_choose(const struct lag_merge_opts *opts, char *output, size_t room,
				  struct lag_err *err) LAG_MUST_USE;

/* The same for opts->append, a trace, to which merged traces cannot be added. */
enum lag_status lag_output_append(const struct lag_merge_opts *opts, char *output, size_t room,
				  struct lag_err *err) LAG_MUST_USE;

/* Folder for temporary data. */
enum lag_status lag_output_tmp(const struct lag_merge_opts *opts, const char *output, char *out,
			       size_t room, struct lag_err *err) LAG_MUST_USE;

/* An empty file beside the output that nobody else has, and that is known for one in the making. */
struct lag_temporary {
	const char *output; /* borrowed */
	int fd;             /* holds the lock */
	char path[4096 + 16];
};

/* Removes what killed merges to the same output have left first. */
enum lag_status lag_temporary_make(const char *output, struct lag_temporary *tmp,
				   struct lag_err *err) LAG_MUST_USE;

/* st LAG_OK: it becomes the output (sync: when it is on the disk, since that has a whole one now); else it goes. Returns st, or why it could not become it. */
enum lag_status lag_temporary_end(struct lag_temporary *tmp, bool sync, enum lag_status st,
				  struct lag_err *err) LAG_MUST_USE;

#endif

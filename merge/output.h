/* SPDX-License-Identifier: Apache-2.0 */
/* Where a merge's output goes. */
#ifndef MERGE_OUTPUT_H
#define MERGE_OUTPUT_H

#include "merge/merge.h"

/* The output's path (a link's target), after a look at what is in its place. */
enum lag_status lag_output_choose(const struct lag_merge_opts *opts, char *output, size_t room,
				  struct lag_err *err) LAG_MUST_USE;

/* The same for opts->append, a trace, to which merged traces cannot be added. */
enum lag_status lag_output_append(const struct lag_merge_opts *opts, char *output, size_t room,
				  struct lag_err *err) LAG_MUST_USE;

/* A second look at the output's place, right before what is there is overwritten: LAG_ERR_USAGE where that
 * is no merged trace, or no file. */
enum lag_status lag_output_recheck(const char *output, struct lag_err *err) LAG_MUST_USE;

/* Folder for temporary data. */
enum lag_status lag_output_tmp(const struct lag_merge_opts *opts, const char *output, char *out,
			       size_t room, struct lag_err *err) LAG_MUST_USE;

#endif

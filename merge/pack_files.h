/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into an archive and under which name. Between pack_files.c and pack.c. */
#ifndef MERGE_PACK_FILES_H
#define MERGE_PACK_FILES_H

#include <sys/stat.h>

#include "merge/pack.h"

struct lag_pack_file {
	char *path;   /* where it is; owned */
	char *member; /* what the archive calls it; owned */
	size_t order; /* in which it was found */
	struct stat sb;
};

/* files: struct lag_pack_file, filled in the order of members. `out` is the file being written: it is
 * not packed into itself. A file reached twice is taken once; links to directories, devices and pipes
 * are left out with a note. LAG_ERR_INPUT: an input is not there. */
enum lag_status lag_pack_files(const struct lag_pack_opts *opts, const struct stat *out,
			       struct lag_vec *files, struct lag_pack_receipt *receipt,
			       struct lag_err *err) LAG_MUST_USE;
void lag_pack_files_release(struct lag_vec *files);

#endif

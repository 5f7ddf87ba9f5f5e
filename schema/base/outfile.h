/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears when it is whole: written beside its place and renamed at the end. Standard
 * output ("-"), devices and pipes are written in place. Who is killed leaves an unfinished file beside
 * the place; the next one that writes there removes it, and nobody's else: what is being written is
 * locked. */
#ifndef SCHEMA_BASE_OUTFILE_H
#define SCHEMA_BASE_OUTFILE_H

#include <stddef.h>

#include "schema/base/err.h"

struct lag_outfile {
	char *path, *partial; /* owned; partial NULL: written in place */
	const char *name;     /* for messages */
	int fd;               /* to write to */
	int lock;             /* the same file, until it has its name */
	bool force;           /* replace what is in its place at the end */
	unsigned n_cleared;   /* unfinished files of killed predecessors that were removed */
	/* Asked right before the file gets its name; what it returns other than LAG_OK is the end of
	 * it. NULL: nothing is asked. */
	enum lag_status (*may_end)(void *state, struct lag_err *err);
	void *state;
};

/* LAG_ERR_USAGE where the file exists and `force` is not set, or there is no name; nothing is left
 * open after a failure. */
enum lag_status lag_outfile_open(struct lag_outfile *f, const char *path, bool force,
				 struct lag_err *err) LAG_MUST_USE;

/* The unfinished file of `path`, which has been looked at: no link, nor anything but a file. Without
 * `force`, set later, nothing is replaced. Never renamed, it is a temporary file. */
enum lag_status lag_outfile_make(struct lag_outfile *f, const char *path,
				 struct lag_err *err) LAG_MUST_USE;

/* Writes all n bytes. */
enum lag_status lag_outfile_write(struct lag_outfile *f, const void *bytes, size_t n,
				  struct lag_err *err) LAG_MUST_USE;

/* Puts the file in its place, or removes what was written when `keep` is not set. Without `force`
 * nothing is replaced, also not what came meanwhile: LAG_ERR_USAGE. */
enum lag_status lag_outfile_close(struct lag_outfile *f, bool keep,
				  struct lag_err *err) LAG_MUST_USE;

/* Renames within the folder; without `replace` EEXIST where the name is taken. False: errno says why. */
bool lag_outfile_rename(int folder, const char *from, const char *to, bool replace) LAG_MUST_USE;

/* A lock on the open file that nobody else has, of a kind that ends with the process; false also where
 * the file system has none. */
bool lag_outfile_lock(int fd) LAG_MUST_USE;

/* $TMPDIR, else /tmp. */
const char *lag_outfile_tmp(void);

#endif

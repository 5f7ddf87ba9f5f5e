/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears when it is whole: written beside its place and renamed at the end. Standard
 * output ("-"), devices and pipes are written in place. */
#ifndef SCHEMA_BASE_OUTFILE_H
#define SCHEMA_BASE_OUTFILE_H

#include <stddef.h>

#include "schema/base/err.h"

struct lag_outfile {
	char *path, *partial; /* owned; partial NULL: written in place */
	const char *name;     /* for messages */
	int fd;               /* to write to */
};

/* LAG_ERR_USAGE where the file exists and `force` is not set, or there is no name; nothing is left
 * open after a failure. */
enum lag_status lag_outfile_open(struct lag_outfile *f, const char *path, bool force,
				 struct lag_err *err) LAG_MUST_USE;

/* Writes all n bytes. */
enum lag_status lag_outfile_write(struct lag_outfile *f, const void *bytes, size_t n,
				  struct lag_err *err) LAG_MUST_USE;

/* Puts the file in its place, or removes what was written when `keep` is not set. fd -1: somebody else
 * has closed it already. */
enum lag_status lag_outfile_close(struct lag_outfile *f, bool keep,
				  struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Nsight Systems: which of its formats one is, and a database where SQLite can open it. */
#ifndef MERGE_NSYS_FILE_H
#define MERGE_NSYS_FILE_H

#include "merge/importer.h"
#include "schema/base/outfile.h"

struct lag_nsys_file {
	const char *path;             /* to open; the input's own, or a temporary file's */
	struct lag_outfile temporary; /* gone when closed */
};

/* Databases, and the formats that lag_nsys_file_open refuses with advice. */
bool lag_nsys_file_probe(const uint8_t *head, size_t n);

/* LAG_ERR_INPUT: a report or a table that is no database, or a trace that laggard has merged already; the
 * message says what to do. Inputs that are not files on disk are written to a temporary one, in $TMPDIR. */
enum lag_status lag_nsys_file_open(struct lag_nsys_file *file, struct lag_input *in,
				   struct lag_err *err) LAG_MUST_USE;
void lag_nsys_file_close(struct lag_nsys_file *file);

#endif

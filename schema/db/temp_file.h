/* SPDX-License-Identifier: Apache-2.0 */
/* A nameless temporary file for what does not fit into memory; it is gone with its descriptor. */
#ifndef SCHEMA_DB_TEMP_FILE_H
#define SCHEMA_DB_TEMP_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct lag_temp_file {
	int fd; /* -1 = not made yet */
	uint64_t size;
};

/* Appends; the file is made beside `path` at first use. */
enum lag_status lag_temp_file_add(struct lag_temp_file *file, const char *path, const void *bytes,
				  size_t n, struct lag_err *err) LAG_MUST_USE;

/* Reads exactly n bytes that were added. */
enum lag_status lag_temp_file_read(const struct lag_temp_file *file, uint64_t at, void *bytes,
				   size_t n, struct lag_err *err) LAG_MUST_USE;

void lag_temp_file_close(struct lag_temp_file *file);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Whole transfers between memory and files: interrupted and short system calls go on where they were.
 * What fails says why in errno. */
#ifndef SCHEMA_BASE_IO_H
#define SCHEMA_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/base/err.h"

/* All n bytes, at the file's position. */
bool lag_io_write(int fd, const void *bytes, size_t n) LAG_MUST_USE;

/* All n bytes, at offset `at`; the file's position stays. */
bool lag_io_write_at(int fd, const void *bytes, size_t n, uint64_t at) LAG_MUST_USE;

/* Bytes from offset `at` on: fewer than n at the file's end or before a place that cannot be read, -1
 * where that is the first one. */
ssize_t lag_io_read_at(int fd, void *out, size_t n, uint64_t at) LAG_MUST_USE;

/* A file in the folder that has no name and is gone when closed; -1 where none can be made. */
int lag_io_nameless(const char *folder) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A nameless temporary file for what does not fit into memory; it is gone with its descriptor. */
#ifndef SCHEMA_DB_SPILL_H
#define SCHEMA_DB_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct lag_spill {
	int fd; /* -1 = not made yet */
	uint64_t size;
};

/* Appends; the file is made beside `path` at first use. */
enum lag_status lag_spill_add(struct lag_spill *spill, const char *path, const void *bytes,
			      size_t n, struct lag_err *err) LAG_MUST_USE;

/* Reads exactly n bytes that were added. */
enum lag_status lag_spill_read(const struct lag_spill *spill, uint64_t at, void *bytes, size_t n,
			       struct lag_err *err) LAG_MUST_USE;

void lag_spill_close(struct lag_spill *spill);

#endif

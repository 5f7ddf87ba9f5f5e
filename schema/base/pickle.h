/* SPDX-License-Identifier: Apache-2.0 */
/* A reader for Python pickles, protocols 0 to 5, that builds plain data and can execute nothing: every
 * opcode that names a class, calls, or refers outside the file is refused by name and offset. */
#ifndef SCHEMA_BASE_PICKLE_H
#define SCHEMA_BASE_PICKLE_H

#include "schema/base/datum.h"

#define LAG_PICKLE_NESTING_MAX 4096 /* marks open at a time */

/* Reads the pickle at bytes. *out lives in the arena, whose max bounds what it may need; *used, where
 * not NULL, is the number of bytes up to and with STOP. LAG_ERR_INPUT: not a pickle, cut, or of more
 * than plain data; LAG_ERR_LIMIT: beyond the arena or the nesting. */
enum lag_status lag_pickle_read(const void *bytes, size_t n, struct lag_arena *arena,
				struct lag_datum **out, size_t *used,
				struct lag_err *err) LAG_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* After a recorded run: collects what killed processes left in the local spool, and says in one line
 * what there is. */
#ifndef CLI_RECEIPT_H
#define CLI_RECEIPT_H

#include <stdint.h>

#include "schema/base/buf.h"

/* Moves traces of ended processes of run `run_id` from the local spools to dir. */
void lag_receipt_collect(const char *run_id, const char *local, const char *dir);

/* Names in dir before the run, so that the receipt is about this run alone. */
struct lag_receipt_before {
	struct lag_buf names; /* "\nname\nname\n" */
};

void lag_receipt_begin(struct lag_receipt_before *before, const char *dir);
void lag_receipt_release(struct lag_receipt_before *before);

/* "8 processes, 1,234 records (...)" about the new files in dir; wall_ns is the run's duration. */
void lag_receipt_text(struct lag_buf *out, const struct lag_receipt_before *before, const char *dir,
		      int64_t wall_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The events of two traces compared one by one: by rank, lane (stream, or thread in the order of their
 * first events) and order, with names to stay in step. Streaming: memory does not grow with traces. */
#ifndef VIZ_MODEL_DIFF_DATA_H
#define VIZ_MODEL_DIFF_DATA_H

#include "schema/db/db.h"
#include "viz/model/diff.h"

/* Rows looked ahead for two of the same name, where events are missing on one side. */
#define LAG_DIFF_WINDOW 64

/* Adds a view for each table of events ("data.gpu_event", ...). since_previous_ns is from the start of
 * the lane's event before, so that one late event does not change all that follow. */
enum lag_status lag_diff_data(struct lag_diff *diff, struct lag_db *a, struct lag_db *b,
			      struct lag_err *err) LAG_MUST_USE;

/* Does a table of events have the column that n bytes name, "bytes" or "data.gpu_event.bytes"? */
bool lag_diff_data_has_column(const char *entry, size_t n);

#endif

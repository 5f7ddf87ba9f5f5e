/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that do not depend on each other, on several threads; the calling one keeps the user informed. */
#ifndef MERGE_PARALLEL_H
#define MERGE_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"

/* Does task number i. A failure ends the whole: tasks of lower numbers are still done, so that which
 * failure is reported depends on the tasks alone. */
typedef enum lag_status lag_task(void *state, size_t i, struct lag_err *err);

struct lag_parallel {
	unsigned n_threads; /* that work beside the calling one, at least 1 */
	/* Called by the calling thread some twenty times a second, and once at the end; false ends the
	 * whole with LAG_ERR_LIMIT (tasks at work have to see it for themselves). May be NULL. */
	bool (*tick)(void *state);
	void *tick_state;
};

/* Runs tasks [0, n), each on one thread, taken in order of their numbers. */
enum lag_status lag_parallel_run(const struct lag_parallel *how, size_t n, lag_task *task,
				 void *state, struct lag_err *err) LAG_MUST_USE;

/* One for each processor that this process may use. */
unsigned lag_parallel_processors(void);

#endif

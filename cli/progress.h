/* SPDX-License-Identifier: Apache-2.0 */
/* The line on a terminal that says how far a command is. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct lag_progress {
	const char *cmd; /* "merge" */
	bool show, drawn;
	const char *phase;
	int64_t phase_start_ns, drawn_ns;
};

/* Nothing is drawn where stderr is no terminal. */
void lag_progress_begin(struct lag_progress *p, const char *cmd, bool quiet);

/* "laggard merge: reading  42 %, 3 s left", now and then; total 0 = not known. phase is compared by
 * address. */
void lag_progress_step(struct lag_progress *p, const char *phase, uint64_t done, uint64_t total);

void lag_progress_clear(struct lag_progress *p); /* takes the line away */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Host time, stamped as CUPTI stamps on Linux: CLOCK_REALTIME. */
#ifndef TRACER_CLOCK_H
#define TRACER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "schema/record/record.h"

static inline int64_t lag_clock_get(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t lag_clock_now(void)
{
	return lag_clock_get(CLOCK_REALTIME);
}

/* Best of several brackets of all clocks. cupti reads CUPTI's clock; may be NULL. */
void lag_clock_read(struct lag_rec_clock *out, bool (*cupti)(int64_t *ns));

/* Feed with consecutive readings: the jump of CLOCK_REALTIME since the last one, 0 when it was only
 * adjusted as time daemons do. */
int64_t lag_clock_step(const struct lag_rec_clock *reading);

/* What the kernel knows of how well the clock is disciplined. Reads only. *out comes from
 * lag_record_init: where the kernel tells nothing the rest stays unset. */
void lag_clock_state(struct lag_rec_clock_state *out);

#endif

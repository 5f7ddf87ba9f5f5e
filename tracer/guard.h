/* SPDX-License-Identifier: Apache-2.0 */
/* The one word that says whether this process is being recorded. It lies in a page that the kernel
 * wipes in every forked child (raw clone included), so that children are silent without a getpid. */
#ifndef TRACER_GUARD_H
#define TRACER_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lag_guard {
	_Atomic uint32_t on;
};

extern struct lag_guard *lag_guard; /* never NULL */

static inline bool lag_guard_on(void)
{
	return atomic_load_explicit(&lag_guard->on, memory_order_relaxed) != 0;
}

/* Makes the page; false when the kernel has no MADV_WIPEONFORK (before 4.14). */
bool lag_guard_open(void);

void lag_guard_set(bool on);

/* After lag_guard_set(false): returns once every thread's later loads see it, without fences in the
 * hooks. False when the kernel cannot do that. */
bool lag_guard_fence(void);

#endif

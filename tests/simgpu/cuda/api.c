/* SPDX-License-Identifier: Apache-2.0 */
/* The bracket around every simulated API call: correlation numbers, hooks for CUPTI's stand-in, and
 * the detector that ends the process when a tool calls CUDA from inside a CUPTI callback. */
#include "tests/simgpu/cuda/engine.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t last_corr;
static _Thread_local unsigned depth;

void sim_api_enter(struct sim_api *a)
{
	const struct sim_hooks *h;

	sim_init();
	h = sim_hooks_get();
	if (h && h->in_callback()) {
		fprintf(stderr, "simgpu: %s called inside a CUPTI callback\n", a->function);
		abort();
	}
	a->nested = depth++ > 0;
	a->corr = 0;
	a->user = 0;
	a->t0_ns = 0;
	if (a->nested) {
		return;
	}
	sim_host_call();
	a->entered_ns = sim_host_now();
	a->corr = __atomic_add_fetch(&last_corr, 1, __ATOMIC_RELAXED);
	if (h) {
		a->t0_ns = sim_host_now();
		h->api_enter(a);
	}
}

void sim_api_leave(struct sim_api *a, int result)
{
	const struct sim_hooks *h = sim_hooks_get();

	depth--;
	a->result = result;
	if (a->nested) {
		return;
	}
	sim_host_return(a->entered_ns);
	if (h && a->t0_ns) {
		int64_t before = sim_host_now();
		h->api_leave(a);
		sim_host_return(before);
	}
}

void sim_note_sync(const struct sim_sync *s)
{
	const struct sim_hooks *h = sim_hooks_get();

	if (h) {
		h->synced(s);
	}
}

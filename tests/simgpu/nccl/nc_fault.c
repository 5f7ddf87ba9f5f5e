/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of communication: an operation that never starts or ends, a signal, a slow link. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/nccl/nc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *next_item(const char *p)
{
	const char *comma = strchr(p, ',');

	return comma ? comma + 1 : NULL;
}

/* SIMGPU_HANG: WHERE:RANK:NTH with WHERE host, gpu or link; NTH counts this rank's operations. */
static enum nc_hang hang_at(uint64_t nth)
{
	for (const char *p = sim_env_text("SIMGPU_HANG"); p; p = next_item(p)) {
		char where[8];
		int rank;
		unsigned long long at;
		if (sscanf(p, "%7[a-z]:%d:%llu", where, &rank, &at) != 3 ||
		    rank != sim_env_rank() || at != nth) {
			continue;
		}
		return strcmp(where, "host") == 0  ? NC_HANG_HOST
		       : strcmp(where, "gpu") == 0 ? NC_HANG_GPU
						   : NC_HANG_LINK;
	}
	return NC_NO_HANG;
}

/* SIMGPU_KILL: RANK:NTH:SIGNAL; the process gets the signal instead of starting the operation. */
static void kill_at(uint64_t nth)
{
	for (const char *p = sim_env_text("SIMGPU_KILL"); p; p = next_item(p)) {
		int rank, sig;
		unsigned long long at;
		if (sscanf(p, "%d:%llu:%d", &rank, &at, &sig) == 3 && rank == sim_env_rank() &&
		    at == nth) {
			raise(sig);
		}
	}
}

enum nc_hang nc_fault_next(void)
{
	static uint64_t operations;
	uint64_t nth = __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);

	kill_at(nth);
	return hang_at(nth);
}

void nc_fault_block(void)
{
	for (;;) {
		sim_sleep_until(sim_true_ns() + SIM_NS_PER_S);
	}
}

/* SIMGPU_SLOW_LINK: A-B:FACTOR (both ways) or A>B:FACTOR, ranks of the world, in a comma list. */
double nc_fault_link_factor(int from_world, int to_world)
{
	for (const char *p = sim_env_text("SIMGPU_SLOW_LINK"); p; p = next_item(p)) {
		int a, b;
		char way;
		double f;
		if (sscanf(p, "%d%c%d:%lf", &a, &way, &b, &f) != 4) {
			continue;
		}
		if ((a == from_world && b == to_world) ||
		    (way == '-' && b == from_world && a == to_world)) {
			return f;
		}
	}
	return 1.0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank this process is, from what its launcher put into the environment. */
#ifndef TRACER_RANK_H
#define TRACER_RANK_H

#include <stdint.h>

#include "schema/record/record.h"

struct lag_rank {
	int64_t rank, world_size, local_rank, local_world_size, node_rank,
		restart;    /* or LAG_NONE */
	const char *source; /* the variable the rank came from, "" = none */
};

void lag_rank_read(struct lag_rank *out);

#endif

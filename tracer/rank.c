/* SPDX-License-Identifier: Apache-2.0 */
/* Rank from the environment: what sits closest to the process wins, and all values come from one
 * launcher's family, never mixed. */
#include "tracer/rank.h"

#include <stdlib.h>
#include <string.h>

static const struct family {
	const char *rank, *world, *local_rank, *local_world, *node, *restart;
} families[] = {

#define LAG_LAUNCHER(rank, world, local, local_world, node, restart) \
	{ rank, world, local, local_world, node, restart },
#include "schema/launchers.def"
};

static int64_t number(const char *name)
{
	const char *text = name ? getenv(name) : NULL;
	int64_t v = 0;

	if (!text || !*text || strlen(text) > 9)
		return LAG_NONE;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return LAG_NONE;
		v = v * 10 + (*text - '0');
	}
	return v;
}

void lag_rank_read(struct lag_rank *out)
{
	*out = (struct lag_rank){ LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE, "" };
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct family *f = &families[i];
		int64_t rank = number(f->rank);

		if (rank == LAG_NONE)
			continue;
		*out = (struct lag_rank){ rank,
					  number(f->world),
					  number(f->local_rank),
					  number(f->local_world),
					  number(f->node),
					  number(f->restart),
					  f->rank };
		return;
	}
}

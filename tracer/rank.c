/* SPDX-License-Identifier: Apache-2.0 */
/* Rank from the environment. What sits closest to the process wins: torchrun inside srun inherits
 * srun's SLURM_PROCID, which is the node agent's, and mpirun inside a Slurm job the same. All values
 * come from one launcher's family, never mixed. */
#include "tracer/rank.h"

#include <stdlib.h>
#include <string.h>

static const struct family {
	const char *rank, *world, *local_rank, *local_world, *node, *restart;
} families[] = {
	{ "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
	  "TORCHELASTIC_RESTART_COUNT" },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
	  "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_NODE_RANK", NULL },
	{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
	  "MV2_COMM_WORLD_LOCAL_SIZE", NULL, NULL },
	{ "PALS_RANKID", NULL, "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_NODEID", NULL },
	{ "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", NULL, NULL, NULL },
	{ "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
	  "JSM_NAMESPACE_LOCAL_SIZE", NULL, NULL },
	{ "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL, "SLURM_NODEID",
	  "SLURM_RESTART_COUNT" },
	{ "PMIX_RANK", NULL, NULL, NULL, NULL, NULL },
	{ "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, NULL },
	{ "JOB_COMPLETION_INDEX", NULL, NULL, NULL, NULL, NULL },
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

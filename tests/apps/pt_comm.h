/* SPDX-License-Identifier: Apache-2.0 */
/* The job's communicators. Unique ids travel through files in a shared directory: the first member
 * writes one, the others poll for it, and it is removed once everyone has joined. */
#ifndef LAG_TESTS_APPS_PT_COMM_H
#define LAG_TESTS_APPS_PT_COMM_H

#include "tests/apps/pt_options.h"

#include <nccl.h>

struct pt_link {
	ncclComm_t comm; /* NULL where there is no such neighbour */
	int peer;        /* rank of the neighbour inside comm */
};

/* Neighbours in the flow of one direction (forward or backward). */
struct pt_flow {
	struct pt_link from, to;
};

struct pt_comms {
	ncclComm_t world;
	ncclComm_t dp, tp; /* NULL where the degree is 1 */
	struct pt_flow forward, backward;
	ncclComm_t owned[8];
	int n_owned;
};

void pt_comms_init(struct pt_comms *comms, const struct pt_options *opt);
void pt_comms_release(struct pt_comms *comms);

#endif

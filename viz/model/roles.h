/* SPDX-License-Identifier: Apache-2.0 */
/* Parallelism inferred from communicators and traffic: which communicator is pipeline, data, tensor,
 * expert, context or world; each rank's stage and place. "Unsure" is an answer. */
#ifndef VIZ_MODEL_ROLES_H
#define VIZ_MODEL_ROLES_H

#include "viz/model/trace.h"

enum lag_comm_role {
	LAG_ROLE_UNSURE = 0,
	LAG_ROLE_WORLD,
	LAG_ROLE_PIPELINE, /* send/receive between stages */
	LAG_ROLE_DATA,
	LAG_ROLE_TENSOR,
	LAG_ROLE_EXPERT,
	LAG_ROLE_CONTEXT,
	LAG_ROLE_EMBEDDING, /* first and last stage */
	LAG_ROLE_LIMIT,
};

struct lag_rank_role {
	int32_t stage, dp, tp; /* -1 = not known or no such dimension */
	int32_t pipeline;      /* pipeline group index, -1 */
};

struct lag_roles {
	enum lag_comm_role *comm_role; /* by comm index */
	struct lag_rank_role *ranks;   /* by rank index */
	int32_t n_stages, n_dp, n_tp;  /* 1 = no such parallelism, -1 unsure */
	int32_t n_pipelines;           /* pipeline groups (send/receive components) */
	double confidence;             /* 0..1 */
	bool overridden;               /* --layout was given */
	char shape[64];                /* "PP 4 x DP 2", "DP 8", "unsure" */
	char why[256];                 /* one line for people */
};

const char *lag_comm_role_name(enum lag_comm_role role); /* "pipeline", ... */

enum lag_status lag_roles_infer(const struct lag_trace *trace, const char *layout,
				struct lag_roles *out, struct lag_err *err) LAG_MUST_USE;
void lag_roles_release(struct lag_roles *roles);

#endif

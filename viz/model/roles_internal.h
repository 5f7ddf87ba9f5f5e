/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the role inference share. */
#ifndef VIZ_MODEL_ROLES_INTERNAL_H
#define VIZ_MODEL_ROLES_INTERNAL_H

#include "viz/model/roles.h"

/* Traffic of one communicator, over all recorded ranks. */
struct lag_comm_traffic {
	uint64_t n_collectives, n_messages; /* operations as called */
	uint64_t n_scatter_gather;          /* reduce-scatters and all-gathers among them */
	uint64_t n_all_to_all;
	uint64_t n_unsplit; /* messages of which neither direction nor peer is known */
	uint64_t n_alike;   /* collectives that carry as much as the first one */
	int64_t first_bytes;
	double bytes, kernels; /* kernels: compute kernels of the ranks that called anything */
	uint32_t n_callers;    /* ranks that called anything */
};

/* Finds pipeline groups and stages; fills ranks[].stage, ranks[].pipeline, n_stages, n_pipelines.
 * Returns the confidence (0..1) in the order of stages; 1 without any pipeline. */
enum lag_status lag_roles_pipelines(const struct lag_trace *trace, struct lag_roles *out,
				    double *confidence, struct lag_err *err) LAG_MUST_USE;

/* Names the role of each communicator, then each rank's place in data and tensor groups. */
enum lag_status lag_roles_communicators(const struct lag_trace *trace, struct lag_roles *out,
					double *confidence, struct lag_err *err) LAG_MUST_USE;

#endif

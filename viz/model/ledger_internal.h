/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the ledger: what one rank's classes are painted from, and how a gap without GPU work is split
 * into the host's part and the rest. */
#ifndef VIZ_MODEL_LEDGER_INTERNAL_H
#define VIZ_MODEL_LEDGER_INTERNAL_H

#include "schema/base/mem.h"
#include "viz/model/context.h"
#include "viz/model/interval.h"

struct lag_ledger_span {
	int64_t start_ns, end_ns;
	int32_t launch; /* -1 none */
};

struct lag_ledger_inputs {
	const struct lag_trace *trace;
	const struct lag_roles *roles;
	const struct lag_steps *steps;
	const struct lag_waits *waits;
	const struct lag_pipeline *pipeline;
};

/* The first five classes of rank r; each vec holds lag_ledger_span, sorted and disjoint. */
struct lag_ledger_layers {
	struct lag_vec of[LAG_TIME_HOST];
	struct lag_intervals windows; /* of the rank's pipeline group, all steps */
	int64_t from_ns, to_ns;       /* all recorded GPU time and all steps of the rank */
};

enum lag_status lag_ledger_layers_make(const struct lag_ledger_inputs *in, size_t r,
				       struct lag_ledger_layers *out) LAG_MUST_USE;
void lag_ledger_layers_release(struct lag_ledger_layers *layers);

/* A return of a host call that had waited for the GPU. */
struct lag_ledger_return {
	int64_t at_ns;
	uint64_t tid; /* 0 unknown: counts for every thread */
};

/* Blocking calls of rank r, by the time of their return (struct lag_ledger_return). */
enum lag_status lag_ledger_returns(const struct lag_trace *trace, size_t r,
				   struct lag_vec *out) LAG_MUST_USE;

/* Where in the gap [from, to) without GPU work of rank r the host's part begins; `to` when none is
 * the host's. *next: index of the first GPU event that starts at or after `from`; moves forward. */
int64_t lag_ledger_host_part(const struct lag_trace *trace, size_t r, const struct lag_vec *returns,
			     size_t *next, int64_t from_ns, int64_t to_ns);

#endif

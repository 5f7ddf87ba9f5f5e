/* SPDX-License-Identifier: Apache-2.0 */
/* A synthetic run as the model would have loaded it, without files, merge and clocks: for sweeps over
 * hundreds of seeds inside one test program. */
#ifndef TESTS_TOOLS_MKT_MEMORY_H
#define TESTS_TOOLS_MKT_MEMORY_H

#include "tests/tools/mkt_run.h"
#include "viz/model/trace.h"

/* Simulates opt->steps steps. *out is the caller's to close; *step_ns (may be NULL) is the mean step. */
enum lag_status mkt_memory_trace(const struct mkt_options *opt, bool faults, struct lag_trace **out,
				 int64_t *step_ns, struct lag_err *err) LAG_MUST_USE;

#endif

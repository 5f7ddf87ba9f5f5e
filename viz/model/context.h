/* SPDX-License-Identifier: Apache-2.0 */
/* A trace with what is derived from it, each derived once and on demand: steps, roles, waits, ledger,
 * pipeline blocks. All analyses and views of a run share one context. Not for several threads. */
#ifndef VIZ_MODEL_CONTEXT_H
#define VIZ_MODEL_CONTEXT_H

#include <stdbool.h>

#include "viz/model/ledger.h"
#include "viz/model/peers.h"
#include "viz/model/pipeline.h"
#include "viz/model/ready.h"
#include "viz/model/replay.h"
#include "viz/model/roles.h"
#include "viz/model/steps.h"
#include "viz/model/stragglers.h"
#include "viz/model/trace.h"
#include "viz/model/waits.h"

struct lag_model_opts {
	const char *step_by; /* NVTX range name (prefix) that marks steps; NULL = find out */
	const char *layout;  /* "pp=4,dp=2,tp=1"; NULL = infer */
	const char *steps;   /* step numbers that reports cover, "3-7,9"; NULL = all */
	const char *ranks;   /* rank numbers that reports list, "0,4-7"; NULL = all */
	bool all_time;       /* also what only some ranks recorded (window.h) */
};

struct lag_context; /* opaque */

/* Takes ownership of trace, also when it fails. opts (NULL = nothing chosen) and its strings are
 * borrowed for the context's life. LAG_ERR_USAGE for lists that cannot be read. */
enum lag_status lag_context_new(struct lag_trace *trace, const struct lag_model_opts *opts,
				struct lag_context **out, struct lag_err *err) LAG_MUST_USE;
void lag_context_free(struct lag_context *ctx);

const struct lag_trace *lag_context_trace(const struct lag_context *ctx);

/* Whether a report covers this step (number as annotated) and lists this rank (number in the job).
 * What is derived (steps, roles, waits, ...) always comes from the whole trace. */
bool lag_context_has_step(const struct lag_context *ctx, int64_t number);
bool lag_context_has_rank(const struct lag_context *ctx, int64_t rank);
bool lag_context_has_all_steps(const struct lag_context *ctx);

/* What was chosen; all NULL where nothing was. */
const struct lag_model_opts *lag_context_opts(const struct lag_context *ctx);

/* Each computes on first use; NULL with err set when that fails. Borrowed until lag_context_free. */
const struct lag_roles *lag_context_roles(struct lag_context *ctx, struct lag_err *err);
const struct lag_steps *lag_context_steps(struct lag_context *ctx, struct lag_err *err);
const struct lag_waits *lag_context_waits(struct lag_context *ctx, struct lag_err *err);
const struct lag_pipeline *lag_context_pipeline(struct lag_context *ctx, struct lag_err *err);
const struct lag_ledger *lag_context_ledger(struct lag_context *ctx, struct lag_err *err);
const struct lag_peers *lag_context_peers(struct lag_context *ctx, struct lag_err *err);
const struct lag_replay *lag_context_replay(struct lag_context *ctx, struct lag_err *err);
const struct lag_ready *lag_context_ready(struct lag_context *ctx, struct lag_err *err);
const struct lag_stragglers *lag_context_stragglers(struct lag_context *ctx, struct lag_err *err);

#endif

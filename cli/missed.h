/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for by name and is not in a trace, for commands whose output does not say it. */
#ifndef CLI_MISSED_H
#define CLI_MISSED_H

#include "viz/model/context.h"

/* With step_by (NULL = not asked for) that marks no step in the trace `path`: one line on stderr that says
 * so, and what stands for steps instead. */
enum lag_status lag_say_missed_steps(const char *cmd, const char *path, struct lag_context *ctx,
				     const char *step_by, struct lag_err *err) LAG_MUST_USE;

#endif

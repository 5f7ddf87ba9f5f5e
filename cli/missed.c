/* SPDX-License-Identifier: Apache-2.0 */
/* The label of the steps says it all: reports show it, too. */
#include "cli/missed.h"

#include "cli/cmd.h"

enum lag_status lag_say_missed_steps(const char *cmd, const char *path, struct lag_context *ctx,
				     const char *step_by, struct lag_err *err)
{
	const struct lag_steps *steps = step_by ? lag_context_steps(ctx, err) : NULL;

	if (!step_by)
		return LAG_OK;
	if (!steps)
		return err->status;
	if (steps->given_missed)
		lag_say("%s: %s: %s", cmd, path, steps->label);
	return LAG_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* laggard completion SHELL */
#include <string.h>

#include "cli/cmd.h"
#include "cli/completion.h"

static const struct {
	const char *shell;
	void (*print)(void);
} shells[] = {
	{ "bash", lag_completion_bash },
	{ "zsh", lag_completion_zsh },
	{ "fish", lag_completion_fish },
};

static void complete(struct lag_buf *out)
{
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		lag_buf_printf(out, "%s\n", shells[i].shell);
}

static int run(const struct lag_args *args)
{
	struct lag_err err;

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(args->operands[0], shells[i].shell) == 0) {
			shells[i].print();
			return LAG_EXIT_OK;
		}
	}
	(void)lag_err_set(&err, LAG_ERR_USAGE, "'%s': must be one of: bash zsh fish",
			  args->operands[0]);
	return lag_cmd_fail("completion", &err);
}

const struct lag_cmd lag_cmd_completion = {
	.name = "completion",
	.summary = "Print the completion script of a shell",
	.operands = "bash|zsh|fish",
	.details = "  source <(laggard completion bash)\n"
		   "  laggard completion fish > ~/.config/fish/completions/laggard.fish\n",
	.min_operands = 1,
	.max_operands = 1,
	.complete = complete,
	.run = run,
};

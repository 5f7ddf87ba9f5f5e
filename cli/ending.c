/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a command to end are held back while it has something to put away. */
#include "cli/ending.h"

#include <stdbool.h>
#include <stddef.h>

static const int asking[] = { SIGINT, SIGTERM, SIGHUP };

#define N_ASKING (sizeof(asking) / sizeof(asking[0]))

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
	       action.sa_handler == SIG_IGN;
}

void lag_ending_block(sigset_t *ends)
{
	(void)sigemptyset(ends);
	for (size_t i = 0; i < N_ASKING; i++) {
		/* A blocked signal becomes pending even where it is ignored. */
		if (!is_ignored(asking[i]))
			(void)sigaddset(ends, asking[i]);
	}
	(void)sigprocmask(SIG_BLOCK, ends, NULL);
}

int lag_ending_pending(const sigset_t *ends)
{
	sigset_t pending;

	if (sigpending(&pending) != 0)
		return 0;
	for (size_t i = 0; i < N_ASKING; i++) {
		if (sigismember(ends, asking[i]) == 1 && sigismember(&pending, asking[i]) == 1)
			return asking[i];
	}
	return 0;
}

void lag_ending_unblock(const sigset_t *ends)
{
	(void)sigprocmask(SIG_UNBLOCK, ends, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The handler does all of it, so that neither a long calculation nor a pipe that nobody reads can hold
 * it up: nothing that is left behind needs more than removing. */
#include "cli/ending.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/unfinished.h"

static const int asking[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU };

#define N_ASKING (sizeof(asking) / sizeof(asking[0]))

/* Made before the first signal can come: a handler cannot put text together. */
static char lines[LAG_LEFT_RESULT + 1][96];

static void end(int number)
{
	const char *line = lines[lag_unfinished_remove_all()];
	ssize_t written = write(STDERR_FILENO, line, strlen(line));

	(void)written;
	/* Its own action is the default one again, and takes effect on return. */
	(void)raise(number);
}

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
	       action.sa_handler == SIG_IGN;
}

void lag_ending_begin(const char *cmd)
{
	/* The progress of a command may be on the line. */
	static const char *const left[] = {
		[LAG_LEFT_NOTHING] = "",
		[LAG_LEFT_REMOVED] = ", what was half made is removed",
		[LAG_LEFT_RESULT] = " at the very end, its result is complete",
	};
	const char *clear = isatty(STDERR_FILENO) ? "\r\033[K" : "";
	struct sigaction action = { .sa_handler = end, .sa_flags = (int)SA_RESETHAND };
	sigset_t ends;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		(void)snprintf(lines[i], sizeof(lines[i]), "%slaggard %s: interrupted%s\n", clear,
			       cmd, left[i]);
	}
	(void)sigemptyset(&ends);
	for (size_t i = 0; i < N_ASKING; i++)
		(void)sigaddset(&ends, asking[i]);
	action.sa_mask = ends;
	for (size_t i = 0; i < N_ASKING; i++) {
		if (!is_ignored(asking[i]))
			(void)sigaction(asking[i], &action, NULL);
	}
	/* Whoever started us may have blocked them. */
	(void)sigprocmask(SIG_UNBLOCK, &ends, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a command to end, for commands that have a half-written file to remove first. */
#ifndef CLI_ENDING_H
#define CLI_ENDING_H

#include <signal.h>

/* Blocks interrupt, termination and hang-up, but those that are ignored (nohup), and fills *ends with
 * what it blocked. */
void lag_ending_block(sigset_t *ends);

/* The signal of *ends that has come, 0 = none; it stays pending. */
int lag_ending_pending(const sigset_t *ends);

/* Lets them through again: what has come meanwhile takes effect here. */
void lag_ending_unblock(const sigset_t *ends);

#endif

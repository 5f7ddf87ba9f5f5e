/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a command to end, for commands that make files: they end it at once, wherever it is,
 * after what is unfinished has been removed. */
#ifndef CLI_ENDING_H
#define CLI_ENDING_H

/* From now on interrupt, termination, hang-up, quit and the limit of processor time remove what is listed as
 * unfinished (schema/base/unfinished.h), say "laggard CMD: interrupted" and what that leaves, and end the
 * process as they would have without this. Those that are ignored (nohup) stay so. */
void lag_ending_begin(const char *cmd);

#endif

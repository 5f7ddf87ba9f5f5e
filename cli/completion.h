/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a shell's completion script to stdout. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

void lag_completion_bash(void);
void lag_completion_zsh(void);
void lag_completion_fish(void);

#endif

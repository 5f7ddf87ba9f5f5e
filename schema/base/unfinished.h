/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are being made, and that must not stay if a signal ends the process in between. Whoever makes
 * one says so; the program's signal handler removes what is listed. */
#ifndef SCHEMA_BASE_UNFINISHED_H
#define SCHEMA_BASE_UNFINISHED_H

#include <signal.h>
#include <stdbool.h>

struct lag_making {
	sigset_t mask; /* the thread's own, meanwhile */
};

/* Around the making of a file and its listing: no signal's handler runs in between, on any thread. */
void lag_making_begin(struct lag_making *making);
void lag_making_end(struct lag_making *making);

/* Lists a file (directory: removed where it is empty) by its path from `at` (AT_FDCWD, or a directory that
 * stays open). The path is the caller's and stays as it is until lag_unfinished_done with the same one.
 * Beyond some hundred files it is not listed. */
void lag_unfinished_add(int at, const char *path, bool directory);

/* It is whole, or gone. A path that is not listed does nothing. */
void lag_unfinished_done(const char *path);

/* Done as well, and what the command was asked for: it bears the result's name now. Between
 * lag_making_begin and lag_making_end with the renaming, so that nobody is told otherwise. */
void lag_unfinished_is_result(const char *path);

enum lag_left {
	LAG_LEFT_NOTHING, /* no file was being made */
	LAG_LEFT_REMOVED, /* what was half made is gone */
	LAG_LEFT_RESULT   /* the result was there already, and stays */
};

/* For a signal handler, after which the process ends: removes all that is listed. Whoever begins to make a
 * file from now on waits for that end. */
enum lag_left lag_unfinished_remove_all(void);

#endif

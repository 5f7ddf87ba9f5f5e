/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes of every command but record, which returns the program's own. */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

enum lag_exit {
	LAG_EXIT_OK = 0,
	LAG_EXIT_FINDING = 1,  /* a finding, or a check that failed */
	LAG_EXIT_BAD = 2,      /* usage, or input that cannot be read */
	LAG_EXIT_UNSURE = 3,   /* the data cannot tell, which is never "healthy" */
	LAG_EXIT_RECORD = 125, /* record: our own failure */
	LAG_EXIT_NOT_RUNNABLE = 126,
	LAG_EXIT_NOT_FOUND = 127,
};

#endif

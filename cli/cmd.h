/* SPDX-License-Identifier: Apache-2.0 */
/* A subcommand: cli/cmd_<id>.c exports lag_cmd_<id>; one line in commands.def; man/laggard-<id>.1.
 * Results go to stdout, messages to stderr, through the helpers below. */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include "cli/exit.h"
#include "cli/opt.h"
#include "schema/base/buf.h"

struct lag_cmd {
	const char *name;
	const char *summary;  /* one line, as in the list of commands */
	const char *operands; /* "RUN...", "[ANALYSIS] FILE", "[--] COMMAND [ARG...]" */
	const char *details;  /* paragraphs under the options of --help; NULL = none */
	const struct lag_opt *options;
	size_t n_options;
	int min_operands, max_operands; /* max -1 = any number */
	bool stop_at_operand;           /* options end at the first operand (record) */
	void (*list)(void);             /* prints what follows details, to stdout; NULL = nothing */
	/* Words to complete operands with beside file names, one per line; NULL = none. */
	void (*complete)(struct lag_buf *out);
	int (*run)(const struct lag_args *args); /* returns the exit code */
};

#define LAG_CMD(id) extern const struct lag_cmd lag_cmd_##id;
#include "cli/commands.def"

extern const struct lag_cmd *const lag_cmds[]; /* NULL-terminated, in the order of commands.def */

const struct lag_cmd *lag_cmd_find(const char *name); /* NULL = none */

/* --help of the program, and of one command, to stdout. */
void lag_help_program(void);
void lag_help_command(const struct lag_cmd *cmd);

/* Whether what is printed for people may hold more than ASCII, by the locale. */
bool lag_cmd_utf8(void);

/* "laggard merge: text" on stderr; returns the exit code that belongs to the status. */
int lag_cmd_fail(const char *cmd, const struct lag_err *err);

/* One line on stderr, prefixed by "laggard: ". */
void lag_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Says that n unfinished files of a killed `cmd` were removed at `place`; nothing for 0. */
void lag_say_cleared(const char *cmd, unsigned n, const char *place);

#endif

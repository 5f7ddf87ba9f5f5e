/* SPDX-License-Identifier: Apache-2.0 */
/* Options as data: one table per command gives parsing, --help, completion and the check that the
 * manual names them all. */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"

struct lag_opt {
	char letter;      /* 0 = none */
	const char *name; /* long name */
	const char *arg;  /* NULL = a switch; else the placeholder: "FILE", "N" */
	const char *help; /* one line */
	/* Words separated by blanks; NULL = free. "@file", "@dir": paths. "@text": nothing to complete.
	 * ",one two": words of a list with commas, to be completed; the command checks them. */
	const char *choices;
};

#define LAG_OPT_MAX 32

struct lag_args {
	const struct lag_opt *options;
	size_t n_options;
	const char *values[LAG_OPT_MAX]; /* last value given; switches: "" ; NULL = not given */
	char **operands;                 /* borrowed from argv */
	int n_operands;
};

struct lag_cmd;

/* Parses argv[1..]. --help is left to the caller (values of option "help"). */
enum lag_status lag_opt_parse(const struct lag_cmd *cmd, int argc, char **argv,
			      struct lag_args *args, struct lag_err *err) LAG_MUST_USE;

/* Value of the option by its long name; NULL when not given (or switch off). */
const char *lag_args_get(const struct lag_args *args, const char *name);
bool lag_args_is(const struct lag_args *args, const char *name, const char *value);
bool lag_args_has(const struct lag_args *args, const char *name);

/* Checks an integer or size option; `fallback` when not given. */
enum lag_status lag_args_i64(const struct lag_args *args, const char *name, long long fallback,
			     long long *value, struct lag_err *err) LAG_MUST_USE;

#endif

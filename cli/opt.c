/* SPDX-License-Identifier: Apache-2.0 */
/* getopt_long, fed from the command's option table; its messages are ours. */
#include "cli/opt.h"

#include <getopt.h>
#include <string.h>

#include "cli/cmd.h"
#include "schema/base/parse.h"

#define LETTERS_MAX (2 * LAG_OPT_MAX + 4)

static void build_tables(const struct lag_cmd *cmd, char *letters, struct option *longs)
{
	size_t at = 0;

	if (cmd->stop_at_operand)
		letters[at++] = '+';
	letters[at++] = ':';
	for (size_t i = 0; i < cmd->n_options; i++) {
		const struct lag_opt *opt = &cmd->options[i];

		longs[i] = (struct option){ opt->name, opt->arg ? required_argument : no_argument,
					    NULL, 256 + (int)i };
		if (opt->letter) {
			letters[at++] = opt->letter;
			if (opt->arg)
				letters[at++] = ':';
		}
	}
	longs[cmd->n_options] = (struct option){ "help", no_argument, NULL, 'h' };
	letters[at++] = 'h';
	letters[at] = '\0';
}

static int find_letter(const struct lag_cmd *cmd, int letter)
{
	for (size_t i = 0; i < cmd->n_options; i++) {
		if (cmd->options[i].letter == letter)
			return (int)i;
	}
	return -1;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	if (!choices || choices[0] == '@' || choices[0] == ',')
		return true;
	for (const char *p = choices; *p;) {
		size_t len = strcspn(p, " ");

		if (len == n && memcmp(p, value, n) == 0)
			return true;
		p += len + (p[len] == ' ');
	}
	return false;
}

static enum lag_status take(const struct lag_cmd *cmd, struct lag_args *args, int index,
			    struct lag_err *err)
{
	const struct lag_opt *opt = &cmd->options[index];
	const char *value = opt->arg ? optarg : "";

	if (opt->arg && !is_choice(opt->choices, value)) {
		return lag_err_set(err, LAG_ERR_USAGE, "--%s '%s': must be one of: %s", opt->name,
				   value, opt->choices);
	}
	args->values[index] = value;
	return LAG_OK;
}

static enum lag_status check_operands(const struct lag_cmd *cmd, const struct lag_args *args,
				      struct lag_err *err)
{
	if (args->n_operands < cmd->min_operands) {
		return lag_err_set(err, LAG_ERR_USAGE, "needs %s; see laggard %s --help",
				   cmd->operands, cmd->name);
	}
	if (cmd->max_operands >= 0 && args->n_operands > cmd->max_operands) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "'%s' is one operand too many; see laggard %s --help",
				   args->operands[cmd->max_operands], cmd->name);
	}
	return LAG_OK;
}

enum lag_status lag_opt_parse(const struct lag_cmd *cmd, int argc, char **argv,
			      struct lag_args *args, struct lag_err *err)
{
	struct option longs[LAG_OPT_MAX + 2] = { 0 };
	char letters[LETTERS_MAX];
	int c;

	*args = (struct lag_args){ .options = cmd->options, .n_options = cmd->n_options };
	build_tables(cmd, letters, longs);
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		int index = c >= 256 ? c - 256 : find_letter(cmd, c);
		const char *word = argv[optind - 1];

		if (c == 'h' && index < 0) {
			lag_help_command(cmd);
			return LAG_END;
		}
		if (c == ':') {
			return lag_err_set(err, LAG_ERR_USAGE,
					   "'%s' needs a value; see laggard %s --help", word,
					   cmd->name);
		}
		if (index < 0) {
			return lag_err_set(err, LAG_ERR_USAGE,
					   "unknown option '%s'; see laggard %s --help", word,
					   cmd->name);
		}
		if (lag_failed(take(cmd, args, index, err)))
			return LAG_ERR_USAGE;
	}
	args->operands = argv + optind;
	args->n_operands = argc - optind;
	return check_operands(cmd, args, err);
}

const char *lag_args_get(const struct lag_args *args, const char *name)
{
	for (size_t i = 0; i < args->n_options; i++) {
		if (strcmp(args->options[i].name, name) == 0)
			return args->values[i];
	}
	return NULL;
}

bool lag_args_has(const struct lag_args *args, const char *name)
{
	return lag_args_get(args, name) != NULL;
}

bool lag_args_is(const struct lag_args *args, const char *name, const char *value)
{
	const char *given = lag_args_get(args, name);

	return given && strcmp(given, value) == 0;
}

enum lag_status lag_args_i64(const struct lag_args *args, const char *name, long long fallback,
			     long long *value, struct lag_err *err)
{
	const char *text = lag_args_get(args, name);
	int64_t parsed;

	*value = fallback;
	if (!text)
		return LAG_OK;
	if (!lag_parse_size(text, &parsed)) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "--%s '%s': a number is wanted, such as 4, 500M or 4G", name,
				   text);
	}
	*value = parsed;
	return LAG_OK;
}

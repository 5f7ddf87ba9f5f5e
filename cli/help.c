/* SPDX-License-Identifier: Apache-2.0 */
/* --help, made from the command and option tables. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

#define TEXT_AT 29 /* column of an option's explanation */
#define WIDTH   79

/* ": one, two", on a line of its own where this one, used up to column at, has no room. */
static void print_choices(const char *choices, size_t at)
{
	putchar(':');
	if (at + strlen(choices) * 5 / 4 + 2 > WIDTH) {
		printf("\n%*s", TEXT_AT, "");
	} else {
		putchar(' ');
	}
	for (; *choices; choices++) {
		if (*choices == ' ')
			putchar(',');
		putchar(*choices);
	}
}

static void print_option(const struct lag_opt *opt)
{
	char left[64];
	const char *sep = opt->arg ? " " : "";

	if (opt->letter) {
		(void)snprintf(left, sizeof(left), "-%c, --%s%s%s", opt->letter, opt->name, sep,
			       opt->arg ? opt->arg : "");
	} else {
		(void)snprintf(left, sizeof(left), "    --%s%s%s", opt->name, sep,
			       opt->arg ? opt->arg : "");
	}
	printf("  %-26s %s", left, opt->help);
	/* An argument called "on|off" has said it all. */
	if (opt->choices && opt->choices[0] != '@' && opt->choices[0] != ',' && opt->arg &&
	    !strchr(opt->arg, '|'))
		print_choices(opt->choices, TEXT_AT + strlen(opt->help));
	putchar('\n');
}

void lag_help_command(const struct lag_cmd *cmd)
{
	static const struct lag_opt help = { 'h', "help", NULL, "this text", NULL };

	printf("usage: laggard %s [options]%s%s\n\n%s.\n\n", cmd->name, cmd->operands[0] ? " " : "",
	       cmd->operands, cmd->summary);
	for (size_t i = 0; i < cmd->n_options; i++)
		print_option(&cmd->options[i]);
	print_option(&help);
	if (cmd->details)
		printf("\n%s", cmd->details);
	if (cmd->list)
		cmd->list();
	printf("\nThe manual: man laggard-%s\n", cmd->name);
}

void lag_help_program(void)
{
	printf("usage: laggard COMMAND [options] ...\n\n"
	       "Record a distributed GPU training run, merge its ranks on one clock, see where the "
	       "time went.\n\n");
	for (size_t i = 0; lag_cmds[i]; i++)
		printf("  %-12s %s\n", lag_cmds[i]->name, lag_cmds[i]->summary);
	printf("\n  laggard COMMAND --help   options of a command\n"
	       "  laggard --version\n\n"
	       "A first look without a GPU: laggard demo\n");
}

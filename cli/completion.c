/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts for bash, zsh and fish, made from the command and option tables. */
#include "cli/completion.h"

#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

static void words_of(const struct lag_cmd *cmd, struct lag_buf *out)
{
	lag_buf_clear(out);
	if (cmd->complete)
		cmd->complete(out);
	for (size_t i = 0; i < out->n; i++) {
		if (out->text[i] == '\n')
			out->text[i] = ' ';
	}
}

static void bash_options(const struct lag_cmd *cmd)
{
	for (size_t i = 0; i < cmd->n_options; i++)
		printf(" --%s", cmd->options[i].name);
	printf(" --help");
}

static void bash_values(const struct lag_cmd *cmd)
{
	for (size_t i = 0; i < cmd->n_options; i++) {
		const struct lag_opt *opt = &cmd->options[i];

		if (!opt->arg)
			continue;
		printf("\t\t%s:--%s", cmd->name, opt->name);
		if (opt->letter)
			printf("|%s:-%c", cmd->name, opt->letter);
		if (opt->choices && strcmp(opt->choices, "@dir") == 0) {
			printf(") COMPREPLY=($(compgen -d -- \"$cur\")); return;;\n");
		} else if (opt->choices && opt->choices[0] == ',') {
			/* What stands before the last comma stays. */
			printf(") COMPREPLY=($(compgen -P \"${cur%%\"${cur##*,}\"}\" -W '%s' -- "
			       "\"${cur##*,}\")); return;;\n",
			       opt->choices + 1);
		} else if (opt->choices && strcmp(opt->choices, "@text") == 0) {
			printf(") return;;\n");
		} else if (opt->choices && opt->choices[0] != '@') {
			printf(") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return;;\n",
			       opt->choices);
		} else {
			printf(") COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n");
		}
	}
}

void lag_completion_bash(void)
{
	struct lag_buf words = { 0 };

	printf("# laggard completion for bash: source it, or install it as\n"
	       "# share/bash-completion/completions/laggard\n"
	       "_laggard()\n{\n\tlocal cur=\"${COMP_WORDS[COMP_CWORD]}\" "
	       "prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
	       "\tlocal cmd=\"${COMP_WORDS[1]}\"\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '");
	for (size_t i = 0; lag_cmds[i]; i++)
		printf("%s ", lag_cmds[i]->name);
	printf("help --help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase \"$cmd:$prev\" "
	       "in\n");
	for (size_t i = 0; lag_cmds[i]; i++)
		bash_values(lag_cmds[i]);
	printf("\tesac\n\tcase \"$cmd:$cur\" in\n");
	for (size_t i = 0; lag_cmds[i]; i++) {
		printf("\t\t%s:-*) COMPREPLY=($(compgen -W '", lag_cmds[i]->name);
		bash_options(lag_cmds[i]);
		printf("' -- \"$cur\"));;\n");
		words_of(lag_cmds[i], &words);
		/* Its own words are said once. */
		printf("\t\t%s:*) local w words='%s'\n\t\t\tfor w in $words; do case "
		       "\" ${COMP_WORDS[*]:2:COMP_CWORD-2} \" in *\" $w \"*) words=;; esac; done\n"
		       "\t\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- "
		       "\"$cur\"));;\n",
		       lag_cmds[i]->name, lag_buf_text(&words));
	}
	printf("\t\thelp:*) COMPREPLY=($(compgen -W '");
	for (size_t i = 0; lag_cmds[i]; i++)
		printf("%s ", lag_cmds[i]->name);
	printf("' -- \"$cur\"));;\n\tesac\n}\ncomplete -o filenames -F _laggard laggard\n");
	lag_buf_release(&words);
}

/* Single quotes end the quoting of both zsh and fish. */
static void print_quoted(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'') {
			printf("'\\''");
		} else if (*text == '[' || *text == ']' || *text == ':') {
			printf("\\%c", *text);
		} else {
			putchar(*text);
		}
	}
}

static void zsh_option(const struct lag_opt *opt)
{
	printf("\t\t\t\t'--%s%s[", opt->name, opt->arg ? "=" : "");
	print_quoted(opt->help);
	printf("]");
	if (opt->arg && opt->choices && opt->choices[0] == ',') {
		printf(":%s: _values -s , %s %s", opt->arg, opt->name, opt->choices + 1);
	} else if (opt->arg && opt->choices && strcmp(opt->choices, "@text") == 0) {
		printf(":%s: ", opt->arg);
	} else if (opt->arg && opt->choices && opt->choices[0] != '@') {
		printf(":%s:(%s)", opt->arg, opt->choices);
	} else if (opt->arg && opt->choices && strcmp(opt->choices, "@dir") == 0) {
		printf(":%s:_files -/", opt->arg);
	} else if (opt->arg) {
		printf(":%s:_files", opt->arg);
	}
	printf("' \\\n");
}

void lag_completion_zsh(void)
{
	struct lag_buf words = { 0 };

	printf("#compdef laggard\n_laggard()\n{\n\tlocal -a cmds\n\tcmds=(\n");
	for (size_t i = 0; lag_cmds[i]; i++) {
		printf("\t\t'%s:", lag_cmds[i]->name);
		print_quoted(lag_cmds[i]->summary);
		printf("'\n");
	}
	printf("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command cmds\n\t\treturn\n\tfi\n"
	       "\tlocal cmd=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $cmd in\n");
	for (size_t i = 0; lag_cmds[i]; i++) {
		const struct lag_cmd *cmd = lag_cmds[i];

		printf("\t\t%s)\n\t\t\t_arguments \\\n", cmd->name);
		for (size_t k = 0; k < cmd->n_options; k++)
			zsh_option(&cmd->options[k]);
		words_of(cmd, &words);
		if (words.n) {
			printf("\t\t\t\t'*:operand:{ compadd %s; _files }';;\n", words.text);
		} else {
			printf("\t\t\t\t'*:operand:_files';;\n");
		}
	}
	printf("\tesac\n}\n_laggard \"$@\"\n");
	lag_buf_release(&words);
}

void lag_completion_fish(void)
{
	struct lag_buf words = { 0 };

	printf("# laggard completion for fish\n");
	for (size_t i = 0; lag_cmds[i]; i++) {
		const struct lag_cmd *cmd = lag_cmds[i];

		printf("complete -c laggard -n __fish_use_subcommand -f -a %s -d '", cmd->name);
		print_quoted(cmd->summary);
		printf("'\n");
		words_of(cmd, &words);
		if (words.n) {
			printf("complete -c laggard -n '__fish_seen_subcommand_from %s' -a '%s'\n",
			       cmd->name, words.text);
		}
		for (size_t k = 0; k < cmd->n_options; k++) {
			const struct lag_opt *opt = &cmd->options[k];

			printf("complete -c laggard -n '__fish_seen_subcommand_from %s' -l %s",
			       cmd->name, opt->name);
			if (opt->letter)
				printf(" -s %c", opt->letter);
			if (opt->arg && opt->choices && opt->choices[0] == ',') {
				printf(" -x -a '(__fish_append , %s)'", opt->choices + 1);
			} else if (opt->arg && opt->choices && strcmp(opt->choices, "@text") == 0) {
				printf(" -x");
			} else if (opt->arg && opt->choices && opt->choices[0] != '@') {
				printf(" -x -a '%s'", opt->choices);
			} else if (opt->arg) {
				printf(" -r");
			}
			printf(" -d '");
			print_quoted(opt->help);
			printf("'\n");
		}
	}
	lag_buf_release(&words);
}

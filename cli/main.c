/* SPDX-License-Identifier: Apache-2.0 */
/* The program's entry: finds the command, parses its options, runs it. */
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "schema/base/buf.h"
#include "schema/base/fmt.h"

const struct lag_cmd *const lag_cmds[] = {
#define LAG_CMD(id) &lag_cmd_##id,
#include "cli/commands.def"
	NULL,
};

const struct lag_cmd *lag_cmd_find(const char *name)
{
	for (size_t i = 0; lag_cmds[i]; i++) {
		if (strcmp(lag_cmds[i]->name, name) == 0)
			return lag_cmds[i];
	}
	return NULL;
}

bool lag_cmd_utf8(void)
{
	(void)setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* One line, whatever names it holds: those of files and events may command a terminal. */
static void say_line(const char *who, const char *text)
{
	struct lag_buf name = { 0 }, line = { 0 };

	lag_fmt_name(&name, text);
	lag_fmt_units(&line, lag_buf_text(&name), lag_cmd_utf8());
	(void)fprintf(stderr, "%s: %s\n", who,
		      name.failed || line.failed ? "no memory" : lag_buf_text(&line));
	lag_buf_release(&name);
	lag_buf_release(&line);
}

int lag_cmd_fail(const char *cmd, const struct lag_err *err)
{
	char who[64];

	(void)snprintf(who, sizeof(who), "laggard %s", cmd);
	say_line(who, err->text);
	return LAG_EXIT_BAD;
}

void lag_say(const char *fmt, ...)
{
	va_list ap;
	char *all = NULL;

	va_start(ap, fmt);
	if (vasprintf(&all, fmt, ap) < 0)
		all = NULL;
	va_end(ap);
	say_line("laggard", all ? all : fmt);
	free(all);
}

void lag_say_cleared(const char *cmd, unsigned n, const char *place)
{
	if (n) {
		lag_say("%s: removed %u unfinished file%s that a killed %s left at %s", cmd, n,
			n == 1 ? "" : "s", cmd, place);
	}
}

/* Output that did not reach its reader is a failure: a full disk must not look like success. */
static int flushed(int code)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		lag_say("cannot write to standard output");
		return code == LAG_EXIT_OK ? LAG_EXIT_BAD : code;
	}
	return code;
}

/* A file that outgrows the process's limit is an error like a full disk, not the end. What is ignored is
 * inherited: record does it itself, for its program must not be told. */
static void survive_limits(const struct lag_cmd *cmd)
{
	if (cmd != &lag_cmd_record)
		(void)signal(SIGXFSZ, SIG_IGN);
}

static int run(const struct lag_cmd *cmd, int argc, char **argv)
{
	struct lag_err err = { 0 };
	struct lag_args args;
	enum lag_status status = lag_opt_parse(cmd, argc, argv, &args, &err);

	if (status == LAG_END)
		return LAG_EXIT_OK;
	if (lag_failed(status)) {
		(void)lag_cmd_fail(cmd->name, &err);
		return strcmp(cmd->name, "record") == 0 ? LAG_EXIT_RECORD : LAG_EXIT_BAD;
	}
	survive_limits(cmd);
	return cmd->run(&args);
}

static int no_command(const char *name)
{
	lag_say("there is no command '%s'; laggard --help lists them", name);
	return LAG_EXIT_BAD;
}

/* Whoever closed a standard stream must not find its text in the first file that is opened instead: the
 * number is taken by something that cannot be used in its place, and that no program inherits. */
static void fill_standard_streams(void)
{
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd] | O_CLOEXEC) != fd)
			_exit(LAG_EXIT_BAD);
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";
	const struct lag_cmd *cmd;

	fill_standard_streams();
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		puts("laggard " LAG_VERSION);
		return flushed(LAG_EXIT_OK);
	}
	if (strcmp(name, "help") == 0 && argc > 2) {
		cmd = lag_cmd_find(argv[2]);
		if (!cmd)
			return no_command(argv[2]);
		lag_help_command(cmd);
		return flushed(LAG_EXIT_OK);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		lag_help_program();
		return flushed(argc > 1 ? LAG_EXIT_OK : LAG_EXIT_BAD);
	}
	cmd = lag_cmd_find(name);
	if (!cmd)
		return no_command(name);
	return flushed(run(cmd, argc - 1, argv + 1));
}

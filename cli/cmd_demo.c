/* SPDX-License-Identifier: Apache-2.0 */
/* laggard demo: records a simulated training job with one slow rank, merges it, shows the summary.
 * Everything runs through the same commands a user would type, so that what it shows is real. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/where.h"

#define ARGS_MAX  64
#define DEMOS_MAX 999

/* Runs argv and waits; its exit code, 128 + signal, or -1. */
static int wait_for(char *const *argv)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execv(argv[0], argv);
		_exit(LAG_EXIT_NOT_RUNNABLE);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	if (pid < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs a program given as words with unit separators between them (paths may hold blanks). */
static int run_program(struct lag_buf *words)
{
	char *argv[ARGS_MAX] = { NULL };
	size_t n = 0;
	int code = -1;

	if (!words->failed) {
		for (char *word = strtok(words->text, "\037"); word && n + 1 < ARGS_MAX;
		     word = strtok(NULL, "\037"))
			argv[n++] = word;
	}
	if (n)
		code = wait_for(argv);
	lag_buf_release(words);
	return code;
}

static int fail(const char *what, int code)
{
	lag_say("demo: %s failed (exit code %d)", what, code);
	return LAG_EXIT_BAD;
}

/* Eight ranks on four hosts whose clocks are milliseconds apart; rank 5 computes 1.3 times slower. */
static void describe_cluster(const char *dir)
{
	(void)setenv("SIMGPU_SEED", "7", 1);
	(void)setenv("SIMGPU_SLOW", "5:1.3", 1);
	(void)setenv("SIMGPU_HOST_OFFSET_MS", "0,17,-31,8", 1);
	(void)setenv("SIMGPU_HOST_DRIFT_PPM", "0,40,-25,12", 1);
	(void)setenv("PIPETRAIN_RDV", dir, 1);
}

/* The simulated GPUs and the program that trains on them. */
struct parts {
	char simrun[PATH_MAX], train[PATH_MAX];
};

static enum lag_status find_parts(struct parts *p, struct lag_err *err)
{
	if (lag_failed(lag_where("simgpu/simrun", p->simrun, sizeof(p->simrun), err)) ||
	    lag_failed(lag_where("tests/apps/pipetrain", p->train, sizeof(p->train), err))) {
		return lag_err_set(
			err, LAG_ERR_USAGE,
			"the simulated GPUs are built, but not installed: use ./run demo "
			"in laggard's source folder");
	}
	return LAG_OK;
}

static int record(const char *self, const struct parts *parts, const char *dir, const char *steps)
{
	struct lag_buf words = { 0 };

	describe_cluster(dir);
	lag_buf_printf(&words,
		       "%s\037record\037-o\037%s/run\037--\037%s\037-n\0378\037--hosts\0374"
		       "\037--\037%s\037--pp\0374\037--dp\0372\037--microbatches\0378"
		       "\037--fwd-us\0371500\037--steps\037%s",
		       self, dir, parts->simrun, parts->train, steps);
	return run_program(&words);
}

/* How a user calls this program from here: by its name where the PATH leads to it, else by its path,
 * relative where that is shorter. */
static const char *callable(const char *self)
{
	char here[PATH_MAX], candidate[PATH_MAX], real[PATH_MAX];
	const char *path = getenv("PATH"), *name = strrchr(self, '/') + 1;

	while (path && *path) {
		size_t n = strcspn(path, ":");

		(void)snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)n, path, name);
		if (access(candidate, X_OK) == 0)
			return realpath(candidate, real) && !strcmp(real, self) ? name : self;
		path += n + (path[n] == ':');
	}
	if (getcwd(here, sizeof(here)) && !strncmp(self, here, strlen(here)) &&
	    self[strlen(here)] == '/')
		return self + strlen(here) + 1;
	return self;
}

static int merge_and_report(char *self, const char *dir)
{
	struct lag_buf merge = { 0 }, report = { 0 };
	const char *name;
	int code;

	lag_buf_printf(&merge, "%s\037merge\037%s/run\037-f\037-o\037%s/run.db", self, dir, dir);
	code = run_program(&merge);
	if (code != LAG_EXIT_OK)
		return fail("laggard merge", code);
	putchar('\n');
	(void)fflush(stdout);
	lag_buf_printf(&report, "%s\037report\037%s/run.db", self, dir);
	code = run_program(&report);
	if (code != LAG_EXIT_OK && code != LAG_EXIT_FINDING)
		return fail("laggard report", code);
	name = callable(self);
	printf("\nTry next:\n"
	       "  %s tui %s/run.db\n"
	       "  %s report stragglers %s/run.db\n"
	       "  %s export -t chrome %s/run.db -o %s/trace.json.gz\n",
	       name, dir, name, dir, name, dir, dir);
	return LAG_EXIT_OK;
}

/* Makes the folder that was asked for; without one, the first of laggard-demo, laggard-demo-2, ... that
 * is not there yet, so that a second demo neither fails nor takes the first one's place. */
static enum lag_status make_folder(const char *asked, char *dir, size_t room, struct lag_err *err)
{
	for (int i = 1; i <= DEMOS_MAX; i++) {
		if (asked) {
			(void)snprintf(dir, room, "%s", asked);
		} else if (i == 1) {
			(void)snprintf(dir, room, "laggard-demo");
		} else {
			(void)snprintf(dir, room, "laggard-demo-%d", i);
		}
		if (mkdir(dir, 0777) == 0)
			return LAG_OK;
		if (asked || errno != EEXIST)
			break;
	}
	return lag_err_errno(err, LAG_ERR_SYSTEM,
			     "cannot make the folder '%s' (choose another with -o)", dir);
}

static int run(const struct lag_args *args)
{
	char dir[PATH_MAX];
	const char *steps = lag_args_get(args, "steps");
	char self[PATH_MAX];
	struct parts parts;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct lag_err err;
	int code;

	if (n <= 0) {
		(void)lag_err_errno(&err, LAG_ERR_SYSTEM, "cannot read /proc/self/exe");
		return lag_cmd_fail("demo", &err);
	}
	self[n] = '\0';
	if (lag_failed(find_parts(&parts, &err)) ||
	    lag_failed(make_folder(lag_args_get(args, "output"), dir, sizeof(dir), &err)))
		return lag_cmd_fail("demo", &err);
	code = record(self, &parts, dir, steps ? steps : "12");
	if (code != LAG_EXIT_OK)
		return fail("laggard record", code);
	return merge_and_report(self, dir);
}

static const struct lag_opt options[] = {
	{ 'o', "output", "DIR", "folder to make (default: laggard-demo, then -2, -3, ...)",
	  "@dir" },
	{ 's', "steps", "N", "training steps to simulate (default: 12)", NULL },
};

const struct lag_cmd lag_cmd_demo = {
	.name = "demo",
	.summary = "Record, merge and summarise a simulated 8-rank job with one slow rank",
	.operands = "",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.max_operands = 0,
	.run = run,
};

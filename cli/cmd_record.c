/* SPDX-License-Identifier: Apache-2.0 */
/* laggard record: starts a program with the tracer in its environment, waits, says what was recorded.
 * Exit code, standard output and signals are the program's own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/inject.h"
#include "cli/receipt.h"
#include "schema/base/fmt.h"

static int fail(const struct lag_err *err)
{
	(void)lag_cmd_fail("record", err);
	return LAG_EXIT_RECORD;
}

/* Creates the directory and those above it, as `mkdir -p`. *made: it was not there. */
static enum lag_status make_dir(const char *dir, bool *made, struct lag_err *err)
{
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s", dir);
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(path, 0777);
		*p = '/';
	}
	*made = !mkdir(path, 0777);
	if (!*made && (errno != EEXIST || stat(path, &st) || !S_ISDIR(st.st_mode)))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make the directory '%s'", dir);
	if (access(path, W_OK))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write to '%s'", dir);
	return LAG_OK;
}

/* What we were started with, and the program shall be. */
struct inherited {
	sigset_t mask;
	struct sigaction on_child, on_limit;
};

/* The child's side: tells through the pipe why exec failed, and says nothing when it did not. */
_Noreturn static void become(char **argv, int report, const struct inherited *from)
{
	int error;

	(void)sigaction(SIGCHLD, &from->on_child, NULL);
	(void)sigaction(SIGXFSZ, &from->on_limit, NULL);
	(void)sigprocmask(SIG_SETMASK, &from->mask, NULL);
	(void)execvp(argv[0], argv);
	error = errno;
	while (write(report, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(error == ENOENT ? LAG_EXIT_NOT_FOUND : LAG_EXIT_NOT_RUNNABLE);
}

/* A terminal sends to the whole foreground group, the program included; what another process sends to
 * us alone is meant for the program. */
static void pass_on(const siginfo_t *info, pid_t child)
{
	if (info->si_code <= 0 && info->si_pid != child)
		(void)kill(child, info->si_signo);
}

static int wait_for(pid_t child, const sigset_t *watched)
{
	siginfo_t info;
	int status;

	for (;;) {
		if (sigwaitinfo(watched, &info) < 0)
			continue;
		if (info.si_signo != SIGCHLD) {
			pass_on(&info, child);
			continue;
		}
		/* Others may be ours too: orphans of the program, where we are process 1. */
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
			if (pid == child)
				return status;
		}
	}
}

static enum lag_status start(char **argv, const struct inherited *from, pid_t *child, int *error,
			     struct lag_err *err)
{
	int report[2];
	ssize_t n;

	*error = 0;
	if (pipe2(report, O_CLOEXEC))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make a pipe");
	*child = fork();
	if (*child < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot start a process");
	if (*child == 0) {
		close(report[0]);
		become(argv, report[1], from);
	}
	close(report[1]);
	do {
		n = read(report[0], error, sizeof(*error));
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*error))
		*error = 0;
	close(report[0]);
	return LAG_OK;
}

/* Ends as the program did. A second core file, of this process, would be one too many. */
static int end_like(int status)
{
	const struct rlimit none = { 0, 0 };
	sigset_t one;
	int sig;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	sig = WTERMSIG(status);
	(void)fflush(NULL);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&one);
	(void)sigaddset(&one, sig);
	(void)raise(sig);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + sig;
}

static void say_start(const struct lag_inject *inj)
{
	struct lag_buf size = { 0 };

	lag_fmt_bytes(&size, inj->max_bytes);
	lag_say("recording to %s (at most %s a process)%s%s%s", inj->dir, lag_buf_text(&size),
		inj->conflict[0] ? "; " : "", inj->conflict,
		inj->conflict[0] ? ": what comes through it is not recorded" : "");
	lag_buf_release(&size);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int run(const struct lag_args *args)
{
	static const int passed[] = { SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
				      SIGUSR2, SIGALRM, SIGCHLD, 0 };
	static struct lag_inject inj;
	bool quiet = lag_args_has(args, "quiet"), made;
	struct lag_receipt_before before;
	struct lag_buf text = { 0 };
	struct lag_err err = { 0 };
	const struct sigaction wait_for_children = { .sa_handler = SIG_DFL };
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	struct inherited from;
	sigset_t watched;
	int64_t started;
	int error, status;
	pid_t child = -1;

	if (lag_failed(lag_inject_build(&inj, args, &err)) ||
	    lag_failed(make_dir(inj.dir, &made, &err)) || lag_failed(lag_inject_apply(&inj, &err)))
		return fail(&err);
	lag_receipt_begin(&before, inj.dir);
	(void)sigemptyset(&watched);
	for (const int *sig = passed; *sig; sig++)
		(void)sigaddset(&watched, *sig);
	(void)sigaction(SIGCHLD, &wait_for_children, &from.on_child);
	(void)sigaction(SIGXFSZ, &ignored, &from.on_limit);
	(void)sigprocmask(SIG_BLOCK, &watched, &from.mask);
	if (!quiet)
		say_start(&inj);
	started = now_ns();
	if (lag_failed(start(args->operands, &from, &child, &error, &err)))
		return fail(&err);
	status = wait_for(child, &watched);
	if (error) {
		errno = error;
		(void)lag_err_errno(&err, LAG_ERR_SYSTEM, "cannot run '%s'", args->operands[0]);
		(void)fail(&err);
		if (made)
			(void)rmdir(inj.dir);
		return end_like(status);
	}
	lag_receipt_collect(inj.run_id, lag_args_get(args, "local"), inj.dir);
	if (!quiet) {
		lag_receipt_text(&text, &before, inj.dir, now_ns() - started);
		lag_say("%s", lag_buf_text(&text));
	}
	if (made)
		(void)rmdir(inj.dir); /* succeeds only where nothing was recorded */
	lag_buf_release(&text);
	lag_receipt_release(&before);
	return end_like(status);
}

static const struct lag_opt options[] = {
	LAG_INJECT_OPTIONS{ 'q', "quiet", NULL,
			    "print nothing: the program's output is all there is", NULL },
};

const struct lag_cmd lag_cmd_record = {
	.name = "record",
	.summary = "Run a program and record what its GPUs and its communication do",
	.operands = "[--] COMMAND [ARG...]",
	.details =
		"The exit code is the program's own, 128 + N when it died of signal N; 125 when "
		"laggard\nitself failed, 126 when the program cannot be run, 127 when it does not "
		"exist.\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = -1,
	.stop_at_operand = true,
	.run = run,
};

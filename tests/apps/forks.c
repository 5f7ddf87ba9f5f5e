/* SPDX-License-Identifier: Apache-2.0 */
/* Works on the GPU, then has children by fork, vfork and exec that use what the parent used. The
 * argument is a program for the child to become; "early": the children work, and the parent does not.
 * Prints one line, ends with the number of children that did not end well. */
#include "tests/apps/pt_small.h"

#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_FORKS 20

static int failed(pid_t pid)
{
	int status;

	return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	       WEXITSTATUS(status) != 0;
}

/* What a data loader's worker does to a tracer: annotations, exit handlers, a new thread. */
static void *annotate(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		nvtxRangePushA("in the child");
		nvtxRangePop();
	}
	return arg;
}

static int child(int leave)
{
	pthread_t thread;
	int version;

	annotate(NULL);
	if (ncclGetVersion(&version) != ncclSuccess)
		return 1;
	if (pthread_create(&thread, NULL, annotate, NULL) || pthread_join(thread, NULL))
		return 1;
	if (leave)
		_exit(0);
	exit(0);
}

static int run_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	return failed(pid);
}

static int run_clone(void)
{
	/* What bypasses pthread_atfork. */
	pid_t pid = (pid_t)syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);

	if (pid == 0) {
		annotate(NULL);
		syscall(SYS_exit_group, 0);
	}
	return failed(pid);
}

/* As launchers do that start their ranks by fork alone. */
static int run_early(void)
{
	pid_t pids[3];
	int n_failed = 0;

	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			pt_small_work(i + 1);
			exit(0);
		}
	}
	for (int i = 0; i < 3; i++)
		n_failed += failed(pids[i]);
	return n_failed;
}

int main(int argc, char **argv)
{
	int n_failed = 0;

	if (argc > 1 && !strcmp(argv[1], "early"))
		return run_early();
	pt_small_work(3);
	for (int i = 0; i < N_FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			return child(i % 2);
		n_failed += failed(pid);
	}
	n_failed += run_vfork();
	n_failed += run_clone();
	if (argc > 1) {
		pid_t pid = fork();

		if (pid == 0) {
			execv(argv[1], argv + 1);
			_exit(127);
		}
		n_failed += failed(pid);
	}
	nvtxMarkA("after the children");
	printf("%d children ended badly\n", n_failed);
	return n_failed;
}

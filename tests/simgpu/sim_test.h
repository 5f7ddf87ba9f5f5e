/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the simulator's own tests. Each test runs in a child process, because a process has one
 * engine, one CUPTI and one set of variables for its life; the parent never touches CUDA. */
#ifndef SIM_TEST_H
#define SIM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

/* In the child: fails the test unless true. */
#define NEED(x) need((x), __FILE__, __LINE__, #x)

static inline void need(bool holds, const char *file, int line, const char *text)
{
	if (!holds) {
		fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
		_exit(1);
	}
}

/* A number from the environment; the test fails where it is missing. */
static inline long env_number(const char *name)
{
	const char *v = getenv(name);

	need(v != NULL, name, 0, "variable is set");
	return v ? strtol(v, NULL, 10) : 0;
}

/* Runs body in a child with NAME=VALUE settings (NULL-terminated); its wait status. */
static inline int in_child(void (*body)(void), const char *const *env)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		for (; env && *env; env++) {
			char *copy = strdup(*env);
			putenv(copy);
		}
		body();
		_exit(0);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void child_passes(void (*body)(void), const char *const *env)
{
	assert_int_equal(in_child(body, env), 0);
}

#define NO_NOISE "SIMGPU_KERNEL_SIGMA=0", "SIMGPU_GPU_SIGMA=0", "SIMGPU_LAUNCH_JITTER_US=0"

static inline cudaKernel_t test_kernel(const char *name)
{
	static const char ptx[] = ".version 6.5\n.target sm_50\n"
				  ".visible .entry alpha(.param .u64 p)\n{\nret;\n}\n"
				  ".visible .entry beta(.param .u64 p)\n{\nret;\n}\n";
	cudaLibrary_t lib;
	cudaKernel_t k;

	NEED(cudaLibraryLoadData(&lib, ptx, NULL, NULL, 0, NULL, NULL, 0) == cudaSuccess);
	NEED(cudaLibraryGetKernel(&k, lib, name) == cudaSuccess);
	return k;
}

static inline void test_launch(cudaKernel_t k, uint64_t ns, cudaStream_t stream)
{
	void *args[] = { &ns };
	dim3 one = { 1, 1, 1 };

	NEED(cudaLaunchKernel((const void *)k, one, one, args, 0, stream) == cudaSuccess);
}

static inline cudaStream_t test_stream(void)
{
	cudaStream_t s;

	NEED(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == cudaSuccess);
	return s;
}

static inline int64_t test_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif

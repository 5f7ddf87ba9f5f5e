/* SPDX-License-Identifier: Apache-2.0 */
/* Works on the GPU, then dies of a signal.
 * Arguments: kernels (default 10), signal number (default SIGSEGV, by a real bad access). */
#include "tests/apps/pt_small.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
	const struct rlimit no_core = { 0, 0 };
	int sig = argc > 2 ? atoi(argv[2]) : SIGSEGV;
	setrlimit(RLIMIT_CORE, &no_core);
	pt_small_work(argc > 1 ? atoi(argv[1]) : 10);
	puts("crashing");
	fflush(stdout);
	if (sig == SIGSEGV) {
		volatile char *page =
			mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*page = 1;
	}
	raise(sig);
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Works on the GPU, then leaves by _exit: no exit handler and no destructor runs.
 * Arguments: kernels (default 10), exit code (default 0). */
#include "tests/apps/pt_small.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pt_small_work(argc > 1 ? atoi(argv[1]) : 10);
	puts("leaving");
	fflush(stdout);
	_exit(argc > 2 ? atoi(argv[2]) : 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A program without any CUDA: what a launcher or a data loader looks like to the tracer. Writes one
 * line to each output and ends with the code it is told. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	puts("out: no device here");
	fputs("err: no device here\n", stderr);
	return argc > 1 ? atoi(argv[1]) : 0;
}

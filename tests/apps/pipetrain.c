/* SPDX-License-Identifier: Apache-2.0 */
/* A training-shaped program: pipeline, data and tensor parallelism over NCCL, on the public CUDA,
 * NCCL and NVTX headers alone. One process a rank; see README.md beside this file. */
#include "tests/apps/pt_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void report(const struct pt_options *opt, const double *step_ms)
{
	double sum = 0;
	int first = opt->steps > 1; /* the first step warms up */
	if (opt->rank != 0 && !opt->verbose)
		return;
	for (int i = first; i < opt->steps; i++)
		sum += step_ms[i];
	printf("rank %d: %d steps, mean %.3f ms:", opt->rank, opt->steps,
	       sum / (opt->steps - first));
	for (int i = 0; i < opt->steps; i++)
		printf(" %.3f", step_ms[i]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct pt_options opt;
	struct pt_train train;
	int rc = pt_options_parse(&opt, argc, argv);
	if (rc)
		return rc;
	double *step_ms = calloc((size_t)opt.steps, sizeof(*step_ms));
	if (!step_ms)
		return 1;
	pt_train_init(&train, &opt);
	for (int step = 0; step < opt.steps; step++) {
		double begin = now_ms();
		pt_train_step(&train, step);
		step_ms[step] = now_ms() - begin;
	}
	rc = pt_payload_check(&train, opt.steps - 1) ? 3 : 0;
	pt_train_release(&train);
	report(&opt, step_ms);
	free(step_ms);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A little GPU work of one process: what the programs that end badly do first. */
#ifndef LAG_TESTS_APPS_PT_SMALL_H
#define LAG_TESTS_APPS_PT_SMALL_H

/* Runs n kernels of 1 ms, each followed by an all-reduce over this rank alone; all have finished on
 * return. NVTX range "work" around them. */
void pt_small_work(int n);

#endif

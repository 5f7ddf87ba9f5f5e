/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges of the training program: off, in the default domain, or in one of their own. */
#ifndef LAG_TESTS_APPS_PT_NVTX_H
#define LAG_TESTS_APPS_PT_NVTX_H

#include <stdbool.h>

struct nvtxDomainRegistration_st;

struct pt_nvtx {
	bool on;
	struct nvtxDomainRegistration_st *domain; /* NULL: the default one */
};

void pt_nvtx_init(struct pt_nvtx *nvtx, bool on, const char *domain);
void pt_nvtx_release(struct pt_nvtx *nvtx);
/* The range is called "name number", or name alone where number is negative. */
void pt_nvtx_push(const struct pt_nvtx *nvtx, const char *name, int number);
void pt_nvtx_pop(const struct pt_nvtx *nvtx);

#endif

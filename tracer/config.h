/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher asked for, read once from the environment. */
#ifndef TRACER_CONFIG_H
#define TRACER_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct lag_config {
	char dir[PATH_MAX]; /* "" = stay dormant for ever */
	char local[PATH_MAX];
	char debug[PATH_MAX];
	char run_id[64];
	char ranks[512];
	char conflict[512];
	uint64_t max_bytes;
	bool cupti, nvtx, nccl;
	bool nvtx_always; /* annotations alone are a reason to record */
};

const struct lag_config *lag_config_get(void);

/* A line into the debug file, if one was asked for. Not from hooks. */
void lag_config_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

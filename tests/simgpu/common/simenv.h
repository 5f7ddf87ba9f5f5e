/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the simulated cluster: typed readers for SIMGPU_* variables, this process's
 * place (rank, host), and seeded random numbers that depend on what they are for, never on timing. */
#ifndef SIM_COMMON_ENV_H
#define SIM_COMMON_ENV_H

#include <stdbool.h>
#include <stdint.h>

int64_t sim_env_i64(const char *name, int64_t otherwise);
double sim_env_double(const char *name, double otherwise);
/* Text of the variable, NULL when unset or empty. */
const char *sim_env_text(const char *name);
/* Value of the i-th element of a comma list (i < 0: none), or `otherwise` where there is none. */
double sim_env_item(const char *name, int i, double otherwise);

int sim_env_rank(void);
int sim_env_world(void);
int sim_env_local_rank(void);
int sim_env_ranks_per_host(void);
/* Index of the simulated host of `rank` (SIMGPU_RANKS_PER_HOST ranks on each). */
int sim_env_host_of(int rank);
int sim_env_hosts(void);

/* Random bits from SIMGPU_SEED and a purpose: same seed, same what, same key: same number. */
uint64_t sim_rand_u64(uint32_t what, uint64_t key);
double sim_rand_uniform(uint32_t what, uint64_t key); /* in [0, 1) */
double sim_rand_normal(uint32_t what, uint64_t key);  /* sigma 1, cut at 3 */

/* Purposes, so that one number is never used twice. */
enum sim_rand_what {
	SIM_RAND_HOST_OFFSET = 1,
	SIM_RAND_HOST_DRIFT,
	SIM_RAND_HOST_MONO,
	SIM_RAND_DEVICE_ERROR,
	SIM_RAND_DEVICE_STEP,
	SIM_RAND_GPU_SPEED,
	SIM_RAND_KERNEL,
	SIM_RAND_LAUNCH,
	SIM_RAND_LINK,
	SIM_RAND_DROP,
	SIM_RAND_UUID,
	SIM_RAND_BOOT,
	SIM_RAND_COPY
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* SIMGPU_* variables to numbers; the place of this process; random numbers by purpose. */
#include "tests/simgpu/common/simenv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *sim_env_text(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

int64_t sim_env_i64(const char *name, int64_t otherwise)
{
	const char *v = sim_env_text(name);
	char *end;

	if (!v) {
		return otherwise;
	}
	long long x = strtoll(v, &end, 0);
	return end == v ? otherwise : (int64_t)x;
}

double sim_env_double(const char *name, double otherwise)
{
	return sim_env_item(name, 0, otherwise);
}

double sim_env_item(const char *name, int i, double otherwise)
{
	const char *v = sim_env_text(name);
	char *end;

	if (!v || i < 0) {
		return otherwise;
	}
	for (; i > 0; i--) {
		v = strchr(v, ',');
		if (!v) {
			return otherwise;
		}
		v++;
	}
	double x = strtod(v, &end);
	return end == v ? otherwise : x;
}

static int env_first(const char *const *names, int otherwise)
{
	for (; *names; names++) {
		if (sim_env_text(*names)) {
			return (int)sim_env_i64(*names, otherwise);
		}
	}
	return otherwise;
}

int sim_env_rank(void)
{
	static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					     "SLURM_PROCID", NULL };
	return env_first(names, 0);
}

int sim_env_world(void)
{
	static const char *const names[] = { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
					     "SLURM_NTASKS", NULL };
	int n = env_first(names, 1);
	return n < 1 ? 1 : n;
}

int sim_env_local_rank(void)
{
	static const char *const names[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
					     "SLURM_LOCALID", NULL };
	return env_first(names, sim_env_rank() % sim_env_ranks_per_host());
}

int sim_env_ranks_per_host(void)
{
	static const char *const names[] = { "SIMGPU_RANKS_PER_HOST", "LOCAL_WORLD_SIZE", NULL };
	int n = env_first(names, sim_env_world());
	return n < 1 ? 1 : n;
}

int sim_env_host_of(int rank)
{
	return rank / sim_env_ranks_per_host();
}

int sim_env_hosts(void)
{
	return sim_env_host_of(sim_env_world() - 1) + 1;
}

/* Finaliser of splitmix64: every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

uint64_t sim_rand_u64(uint32_t what, uint64_t key)
{
	static uint64_t seed;
	static int known;

	if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&seed, (uint64_t)sim_env_i64("SIMGPU_SEED", 1), __ATOMIC_RELAXED);
		__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	}
	return mix(mix(mix(__atomic_load_n(&seed, __ATOMIC_RELAXED)) ^ what) ^ key);
}

double sim_rand_uniform(uint32_t what, uint64_t key)
{
	return (double)(sim_rand_u64(what, key) >> 11) * 0x1p-53;
}

double sim_rand_normal(uint32_t what, uint64_t key)
{
	double u = 1.0 - sim_rand_uniform(what, key * 2);
	double v = sim_rand_uniform(what, key * 2 + 1);
	double z = sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);

	return z > 3.0 ? 3.0 : z < -3.0 ? -3.0 : z;
}

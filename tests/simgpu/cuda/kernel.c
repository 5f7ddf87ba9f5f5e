/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: entries named in PTX text. The first parameter of each, a u64, is how long the kernel
 * runs in ns (the same text spins that long on a real GPU). Launch-time faults live here too. */
#include "tests/simgpu/cuda/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KERNEL_NS 5000

/* The driver owns what it has loaded, to the end of the process. */
static struct sim_module *modules;
static pthread_mutex_t module_lock = PTHREAD_MUTEX_INITIALIZER;

struct sim_module *sim_module_new(const void *image)
{
	struct sim_module *m = calloc(1, sizeof *m);

	if (!m) {
		return NULL;
	}
	m->ptx = strdup(image);
	if (!m->ptx) {
		free(m);
		return NULL;
	}
	pthread_mutex_lock(&module_lock);
	m->next = modules;
	modules = m;
	pthread_mutex_unlock(&module_lock);
	return m;
}

/* Kernels stay: records and queued launches still point at their names. */
void sim_module_free(struct sim_module *m)
{
	free(m->ptx);
	m->ptx = NULL;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$';
}

static bool has_entry(const char *ptx, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = ptx; (p = strstr(p, ".entry")); p++) {
		const char *q = p + strlen(".entry");
		q += strspn(q, " \t\n");
		if (strncmp(q, name, n) == 0 && !is_name_char(q[n])) {
			return true;
		}
	}
	return false;
}

struct sim_kernel *sim_module_kernel(struct sim_module *m, const char *name)
{
	struct sim_kernel *k;

	if (!m->ptx || !has_entry(m->ptx, name)) {
		return NULL;
	}
	pthread_mutex_lock(&module_lock);
	for (k = m->kernels; k && strcmp(k->name, name) != 0; k = k->next) {
	}
	if (!k) {
		k = calloc(1, sizeof *k);
		if (k) {
			k->name = strdup(name);
			k->max_threads = 1024;
			k->next = m->kernels;
			m->kernels = k;
		}
	}
	pthread_mutex_unlock(&module_lock);
	return k;
}

/* SIMGPU_STALL: RANK:NTH:MS in a comma list; the host sleeps once before its NTH launch. */
static void stall_maybe(uint64_t nth)
{
	for (const char *p = sim_env_text("SIMGPU_STALL"); p;
	     p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		int rank;
		unsigned long long at;
		double ms;
		if (sscanf(p, "%d:%llu:%lf", &rank, &at, &ms) == 3 && rank == sim_env_rank() &&
		    at == nth) {
			int64_t due = sim_host_now() + llround(ms * 1e6);
			sim_sleep_until(sim_true_ns() + llround(ms * 1e6));
			sim_host_waited(due);
		}
	}
}

uint64_t sim_launch_number(void)
{
	static uint64_t launches;
	static int stalls = -1;
	uint64_t nth = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);

	if (stalls < 0) {
		stalls = sim_env_text("SIMGPU_STALL") != NULL;
	}
	if (stalls) {
		stall_maybe(nth);
	}
	return nth;
}

void sim_launch(const struct sim_launch *l, struct sim_stream *s)
{
	struct sim_op *op = sim_op_new(SIM_OP_KERNEL);
	uint64_t ns = DEFAULT_KERNEL_NS;

	if (l->params && l->params[0]) {
		memcpy(&ns, l->params[0], sizeof ns);
	}
	op->dur_ns = ns > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)ns;
	op->name = l->kernel->name;
	op->grid = l->grid;
	op->block = l->block;
	op->shared_bytes = l->shared_bytes;
	op->corr = l->corr;
	op->async = true;
	op->nth = sim_launch_number();
	sim_enqueue(s, op, false);
}

void sim_host_fn(struct sim_stream *s, void (*fn)(void *), void *arg, uint32_t corr)
{
	struct sim_op *op = sim_op_new(SIM_OP_HOST);

	op->host_fn = fn;
	op->host_arg = arg;
	op->corr = corr;
	sim_enqueue(s, op, false);
}

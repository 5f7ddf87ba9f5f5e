/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and their primary contexts; CUDA_VISIBLE_DEVICES chooses among the host's GPUs. */
#include "tests/simgpu/cuda/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct context {
	int device;
	bool made;
};

static struct context contexts[SIM_MAX_DEVICES];
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local CUcontext current;
static _Thread_local int current_device;

static int physical_count(void)
{
	int64_t n = sim_env_i64("SIMGPU_GPUS", 8);

	return n < 0 ? 0 : n > SIM_MAX_DEVICES ? SIM_MAX_DEVICES : (int)n;
}

int sim_device_count(void)
{
	const char *v = getenv("CUDA_VISIBLE_DEVICES");
	int n = 0, all = physical_count();

	if (!v) {
		return all;
	}
	while (n < all && sim_env_item("CUDA_VISIBLE_DEVICES", n, -1.0) >= 0.0) {
		n++;
	}
	return n;
}

static int physical_of(int device)
{
	return (int)sim_env_item("CUDA_VISIBLE_DEVICES", device, (double)device);
}

int sim_device_current(void)
{
	return current_device;
}

int sim_device_set(int device)
{
	if (device < 0 || device >= sim_device_count()) {
		return -1;
	}
	current_device = device;
	current = NULL;
	return 0;
}

CUcontext sim_context_of(int device)
{
	struct context *c = &contexts[device];

	pthread_mutex_lock(&context_lock);
	bool first = !c->made;
	c->made = true;
	c->device = device;
	pthread_mutex_unlock(&context_lock);
	CUcontext ctx = (CUcontext)(void *)c;
	const struct sim_hooks *h = sim_hooks_get();
	if (first && h) {
		h->resource(SIM_RES_CONTEXT_CREATED, ctx, NULL);
	}
	return ctx;
}

CUcontext sim_context_current(void)
{
	if (!current) {
		current = sim_context_of(current_device);
	}
	return current;
}

void sim_context_set(CUcontext ctx)
{
	current = ctx;
	if (ctx) {
		current_device = sim_context_device(ctx);
	}
}

int sim_context_device(CUcontext ctx)
{
	return ((struct context *)(void *)ctx)->device;
}

uint32_t sim_context_id(CUcontext ctx)
{
	return (uint32_t)sim_context_device(ctx) + 1;
}

const char *sim_device_name(void)
{
	const char *n = sim_env_text("SIMGPU_NAME");

	return n ? n : "Simulated GPU";
}

void sim_device_uuid(int device, uint8_t out[16])
{
	uint64_t host = (uint64_t)sim_clock_map()->host;
	uint64_t key = host * SIM_MAX_DEVICES + (uint64_t)physical_of(device);
	uint64_t hi = sim_rand_u64(SIM_RAND_UUID, 2 * key);
	uint64_t lo = sim_rand_u64(SIM_RAND_UUID, 2 * key + 1);

	memcpy(out, &hi, 8);
	memcpy(out + 8, &lo, 8);
}

void sim_device_pci(int device, int *domain, int *bus, int *dev)
{
	*domain = 0;
	*bus = 0x10 + physical_of(device);
	*dev = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA and NVTX doors: what libcuda calls inside cuInit, and what each copy of NVTX calls at its
 * first annotation. The structures are NVTX's binary interface (its version 3 headers keep them
 * internal). */
#include <pthread.h>

#include "tracer/config.h"
#include "tracer/cupti_door.h"
#include "tracer/export.h"
#include "tracer/nvtx_internal.h"
#include "tracer/tracer.h"

#define TABLE_CALLBACKS 1
#define MODULE_CORE     1
#define MODULE_CORE2    5

typedef const void *lag_get_table(uint32_t id);
typedef void lag_any_function(void);

struct callbacks {
	size_t struct_size;
	int (*get_module)(int module, lag_any_function ***table[], unsigned *n);
};

struct segment {
	size_t id, n_slots;
	intptr_t *slots;
};

struct extension {
	uint16_t version, struct_size, module, compat;
	size_t n_segments;
	struct segment *segments;
};

int InitializeInjection(void);
int InitializeInjectionNvtx2(lag_get_table *get);
int InitializeInjectionNvtxExtension(struct extension *ext);

static void open_once(void)
{
	if (lag_config_get()->dir[0] && lag_config_get()->cupti)
		lag_cupti_open();
}

LAG_EXPORT int InitializeInjection(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, open_once);
	return 1;
}

static void fill(const struct callbacks *cb, int module, const struct lag_nvtx_slot *slots,
		 size_t n_slots)
{
	lag_any_function ***table = NULL;
	unsigned n = 0;

	if (!cb->get_module(module, (lag_any_function ****)&table, &n) || !table)
		return;
	for (size_t i = 0; i < n_slots; i++) {
		if (slots[i].id < n && table[slots[i].id])
			*table[slots[i].id] = slots[i].fn;
	}
}

LAG_EXPORT int InitializeInjectionNvtx2(lag_get_table *get)
{
	const struct lag_config *cfg = lag_config_get();
	const struct callbacks *cb = get ? get(TABLE_CALLBACKS) : NULL;

	if (!cb || cb->struct_size < sizeof(*cb) || !cfg->dir[0] || !cfg->nvtx)
		return 0;
	/* First: as soon as the tables are filled, other threads come through them. */
	if (cfg->nvtx_always)
		(void)lag_tracer_start();
	fill(cb, MODULE_CORE, lag_nvtx_core, lag_nvtx_n_core);
	fill(cb, MODULE_CORE2, lag_nvtx_core2, lag_nvtx_n_core2);
	return 1;
}

LAG_EXPORT int InitializeInjectionNvtxExtension(struct extension *ext)
{
	const struct lag_config *cfg = lag_config_get();

	if (!ext || ext->module != NVTX_EXT_PAYLOAD_MODULEID || !ext->n_segments || !cfg->dir[0] ||
	    !cfg->nvtx)
		return 0;
	for (size_t i = 0; i < lag_nvtx_n_payload; i++) {
		if (lag_nvtx_payload[i].id < ext->segments[0].n_slots) {
			ext->segments[0].slots[lag_nvtx_payload[i].id] =
				(intptr_t)lag_nvtx_payload[i].fn;
		}
	}
	return 1;
}

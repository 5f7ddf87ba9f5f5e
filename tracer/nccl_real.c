/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the NCCL behind us. The next definition in the global scope is what the program would have
 * got without us; a library loaded privately (Python does that) is only found by looking into every
 * loaded object. Looked up once, at the first NCCL call. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "tracer/nccl_internal.h"

#define OBJECTS_MAX 1024
#define PROBE       "ncclGetVersion" /* in every NCCL, and not one of ours */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct lag_nccl_real real;
static uint32_t n_copies;

static const struct {
	const char *name;
	size_t at;
} members[] = {

#define LAG_HOOK(name)      { #name, offsetof(struct lag_nccl_real, name) },
#define LAG_NCCL_USED(name) { #name, offsetof(struct lag_nccl_real, name) },
#include "tracer/hooks.def"
};

struct objects {
	const char *names[OBJECTS_MAX];
	uintptr_t bases[OBJECTS_MAX];
	size_t n;
};

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct objects *objs = arg;

	(void)size;
	if (objs->n < OBJECTS_MAX) {
		objs->names[objs->n] = info->dlpi_name;
		objs->bases[objs->n++] = info->dlpi_addr;
	}
	return 0;
}

/* The handle of the object if it defines the probe itself, and not one of its dependencies. */
static void *definer(const char *name, uintptr_t base)
{
	void *lib = dlopen(name[0] ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
	void *p = lib ? dlsym(lib, PROBE) : NULL;
	struct link_map *map = NULL;
	Dl_info info;

	if (p && dladdr1(p, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_addr == base)
		return lib;
	if (lib)
		dlclose(lib);
	return NULL;
}

static void *find_copies(void)
{
	static struct objects objs;
	void *found = NULL;

	(void)dl_iterate_phdr(collect, &objs);
	for (size_t i = 0; i < objs.n; i++) {
		void *lib = definer(objs.names[i], objs.bases[i]);

		if (!lib)
			continue;
		n_copies++;
		if (!found)
			found = lib;
		else
			dlclose(lib);
	}
	return found;
}

static void load(void)
{
	void *copy = find_copies();
	bool global = dlsym(RTLD_NEXT, PROBE) != NULL;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		void *p = global ? dlsym(RTLD_NEXT, members[i].name) : NULL;

		if (!p && copy)
			p = dlsym(copy, members[i].name);
		memcpy((char *)&real + members[i].at, &p, sizeof(p));
	}
}

const struct lag_nccl_real *lag_nccl_real(void)
{
	(void)pthread_once(&once, load);
	return &real;
}

uint32_t lag_nccl_copies(void)
{
	return n_copies;
}

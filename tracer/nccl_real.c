/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the NCCL behind us, for each place that calls one: what the program would have got without us.
 * That is the next definition in the global scope; where there is none, the one that the calling
 * library is linked to (Python loads libraries privately, each with its own NCCL, maybe); else the
 * only one there is. Looked up once a call site, which is then remembered. */
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "schema/base/map.h"
#include "tracer/nccl_internal.h"

#define OBJECTS_MAX 1024
#define COPIES_MAX  8
#define N_SITES     4096u /* power of two */
#define N_PROBES    64u
#define PROBE       "ncclGetVersion" /* in every NCCL, and not one of ours */
#define SPINS_MAX   100000

static const struct {
	const char *name;
	size_t at;
} members[] = {

#define LAG_HOOK(name)      { #name, offsetof(struct lag_nccl_real, name) },
#define LAG_NCCL_USED(name) { #name, offsetof(struct lag_nccl_real, name) },
#include "tracer/hooks.def"
};

static const struct lag_nccl_real absent; /* a program that has none */

static struct {
	atomic_flag busy; /* only where a call site is new */
	_Atomic uint32_t n;

	struct {
		uintptr_t base;
		struct lag_nccl_real real;
	} copies[COPIES_MAX];

	struct {
		_Atomic uintptr_t address;
		_Atomic(const struct lag_nccl_real *) real;
	} sites[N_SITES];
} nccl = { .busy = ATOMIC_FLAG_INIT };

static struct link_map *object_of(void *address)
{
	struct link_map *map = NULL;
	Dl_info info;

	return address && dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static void *open_object(const struct link_map *map)
{
	return dlopen(map->l_name[0] ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
}

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

/* The probe of any loaded object that defines it itself, and not by one of its dependencies. */
static void *find_anywhere(void)
{
	static struct objects objs;

	objs.n = 0;
	(void)dl_iterate_phdr(collect, &objs);
	for (size_t i = 0; i < objs.n; i++) {
		const char *name = objs.names[i];
		void *lib = dlopen(name[0] ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
		void *p = lib ? dlsym(lib, PROBE) : NULL;
		const struct link_map *map = object_of(p);

		if (lib)
			dlclose(lib);
		if (map && map->l_addr == objs.bases[i])
			return p;
	}
	return NULL;
}

static void *find_for(void *caller)
{
	void *p = dlsym(RTLD_NEXT, PROBE);
	const struct link_map *map = p ? NULL : object_of(caller);
	void *lib = map ? open_object(map) : NULL;

	if (lib) {
		p = dlsym(lib, PROBE);
		dlclose(lib);
	}
	return p ? p : find_anywhere();
}

/* The copy's handle is kept: it must not be unloaded while we hold pointers into it. */
static const struct lag_nccl_real *add_copy(const struct link_map *map)
{
	uint32_t n = atomic_load(&nccl.n);
	const struct link_map *ours = object_of((void *)(uintptr_t)&nccl);
	struct lag_nccl_real *real;
	void *lib;

	for (uint32_t i = 0; i < n; i++) {
		if (nccl.copies[i].base == map->l_addr)
			return &nccl.copies[i].real;
	}
	lib = n < COPIES_MAX ? open_object(map) : NULL;
	if (!lib)
		return &absent;
	real = &nccl.copies[n].real;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		void *p = dlsym(lib, members[i].name);

		/* The program's own handle also leads to us. */
		if (p && object_of(p) == ours)
			p = NULL;
		memcpy((char *)real + members[i].at, &p, sizeof(p));
	}
	nccl.copies[n].base = map->l_addr;
	atomic_store(&nccl.n, n + 1);
	return real;
}

static const struct lag_nccl_real *look_up(void *caller)
{
	const struct link_map *map;
	const struct lag_nccl_real *real;
	int spins = 0;

	/* Not for ever: in a child forked at this moment nobody gives it back. */
	while (atomic_flag_test_and_set(&nccl.busy) && spins++ < SPINS_MAX)
		(void)sched_yield();
	map = object_of(find_for(caller));
	real = map ? add_copy(map) : &absent;
	atomic_flag_clear(&nccl.busy);
	return real;
}

/* Sites are never replaced: an address must not be seen with another one's functions. */
static const struct lag_nccl_real *find_site(uintptr_t caller)
{
	size_t slot = (size_t)lag_hash_u64(caller);

	for (size_t i = 0; i < N_PROBES; i++, slot++) {
		uintptr_t address = atomic_load_explicit(&nccl.sites[slot % N_SITES].address,
							 memory_order_acquire);

		if (address == caller) {
			return atomic_load_explicit(&nccl.sites[slot % N_SITES].real,
						    memory_order_relaxed);
		}
		if (!address)
			break;
	}
	return NULL;
}

static void remember_site(uintptr_t caller, const struct lag_nccl_real *real)
{
	size_t slot = (size_t)lag_hash_u64(caller);

	for (size_t i = 0; i < N_PROBES; i++, slot++) {
		const struct lag_nccl_real *none = NULL;

		if (!atomic_compare_exchange_strong(&nccl.sites[slot % N_SITES].real, &none, real))
			continue;
		atomic_store_explicit(&nccl.sites[slot % N_SITES].address, caller,
				      memory_order_release);
		return;
	}
}

const struct lag_nccl_real *lag_nccl_real(void *caller, ncclComm_t handle)
{
	const struct lag_nccl_real *real;
	const struct lag_comm *comm;

	/* A communicator only works with the copy that made it, whoever seems to call: a tail call shows
	 * the caller's caller. */
	if (handle && atomic_load_explicit(&nccl.n, memory_order_acquire) > 1) {
		comm = lag_comm_find((uintptr_t)handle);
		if (comm && comm->real)
			return comm->real;
	}
	real = find_site((uintptr_t)caller);
	if (!real) {
		real = look_up(caller);
		if (real != &absent)
			remember_site((uintptr_t)caller, real);
	}
	return real;
}

const struct lag_nccl_real *lag_nccl_copy(uint32_t i)
{
	return &nccl.copies[i].real;
}

uint32_t lag_nccl_copies(void)
{
	return atomic_load_explicit(&nccl.n, memory_order_acquire);
}

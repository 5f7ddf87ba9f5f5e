/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_INJECTION64_PATH: loaded and called once, from the first cuInit, as the real driver does. */
#include "tests/simgpu/cuda/engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void load_once(void)
{
	const char *path = sim_env_text("CUDA_INJECTION64_PATH");
	int (*init)(void) = NULL;

	if (!path || strcmp(path, "none") == 0) {
		return;
	}
	void *h = dlopen(path, RTLD_NOW);
	void *sym = h ? dlsym(h, "InitializeInjection") : NULL;
	if (!sym) {
		fprintf(stderr, "simgpu: injection: %s\n", dlerror());
		return;
	}
	memcpy(&init, &sym, sizeof init);
	init();
}

void sim_inject(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Thread_local bool inside;
	static int done;

	/* The injected library may call CUDA itself; other threads wait until it has returned. */
	if (inside || __atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		return;
	}
	inside = true;
	pthread_once(&once, load_once);
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	inside = false;
}

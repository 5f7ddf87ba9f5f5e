/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's own time, which the clock shim keeps: true time less what the machine's
 * scheduler made the thread late. Without the shim, true time. */
#include "tests/simgpu/cuda/engine.h"

#include <dlfcn.h>
#include <string.h>

static int64_t (*shim_now)(void);
static void (*shim_woke)(int64_t due_ns);
static void (*shim_call)(void);
static int64_t (*shim_debt)(void);

/* A driver call that took longer than this without waiting was held up by the machine. */
#define LONG_CALL_NS 200000

static _Thread_local bool waited; /* in the call under way */

static void find_shim(void)
{
	void *now = dlsym(RTLD_DEFAULT, "simhost_now");
	void *woke = dlsym(RTLD_DEFAULT, "simhost_woke");
	void *call = dlsym(RTLD_DEFAULT, "simhost_call");

	void *debt = dlsym(RTLD_DEFAULT, "simhost_debt");

	if (now && woke && call && debt) {
		memcpy(&shim_debt, &debt, sizeof debt);
		memcpy(&shim_call, &call, sizeof call);
		memcpy(&shim_now, &now, sizeof now);
		memcpy(&shim_woke, &woke, sizeof woke);
	}
}

static bool has_shim(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_shim);
	return shim_now != NULL;
}

int64_t sim_host_now(void)
{
	return has_shim() ? shim_now() : sim_true_ns();
}

void sim_host_woke(int64_t due_ns)
{
	if (has_shim()) {
		shim_woke(due_ns);
	}
}

void sim_host_waited(int64_t due_ns)
{
	waited = true;
	sim_host_woke(due_ns);
}

void sim_host_call(void)
{
	waited = false;
	if (has_shim()) {
		shim_call();
	}
}

void sim_host_return(int64_t since_ns)
{
	if (has_shim() && !waited && sim_true_ns() - shim_debt() - since_ns > LONG_CALL_NS) {
		shim_woke(since_ns);
	}
}

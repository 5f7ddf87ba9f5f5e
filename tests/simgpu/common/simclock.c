/* SPDX-License-Identifier: Apache-2.0 */
/* True time through the kernel's vDSO entry, found by name, so that an interposed clock_gettime
 * (libsimhost's own or anybody's) is never asked; the maps come from the environment. */
#include "tests/simgpu/common/simclock.h"

#include "tests/simgpu/common/simenv.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Scheduler wake-ups are late by tens of microseconds: sleep short of the target, then spin. */
#define SPIN_NS 15000

typedef int (*clock_fn)(clockid_t, struct timespec *);

static int raw_gettime(clockid_t id, struct timespec *t)
{
	return (int)syscall(SYS_clock_gettime, id, t);
}

static clock_fn true_clock(void)
{
	static clock_fn fn;
	clock_fn f = __atomic_load_n(&fn, __ATOMIC_ACQUIRE);

	if (f) {
		return f;
	}
	void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *sym = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
	f = raw_gettime;
	if (sym) {
		memcpy(&f, &sym, sizeof f);
	}
	__atomic_store_n(&fn, f, __ATOMIC_RELEASE);
	return f;
}

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	true_clock()(id, &t);
	return (int64_t)t.tv_sec * SIM_NS_PER_S + t.tv_nsec;
}

int64_t sim_true_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void sim_sleep_until(int64_t t_ns)
{
	static _Thread_local int slack_set;

	if (!slack_set) {
		slack_set = 1;
		prctl(PR_SET_TIMERSLACK, 1UL);
	}
	int64_t wake = t_ns - SPIN_NS;
	while (sim_true_ns() < wake) {
		struct timespec t = { wake / SIM_NS_PER_S, wake % SIM_NS_PER_S };
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	while (sim_true_ns() < t_ns) {
	}
}

void sim_clock_epoch_ensure(void)
{
	char text[64];

	if (sim_env_text("SIMGPU_EPOCH")) {
		return;
	}
	snprintf(text, sizeof text, "%" PRId64 ":%" PRId64, sim_true_ns(),
		 read_clock(CLOCK_REALTIME));
	setenv("SIMGPU_EPOCH", text, 1);
}

static struct sim_clock_map the_map;

/* A given list wins (one value for each host), else a uniform draw within +-SPREAD. */
static double host_value(const char *list, const char *spread, uint32_t what, int host)
{
	double s = sim_env_double(spread, 0.0);
	double drawn = (2.0 * sim_rand_uniform(what, (uint64_t)host) - 1.0) * s;

	return sim_env_item(list, host, drawn);
}

static void map_load(void)
{
	struct sim_clock_map *m = &the_map;
	const char *epoch = sim_env_text("SIMGPU_EPOCH");

	if (!epoch || sscanf(epoch, "%" SCNd64 ":%" SCNd64, &m->mono0_ns, &m->real0_ns) != 2) {
		m->mono0_ns = sim_true_ns();
		m->real0_ns = read_clock(CLOCK_REALTIME);
	}
	m->host = sim_env_host_of(sim_env_rank());
	/* Without the shim the program reads the machine's own clocks, so the devices must too. */
	if (!dlsym(RTLD_DEFAULT, "simhost_present")) {
		return;
	}
	m->real_offset_ns =
		llround(1e6 * host_value("SIMGPU_HOST_OFFSET_MS", "SIMGPU_HOST_OFFSET_SPREAD_MS",
					 SIM_RAND_HOST_OFFSET, m->host));
	m->drift_ppm = host_value("SIMGPU_HOST_DRIFT_PPM", "SIMGPU_HOST_DRIFT_SPREAD_PPM",
				  SIM_RAND_HOST_DRIFT, m->host);
	m->mono_offset_ns =
		llround(1e9 * host_value("SIMGPU_HOST_UPTIME_S", "SIMGPU_HOST_UPTIME_SPREAD_S",
					 SIM_RAND_HOST_MONO, m->host));
}

const struct sim_clock_map *sim_clock_map(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, map_load);
	return &the_map;
}

static int64_t drifted(const struct sim_clock_map *m, int64_t t_ns)
{
	int64_t d = t_ns - m->mono0_ns;

	return d + (int64_t)llround((double)d * m->drift_ppm * 1e-6);
}

int64_t sim_clock_real(const struct sim_clock_map *m, int64_t t_ns)
{
	return m->real0_ns + m->real_offset_ns + drifted(m, t_ns);
}

int64_t sim_clock_mono(const struct sim_clock_map *m, int64_t t_ns)
{
	return m->mono0_ns + m->mono_offset_ns + drifted(m, t_ns);
}

static int64_t undrifted(const struct sim_clock_map *m, int64_t d_ns)
{
	return m->mono0_ns + llround((double)d_ns / (1.0 + m->drift_ppm * 1e-6));
}

int64_t sim_clock_true_of_real(const struct sim_clock_map *m, int64_t v_ns)
{
	return undrifted(m, v_ns - m->real0_ns - m->real_offset_ns);
}

int64_t sim_clock_true_of_mono(const struct sim_clock_map *m, int64_t v_ns)
{
	return undrifted(m, v_ns - m->mono0_ns - m->mono_offset_ns);
}

static int64_t err_before, err_after, err_at = SIM_NEVER;

static void device_load(void)
{
	uint64_t rank = (uint64_t)sim_env_rank();
	double sigma = sim_env_double("SIMGPU_DEVICE_ERROR_US", 0.0);
	double step = sim_env_double("SIMGPU_DEVICE_STEP_US", 0.0);
	double window = sim_env_double("SIMGPU_DEVICE_STEP_WITHIN_S", 10.0);

	err_before = llround(1e3 * sigma * sim_rand_normal(SIM_RAND_DEVICE_ERROR, rank));
	err_after = err_before;
	if (step > 0.0) {
		double sign = sim_rand_u64(SIM_RAND_DEVICE_STEP, 2 * rank) & 1 ? 1.0 : -1.0;
		err_after += llround(1e3 * step * sign);
		err_at = sim_clock_map()->mono0_ns +
			 llround(1e9 * window *
				 sim_rand_uniform(SIM_RAND_DEVICE_STEP, 2 * rank + 1));
	}
}

static void device_load_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, device_load);
}

int64_t sim_clock_device_error(int64_t t_ns)
{
	device_load_once();
	return t_ns < err_at ? err_before : err_after;
}

void sim_clock_device_steps(int64_t *before_ns, int64_t *after_ns, int64_t *at_ns)
{
	device_load_once();
	*before_ns = err_before;
	*after_ns = err_after;
	*at_ns = err_at;
}

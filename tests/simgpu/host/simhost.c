/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of a simulated host, first in LD_PRELOAD: what the program reads is that host's time,
 * and absolute deadlines given in that time are turned back into the machine's before waiting. */
#include "tests/simgpu/host/simhost.h"

#include "tests/simgpu/common/simclock.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

int simhost_present(void)
{
	return 1;
}

__attribute__((constructor)) static void set_epoch(void)
{
	sim_clock_epoch_ensure();
}

void *simhost_real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static struct timespec to_timespec(int64_t ns)
{
	struct timespec t = { ns / SIM_NS_PER_S, ns % SIM_NS_PER_S };

	return t;
}

static int64_t to_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * SIM_NS_PER_S + t->tv_nsec;
}

static bool is_real(clockid_t id)
{
	return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
}

static bool is_mono(clockid_t id)
{
	return id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW || id == CLOCK_MONOTONIC_COARSE ||
	       id == CLOCK_BOOTTIME;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	if (is_real(id)) {
		*t = to_timespec(sim_clock_real(sim_clock_map(), simhost_now()));
		return 0;
	}
	if (is_mono(id)) {
		*t = to_timespec(sim_clock_mono(sim_clock_map(), simhost_now()));
		return 0;
	}
	return (int)syscall(SYS_clock_gettime, id, t);
}

/* NOLINTNEXTLINE(readability-identifier-naming): libc's name */
int __clock_gettime(clockid_t id, struct timespec *t)
{
	return clock_gettime(id, t);
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	int64_t ns = sim_clock_real(sim_clock_map(), simhost_now());

	if (tz) {
		memset(tz, 0, sizeof(struct timezone));
	}
	tv->tv_sec = ns / SIM_NS_PER_S;
	tv->tv_usec = ns % SIM_NS_PER_S / 1000;
	return 0;
}

time_t time(time_t *out)
{
	time_t t = sim_clock_real(sim_clock_map(), simhost_now()) / SIM_NS_PER_S;

	if (out) {
		*out = t;
	}
	return t;
}

int timespec_get(struct timespec *t, int base)
{
	if (base != TIME_UTC) {
		return 0;
	}
	clock_gettime(CLOCK_REALTIME, t);
	return base;
}

/* The moment, in this thread's own time, at which one of the host's clocks shows t. */
static int64_t own_time(clockid_t id, const struct timespec *t)
{
	const struct sim_clock_map *m = sim_clock_map();

	return is_real(id) ? sim_clock_true_of_real(m, to_ns(t))
			   : sim_clock_true_of_mono(m, to_ns(t));
}

/* The machine's MONOTONIC time of a deadline on one of the host's clocks. */
static struct timespec true_deadline(clockid_t id, const struct timespec *t)
{
	return to_timespec(own_time(id, t) + simhost_debt());
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *want, struct timespec *left)
{
	bool until = (flags & TIMER_ABSTIME) && (is_real(id) || is_mono(id));
	struct timespec t = until ? true_deadline(id, want) : *want;
	int64_t due = until ? own_time(id, want) : simhost_now() + to_ns(want);
	long rc = syscall(SYS_clock_nanosleep, until ? CLOCK_MONOTONIC : id, flags, &t, left);

	if (rc == 0) {
		simhost_woke(due);
	}
	return rc < 0 ? errno : (int)rc;
}

int nanosleep(const struct timespec *want, struct timespec *left)
{
	int rc = clock_nanosleep(CLOCK_REALTIME, 0, want, left);

	if (rc != 0) {
		errno = rc;
	}
	return rc == 0 ? 0 : -1;
}

int usleep(useconds_t us)
{
	struct timespec t = { us / 1000000, (long)(us % 1000000) * 1000 };

	return nanosleep(&t, NULL);
}

typedef int (*cond_clockwait_fn)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
				 const struct timespec *);

int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t id,
			   const struct timespec *t)
{
	cond_clockwait_fn real;
	void *sym = simhost_real("pthread_cond_clockwait");
	struct timespec deadline = true_deadline(id, t);

	memcpy(&real, &sym, sizeof real);
	return real(c, m, CLOCK_MONOTONIC, &deadline);
}

/* glibc keeps the clock that a condition was made with in this bit. */
static clockid_t cond_clock(const pthread_cond_t *c)
{
	return c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
			   const struct timespec *restrict t)
{
	return pthread_cond_clockwait(c, m, cond_clock(c), t);
}

typedef int (*sem_clockwait_fn)(sem_t *, clockid_t, const struct timespec *);

int sem_clockwait(sem_t *restrict s, clockid_t id, const struct timespec *restrict t)
{
	sem_clockwait_fn real;
	void *sym = simhost_real("sem_clockwait");
	struct timespec deadline = true_deadline(id, t);

	memcpy(&real, &sym, sizeof real);
	return real(s, CLOCK_MONOTONIC, &deadline);
}

int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t)
{
	return sem_clockwait(s, CLOCK_REALTIME, t);
}

typedef int (*mutex_clocklock_fn)(pthread_mutex_t *, clockid_t, const struct timespec *);

int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict t)
{
	mutex_clocklock_fn real;
	void *sym = simhost_real("pthread_mutex_clocklock");
	struct timespec deadline = true_deadline(CLOCK_REALTIME, t);

	memcpy(&real, &sym, sizeof real);
	return real(m, CLOCK_MONOTONIC, &deadline);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what the clock shim shows, as one line of JSON, and checks that timed waits on the shown
 * clocks last as long as they should. Started by simrun from test_cluster.py. */
#include "tests/simgpu/sim_test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>

static int64_t ns_of(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t shown(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return ns_of(t);
}

static int64_t machine(clockid_t id)
{
	struct timespec t;

	syscall(SYS_clock_gettime, id, &t);
	return ns_of(t);
}

/* How far the shown clock is from the machine's, from the tightest of many brackets. */
static int64_t distance(clockid_t id)
{
	int64_t best = INT64_MAX, found = 0;

	for (int i = 0; i < 100; i++) {
		int64_t before = machine(id), now = shown(id), after = machine(id);
		if (after - before < best) {
			best = after - before;
			found = now - before - (after - before) / 2;
		}
	}
	return found;
}

static struct timespec after_ms(clockid_t id, int64_t ms)
{
	int64_t ns = shown(id) + ms * 1000000;
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	return t;
}

static void lasts_20ms(int64_t t0)
{
	int64_t took = machine(CLOCK_MONOTONIC) - t0;

	NEED(took > 19000000 && took < 500000000);
}

static void timed_waits(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t real = PTHREAD_COND_INITIALIZER, mono;
	pthread_condattr_t attr;
	struct timespec t;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&mono, &attr);
	pthread_mutex_lock(&m);
	int64_t t0 = machine(CLOCK_MONOTONIC);
	t = after_ms(CLOCK_REALTIME, 20);
	NEED(pthread_cond_timedwait(&real, &m, &t) == ETIMEDOUT);
	lasts_20ms(t0);
	t0 = machine(CLOCK_MONOTONIC);
	t = after_ms(CLOCK_MONOTONIC, 20);
	NEED(pthread_cond_timedwait(&mono, &m, &t) == ETIMEDOUT);
	lasts_20ms(t0);
	t0 = machine(CLOCK_MONOTONIC);
	t = after_ms(CLOCK_MONOTONIC, 20);
	NEED(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == 0);
	lasts_20ms(t0);
}

int main(void)
{
	struct utsname u;
	struct timeval tv;
	char name[65], boot[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	NEED(f && fgets(boot, sizeof boot, f));
	boot[strcspn(boot, "\n")] = '\0';
	NEED(uname(&u) == 0 && gethostname(name, sizeof name) == 0 &&
	     strcmp(u.nodename, name) == 0);
	timed_waits();
	gettimeofday(&tv, NULL);
	int64_t real = shown(CLOCK_REALTIME);
	int64_t day = (int64_t)tv.tv_sec * 1000000000 + tv.tv_usec * 1000;
	NEED(real - day < 500000000 && real - day > -1000 && real / 1000000000 - time(NULL) <= 1);
	printf("{\"rank\": %s, \"host\": \"%s\", \"boot\": \"%s\", \"real\": %ld, \"mono\": %ld}\n",
	       getenv("RANK"), name, boot, (long)distance(CLOCK_REALTIME),
	       (long)distance(CLOCK_MONOTONIC));
	return 0;
}

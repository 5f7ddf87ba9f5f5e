/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's own time. On a machine with fewer cores than ranks a thread wakes late and is held up, by
 * milliseconds when the machine is busy; a real host would not. Where it is known when a thread
 * should have gone on (the end of a sleep or of the device work it waited for), and where the
 * kernel says how long it was ready to run and did not, that is taken off what its clocks show
 * until it waits again. They never go back. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/host/simhost.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USUAL_NS   20000 /* from the due moment until a thread runs on an idle machine */
#define EXCUSED_NS 50000 /* lateness from which on it is forgiven */

#define GAP_NS 100000 /* between two calls: shorter ones are not looked into */

static _Thread_local int64_t debt_ns, shown_ns;
static _Thread_local int64_t held_ns; /* time on the run queue, when last read */
static _Thread_local int64_t seen_ns; /* true time of the last call */
static pthread_key_t stat_key;
static pthread_once_t stat_once = PTHREAD_ONCE_INIT;

static void stat_close(void *fd)
{
	close((int)(intptr_t)fd - 1);
}

static void stat_key_make(void)
{
	pthread_key_create(&stat_key, stat_close);
}

/* How long this thread has been ready to run and did not run; 0 where the kernel does not say. */
static int64_t held_up(void)
{
	char text[96];
	long long ran, held = 0;

	pthread_once(&stat_once, stat_key_make);
	intptr_t fd = (intptr_t)pthread_getspecific(stat_key);
	if (fd == 0) {
		fd = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat",
			     O_RDONLY | O_CLOEXEC) +
		     1;
		if (fd == 0) {
			return 0;
		}
		pthread_setspecific(stat_key, (void *)fd);
	}
	ssize_t n = pread((int)fd - 1, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%lld %lld", &ran, &held) == 2 ? held : 0;
}

static bool counts_as_real(void)
{
	static int real = -1;

	if (real < 0) {
		const char *v = sim_env_text("SIMGPU_LATENESS");
		real = v && strcmp(v, "real") == 0;
	}
	return real > 0;
}

int64_t simhost_now(void)
{
	int64_t now = sim_true_ns() - debt_ns;

	if (now < shown_ns) {
		now = shown_ns;
	}
	shown_ns = now;
	return now;
}

int64_t simhost_debt(void)
{
	return debt_ns;
}

void simhost_woke(int64_t due_ns)
{
	if (counts_as_real()) {
		return;
	}
	/* What was shown last was shown before the wait, and nothing is shown before what is due. */
	if (due_ns > shown_ns) {
		shown_ns = due_ns;
	}
	int64_t late = sim_true_ns() - shown_ns;
	debt_ns = late > EXCUSED_NS ? late - USUAL_NS : 0;
	held_ns = held_up();
	seen_ns = sim_true_ns();
}

void simhost_call(void)
{
	int64_t now = sim_true_ns(), gap = now - seen_ns;

	seen_ns = now;
	if (gap < GAP_NS || counts_as_real()) {
		return;
	}
	int64_t held = held_up(), more = held - held_ns;
	held_ns = held;
	if (more > gap) {
		more = gap; /* the first call of a thread, or one that is long ago */
	}
	if (more > EXCUSED_NS) {
		debt_ns += more;
	}
	/* What has been shown cannot be taken back. */
	if (debt_ns > now - shown_ns) {
		debt_ns = now > shown_ns ? now - shown_ns : 0;
	}
}

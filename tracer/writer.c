/* SPDX-License-Identifier: Apache-2.0 */
/* The writer thread. Everything slow happens here and nowhere else: flushing, parsing, copying. */
#include "tracer/writer.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/clock.h"
#include "tracer/cupti_door.h"
#include "tracer/devices.h"
#include "tracer/names.h"
#include "tracer/nccl_door.h"
#include "tracer/self.h"
#include "tracer/spool.h"
#include "tracer/tracer.h"
#include "tracer/watch.h"

#define TICK_MS       100
#define FLUSH_NS      250000000
#define SECOND_NS     1000000000
#define STALL_NS      1700000000 /* + a tick: no finished kernel is held back for more than 2 s */
#define STALL_MAX_NS  60000000000
#define REFRESH_TICKS 100 /* between looks at the names of known threads */
#define STACK_BYTES   (512u << 10)

static struct {
	struct lag_trace_file *file;
	struct lag_trace_producer *prod;
	_Atomic uint32_t wake; /* futex words */
	_Atomic uint32_t stop, done;
	int64_t flushed_ns, second_ns;
	int64_t progress_ns, patience_ns; /* forced flushes: last reason to wait, and how long */
	uint64_t requests;
	int ticks, refresh_at;
	bool gpu_seen;
} writer;

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &ts, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int64_t thread_ns(void)
{
	return lag_clock_get(CLOCK_THREAD_CPUTIME_ID);
}

static void take_buffers(int64_t now)
{
	if (lag_cupti_drain(writer.prod)) {
		writer.progress_ns = now;
		writer.patience_ns = STALL_NS;
		writer.gpu_seen = true;
	}
}

/* A kernel that hangs keeps its whole buffer back, and every finished one in it. When nothing has come
 * for a while CUPTI is asked to hand out what it has; less and less often while nothing changes. */
static void flush(int64_t now)
{
	uint64_t requests = lag_cupti_requests();

	if (now - writer.flushed_ns < FLUSH_NS && requests == writer.requests &&
	    now - writer.progress_ns < writer.patience_ns)
		return;
	if (requests != writer.requests) {
		writer.requests = requests;
		if (writer.patience_ns > STALL_NS)
			writer.progress_ns = now;
		writer.patience_ns = STALL_NS;
	}
	if (now - writer.progress_ns >= writer.patience_ns) {
		lag_cupti_flush(true);
		writer.progress_ns = now;
		writer.patience_ns *= writer.patience_ns < STALL_MAX_NS ? 2 : 1;
	} else if (now - writer.flushed_ns >= FLUSH_NS) {
		lag_cupti_flush(false);
	} else {
		return;
	}
	writer.flushed_ns = now;
}

static void read_clocks(void)
{
	struct lag_record rec;
	int64_t step;

	lag_record_init(&rec, LAG_REC_clock);
	lag_clock_read(&rec.clock, lag_cupti_timestamp);
	(void)lag_trace_append(writer.prod, &rec);
	step = lag_clock_step(&rec.clock);
	if (step) {
		int64_t at = rec.clock.realtime_ns;

		lag_record_init(&rec, LAG_REC_clock_step);
		rec.clock_step.at_ns = at;
		rec.clock_step.step_ns = step;
		(void)lag_trace_append(writer.prod, &rec);
	}
	lag_record_init(&rec, LAG_REC_clock_state);
	lag_clock_state(&rec.clock_state);
	(void)lag_trace_append(writer.prod, &rec);
}

static void name_threads(bool again)
{
	for (uint32_t i = 0; i < lag_sink_count(); i++) {
		uint32_t tid = atomic_load(&lag_sink_at(i)->tid);

		if (tid)
			lag_names_see(writer.prod, tid);
	}
	if (again)
		lag_names_refresh(writer.prod);
}

static void each_second(void)
{
	bool full = atomic_load(&writer.file->full);

	lag_sink_reclaim();
	if (!full) {
		read_clocks();
		name_threads(writer.ticks >= writer.refresh_at);
		if (writer.ticks >= writer.refresh_at)
			writer.refresh_at = writer.ticks + REFRESH_TICKS;
	}
	lag_cupti_count_lost(writer.file->counters, false);
	lag_self_receipt(writer.prod, thread_ns(), false);
	lag_spool_copy(writer.file, false);
}

static void tick(void)
{
	int64_t now = lag_clock_get(CLOCK_MONOTONIC);

	/* Handlers registered by the driver after our first one would run before it: once more. */
	if (++writer.ticks == 2)
		(void)atexit(lag_tracer_at_exit);
	lag_trace_file_prepare(writer.file);
	lag_cupti_describe(writer.prod);
	lag_nccl_describe(writer.prod);
	flush(now);
	take_buffers(now);
	if (writer.gpu_seen)
		lag_devices_describe(writer.prod);
	if (now - writer.second_ns >= SECOND_NS) {
		writer.second_ns = now;
		each_second();
		lag_watch_tick(writer.prod, now);
	}
}

static void finish(void)
{
	struct lag_trace_counters *c = writer.file->counters;

	lag_cupti_flush(true);
	take_buffers(0);
	lag_cupti_count_lost(c, true);
	if (writer.gpu_seen)
		lag_devices_describe(writer.prod);
	lag_cupti_describe(writer.prod);
	lag_nccl_describe(writer.prod);
	read_clocks();
	name_threads(true);
	lag_guard_set(false);
	if (lag_guard_fence()) {
		/* Ours stays open for the receipt, which counts what the others wrote. */
		struct lag_chunk_header *own = writer.prod->chunk;

		writer.prod->chunk = NULL;
		lag_sink_seal();
		writer.prod->chunk = own;
	}
	lag_trace_file_settle(writer.file);
	lag_self_receipt(writer.prod, thread_ns(), true);
	lag_trace_producer_close(writer.prod);
	atomic_store(&c->clean_exit, 1);
	lag_spool_copy(writer.file, true);
	atomic_store(&writer.done, 1);
	futex_wake(&writer.done);
}

static void *run(void *arg)
{
	struct lag_thread *t = lag_sink_enter(LAG_REC_thread);

	(void)arg;
	if (!t) {
		atomic_store(&writer.done, 1); /* nobody shall wait for us at exit */
		return NULL;
	}
	/* From here on the slot is used outside hooks as well: this thread calls none while appending. */
	lag_sink_leave(t);
	writer.prod = &t->prod;
	writer.progress_ns = writer.second_ns = lag_clock_get(CLOCK_MONOTONIC);
	writer.patience_ns = STALL_NS;
	read_clocks();
	while (!atomic_load(&writer.stop)) {
		uint32_t seen = atomic_load(&writer.wake);

		tick();
		if (!atomic_load(&writer.stop))
			futex_wait(&writer.wake, seen, TICK_MS);
	}
	finish();
	return NULL;
}

bool lag_writer_start(struct lag_trace_file *file)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int rc;

	writer.file = file;
	lag_trace_file_prepare(file);
	if (pthread_attr_init(&attr))
		return false;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, &attr, run, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	if (!rc)
		(void)pthread_setname_np(thread, "laggard");
	return rc == 0;
}

void lag_writer_wake(void)
{
	atomic_fetch_add(&writer.wake, 1);
	futex_wake(&writer.wake);
}

void lag_writer_stop(uint32_t timeout_ms)
{
	int64_t until = lag_clock_get(CLOCK_MONOTONIC) + (int64_t)timeout_ms * 1000000;
	int saved = errno;

	atomic_store(&writer.stop, 1);
	lag_writer_wake();
	while (!atomic_load(&writer.done)) {
		int64_t left = until - lag_clock_get(CLOCK_MONOTONIC);

		if (left <= 0)
			break;
		futex_wait(&writer.done, 0, (uint32_t)(left / 1000000 + 1));
	}
	errno = saved;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of producers. enter/leave run in the traced program's threads: no lock, no allocation. */
#include "tracer/sink.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracer/clock.h"

/* Not the first hook of a thread: it opens files and maps memory, and is no sample of the rest. */
#define SAMPLE_AT (LAG_SINK_SAMPLE / 2)

static struct {
	struct lag_thread *slots;
	struct lag_trace_file *file;
	_Atomic uint32_t n;
	_Atomic uint64_t
		free; /* tag << 32 | index + 1; the tag makes reuse visible to a racing pop */
} pool;

/* initial-exec: __tls_get_addr may allocate, and this library is loaded before the program starts. */
static __thread struct {
	struct lag_thread *slot;
	uint32_t tid;
} self __attribute__((tls_model("initial-exec")));

bool lag_sink_open(struct lag_trace_file *file)
{
	size_t n = LAG_SINK_THREADS * sizeof(struct lag_thread);
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	if (p == MAP_FAILED)
		return false;
	pool.file = file;
	pool.slots = p;
	return true;
}

uint32_t lag_sink_tid(void)
{
	if (!self.tid)
		self.tid = (uint32_t)syscall(SYS_gettid);
	return self.tid;
}

static struct lag_thread *pop_free(void)
{
	uint64_t head = atomic_load_explicit(&pool.free, memory_order_acquire);
	struct lag_thread *t;

	do {
		if (!(uint32_t)head)
			return NULL;
		t = &pool.slots[(uint32_t)head - 1];
	} while (!atomic_compare_exchange_weak_explicit(
		&pool.free, &head, ((head >> 32) + 1) << 32 | t->next, memory_order_acquire,
		memory_order_acquire));
	return t;
}

static void push_free(struct lag_thread *t)
{
	uint64_t head = atomic_load_explicit(&pool.free, memory_order_relaxed);
	uint32_t index = (uint32_t)(t - pool.slots);

	do {
		t->next = (uint32_t)head;
	} while (!atomic_compare_exchange_weak_explicit(
		&pool.free, &head, ((head >> 32) + 1) << 32 | (index + 1), memory_order_release,
		memory_order_relaxed));
}

static struct lag_thread *attach(void)
{
	struct lag_thread *t = pop_free();
	uint32_t index;

	if (!t) {
		index = atomic_load_explicit(&pool.n, memory_order_relaxed);
		do {
			if (index == LAG_SINK_THREADS)
				return NULL;
		} while (!atomic_compare_exchange_weak(&pool.n, &index, index + 1));
		t = &pool.slots[index];
		lag_trace_producer_init(&t->prod, pool.file, lag_sink_tid());
	}
	t->prod.tid = lag_sink_tid();
	atomic_store_explicit(&t->tid, lag_sink_tid(), memory_order_release);
	self.slot = t;
	return t;
}

static void count_loss(enum lag_record_kind kind, enum lag_loss_reason reason)
{
	struct lag_trace_counters *c = pool.file->counters;

	atomic_fetch_add_explicit(&c->lost[kind], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->lost_reason[reason], 1, memory_order_relaxed);
}

struct lag_thread *lag_sink_enter(enum lag_record_kind kind)
{
	struct lag_thread *t;

	if (!lag_guard_on())
		return NULL;
	t = self.slot ? self.slot : attach();
	if (!t) {
		count_loss(kind, LAG_LOSS_NO_CHUNK);
		return NULL;
	}
	/* Only a signal handler of this very thread can find it busy. */
	if (atomic_load_explicit(&t->busy, memory_order_relaxed)) {
		count_loss(kind, LAG_LOSS_REENTRY);
		return NULL;
	}
	atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* the other side is lag_guard_fence */
	if (!lag_guard_on()) {
		atomic_store_explicit(&t->busy, 0, memory_order_relaxed);
		return NULL;
	}
	if (t->n_hooks % LAG_SINK_SAMPLE == SAMPLE_AT)
		t->entered_ns = lag_clock_get(CLOCK_MONOTONIC);
	return t;
}

void lag_sink_leave(struct lag_thread *t)
{
	uint64_t n = atomic_load_explicit(&t->n_hooks, memory_order_relaxed);

	if (n % LAG_SINK_SAMPLE == SAMPLE_AT) {
		int64_t spent = lag_clock_get(CLOCK_MONOTONIC) - t->entered_ns;

		atomic_store_explicit(&t->sampled_ns,
				      atomic_load_explicit(&t->sampled_ns, memory_order_relaxed) +
					      (uint64_t)spent,
				      memory_order_relaxed);
	}
	atomic_store_explicit(&t->n_hooks, n + 1, memory_order_relaxed);
	atomic_store_explicit(&t->busy, 0, memory_order_release);
}

uint32_t lag_sink_count(void)
{
	return atomic_load_explicit(&pool.n, memory_order_acquire);
}

struct lag_thread *lag_sink_at(uint32_t i)
{
	return &pool.slots[i];
}

void lag_sink_reclaim(void)
{
	pid_t pid = getpid();

	for (uint32_t i = 0; i < lag_sink_count(); i++) {
		struct lag_thread *t = &pool.slots[i];
		uint32_t tid = atomic_load_explicit(&t->tid, memory_order_acquire);

		if (tid && syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH) {
			/* The thread is gone, so nothing of it is in flight; acquiring what it released
			 * last hands all it wrote to the slot's next owner. */
			(void)atomic_load_explicit(&t->busy, memory_order_acquire);
			atomic_store(&t->busy, 0);
			atomic_store(&t->tid, 0);
			push_free(t);
		}
	}
}

void lag_sink_seal(void)
{
	const struct timespec pause = { 0, 100000 };

	for (uint32_t i = 0; i < lag_sink_count(); i++) {
		struct lag_thread *t = &pool.slots[i];

		for (int tries = 0; tries < 50; tries++) {
			if (!atomic_load_explicit(&t->busy, memory_order_acquire)) {
				lag_trace_producer_close(&t->prod);
				break;
			}
			(void)nanosleep(&pause, NULL);
		}
	}
}

int64_t lag_sink_hook_ns(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < lag_sink_count(); i++)
		sum += atomic_load_explicit(&pool.slots[i].sampled_ns, memory_order_relaxed);
	return (int64_t)(sum * LAG_SINK_SAMPLE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The engine thread of one process. Ends of operations are computed, so the thread is needed only
 * for communication, host functions and a slow tick that hands finished operations to CUPTI. It
 * sleeps on its doorbell, a futex in memory that the other ranks map and ring. */
#include "tests/simgpu/cuda/engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS (10 * SIM_NS_PER_MS)

struct sim_engine sim_eng = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.deliver = PTHREAD_MUTEX_INITIALIZER,
	.resolved = PTHREAD_COND_INITIALIZER,
	.wake_ns = SIM_NEVER,
	.bell_fd = -1,
};

static _Thread_local bool delivering;

/* A real driver call does not wait because a simulator's thread was descheduled with this lock. */
void sim_engine_lock(void)
{
	if (pthread_mutex_trylock(&sim_eng.lock) == 0) {
		return;
	}
	int64_t due = sim_host_now();
	pthread_mutex_lock(&sim_eng.lock);
	sim_host_woke(due);
}

void sim_engine_unlock(void)
{
	pthread_mutex_unlock(&sim_eng.lock);
}

void sim_doorbell_ring(uint32_t *bell)
{
	struct sim_doorbell *b = (struct sim_doorbell *)(void *)bell;

	__atomic_add_fetch(&b->word, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&b->sleeping, __ATOMIC_SEQ_CST)) {
		syscall(SYS_futex, &b->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

void sim_engine_kick(void)
{
	if (sim_eng.bell) {
		sim_doorbell_ring(&sim_eng.bell->word);
	}
}

int sim_doorbell_fd(void)
{
	return sim_eng.bell_fd;
}

static void doorbell_wait(uint32_t seen, int64_t until_ns)
{
	struct sim_doorbell *b = sim_eng.bell;
	int64_t left = until_ns - sim_true_ns();
	struct timespec t = { left / SIM_NS_PER_S, left % SIM_NS_PER_S };

	if (until_ns != SIM_NEVER && left <= 0) {
		return;
	}
	__atomic_store_n(&b->sleeping, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &b->word, FUTEX_WAIT, seen, until_ns == SIM_NEVER ? NULL : &t, NULL, 0);
	__atomic_store_n(&b->sleeping, 0, __ATOMIC_SEQ_CST);
}

/* One finished or running operation to tell the hooks about. */
struct note {
	struct sim_op *op;
	bool ended;
};

struct notes {
	struct note *v;
	size_t n, cap;
};

static void notes_add(struct notes *b, struct sim_op *op, bool ended)
{
	if (b->n == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 256;
		b->v = realloc(b->v, b->cap * sizeof *b->v);
		if (!b->v) {
			abort();
		}
	}
	b->v[b->n++] = (struct note){ op, ended };
}

static struct sim_stream *stream_first_done(int64_t now)
{
	struct sim_stream *best = NULL;

	for (struct sim_stream *s = sim_eng.streams; s; s = s->next) {
		if (s->head && s->head->state == SIM_OP_RESOLVED && s->head->end_ns <= now &&
		    (!best || s->head->end_ns < best->head->end_ns)) {
			best = s;
		}
	}
	return best;
}

static bool is_device_work(const struct sim_op *op)
{
	return op->kind <= SIM_OP_COMM;
}

static void take_done(struct notes *b, int64_t now)
{
	struct sim_stream *s;

	while ((s = stream_first_done(now))) {
		struct sim_op *op = s->head;
		s->head = op->next;
		if (!s->head) {
			s->tail = NULL;
		}
		s->n_ops--;
		op->state = SIM_OP_DONE;
		notes_add(b, op, true);
	}
	for (s = sim_eng.streams; s; s = s->next) {
		struct sim_op *op = s->head;
		if (op && is_device_work(op) && op->state >= SIM_OP_STARTED &&
		    op->start_ns <= now && !op->reserved) {
			op->reserved = true;
			notes_add(b, sim_op_ref(op), false);
		}
	}
}

void sim_collect(void)
{
	static struct notes batch; /* reused; guarded by deliver */

	if (delivering) {
		return;
	}
	pthread_mutex_lock(&sim_eng.deliver);
	delivering = true;
	sim_engine_lock();
	sim_streams_reap();
	int64_t now = sim_true_ns();
	sim_resolve_all(now, false);
	batch.n = 0;
	take_done(&batch, now);
	const struct sim_hooks *h = sim_eng.hooks;
	sim_engine_unlock();
	for (size_t i = 0; i < batch.n; i++) {
		struct sim_op *op = batch.v[i].op;
		if (h && is_device_work(op)) {
			(batch.v[i].ended ? h->op_ended : h->op_started)(op);
		}
		sim_op_unref(op);
	}
	delivering = false;
	pthread_mutex_unlock(&sim_eng.deliver);
	sim_truth_flush();
}

static bool anything_pending(void)
{
	for (struct sim_stream *s = sim_eng.streams; s; s = s->next) {
		if (s->head) {
			return true;
		}
	}
	return false;
}

static void run_host_functions(void)
{
	struct sim_op *op;

	while ((op = sim_op_runnable_host(sim_true_ns()))) {
		sim_op_ref(op);
		sim_engine_unlock();
		op->host_fn(op->host_arg);
		sim_engine_lock();
		sim_op_finish(op, sim_true_ns());
		sim_op_unref(op);
	}
}

static void *engine_main(void *arg)
{
	int64_t tick = 0;

	(void)arg;
	for (;;) {
		uint32_t seen = __atomic_load_n(&sim_eng.bell->word, __ATOMIC_SEQ_CST);
		sim_engine_lock();
		sim_eng.wake_ns = SIM_NEVER;
		int64_t now = sim_true_ns();
		sim_resolve_all(now, true);
		run_host_functions();
		bool pending = anything_pending();
		int64_t until = sim_eng.wake_ns;
		if (pending && until > now + TICK_NS) {
			until = now + TICK_NS;
		}
		sim_eng.asleep_until_ns = until;
		sim_engine_unlock();
		if (now >= tick) {
			sim_collect();
			tick = now + TICK_NS;
		}
		doorbell_wait(seen, until);
	}
	return NULL;
}

static void bell_make(void)
{
	sim_eng.bell_fd = memfd_create("simgpu-bell", MFD_CLOEXEC);
	if (sim_eng.bell_fd < 0 || ftruncate(sim_eng.bell_fd, 4096) != 0) {
		perror("simgpu: doorbell");
		abort();
	}
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, sim_eng.bell_fd, 0);
	if (p == MAP_FAILED) {
		perror("simgpu: doorbell");
		abort();
	}
	sim_eng.bell = p;
}

static void engine_start(void)
{
	pthread_t t;
	sigset_t all, old;

	sim_eng.queue_depth = (unsigned)sim_env_i64("SIMGPU_QUEUE_DEPTH", 1024);
	sim_model_load();
	bell_make();
	sim_truth_open();
	sim_truth_work_open();
	/* Signals belong to the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&t, NULL, engine_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		fprintf(stderr, "simgpu: cannot start the engine thread\n");
		abort();
	}
	pthread_setname_np(t, "simgpu-engine");
	pthread_detach(t);
}

void sim_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, engine_start);
	sim_inject();
}

void sim_hooks_set(const struct sim_hooks *h)
{
	sim_engine_lock();
	__atomic_store_n(&sim_eng.hooks, h, __ATOMIC_RELEASE);
	sim_engine_unlock();
}

const struct sim_hooks *sim_hooks_get(void)
{
	return __atomic_load_n(&sim_eng.hooks, __ATOMIC_ACQUIRE);
}

uint64_t sim_report_host(int64_t t_ns)
{
	return (uint64_t)sim_clock_real(sim_clock_map(), t_ns);
}

uint64_t sim_report_device(int64_t t_ns)
{
	return sim_report_host(t_ns + sim_clock_device_error(t_ns));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that take the next task until there is none. */
#include "merge/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "schema/base/mem.h"

#define TICK_NS      INT64_C(50000000)
#define THREADS_MOST 256 /* LAG_MERGE_THREADS_MAX */

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t done;
	lag_task *task;
	void *state;
	size_t next, n;
	size_t failed; /* the first task that failed; n: none */
	struct lag_err failure;
	unsigned n_at_work;
	bool stopped;
};

static void work(struct crew *c)
{
	struct lag_err err = { 0 };

	(void)pthread_mutex_lock(&c->lock);
	while (!c->stopped && c->next < c->failed) {
		size_t i = c->next++;
		enum lag_status st;

		(void)pthread_mutex_unlock(&c->lock);
		st = c->task(c->state, i, &err);
		(void)pthread_mutex_lock(&c->lock);
		if (lag_failed(st) && i < c->failed) {
			c->failed = i;
			c->failure = err;
			c->failure.status = st;
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
}

static void *work_on_thread(void *state)
{
	struct crew *c = state;

	work(c);
	(void)pthread_mutex_lock(&c->lock);
	c->n_at_work--;
	(void)pthread_cond_signal(&c->done);
	(void)pthread_mutex_unlock(&c->lock);
	return NULL;
}

static unsigned start(struct crew *c, pthread_t *threads, unsigned n)
{
	unsigned started = 0;

	(void)pthread_mutex_lock(&c->lock);
	while (started < n && pthread_create(&threads[started], NULL, work_on_thread, c) == 0)
		started++;
	c->n_at_work = started;
	(void)pthread_mutex_unlock(&c->lock);
	return started;
}

static struct timespec soon(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += TICK_NS;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

/* Until all are at rest. */
static void watch(struct crew *c, const struct lag_parallel *how)
{
	(void)pthread_mutex_lock(&c->lock);
	while (c->n_at_work) {
		struct timespec until = soon();
		bool go_on;

		if (pthread_cond_timedwait(&c->done, &c->lock, &until) == 0)
			continue;
		(void)pthread_mutex_unlock(&c->lock);
		go_on = !how->tick || how->tick(how->tick_state);
		(void)pthread_mutex_lock(&c->lock);
		c->stopped = c->stopped || !go_on;
	}
	(void)pthread_mutex_unlock(&c->lock);
}

enum lag_status lag_parallel_run(const struct lag_parallel *how, size_t n, lag_task *task,
				 void *state, struct lag_err *err)
{
	struct crew c = { .task = task, .state = state, .n = n, .failed = n };
	pthread_t threads[THREADS_MOST];
	pthread_condattr_t attr;
	unsigned n_threads = how->n_threads < THREADS_MOST ? how->n_threads : THREADS_MOST;

	if (n_threads > n)
		n_threads = (unsigned)n;
	(void)pthread_mutex_init(&c.lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&c.done, &attr);
	(void)pthread_condattr_destroy(&attr);
	n_threads = start(&c, threads, n_threads);
	/* Without a thread to be had, this one does it, and nobody is told how far it is. */
	if (!n_threads)
		work(&c);
	watch(&c, how);
	for (unsigned i = 0; i < n_threads; i++)
		(void)pthread_join(threads[i], NULL);
	if (how->tick && !how->tick(how->tick_state))
		c.stopped = true;
	(void)pthread_cond_destroy(&c.done);
	(void)pthread_mutex_destroy(&c.lock);
	if (c.stopped)
		return lag_err_set(err, LAG_ERR_LIMIT, "interrupted, nothing was written");
	if (c.failed < n && err)
		*err = c.failure;
	return c.failed < n ? c.failure.status : LAG_OK;
}

unsigned lag_parallel_processors(void)
{
	cpu_set_t set;
	int n;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	n = CPU_COUNT(&set);
	return n > 0 ? (unsigned)n : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead: one thread fills a ring of buffers, the importer's thread empties it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "merge/stream.h"

#define AHEAD_BUFFER  ((size_t)1 << 18)
#define AHEAD_BUFFERS 4u
#define AHEAD_ALONE   ((size_t)1 << 16) /* read so many bytes before a thread is worth it */

struct ahead {
	struct lag_stream base;
	struct lag_stream *raw; /* borrowed; the thread's once that runs */
	size_t n_alone;
	bool threaded, no_thread;
	pthread_t thread;
	size_t at; /* read from the oldest full buffer */
	uint8_t *bytes;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. Buffer i of the sequence is at i % AHEAD_BUFFERS. */
	uint64_t n_filled, n_emptied;
	size_t n[AHEAD_BUFFERS];
	bool stop, ended;
	long last;          /* what raw->read gave at the end: 0 or -1 */
	struct lag_err err; /* for -1 */
};

/* Fills one buffer as far as raw gives. */
static size_t fill(struct ahead *a, uint8_t *to, long *last, struct lag_err *err)
{
	size_t n = 0;

	for (*last = 1; n<AHEAD_BUFFER && * last> 0; n += *last > 0 ? (size_t)*last : 0)
		*last = a->raw->read(a->raw, to + n, AHEAD_BUFFER - n, err);
	return n;
}

static void *run(void *state)
{
	struct ahead *a = state;
	bool done = false;

	while (!done) {
		struct lag_err err = { 0 };
		uint64_t i;
		size_t n;
		long last;

		(void)pthread_mutex_lock(&a->lock);
		while (!a->stop && a->n_filled - a->n_emptied == AHEAD_BUFFERS)
			(void)pthread_cond_wait(&a->changed, &a->lock);
		done = a->stop;
		i = a->n_filled;
		(void)pthread_mutex_unlock(&a->lock);
		if (done)
			break;
		n = fill(a, a->bytes + i % AHEAD_BUFFERS * AHEAD_BUFFER, &last, &err);
		(void)pthread_mutex_lock(&a->lock);
		a->n[i % AHEAD_BUFFERS] = n;
		a->n_filled += n > 0;
		if (last <= 0) {
			a->ended = done = true;
			a->last = last;
			a->err = err;
		}
		(void)pthread_cond_signal(&a->changed);
		(void)pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

static bool start(struct ahead *a)
{
	a->no_thread = true;
	a->bytes = malloc(AHEAD_BUFFERS * AHEAD_BUFFER);
	a->threaded = a->bytes && pthread_create(&a->thread, NULL, run, a) == 0;
	return a->threaded;
}

/* The oldest buffer, when it has been read, goes back; then waits for the next. */
static const uint8_t *next_buffer(struct ahead *a, size_t *n)
{
	const uint8_t *bytes = NULL;

	(void)pthread_mutex_lock(&a->lock);
	if (a->n_filled > a->n_emptied && a->at == a->n[a->n_emptied % AHEAD_BUFFERS]) {
		a->n_emptied++;
		a->at = 0;
		(void)pthread_cond_signal(&a->changed);
	}
	while (a->n_filled == a->n_emptied && !a->ended)
		(void)pthread_cond_wait(&a->changed, &a->lock);
	if (a->n_filled > a->n_emptied) {
		*n = a->n[a->n_emptied % AHEAD_BUFFERS];
		bytes = a->bytes + a->n_emptied % AHEAD_BUFFERS * AHEAD_BUFFER;
	}
	(void)pthread_mutex_unlock(&a->lock);
	return bytes;
}

static long ahead_read(struct lag_stream *st, void *buf, size_t room, struct lag_err *err)
{
	struct ahead *a = (struct ahead *)st;
	const uint8_t *bytes;
	size_t n;

	if (!a->threaded && (a->n_alone < AHEAD_ALONE || a->no_thread || !start(a))) {
		long got = a->raw->read(a->raw, buf, room, err);

		a->n_alone += got > 0 ? (size_t)got : 0;
		a->base.damage = a->raw->damage;
		return got;
	}
	bytes = next_buffer(a, &n);
	if (!bytes) {
		/* The thread has ended: what it left is ours. */
		a->base.damage = a->raw->damage;
		if (a->last < 0 && err)
			*err = a->err;
		return a->last;
	}
	n -= a->at;
	n = n < room ? n : room;
	memcpy(buf, bytes + a->at, n);
	a->at += n;
	return (long)n;
}

static void ahead_close(struct lag_stream *st)
{
	struct ahead *a = (struct ahead *)st;

	if (a->threaded) {
		(void)pthread_mutex_lock(&a->lock);
		a->stop = true;
		(void)pthread_cond_signal(&a->changed);
		(void)pthread_mutex_unlock(&a->lock);
		(void)pthread_join(a->thread, NULL);
	}
	(void)pthread_cond_destroy(&a->changed);
	(void)pthread_mutex_destroy(&a->lock);
	free(a->bytes);
	free(a);
}

struct lag_stream *lag_ahead_open(struct lag_stream *raw, struct lag_err *err)
{
	struct ahead *a = lag_calloc(1, sizeof(*a));

	if (!a || pthread_mutex_init(&a->lock, NULL) != 0) {
		free(a);
		(void)lag_err_set(err, LAG_ERR_SYSTEM, "no memory to read ahead");
		return NULL;
	}
	(void)pthread_cond_init(&a->changed, NULL);
	a->base.read = ahead_read;
	a->base.close = ahead_close;
	a->raw = raw;
	return &a->base;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Activity buffers. API records go to a buffer of the calling thread (or one for all), device
 * records to one buffer, in the order in which the work ends; a place is set aside when it starts,
 * and a buffer with an open place is withheld until it is filled or the flush is forced.
 * The client's callbacks are always called with no lock of this file held. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/cupti/cu.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_OPEN   256
#define RECORD_MAX 256

struct buffer {
	struct buffer *next;
	uint8_t *data;
	size_t size, used, promised; /* bytes; promised to open places */
	size_t max_records, n;
	struct sim_op *open[MAX_OPEN]; /* references */
	unsigned n_open;
	bool sealed; /* takes no new place */
};

/* A thread's own buffer, or the shared one. */
struct lane {
	pthread_mutex_t lock;
	struct buffer *buffer;
	struct lane *next;
};

static struct {
	pthread_mutex_t lock; /* guards all below, and device buffers */
	CUpti_BuffersCallbackRequestFunc request;
	CUpti_BuffersCallbackCompleteFunc complete;
	struct lane *lanes;
	struct buffer *device; /* takes new places */
	struct buffer *held;   /* sealed, waiting for open places; oldest first */
	struct buffer *ready, **ready_tail;
	size_t dropped;
	uint64_t n_buffers;
	uint32_t worker_word, period_ms;
	bool worker;
} cu = { .lock = PTHREAD_MUTEX_INITIALIZER, .ready_tail = &cu.ready };

static struct lane shared_lane = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Thread_local struct lane *own_lane;

void cu_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request,
			 CUpti_BuffersCallbackCompleteFunc complete)
{
	pthread_mutex_lock(&cu.lock);
	cu.request = request;
	cu.complete = complete;
	pthread_mutex_unlock(&cu.lock);
}

bool cu_buffer_registered(void)
{
	return __atomic_load_n(&cu.request, __ATOMIC_RELAXED) != NULL;
}

static void drop(size_t n)
{
	__atomic_add_fetch(&cu.dropped, n, __ATOMIC_RELAXED);
}

size_t cu_dropped_take(void)
{
	return __atomic_exchange_n(&cu.dropped, 0, __ATOMIC_RELAXED);
}

/* Asks the client; NULL when it declines or there is no client. No lock held. */
static struct buffer *buffer_request(size_t need)
{
	CUpti_BuffersCallbackRequestFunc request = __atomic_load_n(&cu.request, __ATOMIC_RELAXED);
	struct buffer *b = calloc(1, sizeof *b);

	if (!b || !request) {
		free(b);
		return NULL;
	}
	cu_callback_enter();
	request(&b->data, &b->size, &b->max_records);
	cu_callback_leave();
	if (!b->data || b->size < need) {
		free(b);
		return NULL;
	}
	return b;
}

static bool has_room(const struct buffer *b, size_t bytes, size_t n)
{
	return b->used + b->promised + bytes <= b->size &&
	       (b->max_records == 0 || b->n + b->n_open + n <= b->max_records);
}

static void worker_wake(void)
{
	__atomic_add_fetch(&cu.worker_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &cu.worker_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The dropped-buffer fault: this share of buffers loses its records on the way. */
static bool lose(void)
{
	double p = sim_env_double("SIMGPU_DROP", 0.0);

	return p > 0.0 &&
	       sim_rand_uniform(SIM_RAND_DROP, (uint64_t)sim_env_rank() << 40 ^ cu.n_buffers) < p;
}

/* cu.lock held. */
static void make_ready(struct buffer *b)
{
	b->next = NULL;
	cu.n_buffers++;
	if (b->used > 0 && lose()) {
		drop(b->n);
		b->used = 0;
	}
	*cu.ready_tail = b;
	cu.ready_tail = &b->next;
}

/* One at a time, so that a flush returns only when what another thread delivers is delivered. */
static unsigned deliver_ready(void)
{
	unsigned n = 0;
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&one);
	for (;;) {
		pthread_mutex_lock(&cu.lock);
		struct buffer *b = cu.ready;
		CUpti_BuffersCallbackCompleteFunc complete = cu.complete;
		if (b) {
			cu.ready = b->next;
			if (!cu.ready) {
				cu.ready_tail = &cu.ready;
			}
		}
		pthread_mutex_unlock(&cu.lock);
		if (!b) {
			break;
		}
		n++;
		if (complete) {
			cu_callback_enter();
			complete(NULL, 0, b->data, b->size, b->used);
			cu_callback_leave();
		}
		free(b);
	}
	pthread_mutex_unlock(&one);
	return n;
}

static struct lane *lane_get(void)
{
	if (!cu_per_thread()) {
		return &shared_lane;
	}
	if (!own_lane) {
		struct lane *l = calloc(1, sizeof *l);
		if (!l) {
			abort();
		}
		pthread_mutex_init(&l->lock, NULL);
		pthread_mutex_lock(&cu.lock);
		l->next = cu.lanes;
		cu.lanes = l;
		pthread_mutex_unlock(&cu.lock);
		own_lane = l;
	}
	return own_lane;
}

static void retire(struct buffer *b)
{
	pthread_mutex_lock(&cu.lock);
	make_ready(b);
	pthread_mutex_unlock(&cu.lock);
	worker_wake();
}

void cu_put(const void *records, size_t bytes, unsigned n)
{
	struct lane *l = lane_get();
	struct buffer *full = NULL;

	pthread_mutex_lock(&l->lock);
	if (l->buffer && !has_room(l->buffer, bytes, n)) {
		full = l->buffer;
		l->buffer = NULL;
	}
	if (!l->buffer) {
		pthread_mutex_unlock(&l->lock);
		struct buffer *b = buffer_request(bytes);
		pthread_mutex_lock(&l->lock);
		if (l->buffer && b) { /* another thread on the shared lane was faster */
			retire(b);
		} else if (b) {
			l->buffer = b;
		}
	}
	if (l->buffer && has_room(l->buffer, bytes, n)) {
		memcpy(l->buffer->data + l->buffer->used, records, bytes);
		l->buffer->used += bytes;
		l->buffer->n += n;
	} else {
		drop(n);
	}
	pthread_mutex_unlock(&l->lock);
	if (full) {
		retire(full);
	}
}

/* cu.lock held. */
static void held_add(struct buffer *b)
{
	struct buffer **p = &cu.held;

	while (*p) {
		p = &(*p)->next;
	}
	b->next = NULL;
	b->sealed = true;
	*p = b;
}

/* cu.lock held. Seals the device buffer; it is ready at once when nothing in it is open. */
static void device_seal(void)
{
	struct buffer *b = cu.device;

	cu.device = NULL;
	if (!b) {
		return;
	}
	if (b->n_open > 0) {
		held_add(b);
	} else {
		make_ready(b);
		worker_wake();
	}
}

static bool place_in(struct buffer *b, size_t bytes)
{
	return b && b->n_open < MAX_OPEN && has_room(b, bytes, 1);
}

/* Called only by the one that delivers device notes, so buffers are asked for one at a time. */
void cu_slot_open(struct sim_op *op, size_t bytes)
{
	pthread_mutex_lock(&cu.lock);
	if (cu.device && !place_in(cu.device, bytes)) {
		device_seal();
	}
	if (!cu.device) {
		pthread_mutex_unlock(&cu.lock);
		struct buffer *b = buffer_request(bytes);
		pthread_mutex_lock(&cu.lock);
		cu.device = b;
	}
	struct buffer *b = cu.device;
	if (b) {
		b->open[b->n_open++] = sim_op_ref(op);
		b->promised += bytes;
	} else {
		drop(1);
	}
	op->cupti_slot = b;
	pthread_mutex_unlock(&cu.lock);
}

/* cu.lock held. */
static void place_fill(struct buffer *b, unsigned i, const void *record, size_t bytes)
{
	sim_op_unref(b->open[i]);
	b->open[i] = b->open[--b->n_open];
	b->promised -= bytes;
	memcpy(b->data + b->used, record, bytes);
	b->used += bytes;
	b->n++;
}

/* cu.lock held. */
static void held_release(void)
{
	struct buffer **p = &cu.held;

	while (*p) {
		struct buffer *b = *p;
		if (b->n_open == 0) {
			*p = b->next;
			make_ready(b);
			worker_wake();
		} else {
			p = &b->next;
		}
	}
}

void cu_slot_close(struct sim_op *op, const void *record, size_t bytes)
{
	pthread_mutex_lock(&cu.lock);
	struct buffer *b = op->cupti_slot;
	for (unsigned i = 0; b && i < b->n_open; i++) {
		if (b->open[i] == op) {
			op->cupti_slot = NULL;
			place_fill(b, i, record, bytes);
			break;
		}
	}
	if (b && b->sealed && b->n_open == 0) {
		held_release();
	}
	pthread_mutex_unlock(&cu.lock);
}

/* cu.lock held. Writes what is open without an end, as a forced flush does. */
static void force(struct buffer *b)
{
	while (b && b->n_open > 0) {
		uint8_t record[RECORD_MAX];
		struct sim_op *op = b->open[0];
		size_t bytes = cu_record_of(op, false, record, sizeof record);
		op->cupti_slot = NULL;
		place_fill(b, 0, record, bytes);
	}
}

static void lane_flush(struct lane *l)
{
	pthread_mutex_lock(&l->lock);
	struct buffer *b = l->buffer;
	l->buffer = NULL;
	pthread_mutex_unlock(&l->lock);
	if (b) {
		pthread_mutex_lock(&cu.lock);
		make_ready(b);
		pthread_mutex_unlock(&cu.lock);
	}
}

unsigned cu_flush(bool forced)
{
	sim_collect();
	pthread_mutex_lock(&cu.lock);
	if (forced) {
		force(cu.device);
		for (struct buffer *b = cu.held; b; b = b->next) {
			force(b);
		}
	}
	held_release();
	/* SIMGPU_CUPTI_SEAL=0: a buffer with open places goes on being filled after a flush. */
	if (cu.device && (cu.device->n_open == 0 || sim_env_i64("SIMGPU_CUPTI_SEAL", 1))) {
		device_seal();
	}
	struct lane *l = cu.lanes;
	pthread_mutex_unlock(&cu.lock);
	for (; l; l = l->next) {
		lane_flush(l);
	}
	lane_flush(&shared_lane);
	return deliver_ready();
}

static void *worker_main(void *arg)
{
	(void)arg;
	for (;;) {
		uint32_t seen = __atomic_load_n(&cu.worker_word, __ATOMIC_SEQ_CST);
		uint32_t ms = __atomic_load_n(&cu.period_ms, __ATOMIC_RELAXED);
		struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000L };
		if (ms) {
			sim_collect();
		}
		deliver_ready();
		syscall(SYS_futex, &cu.worker_word, FUTEX_WAIT_PRIVATE, seen, ms ? &t : NULL, NULL,
			0);
	}
	return NULL;
}

void cu_worker_start(void)
{
	pthread_t t;
	sigset_t all, old;

	pthread_mutex_lock(&cu.lock);
	bool start = !cu.worker;
	cu.worker = true;
	pthread_mutex_unlock(&cu.lock);
	if (!start) {
		return;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&t, NULL, worker_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		fprintf(stderr, "simgpu: cannot start CUPTI's worker thread\n");
		abort();
	}
	pthread_setname_np(t, "simgpu-cupti");
	pthread_detach(t);
}

void cu_worker_period(uint32_t ms)
{
	__atomic_store_n(&cu.period_ms, ms, __ATOMIC_RELAXED);
	worker_wake();
}

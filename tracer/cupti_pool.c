/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that CUPTI fills. take and complete run in CUPTI's callbacks on any thread: no lock, no
 * call back into CUPTI or CUDA. Completed buffers queue up for the writer thread. */
#include <sys/mman.h>

#include "tracer/cupti_api.h"
#include "tracer/writer.h"

/* Small buffers come back sooner: one that holds an unfinished kernel holds all its records back. */
#define BUFFER_BYTES (256u << 10)
#define N_BUFFERS    768u
#define WAKE_AT      16u

struct buffer {
	uint32_t next; /* index + 1, in the free list or the queue */
	size_t valid;
};

static struct {
	uint8_t *memory;
	struct buffer *buffers; /* N_BUFFERS of the pool */
	_Atomic uint64_t free;  /* tag << 32 | index + 1 */
	_Atomic uint32_t done;  /* stack of completed ones: index + 1 */
	_Atomic uint32_t n_done;
	_Atomic(struct extra *) done_extra;
	uint32_t order; /* the writer's: completed, oldest first */
	struct extra *order_extra;
} pool;

/* A buffer beyond the pool carries its own header. */
struct extra {
	struct extra *next;
	size_t valid;
};

#define EXTRA_HEAD 64u

static void push(_Atomic uint64_t *list, uint32_t index)
{
	uint64_t head = atomic_load_explicit(list, memory_order_relaxed);

	do {
		pool.buffers[index].next = (uint32_t)head;
	} while (!atomic_compare_exchange_weak_explicit(
		list, &head, ((head >> 32) + 1) << 32 | (index + 1), memory_order_release,
		memory_order_relaxed));
}

bool lag_cupti_pool_open(void)
{
	size_t n = (size_t)N_BUFFERS * BUFFER_BYTES, table = N_BUFFERS * sizeof(struct buffer);
	uint8_t *p = mmap(NULL, n + table, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if ((void *)p == MAP_FAILED)
		return false;
	pool.memory = p;
	pool.buffers = (struct buffer *)(void *)(p + n);
	for (uint32_t i = N_BUFFERS; i-- > 0;)
		push(&pool.free, i);
	return true;
}

uint8_t *lag_cupti_pool_take(size_t *size)
{
	uint64_t head = atomic_load_explicit(&pool.free, memory_order_acquire);

	do {
		if (!(uint32_t)head)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&pool.free, &head, ((head >> 32) + 1) << 32 | pool.buffers[(uint32_t)head - 1].next,
		memory_order_acquire, memory_order_acquire));
	*size = BUFFER_BYTES;
	return pool.memory + (size_t)((uint32_t)head - 1) * BUFFER_BYTES;
}

uint8_t *lag_cupti_pool_grow(size_t *size)
{
	uint8_t *p = mmap(NULL, BUFFER_BYTES + EXTRA_HEAD, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if ((void *)p == MAP_FAILED)
		return NULL;
	*size = BUFFER_BYTES;
	return p + EXTRA_HEAD;
}

static bool in_pool(const uint8_t *buffer)
{
	return buffer >= pool.memory && buffer < pool.memory + (size_t)N_BUFFERS * BUFFER_BYTES;
}

static void complete_extra(uint8_t *buffer, size_t valid)
{
	struct extra *x = (struct extra *)(void *)(buffer - EXTRA_HEAD);

	x->valid = valid;
	x->next = atomic_load(&pool.done_extra);
	while (!atomic_compare_exchange_weak(&pool.done_extra, &x->next, x))
		;
}

void lag_cupti_pool_complete(uint8_t *buffer, size_t valid)
{
	uint32_t index, head;

	if (!in_pool(buffer)) {
		complete_extra(buffer, valid);
		return;
	}
	index = (uint32_t)((size_t)(buffer - pool.memory) / BUFFER_BYTES);
	pool.buffers[index].valid = valid;
	head = atomic_load_explicit(&pool.done, memory_order_relaxed);
	/* Only ever emptied as a whole: no tag needed. */
	do {
		pool.buffers[index].next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&pool.done, &head, index + 1, memory_order_release, memory_order_relaxed));
	if (atomic_fetch_add_explicit(&pool.n_done, 1, memory_order_relaxed) + 1 == WAKE_AT)
		lag_writer_wake();
}

static void fetch(void)
{
	uint32_t index = atomic_exchange_explicit(&pool.done, 0, memory_order_acquire);
	struct extra *x = atomic_exchange(&pool.done_extra, NULL);

	atomic_store_explicit(&pool.n_done, 0, memory_order_relaxed);
	while (index) {
		uint32_t next = pool.buffers[index - 1].next;

		pool.buffers[index - 1].next = pool.order;
		pool.order = index;
		index = next;
	}
	while (x) {
		struct extra *next = x->next;

		x->next = pool.order_extra;
		pool.order_extra = x;
		x = next;
	}
}

uint8_t *lag_cupti_pool_next(size_t *valid)
{
	uint32_t index;

	if (!pool.order && !pool.order_extra)
		fetch();
	if (pool.order) {
		index = pool.order - 1;
		pool.order = pool.buffers[index].next;
		*valid = pool.buffers[index].valid;
		return pool.memory + (size_t)index * BUFFER_BYTES;
	}
	if (pool.order_extra) {
		struct extra *x = pool.order_extra;

		pool.order_extra = x->next;
		*valid = x->valid;
		return (uint8_t *)x + EXTRA_HEAD;
	}
	return NULL;
}

void lag_cupti_pool_give(uint8_t *buffer)
{
	if (in_pool(buffer)) {
		push(&pool.free, (uint32_t)((size_t)(buffer - pool.memory) / BUFFER_BYTES));
	} else {
		munmap(buffer - EXTRA_HEAD, BUFFER_BYTES + EXTRA_HEAD);
	}
}
